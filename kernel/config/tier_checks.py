"""Pure core: what a topic's keys of tiered storage must fulfil together, in Kafka's words.

One check of Kafka's is missing: compacted topics may be tiered here.

*Source:* Kafka 4.3.1 with a remote storage, as observed; `LogConfig.validateTopicLogConfigValues`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ..errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from .topic import TopicConfig

FOLLOWS_TOTAL: Final = -2
"""As `local.retention.ms` or `local.retention.bytes`: the same as without `local`."""
_FOR_EVER: Final = -1


def invalid(detail: str) -> KafkaError:
    """Return the error of a topic's configuration that cannot be."""
    return KafkaError(ErrorCode.INVALID_CONFIG, detail)


def check_tiers(topic: TopicConfig, *, is_on: bool, was_tiered: bool) -> None:
    """Check a topic's keys of tiered storage.

    Args:
        topic: As it is to be.
        is_on: The broker's `remote.log.storage.system.enable`.
        was_tiered: Whether it is tiered now.

    Raises:
        KafkaError: INVALID_CONFIG.
    """
    if not topic.remote_storage_enable:
        if was_tiered and not topic.remote_log_delete_on_disable:
            raise invalid(
                "It is invalid to disable remote storage without deleting remote data. "
                "If you want to keep the remote data and turn to read only, please set "
                "`remote.storage.enable=true,remote.log.copy.disable=true`. "
                "If you want to disable remote storage and delete all remote data, please set "
                "`remote.storage.enable=false,remote.log.delete.on.disable=true`."
            )
        return
    if not is_on:
        raise invalid(
            "Tiered Storage functionality is disabled in the broker. "
            "Topic cannot be configured with remote log storage."
        )
    pairs = (
        ("retention.bytes", topic.local_retention_bytes, topic.retention_bytes),
        ("retention.ms", topic.local_retention_ms, topic.retention_ms),
    )
    for name, local, total in pairs:
        wrong = wrong_local_retention(f"local.{name}", local, name, total)
        if wrong:
            raise invalid(wrong)
    for name, local, total in reversed(pairs) if topic.remote_log_copy_disable else ():
        if local not in (FOLLOWS_TOTAL, total):
            raise invalid(
                f"When `remote.log.copy.disable` is set to true, the `local.{name}` and `{name}` must be set to the "
                "identical value because there will be no more logs copied to the remote storage."
            )


def wrong_local_retention(local_name: str, local: int, name: str, total: int) -> str:
    """Say what is wrong with a local limit beside the whole log's; empty when nothing is."""
    if total == _FOR_EVER or local == FOLLOWS_TOTAL or 0 <= local <= total:
        return ""
    why = (
        f"Value must not be {_FOR_EVER} as {name} value is set as {total}."
        if local == _FOR_EVER
        else f"Value must not be more than {name} property value: {total}"
    )
    return f"Invalid value {local} for configuration {local_name}: {why}"
