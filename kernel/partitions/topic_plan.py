"""Pure core: what a topic's configuration means for its replicas: which plugins, and with which settings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

import attrs

from ..classes import frozen
from ..contracts.cleanup import CleanupSettings
from ..records.batch import TimestampType
from ..records.compression import DECOMPRESSED_BYTES_MAX, CompressionType
from ..records.validation import ValidationMode, ValidationRules, walks_records
from .replica import TopicSettings

if TYPE_CHECKING:
    from ..config.delay_checks import DelaySettings, RetrySettings
    from ..config.topic import TopicConfig
    from ..contracts.storage import LogConfig
    from ..contracts.tiering import TierSettings


MIB: Final = 1 << 20


@frozen
class TopicPlan:
    """What a topic's settings choose for its replicas.

    Attributes:
        storage: A name in `odradek_storages`.
        election: A name in `odradek_elections`.
        stages: Names in `odradek_append_stages`, in order.
        log_config: For the log.
        settings: For the replica.
        values: Plugins' topic keys, by name.
        cleanup: For cleanup policies.
        tier: For the tier; None where the topic wants none.
        delay: How records wait; None where none ever did.
        retry: Whose failed records come here; None where nobody's do.
    """

    storage: str
    election: str
    stages: tuple[str, ...]
    log_config: LogConfig
    settings: TopicSettings
    values: Mapping[str, object]
    cleanup: CleanupSettings = attrs.field(factory=CleanupSettings)
    tier: TierSettings | None = None
    delay: DelaySettings | None = None
    retry: RetrySettings | None = None


def plan_topic(
    config: TopicConfig,
    *,
    storage: str,
    election: str,
    stages: tuple[str, ...],
    validation: ValidationMode,
    has_compiled_kernel: bool,
    is_internal: bool,
) -> TopicPlan:
    """Return what a topic's configuration means.

    Args:
        config: The topic's effective configuration.
        storage: What the topic was created with: a later default moves no topic.
        election: The same.
        stages: Append stages that plugins offer: each decides by itself whether a topic needs it.
        validation: The broker's `odradek.produce.validation`.
        has_compiled_kernel: Whether walking over records is cheap.
        is_internal: Whether a coordinator owns it, which reads the log whole when it starts: it is never tiered, as in
            Kafka, whatever its configuration says.
    """
    log_config = config.log_config()
    compression = None if config.compression_type == "producer" else _COMPRESSION[config.compression_type]
    return TopicPlan(
        storage=storage,
        election=election,
        stages=stages,
        log_config=log_config,
        settings=TopicSettings(
            rules=ValidationRules(
                max_message_bytes=config.max_message_bytes,
                segment_bytes=log_config.segment_bytes,
                timestamp_type=_TIMESTAMP_TYPES[config.message_timestamp_type],
                timestamp_before_max_ms=config.message_timestamp_before_max_ms,
                timestamp_after_max_ms=config.message_timestamp_after_max_ms,
                compression=compression,
                compression_level=_compression_level(config, compression),
                is_compacted=config.is_compacted,
                decompressed_bytes_max=decompressed_bytes_max(config.max_message_bytes),
                walks_records=walks_records(
                    validation, is_compacted=config.is_compacted, has_compiled_kernel=has_compiled_kernel
                ),
            ),
            min_insync_replicas=config.min_insync_replicas,
            throttled_leaders=frozenset(config.leader_replication_throttled_replicas),
            throttled_followers=frozenset(config.follower_replication_throttled_replicas),
            dead_letters_of=config.odradek_retry_dead_letters_of,
            takes_dead_letters=config.errors_deadletterqueue_group_enable,
        ),
        values=config.extra,
        cleanup=config.cleanup_settings(),
        tier=None if is_internal else config.tier_settings(),
        delay=None if is_internal else config.delay_settings(),
        retry=None if is_internal else config.retry_settings(),
    )


def decompressed_bytes_max(max_message_bytes: int) -> int:
    """Return what a compressed batch may come to when its records are looked at, which holds up the reactor.

    Clients fill batches by their uncompressed size, so a real one stays far below 32 times what it may be compressed;
    a bomb would take a second for the 128 MiB that are the most otherwise.
    """
    return max(max_message_bytes, min(DECOMPRESSED_BYTES_MAX, max(MIB * 16, max_message_bytes * 32)))


_TIMESTAMP_TYPES = {
    "CreateTime": TimestampType.CREATE_TIME,
    "LogAppendTime": TimestampType.LOG_APPEND_TIME,
}
_COMPRESSION = {
    "uncompressed": CompressionType.NONE,
    "gzip": CompressionType.GZIP,
    "snappy": CompressionType.SNAPPY,
    "lz4": CompressionType.LZ4,
    "zstd": CompressionType.ZSTD,
}


def _compression_level(config: TopicConfig, compression: CompressionType | None) -> int | None:
    match compression:
        case CompressionType.GZIP:
            return config.compression_gzip_level
        case CompressionType.LZ4:
            return config.compression_lz4_level
        case CompressionType.ZSTD:
            return config.compression_zstd_level
        case _:
            return None
