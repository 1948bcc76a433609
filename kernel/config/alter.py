"""Pure core: what AlterConfigs, IncrementalAlterConfigs and CreateTopics may set, and what comes out of it.

Every refusal is a `KafkaError` that an answer carries as it is: INVALID_CONFIG for a topic's or group's values,
INVALID_REQUEST for a broker's, as a real broker does.

*Source:* Kafka 4.3.1 as observed (`tests/config/golden/alter.json`), KIP-226, KIP-339.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import IntEnum
from typing import TYPE_CHECKING, Final, NamedTuple

from ..errors import ConfigError, ErrorCode, KafkaError
from ..wire.varint import STRING_BYTES_MAX
from .checks import check_together
from .client_metrics import check_client_metrics
from .keys import ConfigKey, Scope, UpdateMode, without_repetition
from .thread_pools import check_thread_pools
from .topic import check_topic, resolve_key
from .values import ConfigType, InvalidValueError, Value, render

if TYPE_CHECKING:
    from .broker import BrokerConfig


class AlterConfigOp(IntEnum):
    """What IncrementalAlterConfigs does to a key."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


_EDITS: Final = frozenset({AlterConfigOp.APPEND, AlterConfigOp.SUBTRACT})


class Alteration(NamedTuple):
    """One key of a request; `text` is `None` where the wire has null."""

    name: str
    operation: int
    text: str | None


def check_texts(alterations: Sequence[Alteration]) -> None:
    """Refuse keys that come twice and keys set to null.

    `alter_topic` and the others refuse them too; Kafka does so before it looks at what is to be altered.

    Raises:
        KafkaError: There is such a key.
    """
    names = [alteration.name for alteration in alterations]
    if len(set(names)) != len(names):
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Error due to duplicate config keys")
    missing = [a.name for a in alterations if a.text is None and a.operation != AlterConfigOp.DELETE]
    if missing:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Null value not supported for : {', '.join(missing)}")


def check_edits(config: BrokerConfig, scope: Scope, alterations: Sequence[Alteration]) -> None:
    """Refuse to edit as a list what is none.

    `alter_topic` and the others refuse it too; Kafka does so before it looks at the name of what is to be altered.

    Raises:
        KafkaError: There is such an alteration.
    """
    check_edit = _check_edit_of_broker if scope is Scope.BROKER else _check_edit
    for name, operation, _ in alterations:
        if operation not in {AlterConfigOp.SET, AlterConfigOp.DELETE}:
            # Kafka knows no types of what clients are asked for: its lists are set as a whole.
            key = None if scope is Scope.CLIENT_METRICS else config.registry.find(scope, name)
            check_edit(name, key, operation)


def alter_topic(
    config: BrokerConfig, overrides: Mapping[str, str], alterations: Sequence[Alteration]
) -> dict[str, str]:
    """Apply alterations to what is set on a topic, and check the result.

    Args:
        config: The broker's configuration: APPEND and SUBTRACT begin with what stands in.
        overrides: What is set on the topic now.
        alterations: What to do.

    Returns:
        What is to be set on the topic afterwards.

    Raises:
        KafkaError: An alteration is not possible; nothing is to be changed then.
    """
    keys = config.registry.keys[Scope.TOPIC]
    after = _apply(config, Scope.TOPIC, overrides, alterations, lambda key: resolve_key(key, config, overrides))
    _check_kept(keys, config, overrides, after)
    check_topic(config, after, overrides)
    return after


def replace_topic(
    config: BrokerConfig, overrides: Mapping[str, str], texts: Mapping[str, str | None]
) -> dict[str, str]:
    """Replace all that is set on a topic (AlterConfigs); see `alter_topic`."""
    return alter_topic(config, overrides, _replacing(overrides, texts))


def alter_group(
    config: BrokerConfig, overrides: Mapping[str, str], alterations: Sequence[Alteration]
) -> dict[str, str]:
    """Apply alterations to what is set on a group; see `alter_topic`.

    A value must keep to the broker's bounds; see `group_bounds`.
    """
    from .group_bounds import broken_bound  # who sets something on a group pays for it, no start does

    keys = config.registry.keys[Scope.GROUP]
    after = _apply(config, Scope.GROUP, overrides, alterations, lambda key: resolve_key(key, config, overrides))
    for name, text in after.items():
        key = keys.get(name)
        if key is None:
            raise KafkaError(ErrorCode.INVALID_CONFIG, f"Unknown group config name: {name}")
        value = _parse(key, text, ErrorCode.INVALID_CONFIG)
        bound = broken_bound(config, name, value)
        if bound is not None:
            word = "greater" if bound.is_minimum else "less"
            raise KafkaError(ErrorCode.INVALID_CONFIG, f"{name} must be {word} than or equal to {bound.key}")
    return after


