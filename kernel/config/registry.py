"""Pure core: all known keys by scope and name, and what to say of a name that is not among them.

*Source:* Kafka 4.3 `DescribeConfigs` as observed (the order of its rows), `ConfigDef`.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Final

import attrs

from ..classes import frozen
from ..errors import ConfigError, PluginError
from .definitions import KAFKA_KEYS, OWN_KEYS, UNLISTED_KEYS
from .keys import ConfigKey, Scope, UpdateMode
from .values import ListOf, OneOf

if TYPE_CHECKING:
    from ..contracts.cleanup import CleanupPolicy

_OF_ONE_LISTENER: Final = re.compile(r"listener\.name\.([^.]+)\.(.+)")
_OF_ONE_MECHANISM: Final = re.compile(r"[^.]+\.(sasl\..+|connections\.max\.reauth\.ms)")
_PLUGIN_PREFIXES: Final = ("rsm.config.", "rlmm.config.")


def _wrong_key(plugin: str, message: str) -> PluginError:
    return PluginError(plugin, message, hook="odradek_config_keys")


@frozen
class Registry:
    """All known keys: Kafka's, then ours, then the plugins'.

    Immutable; one for the life of a broker.

    Attributes:
        keys: Scope to name to key, in the order of definition.
        cleanup_policies: What plugins offer, by the names that `cleanup.policy` takes.
    """

    keys: Mapping[Scope, Mapping[str, ConfigKey]]
    cleanup_policies: Mapping[str, CleanupPolicy] = attrs.field(factory=dict)

    @classmethod
    def of(cls, plugin_keys: Iterable[tuple[str, ConfigKey]] = ()) -> Registry:
        """Collect the built-in keys and those that plugins add.

        Args:
            plugin_keys: Each with the plugin's name.

        Raises:
            PluginError: Two keys of one scope share a name, or a plugin's key does not begin with `odradek.`.
        """
        keys: dict[Scope, dict[str, ConfigKey]] = {scope: {} for scope in Scope}
        for key in (*KAFKA_KEYS, *UNLISTED_KEYS, *OWN_KEYS):
            keys[key.scope][key.name] = key
        owners: dict[tuple[Scope, str], str] = {}
        for plugin, key in plugin_keys:
            if not key.name.startswith("odradek."):
                raise _wrong_key(plugin, f"its {key.scope.value} key {key.name!r} does not begin with 'odradek.'")
            if key.name in keys[key.scope]:
                owner = owners.get((key.scope, key.name))
                whose = "the kernel's already" if owner is None else f"plugin {owner!r}'s already: disable one of them"
                raise _wrong_key(plugin, f"its {key.scope.value} key {key.name!r} is {whose}")
            keys[key.scope][key.name] = key
            owners[key.scope, key.name] = plugin
        return cls(keys)

    def find(self, scope: Scope, name: str) -> ConfigKey | None:
        """Return a key, or `None` when the name is unknown.

        A broker's key may be set for one listener, as `listener.name.<listener>.<key>`: the key comes back under the
        name that was asked for, without a default, and the key it came from stands in.
        """
        key = self.keys[scope].get(name)
        if key is not None or scope is not Scope.BROKER:
            return key
        if of_listener := listener_and_key(name):
            base = self.keys[scope].get(of_listener[1])
            return (
                None
                if base is None
                else attrs.evolve(
                    base, name=name, default=None, synonyms=(name, base.name), update_mode=UpdateMode.READ_ONLY
                )
            )
        if name.startswith(_PLUGIN_PREFIXES):
            base = self.keys[scope]["remote.log.storage.manager.class.path"]
            return attrs.evolve(base, name=name, synonyms=(name,))
        return None

    def get(self, scope: Scope, name: str, where: str = "") -> ConfigKey:
        """Return a key.

        Args:
            scope: What it is set on.
            name: Its name.
            where: The file and line, variable or option that names it, for the error.

        Raises:
            ConfigError: Nobody knows it; the hint names what was probably meant, or who lists them all.
        """
        key = self.find(scope, name)
        if key is None:
            hint = self.hint(scope, name) or "odradek config describe lists them"
            raise ConfigError(f"unknown {scope.value} key {name!r}", where=where, hint=hint)
        return key

    def without_effect(self, scope: Scope, names: Iterable[str]) -> Iterator[tuple[str, str]]:
        """Yield each of the keys that belongs to a part that is not built, with a line that says so."""
        for name in names:
            key = self.find(scope, name)
            if key is not None and not key.part.stands:
                yield name, f"{name} {key.part.text}; {key.part.effect}"

    def hint(self, scope: Scope, name: str) -> str:
        """Say what was probably meant by an unknown name; may be empty."""
        from . import retired  # read on the way to an error only: no start pays for it

        told = retired.HINTS.get((scope, name)) or retired.HINTS.get((None, name))
        if told:
            return told
        if name in retired.CLIENT_KEYS:
            return "that key belongs to a client's configuration, the broker has no such setting"
        return self._counterpart(scope, name) or self._nearest(scope, name)

    def _counterpart(self, scope: Scope, name: str) -> str:
        """Say so when the name belongs to another scope."""
        if scope is Scope.BROKER and (topic_key := self.keys[Scope.TOPIC].get(name)):
            if topic_key.synonyms:
                return f"that is a topic's name for it; the broker's is {topic_key.synonyms[0]!r}"
            return "that key is set on a topic"
        if scope is Scope.TOPIC and name in self.keys[Scope.BROKER]:
            for key in self.keys[Scope.TOPIC].values():
                if name in key.synonyms:
                    return f"that is the broker's name for it; the topic's is {key.name!r}"
            return "that key is set on the broker"
        if name in self.keys[Scope.GROUP]:
            return f"that key is set on a group; the broker's is {'group.' + name!r}"
        return ""

    def _nearest(self, scope: Scope, name: str) -> str:
        import difflib  # takes 10 ms to import

        known = [key.name for key in self.keys[scope].values() if not key.is_internal]
        nearest = difflib.get_close_matches(name, known, n=1, cutoff=0.7)
        return f"did you mean {nearest[0]!r}?" if nearest else ""

    def with_choices(self, name: str, choices: Iterable[str]) -> Registry:
        """Return the registry with a key, wherever it is set, bound to what plugins offer.

        Args:
            name: Such as `odradek.storage`.
            choices: The names that are offered.
        """
        offered = tuple(choices)
        keys = {
            scope: {**known, name: _bound(known[name], offered)} if name in known else known
            for scope, known in self.keys.items()
        }
        return attrs.evolve(self, keys=keys)

    def with_cleanup_policies(self, policies: Mapping[str, CleanupPolicy]) -> Registry:
        """Return the registry with `cleanup.policy` bound to the policies that plugins offer."""
        names = sorted(policies)
        bound = self.with_choices("cleanup.policy", names).with_choices("log.cleanup.policy", names)
        return attrs.evolve(bound, cleanup_policies=policies)

    def listed(self, scope: Scope) -> list[ConfigKey]:
        """Return the keys that DescribeConfigs shows, in its order: Kafka's, then all others by name."""
        theirs = [key for key in KAFKA_KEYS if key.scope is scope]
        ours = sorted(key.name for key in self.keys[scope].values() if key.name.startswith("odradek."))
        keys = (self.keys[scope][name] for name in (*listing_order([key.name for key in theirs]), *ours))
        return [key for key in keys if not key.is_internal]


