"""Every key that a client may alter on a running broker: who acts by it has the new value, without a restart."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import trio

from odradek.kernel.config.keys import Scope
from odradek.kernel.config.registry import builtin_registry
from odradek.kernel.errors import ErrorCode
from odradek.kernel.records.batch import TimestampType
from odradek.kernel.records.compression import CompressionType
from odradek.kernel.wire.messages import api_44_incremental_alter_configs as alter_configs
from odradek.kernel.wire.messages.api_19_create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from odradek.plugins.groups.consumer.settings import Settings as GroupSettings

from .broker_beside import work_beside
from .broker_process import Client
from .test_live_config import BROKER

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from odradek.kernel.broker_parts import BrokerParts
    from odradek.kernel.partitions.replica import Replica

TOPICS: Final = {
    "plain": {},
    "tiered": {"remote.storage.enable": "true"},
    "gzip": {"compression.type": "gzip"},
    "lz4": {"compression.type": "lz4"},
    "zstd": {"compression.type": "zstd"},
}


class Readers:
    """What the parts of a broker act by now; each is asked as the part itself asks."""

    def __init__(self, parts: BrokerParts) -> None:
        self.parts = parts
        self.log: Any = self.replica("plain").log
        self.rules = self.replica("plain").settings.rules
        self.cleanup = parts.replicas.topics["plain"].plan.cleanup
        self.compactor = parts.compactor._settings()
        self.loop: Any = parts.want_turn.__self__  # type: ignore[attr-defined] # the network's server
        self.tier: Any = parts.tier
        self.tier_settings: Any = self.replica("tiered").tiered_log

    def replica(self, topic: str) -> Replica:
        return self.parts.replicas.get(topic, 0)

    def level(self, topic: str) -> int | None:
        return self.replica(topic).settings.rules.compression_level

    def handler(self, key: int) -> Any:
        return self.parts.router.routes[key].handler

    def move_rate(self) -> float:
        return self.parts.log_moves._new_throttle()._bytes_per_second()


READINGS: Final[dict[str, tuple[str, Callable[[Readers], Any], Any]]] = {
    # key: the text that is set, who acts by it, and what that is then
    "compression.gzip.level": ("4", lambda of: of.level("gzip"), 4),
    "compression.lz4.level": ("5", lambda of: of.level("lz4"), 5),
    "compression.type": ("zstd", lambda of: of.rules.compression, CompressionType.ZSTD),
    "compression.zstd.level": ("7", lambda of: of.level("zstd"), 7),
    "group.consumer.assignment.interval.ms": (
        "1234",
        lambda of: GroupSettings(of.parts.broker).of_group("g", "consumer.assignment.interval.ms"),
        1234,
    ),
    "log.cleaner.backoff.ms": ("14000", lambda of: of.compactor.backoff_ms, 14_000),
    "log.cleaner.dedupe.buffer.size": ("64000000", lambda of: of.compactor.dedupe_buffer_size, 64_000_000),
    "log.cleaner.delete.retention.ms": ("86", lambda of: of.cleanup.delete_retention_ms, 86),
    "log.cleaner.io.buffer.load.factor": ("0.5", lambda of: of.compactor.io_buffer_load_factor, 0.5),
    "log.cleaner.io.buffer.size": ("600000", lambda of: of.compactor.io_buffer_size, 600_000),
    "log.cleaner.io.max.bytes.per.second": ("1e6", lambda of: of.compactor.io_max_bytes_per_second, 1e6),
    "log.cleaner.max.compaction.lag.ms": ("20000", lambda of: of.cleanup.max_compaction_lag_ms, 20_000),
    "log.cleaner.min.cleanable.ratio": ("0.25", lambda of: of.cleanup.min_cleanable_dirty_ratio, 0.25),
    "log.cleaner.min.compaction.lag.ms": ("77", lambda of: of.cleanup.min_compaction_lag_ms, 77),
    "log.cleaner.threads": ("2", lambda of: of.compactor.threads, 2),
    "log.cleanup.policy": ("delete,compact", lambda of: of.cleanup.cleanup_policy, ("delete", "compact")),
    "log.flush.interval.messages": ("10", lambda of: of.log._flush_messages, 10),
    "log.flush.interval.ms": ("3000", lambda of: of.log._flush_ms, 3000),
    "log.index.interval.bytes": ("100", lambda of: of.log._index_interval, 100),
    "log.index.size.max.bytes": ("4096", lambda of: of.log._index_bytes, 4096),
    "log.local.retention.bytes": ("5", lambda of: of.tier_settings.settings.local_retention_bytes, 5),
    "log.local.retention.ms": ("6", lambda of: of.tier_settings.settings.local_retention_ms, 6),
    "log.message.timestamp.after.max.ms": ("8", lambda of: of.rules.timestamp_after_max_ms, 8),
    "log.message.timestamp.before.max.ms": ("9", lambda of: of.rules.timestamp_before_max_ms, 9),
    "log.message.timestamp.type": (
        "LogAppendTime",
        lambda of: of.rules.timestamp_type,
        TimestampType.LOG_APPEND_TIME,
    ),
    "log.preallocate": ("true", lambda of: of.log.config.preallocate, True),
    "log.retention.bytes": ("123456", lambda of: of.cleanup.retention_bytes, 123_456),
    "log.retention.ms": ("234567", lambda of: of.cleanup.retention_ms, 234_567),
    "log.roll.jitter.ms": ("11", lambda of: of.log.config.segment_jitter_ms, 11),
    "log.roll.ms": ("12000", lambda of: of.log.config.segment_ms, 12_000),
    "log.segment.bytes": ("2000000", lambda of: of.log._segment_bytes, 2_000_000),
    "log.segment.delete.delay.ms": ("13", lambda of: of.log._delete_delay_ms, 13),
    "max.connections": ("101", lambda of: of.loop._loop.settings.connections_max, 101),
    "max.connections.per.ip": ("102", lambda of: of.loop._loop.settings.connections_per_ip_max, 102),
    "max.connections.per.ip.overrides": (
        "127.0.0.9:3",
        lambda of: of.loop._loop.settings.connections_per_ip_overrides,
        {"127.0.0.9": 3},
    ),
    "message.max.bytes": ("1000", lambda of: of.rules.max_message_bytes, 1000),
    "min.insync.replicas": ("2", lambda of: of.replica("plain").settings.min_insync_replicas, 2),
    "producer.id.expiration.ms": ("4444", lambda of: of.replica("plain").producers._expiration_ms, 4444),
    "remote.fetch.max.wait.ms": ("501", lambda of: of.handler(1)._cold_wait_ms(), 501),
    "remote.list.offsets.request.timeout.ms": ("502", lambda of: of.handler(2)._cold_timeout_ms(), 502),
    "remote.log.index.file.cache.total.size.bytes": (
        "503",
        lambda of: of.tier.cold_reads._settings().index_bytes,
        503,
    ),
    "remote.log.manager.copier.thread.pool.size": ("9", lambda of: of.tier._copiers().total_tokens, 9),
    "remote.log.manager.copy.max.bytes.per.second": (
        "1000000",
        lambda of: of.tier.passes._pace._bytes_per_second(),
        1_000_000,
    ),
    "remote.log.reader.threads": ("8", lambda of: of.tier.cold_reads._settings().threads, 8),
    "replica.alter.log.dirs.io.max.bytes.per.second": ("1000000", Readers.move_rate, 1_000_000),
    "transaction.partition.verification.enable": (
        "false",
        lambda of: of.parts.produce._admission._settings().verifies,
        False,
    ),
}


def alter_all(address: str) -> tuple[int, str | None]:
    """Alter all keys at once, as the default of all brokers; return the error and what it says."""
    configs = [
        alter_configs.AlterableConfig(name=name, config_operation=0, value=text)
        for name, (text, _, _) in READINGS.items()
    ]
    resource = alter_configs.AlterConfigsResource(resource_type=BROKER, resource_name="", configs=configs)
    with Client(address) as client:
        answer = client.ask(alter_configs.IncrementalAlterConfigsRequest(resources=[resource]), 1)
    assert isinstance(answer, alter_configs.IncrementalAlterConfigsResponse)
    return answer.responses[0].error_code, answer.responses[0].error_message


def test_what_a_client_alters_is_followed_by_who_reads_it(tmp_path: Path) -> None:
    async def alter_and_look(parts: BrokerParts) -> None:
        creatable = [
            CreatableTopic(
                name=name,
                num_partitions=1,
                replication_factor=1,
                configs=[CreatableTopicConfig(name=key, value=value) for key, value in configs.items()],
            )
            for name, configs in TOPICS.items()
        ]
        await parts.create_topics(CreateTopicsRequest(topics=creatable, timeout_ms=30_000))
        before = Readers(parts)
        assert [name for name, (_, read, then) in READINGS.items() if read(before) == then] == []

        address = f"127.0.0.1:{parts.broker.listeners[0].port}"
        assert await trio.to_thread.run_sync(alter_all, address) == (ErrorCode.NONE, None)

        after = Readers(parts)
        wrong = {name: read(after) for name, (_, read, then) in READINGS.items() if read(after) != then}
        assert wrong == {}

    work_beside([f"log.dirs={tmp_path / 'data'}", "remote.log.storage.system.enable=true"], alter_and_look)


def test_no_key_that_can_be_altered_is_left_out_above() -> None:
    keys = builtin_registry().keys[Scope.BROKER].values()
    alterable = {key.name for key in keys if key.is_dynamic and key.part.stands and not key.refused_because}

    assert set(READINGS) == alterable