def alter_client_metrics(
    config: BrokerConfig, overrides: Mapping[str, str], alterations: Sequence[Alteration]
) -> dict[str, str]:
    """Apply alterations to what is set on a client metrics subscription; see `check_client_metrics`."""
    keys = config.registry.keys[Scope.CLIENT_METRICS]
    after = _apply(
        config, Scope.CLIENT_METRICS, overrides, alterations, lambda key: resolve_key(key, config, overrides)
    )
    check_client_metrics(keys, after)
    return after


def alter_broker(config: BrokerConfig, alterations: Sequence[Alteration], *, whole_cluster: bool) -> dict[str, str]:
    """Apply alterations to a dynamic layer of the broker, and check the result.

    Args:
        config: The broker's configuration.
        alterations: What to do.
        whole_cluster: Whether the layer is the one for all brokers, otherwise this broker's own.

    Returns:
        The layer as it is to be afterwards.

    Raises:
        KafkaError: An alteration is not possible; nothing is to be changed then.
    """
    layer = config.cluster if whole_cluster else config.broker

    def find(name: str) -> ConfigKey | None:
        return config.registry.find(Scope.BROKER, name)

    after = _apply(config, Scope.BROKER, layer, alterations, lambda key: config.value(key.name))
    changed = [
        alteration.name for alteration in alterations if after.get(alteration.name) != layer.get(alteration.name)
    ]
    _check_updatable(
        config, sorted({*changed, *(a.name for a in alterations if a.operation == AlterConfigOp.SET)}), whole_cluster
    )
    for name in changed:
        if (key := find(name)) and name in after:
            value = _parse(key, after[name], ErrorCode.INVALID_REQUEST)
            if key.refused_because and value != key.default:
                raise KafkaError(ErrorCode.INVALID_REQUEST, f"{name} is refused: {key.refused_because}")
    dynamic = (
        {"cluster": after, "broker": config.broker} if whole_cluster else {"cluster": config.cluster, "broker": after}
    )
    becomes = config.with_dynamic(**dynamic)
    try:
        check_together(becomes)
    except ConfigError as error:
        raise KafkaError(ErrorCode.INVALID_REQUEST, error.message) from error
    check_thread_pools(config, becomes)
    return after


def replace_broker(config: BrokerConfig, texts: Mapping[str, str | None], *, whole_cluster: bool) -> dict[str, str]:
    """Replace a whole dynamic layer of the broker (AlterConfigs); see `alter_broker`."""
    layer = config.cluster if whole_cluster else config.broker
    return alter_broker(config, _replacing(layer, texts), whole_cluster=whole_cluster)


def _replacing(now: Mapping[str, str], texts: Mapping[str, str | None]) -> list[Alteration]:
    gone = [Alteration(name, AlterConfigOp.DELETE, None) for name in now if name not in texts]
    return gone + [Alteration(name, AlterConfigOp.SET, text) for name, text in texts.items()]


def _apply(
    config: BrokerConfig,
    scope: Scope,
    now: Mapping[str, str],
    alterations: Sequence[Alteration],
    current: Callable[[ConfigKey], Value],
) -> dict[str, str]:
    check_texts(alterations)
    check_edits(config, scope, alterations)
    after = dict(now)
    for name, operation, text in alterations:
        if operation == AlterConfigOp.DELETE:
            after.pop(name, None)
            continue
        assert text is not None, "nulls were refused above"
        if operation == AlterConfigOp.SET:
            after[name] = text
            continue
        key = config.registry.find(scope, name)
        assert key is not None, "what nobody knows is no list"
        after[name] = edited_list(current(key), operation, text)
        if len(after[name].encode()) > STRING_BYTES_MAX:  # no record could hold it
            detail = (
                "The configuration value cannot be added because it exceeds the maximum value size of "
                f"{STRING_BYTES_MAX} bytes."
            )
            raise KafkaError(ErrorCode.INVALID_CONFIG, detail)
    return {name: without_repetition(config.registry.find(scope, name), text) for name, text in after.items()}


