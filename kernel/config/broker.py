"""Pure core: the configuration of a broker, resolved from its layers, each value with its source.

Layers, nearest first: dynamic for this broker, dynamic for the cluster (both from the metadata log), static (command
line over environment over file, already merged), default. A new dynamic layer makes a new `BrokerConfig`; holders of
the old one keep a consistent view.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from pathlib import PurePath
from typing import TYPE_CHECKING, Final, NamedTuple

import attrs

from ..classes import frozen
from ..errors import ConfigError
from .definitions.odradek import TIERED, TIERED_OVER
from .definitions.synonyms import in_milliseconds
from .keys import Scope
from .listeners import warnings_of_listeners
from .values import InvalidValueError, render

if TYPE_CHECKING:
    from .keys import ConfigKey
    from .registry import Registry
    from .values import Value

_NOTHING: Final[Mapping[str, str]] = {}


class ConfigSource(IntEnum):
    """Where a value comes from, by Kafka's numbers in DescribeConfigs."""

    UNKNOWN = 0
    DYNAMIC_TOPIC = 1
    DYNAMIC_BROKER = 2
    DYNAMIC_DEFAULT_BROKER = 3
    STATIC_BROKER = 4
    DEFAULT = 5
    DYNAMIC_BROKER_LOGGER = 6
    CLIENT_METRICS = 7
    GROUP = 8


class Setting(NamedTuple):
    """A text that somebody gave for a key, and where: file and line, variable, or option."""

    text: str
    where: str


class Sourced(NamedTuple):
    """A value under the name and the source it comes from; the text is `None` for "not set"."""

    name: str
    text: str | None
    source: ConfigSource


