"""Pure core: the rows that DescribeConfigs answers with.

Observed on a real broker, and kept: keys that are set but not listed otherwise come first; then Kafka's
keys in the order of its hash map; then ours. A secret is never shown; a synonym's text is shown as it was written.

*Source:* Kafka 4.3.1 as observed (`tests/config/golden/describe_*.json`), `ConfigHelper`, KIP-226, KIP-524.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Final

from ..classes import frozen
from .broker import BrokerConfig, ConfigSource, Sourced
from .definitions import dynamic_only
from .keys import ConfigKey, Scope, UpdateMode
from .registry import listing_order
from .topic import resolve_key
from .values import render

if TYPE_CHECKING:
    from .registry import Registry

UNKNOWN_TYPE: Final = 0
"""The number of a type that nobody knows; for keys that another version wrote."""


@frozen
class ConfigRow:
    """One key in the answer to DescribeConfigs.

    Attributes:
        name: The key.
        value: Its effective value as a text; `None` when not set or secret.
        read_only: Whether a running broker refuses to change it.
        source: Where the value comes from.
        is_sensitive: Whether the value is secret.
        synonyms: Every value under a name that counts here, nearest first.
        type: The type's number on the wire, 0 for unknown.
        documentation: What the key does.
    """

    name: str
    value: str | None
    read_only: bool
    source: ConfigSource
    is_sensitive: bool
    synonyms: tuple[Sourced, ...]
    type: int
    documentation: str

    @property
    def is_default(self) -> bool:
        """Whether nobody set it."""
        return self.source is ConfigSource.DEFAULT


def describe_broker(config: BrokerConfig, names: Collection[str] = ()) -> list[ConfigRow]:
    """Describe the keys of a broker.

    Args:
        config: Its configuration.
        names: The keys that are asked for; none asks for all. Unknown ones are left out of the answer.
    """
    registry = config.registry
    listed = registry.listed(Scope.BROKER)
    return [
        _broker_row(config, name, key)
        for name, key in _with_extras(registry, Scope.BROKER, listed, _set_names(config), names)
    ]


def describe_cluster(config: BrokerConfig, names: Collection[str] = ()) -> list[ConfigRow]:
    """Describe the dynamic defaults of all brokers: what a broker resource without a name asks for.

    Only what is set is listed, with no other layer beside it.
    """
    rows = []
    for name in listing_order(list(config.cluster)):
        if names and name not in names:
            continue
        key = config.registry.find(Scope.BROKER, name)
        own = (Sourced(name, config.cluster[name], ConfigSource.DYNAMIC_DEFAULT_BROKER),)
        rows.append(_row(name, key, _normal(key, config.cluster[name]), own, read_only=_is_read_only(key)))
    return rows


def describe_topic(config: BrokerConfig, overrides: Mapping[str, str], names: Collection[str] = ()) -> list[ConfigRow]:
    """Describe the keys of a topic.

    Args:
        config: The broker's configuration, which stands in for what the topic does not set.
        overrides: What is set on the topic.
        names: The keys that are asked for; none asks for all.
    """
    return _describe_resource(config, Scope.TOPIC, overrides, ConfigSource.DYNAMIC_TOPIC, names)


def describe_group(config: BrokerConfig, overrides: Mapping[str, str], names: Collection[str] = ()) -> list[ConfigRow]:
    """Describe the keys of a group; see `describe_topic`."""
    return _describe_resource(config, Scope.GROUP, overrides, ConfigSource.GROUP, names)


def describe_client_metrics(
    config: BrokerConfig, overrides: Mapping[str, str], names: Collection[str] = ()
) -> list[ConfigRow]:
    """Describe the keys of a client metrics subscription; see `describe_topic`."""
    return _describe_resource(config, Scope.CLIENT_METRICS, overrides, ConfigSource.CLIENT_METRICS, names)


def _describe_resource(
    config: BrokerConfig,
    scope: Scope,
    overrides: Mapping[str, str],
    source: ConfigSource,
    names: Collection[str],
) -> list[ConfigRow]:
    rows = []
    listed = config.registry.listed(scope)
    for name, key in _with_extras(config.registry, scope, listed, overrides, names):
        value = overrides.get(name) if key is None else render(resolve_key(key, config, overrides))
        chain = [Sourced(name, value, source)] if name in overrides else []
        if key is not None:
            chain += synonym_chain(config, key.synonyms[0]) if key.synonyms else _own_default(key)
        rows.append(_row(name, key, value, tuple(chain), read_only=False))
    return rows


def synonym_chain(config: BrokerConfig, name: str) -> list[Sourced]:
    """Return every value that counts for a key of a broker, nearest first.

    Layer by layer, and within a layer synonym by synonym; what comes before the first entry of the key's own name is
    left out: `log.retention.ms`, which has no default, shows `log.retention.hours` only once it is set itself.
    """
    names = config.key(name).synonyms or (name,)
    found = [layer for synonym in names for layer in config.layers(synonym)]
    found.sort(key=lambda layer: layer.source)
    own = next((index for index, layer in enumerate(found) if layer.name == name), len(found))
    return found[own:]


def _own_default(key: ConfigKey) -> list[Sourced]:
    """Return what Kafka shows for a group's key that no broker's key stands in for; for other resources nothing."""
    if key.scope is Scope.GROUP:
        return [Sourced(key.name, key.default_text, ConfigSource.DEFAULT)]
    return []


def _set_names(config: BrokerConfig) -> set[str]:
    return {*config.static, *config.cluster, *config.broker}


def _with_extras(
    registry: Registry, scope: Scope, listed: list[ConfigKey], set_names: Iterable[str], names: Collection[str]
) -> list[tuple[str, ConfigKey | None]]:
    """Put keys that are set and not listed (internal, of one listener, of another version) before the listed ones."""
    known = {key.name for key in listed}
    extras = listing_order([name for name in sorted(set_names) if name not in known])
    rows = [(name, registry.find(scope, name)) for name in extras] + [(key.name, key) for key in listed]
    return [row for row in rows if not names or row[0] in names]


def _broker_row(config: BrokerConfig, name: str, key: ConfigKey | None) -> ConfigRow:
    if key is None:
        layers = ((config.broker, ConfigSource.DYNAMIC_BROKER), (config.cluster, ConfigSource.DYNAMIC_DEFAULT_BROKER))
        chain = tuple(Sourced(name, None, source) for layer, source in layers if name in layer)
        return _row(name, None, None, chain, read_only=True)
    found = synonym_chain(config, name)
    if name in dynamic_only.NAMES:
        found = [layer for layer in found if layer.source is not ConfigSource.DEFAULT]
    return _row(name, key, render(config.value(name)), tuple(found), read_only=_is_read_only(key))


def _is_read_only(key: ConfigKey | None) -> bool:
    return key is None or key.update_mode is UpdateMode.READ_ONLY


def _normal(key: ConfigKey | None, text: str) -> str | None:
    """Write a text as its value is written; as it is where it has none."""
    if key is None:
        return text
    try:
        return render(key.parse(text))
    except ValueError:
        return text


def _row(
    name: str, key: ConfigKey | None, value: str | None, chain: tuple[Sourced, ...], *, read_only: bool
) -> ConfigRow:
    is_sensitive = key is None or key.is_sensitive
    if is_sensitive:
        value = None
        chain = tuple(layer._replace(text=None) for layer in chain)
    return ConfigRow(
        name,
        value,
        read_only,
        chain[0].source if chain else ConfigSource.DEFAULT,
        is_sensitive,
        chain,
        UNKNOWN_TYPE if key is None else int(key.type),
        "" if key is None else key.doc,
    )