def _check_edit(name: str, key: ConfigKey | None, operation: int) -> None:
    if operation not in _EDITS:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unknown config operation {operation}")
    if key is None or key.type is not ConfigType.LIST:
        word = AlterConfigOp(operation).name
        raise KafkaError(ErrorCode.INVALID_CONFIG, f"Can't {word} to key {name} because its type is not LIST.")


def _check_edit_of_broker(name: str, key: ConfigKey | None, operation: int) -> None:
    """Refuse an edit of a broker's config: Kafka's broker does so before its controller, in words of its own."""
    if operation not in _EDITS:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unknown operations type {operation}")
    if key is None:
        raise KafkaError(ErrorCode.INVALID_CONFIG, f"Unknown config name: {name}")
    if key.type is not ConfigType.LIST:
        word = AlterConfigOp(operation).name.lower()
        raise KafkaError(ErrorCode.INVALID_CONFIG, f"Config value {word} is not allowed for config key: {name}")


def edited_list(entries: Value, operation: int, text: str) -> str:
    """Return a list, as a text, to which something is appended or of which something is taken away."""
    before = entries if isinstance(entries, tuple) else ()
    # As Java splits: what ends in commas ends before them, but no text at all is one empty entry.
    kept = text.rstrip(",")
    edit = tuple(entry.strip() for entry in kept.split(",")) if kept or not text else ()
    if operation == AlterConfigOp.APPEND:
        return ",".join((*before, *(entry for entry in edit if entry not in before)))
    return ",".join(entry for entry in before if entry not in edit)


def _parse(key: ConfigKey, text: str, code: ErrorCode) -> Value:
    try:
        return key.parse(text)
    except InvalidValueError as error:
        raise KafkaError(code, str(error)) from error


def _check_kept(
    keys: Mapping[str, ConfigKey], config: BrokerConfig, now: Mapping[str, str], after: Mapping[str, str]
) -> None:
    """Refuse a change of what a topic is made of."""
    for name, key in keys.items():
        if key.update_mode is UpdateMode.READ_ONLY and now.get(name) != after.get(name):
            was, becomes = (render(resolve_key(key, config, texts)) for texts in (now, after))
            if was != becomes:
                detail = f"{name} of a topic cannot be changed: it is {was} since the topic was created"
                raise KafkaError(ErrorCode.INVALID_CONFIG, detail)


_NOT_DYNAMIC: Final = "Cannot update these configs dynamically: [{}]"
_NOT_CLUSTER: Final = "Cannot update these configs at default cluster level, broker id must be specified: [{}]"
_BY_LISTENER: Final = (
    "These security configs can be dynamically updated only per-listener using the listener prefix: [{}]"
)


_ONLY_PER_LISTENER: Final = frozenset(
    {
        "ssl.key.password",
        "ssl.keystore.certificate.chain",
        "ssl.keystore.key",
        "ssl.keystore.location",
        "ssl.keystore.password",
        "ssl.keystore.type",
        "ssl.truststore.certificates",
        "ssl.truststore.location",
        "ssl.truststore.password",
        "ssl.truststore.type",
    }
)


def _check_updatable(config: BrokerConfig, names: Sequence[str], whole_cluster: bool) -> None:
    """Refuse unknown keys, read-only keys, keys of one listener without its name, keys of one broker for all."""
    for name in names:
        key = config.registry.find(Scope.BROKER, name)
        if key is None:
            # Kafka takes any name here and hides its value; a misspelled key that is silently kept helps nobody.
            hint = config.registry.hint(Scope.BROKER, name)
            raise KafkaError(
                ErrorCode.INVALID_CONFIG, f"Unknown broker config name: {name}{f'; {hint}' if hint else ''}"
            )
        if key.update_mode is UpdateMode.READ_ONLY:
            raise KafkaError(ErrorCode.INVALID_REQUEST, _NOT_DYNAMIC.format(name))
        if name in _ONLY_PER_LISTENER:
            raise KafkaError(ErrorCode.INVALID_REQUEST, _BY_LISTENER.format(name))
        if whole_cluster and key.update_mode is UpdateMode.PER_BROKER:
            raise KafkaError(ErrorCode.INVALID_REQUEST, _NOT_CLUSTER.format(name))
        if not key.is_dynamic:
            raise KafkaError(ErrorCode.INVALID_REQUEST, _NOT_DYNAMIC.format(name))