def listener_and_key(name: str) -> tuple[str, str] | None:
    """Take `listener.name.<listener>.<key>` apart, also `listener.name.<listener>.<SASL mechanism>.<key>`.

    Returns:
        The listener as it was written and the key of all listeners, or `None` for a name of any other form.
    """
    if not (match := _OF_ONE_LISTENER.fullmatch(name)):
        return None
    of_mechanism = _OF_ONE_MECHANISM.fullmatch(match[2])
    return match[1], of_mechanism[1] if of_mechanism else match[2]


_ENABLE: Final = "; others need a plugin that offers them"


def _bound(key: ConfigKey, choices: tuple[str, ...]) -> ConfigKey:
    if isinstance(key.validator, ListOf):
        return attrs.evolve(key, validator=attrs.evolve(key.validator, choices=choices, remedy=_ENABLE))
    return attrs.evolve(key, validator=OneOf(choices))


def listing_order(names: list[str]) -> list[str]:
    """Put names into the order of Kafka's answers: that of a Java `HashMap` filled with them one by one.

    Clients do not count on it; comparing answers with a real broker's field by field is simpler this way.
    """
    capacity = 16
    while len(names) > capacity * 3 // 4:
        capacity *= 2
    return sorted(names, key=lambda name: _java_hash(name) & (capacity - 1))


def _java_hash(text: str) -> int:
    result = 0
    for character in text:
        result = (result * 31 + ord(character)) & 0xFFFFFFFF
    return result ^ (result >> 16)


@functools.cache
def builtin_registry() -> Registry:
    """Return the registry without plugins' keys; made once."""
    return Registry.of()
