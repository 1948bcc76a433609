"""Pure core: which combinations of settings `--vary` and `--set` mean.

    --vary odradek.storage=segment,memory --vary cleanup.policy=delete,compact,compact+delete

gives six. A key belongs to the topic or to the broker: its definition says so, whoever brings it, so that what a new
plugin offers can be varied from the day it is installed. In a key that is a list, `+` joins entries of one value.
"""

from __future__ import annotations

import difflib
import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

import attrs

from odradek.kernel.config.keys import Scope
from odradek.kernel.config.values import ConfigType, InvalidValueError
from odradek.kernel.errors import ConfigError

if TYPE_CHECKING:
    from odradek.kernel.config.keys import ConfigKey
    from odradek.kernel.config.registry import Registry

COMBINATIONS_MAX: Final = 64
SECRET: Final = "(secret)"

OWN_KEYS: Final = frozenset(
    {
        "advertised.listeners",
        "broker.id",
        "controller.listener.names",
        "controller.quorum.bootstrap.servers",
        "controller.quorum.voters",
        "listener.security.protocol.map",
        "listeners",
        "log.dir",
        "log.dirs",
        "metadata.log.dir",
        "node.id",
    }
)
"""Keys that compare sets itself: every run has a broker with a folder and a port of its own."""


@attrs.frozen
class Choice:
    """A key and one of its values.

    Attributes:
        key: Its name.
        scope: Whether it is set on the topic or on the broker.
        value: As the broker reads it.
        is_secret: Whether the value is to be shown to nobody.
    """

    key: str
    scope: Scope
    value: str
    is_secret: bool = False

    @property
    def shown(self) -> str:
        """The value as a report has it."""
        return SECRET if self.is_secret else self.value


@attrs.frozen
class Combination:
    """What one broker and its topic are run with.

    Attributes:
        varied: One choice for each `--vary`, in their order.
        topic: All settings of the topic.
        broker: All settings of the broker.
        secrets: The keys among them whose values are to be shown to nobody.
        fault: What happens to the brokers of a cluster meanwhile; empty where one broker is compared.
    """

    varied: tuple[Choice, ...]
    topic: Mapping[str, str]
    broker: Mapping[str, str]
    secrets: frozenset[str] = frozenset()
    fault: str = ""

    @property
    def label(self) -> str:
        """Its name in tables: the values, with their keys where a value alone says nothing, and the fault."""
        return " · ".join([*(_label(choice) for choice in self.varied), *([self.fault] if self.fault else [])])

    @property
    def shown_settings(self) -> dict[str, dict[str, str]]:
        """All settings as a report has them, those of the topic and those of the broker."""
        tables = {Scope.TOPIC: self.topic, Scope.BROKER: self.broker}
        return {
            scope.value: {key: SECRET if key in self.secrets else text for key, text in settings.items()}
            for scope, settings in tables.items()
        }


@attrs.frozen
class Variations:
    """What was asked for.

    Attributes:
        varied: The choices of each `--vary`, in order.
        fixed: What `--set` gives to all.
    """

    varied: tuple[tuple[Choice, ...], ...]
    fixed: tuple[Choice, ...]

    @classmethod
    def read(cls, vary: Sequence[str], fixed: Sequence[str], registry: Registry) -> Variations:
        """Read the options.

        Args:
            vary: `key=value,value` texts.
            fixed: `key=value` texts.
            registry: All known keys, with what plugins offer as values.

        Raises:
            ConfigError: A key or a value is unknown (with the nearest that is known), given twice, or missing; or there
                are more than `COMBINATIONS_MAX` combinations.
        """
        varied = tuple(_read_vary(text, registry) for text in vary)
        given = tuple(_read_fixed(text, registry) for text in fixed)
        seen: set[str] = set()
        for option, choices in (*(("--vary", some) for some in varied), *(("--set", (one,)) for one in given)):
            key = choices[0].key
            if key in seen:
                raise ConfigError("the key is given twice", where=f"{option} {key}", hint="name it once")
            seen.add(key)
        found = cls(varied, given)
        if found.count > COMBINATIONS_MAX:
            raise ConfigError(
                f"these are {found.count} combinations, more than {COMBINATIONS_MAX}", where="--vary", hint="vary less"
            )
        return found

    @property
    def count(self) -> int:
        """How many combinations there are."""
        count = 1
        for choices in self.varied:
            count *= len(choices)
        return count

    def combinations(
        self, topic: Mapping[str, str], broker: Mapping[str, str], implied: Mapping[tuple[str, str], Sequence[Choice]]
    ) -> list[Combination]:
        """Return all combinations, the last `--vary` changing fastest.

        Args:
            topic: Settings of the topic that hold where nothing else is said.
            broker: Likewise of the broker.
            implied: What a choice (key, value) needs besides, where nothing else is said.
        """
        found = []
        for varied in itertools.product(*self.varied):
            said = (*self.fixed, *varied)
            needed = [one for choice in said for one in implied.get((choice.key, choice.value), ())]
            merged: dict[Scope, dict[str, str]] = {Scope.TOPIC: dict(topic), Scope.BROKER: dict(broker)}
            for choice in (*needed, *said):
                merged[choice.scope][choice.key] = choice.value
            secrets = frozenset(choice.key for choice in said if choice.is_secret)
            found.append(Combination(varied, merged[Scope.TOPIC], merged[Scope.BROKER], secrets))
        return found