@frozen(eq=False, repr=False)
class BrokerConfig:
    """A broker's effective configuration. Immutable; owned by nobody, shared by all.

    Reading is a dictionary look-up after the first time. What the hot path needs is taken once into attributes.

    Attributes:
        registry: All known keys.
        static: What the operator set, by name.
        cluster: The dynamic layer for all brokers, as texts.
        broker: The dynamic layer for this broker, as texts.
        defaults: Defaults that depend on the machine, over those of the registry.
    """

    registry: Registry
    static: Mapping[str, Setting] = attrs.field(factory=dict)
    cluster: Mapping[str, str] = _NOTHING
    broker: Mapping[str, str] = _NOTHING
    defaults: Mapping[str, str] = _NOTHING
    _cache: dict[str, Value] = attrs.field(factory=dict, init=False, repr=False)

    def __attrs_post_init__(self) -> None:
        for name, setting in self.static.items():
            self._check_static(name, setting)

    def _check_static(self, name: str, setting: Setting) -> None:
        key = self.registry.get(Scope.BROKER, name, setting.where)
        try:
            value = key.parse(setting.text)
        except InvalidValueError as error:
            raise ConfigError(str(error), where=setting.where, hint=key.doc) from error
        if key.refused_because and value != key.default:
            raise ConfigError(f"{name} is refused: {key.refused_because}", where=setting.where, hint="remove it")

    def __repr__(self) -> str:
        # Values may be secrets.
        dynamic = len(self.cluster) + len(self.broker)
        return f"<BrokerConfig of node {self.node_id}, {len(self.static)} static, {dynamic} dynamic>"

    def with_dynamic(self, *, cluster: Mapping[str, str], broker: Mapping[str, str]) -> BrokerConfig:
        """Return the configuration with other dynamic layers.

        Args:
            cluster: Name to text, for all brokers.
            broker: Name to text, for this broker.
        """
        return attrs.evolve(self, cluster=dict(cluster), broker=dict(broker))

    def layers(self, name: str) -> list[Sourced]:
        """Return every value given under one name, nearest first; the default last, if there is one."""
        found = []
        if name in self.broker:
            found.append(Sourced(name, self.broker[name], ConfigSource.DYNAMIC_BROKER))
        if name in self.cluster:
            found.append(Sourced(name, self.cluster[name], ConfigSource.DYNAMIC_DEFAULT_BROKER))
        if name in self.static:
            found.append(Sourced(name, self.static[name].text, ConfigSource.STATIC_BROKER))
        default = self.defaults.get(name, self.key(name).default_text)
        if default is not None:
            found.append(Sourced(name, default, ConfigSource.DEFAULT))
        return found

    def key(self, name: str) -> ConfigKey:
        """Return the definition of a key.

        Raises:
            ConfigError: Nobody knows it.
        """
        return self.registry.get(Scope.BROKER, name)

    def is_set(self, name: str) -> bool:
        """Return whether somebody gave the key a value, in any layer but the default."""
        return name in self.broker or name in self.cluster or name in self.static

    def where(self, name: str) -> str:
        """Return the file and line, variable or option that set a key; empty for other layers."""
        return self.static[name].where if name in self.static else ""

    def value(self, name: str) -> Value:
        """Return the effective value of a key, parsed.

        Raises:
            ConfigError: Nobody knows the key.
        """
        try:
            return self._cache[name]
        except KeyError:
            value = self._cache[name] = self._resolve(name)
            return value

    def _resolve(self, name: str) -> Value:
        key = self.key(name)
        for layer in self.layers(name):
            assert layer.text is not None, "a layer holds a text"
            try:
                return key.parse(layer.text)
            except InvalidValueError:
                # Static values were checked at the start. A dynamic one that this version refuses (the log was written
                # by another) must not stop the broker: the next layer stands in.
                continue
        return key.default

    def get_int(self, name: str) -> int:
        """Return the effective value of a whole-number key that has one."""
        value = self.value(name)
        assert isinstance(value, int), f"{name} is no number"
        return value

    def get_float(self, name: str) -> float:
        """Return the effective value of a double key that has one."""
        value = self.value(name)
        assert isinstance(value, float), f"{name} is no double"
        return value

    def get_bool(self, name: str) -> bool:
        """Return the effective value of a boolean key."""
        value = self.value(name)
        assert isinstance(value, bool), f"{name} is no boolean"
        return value

    def get_text(self, name: str) -> str:
        """Return the effective value of a text key; empty when it is not set."""
        value = self.value(name)
        assert value is None or isinstance(value, str), f"{name} is no text"
        return value or ""

    def get_list(self, name: str) -> tuple[str, ...]:
        """Return the effective value of a list key; empty when it is not set."""
        value = self.value(name)
        assert value is None or isinstance(value, tuple), f"{name} is no list"
        return value or ()

    def first_of(self, names: tuple[str, ...]) -> Value:
        """Return the value of the first key that has one, hours and minutes turned into milliseconds."""
        for name in names:
            value = self.value(name)
            if value is not None:
                return in_milliseconds(self.key(name), value) if type(value) is int and len(names) > 1 else value
        return None

    @property
    def node_id(self) -> int:
        """This broker's id."""
        return self.get_int("node.id")

    @property
    def log_dirs(self) -> tuple[str, ...]:
        """The directories of partition logs, `log.dirs` before `log.dir`; at least one."""
        return self.get_list("log.dirs") or self.get_list("log.dir")

    @property
    def metadata_log_dir(self) -> str:
        """The directory of the metadata log: `metadata.log.dir`, otherwise the first of the log directories."""
        return self.get_text("metadata.log.dir") or self.log_dirs[0]

    @property
    def storage(self) -> str:
        """The storage of logs that choose none: `odradek.storage`, without the tier that it may be short for."""
        name = self.get_text("odradek.storage")
        return TIERED_OVER if name == TIERED else name

    @property
    def reserved_dirs(self) -> tuple[str, ...]:
        """`metadata.log.dir` when it is none of the log directories: it takes the metadata log and no other."""
        is_known = PurePath(self.metadata_log_dir) in map(PurePath, self.log_dirs)
        return () if is_known else (self.metadata_log_dir,)

    def warnings(self) -> list[str]:
        """Return a line for every key that was set and belongs to a part that is not built, or to no listener."""
        found = self.registry.without_effect(Scope.BROKER, self.static)
        return [*(f"{self.static[name].where}: {line}" for name, line in found), *warnings_of_listeners(self)]

    def shown(self, name: str) -> str | None:
        """Return the effective value as a text, for people; secrets are hidden."""
        if self.key(name).is_sensitive and self.is_set(name):
            return "[hidden]"
        return render(self.value(name))