def under_faults(combinations: Iterable[Combination], faults: Sequence[str]) -> list[Combination]:
    """Return every combination with every fault; those of one fault stand together.

    Raises:
        ConfigError: There are more than `COMBINATIONS_MAX`.
    """
    found = list(combinations)
    if len(found) * len(faults) > COMBINATIONS_MAX:
        count = len(found) * len(faults)
        raise ConfigError(f"these are {count} combinations, more than {COMBINATIONS_MAX}", where="--faults")
    return [attrs.evolve(combination, fault=fault) for fault in faults for combination in found]


def _label(choice: Choice) -> str:
    value = choice.shown.replace(",", "+")
    speaks = any(letter.isalpha() for letter in value) and value not in {"true", "false"}
    return value if speaks else f"{choice.key}={value}"


def _read_vary(text: str, registry: Registry) -> tuple[Choice, ...]:
    name, key, given = _split(text, "--vary", "--vary odradek.storage=segment,memory", registry)
    where = f"--vary {name}"
    values = [value.strip() for value in given.split(",")]
    if key.type is ConfigType.LIST:
        values = [value.replace("+", ",") for value in values]
    if "" in values:
        raise ConfigError("a value is empty", where=where, hint=f"--vary {name}=one,another")
    twice = next((value for value in values if values.count(value) > 1), None)
    if twice is not None:
        raise ConfigError(f"the value {twice!r} is given twice", where=where)
    return tuple(_choice(key, value, where) for value in values)


def _read_fixed(text: str, registry: Registry) -> Choice:
    name, key, value = _split(text, "--set", "--set segment.bytes=1048576", registry)
    return _choice(key, value.strip(), f"--set {name}")


def _split(text: str, option: str, example: str, registry: Registry) -> tuple[str, ConfigKey, str]:
    name, separator, rest = text.partition("=")
    name = name.strip()
    if not separator or not name:
        raise ConfigError("expected key=value", where=f"{option} {text}", hint=example)
    return name, find_key(registry, name, f"{option} {name}"), rest


def find_key(registry: Registry, name: str, where: str) -> ConfigKey:
    """Return a key of a topic, or else of a broker.

    Raises:
        ConfigError: Nobody knows it, or it is compare's own.
    """
    if name in OWN_KEYS:
        raise ConfigError("every broker that is compared gets its own", where=where, hint="leave it out")
    for scope in (Scope.TOPIC, Scope.BROKER):
        key = registry.find(scope, name)
        if key is not None:
            return key
    hint = registry.hint(Scope.TOPIC, name) or registry.hint(Scope.BROKER, name)
    raise ConfigError(f"unknown key {name!r}", where=where, hint=hint or "odradek config describe")


def _choice(key: ConfigKey, value: str, where: str) -> Choice:
    """Return a choice whose value is one.

    Raises:
        ConfigError: It is not; with the nearest that is, where there is a list of them.
    """
    try:
        parsed = key.parse(value)
    except InvalidValueError as error:
        raise ConfigError(str(error), where=where, hint=_nearest(key, value)) from error
    if key.refused_because and parsed != key.default:
        raise ConfigError(f"{value!r} is refused: {key.refused_because}", where=where)
    return Choice(key.name, key.scope, value, key.is_sensitive)


def _nearest(key: ConfigKey, value: str) -> str:
    """Say what was probably meant."""
    choices: Iterable[str] = getattr(key.validator, "choices", ())
    for entry in value.split(","):
        if entry not in choices and (near := difflib.get_close_matches(entry, list(choices), n=1)):
            return f"did you mean {near[0]!r}?"
    return "a plugin may offer more: odradek plugins list" if choices else f"odradek config describe {key.name}"
