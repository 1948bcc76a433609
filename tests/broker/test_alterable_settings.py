"""Every key that a client may alter on a running broker: who acts by it has the new value, without a restart."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias

import trio

from odradek.kernel.broker import read_broker_options
from odradek.kernel.config.keys import Scope
from odradek.kernel.controller.partition_states import rules_of
from odradek.kernel.errors import ErrorCode
from odradek.kernel.records.batch import TimestampType
from odradek.kernel.records.compression import CompressionType
from odradek.kernel.replication.settings import FetcherSettings
from odradek.kernel.replication.throttling import FOLLOWER_RATE_KEY, LEADER_RATE_KEY, ReplicationQuota, names_replica
from odradek.kernel.wire.messages import api_44_incremental_alter_configs as alter_configs
from odradek.plugins.groups.consumer.settings import Settings as GroupSettings
from odradek.testing.running_broker import running_broker

from .broker_beside import address_of, create_topic, work_beside
from .broker_process import Client
from .test_live_config import BROKER, TOPIC

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping
    from pathlib import Path

    from odradek.kernel.broker.parts import BrokerParts
    from odradek.kernel.partitions.replica import Replica

TOPICS: Final[Mapping[str, Mapping[str, str]]] = {
    "plain": {},
    "tiered": {"remote_storage_enable": "true"},
    "uncopied": {"remote_storage_enable": "true"},
    "gzip": {"compression_type": "gzip"},
    "lz4": {"compression_type": "lz4"},
    "zstd": {"compression_type": "zstd"},
}


class Readers:
    """What the parts of a broker act by now; each is asked as the part itself asks."""

    def __init__(self, parts: BrokerParts) -> None:
        self.parts = parts
        self.log: Any = self.replica("plain").log
        self.rules = self.replica("plain").settings.rules
        self.cleanup = parts.logs.replicas.topics["plain"].plan.cleanup
        self.compactor = parts.logs.compactor._settings()
        self.loop: Any = parts.events.want_turn.__self__  # type: ignore[attr-defined] # the network's server
        self.tier: Any = parts.logs.tier
        self.tiered: Any = self.replica("tiered").tiered_log
        self.uncopied: Any = self.replica("uncopied").tiered_log

    def replica(self, topic: str) -> Replica:
        return self.parts.logs.replicas.get(topic, 0)

    def level(self, topic: str) -> int | None:
        return self.replica(topic).settings.rules.compression_level

    def handler(self, key: int) -> Any:
        return self.parts.requests.router.routes[key].handler

    def rate(self, key: str) -> int:
        quota = ReplicationQuota.of(lambda: self.parts.published.config, key, self.parts.machine.clock)
        return quota._bytes_per_second()

    def may_lose(self, topic: str) -> bool:
        image, rules = self.parts.published.image, self.parts.metadata.rules
        found = image.topics_by_name[topic]
        factory = rules.elections[found.election]
        return rules_of(image, rules.config_at(image), found, factory, image.live_brokers()).may_lose

    def move_rate(self) -> float:
        return self.parts.logs.log_moves._new_throttle()._bytes_per_second()


Table: TypeAlias = "Mapping[str, tuple[str, Callable[[Readers], Any], Any]]"

READINGS: Final[Table] = {
    # key: the text that is set, who acts by it, and what that is then
    "compression.gzip.level": ("4", lambda of: of.level("gzip"), 4),
    "compression.lz4.level": ("5", lambda of: of.level("lz4"), 5),
    "compression.type": ("zstd", lambda of: of.rules.compression, CompressionType.ZSTD),
    "compression.zstd.level": ("7", lambda of: of.level("zstd"), 7),
    "cordoned.log.dirs": ("*", lambda of: bool(of.parts.published.cordoned_log_dirs()), True),
    "follower.fetch.last.tiered.offset.enable": (
        "true",
        lambda of: FetcherSettings.of(of.parts.published.config).begins_at_tiers_end,
        True,
    ),
    "follower.replication.throttled.rate": ("700", lambda of: of.rate(FOLLOWER_RATE_KEY), 700),
    "group.consumer.assignment.interval.ms": (
        "1234",
        lambda of: GroupSettings(of.parts.view).of_group("g", "consumer.assignment.interval.ms"),
        1234,
    ),
    "leader.replication.throttled.rate": ("800", lambda of: of.rate(LEADER_RATE_KEY), 800),
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
    "log.local.retention.bytes": ("5", lambda of: of.tiered.settings.local_retention_bytes, 5),
    "log.local.retention.ms": ("6", lambda of: of.tiered.settings.local_retention_ms, 6),
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
    "num.replica.fetchers": ("2", lambda of: FetcherSettings.of(of.parts.published.config).fetchers_count, 2),
    "producer.id.expiration.ms": ("4444", lambda of: of.replica("plain").producers._expiration_ms, 4444),
    "remote.fetch.max.wait.ms": ("501", lambda of: of.handler(1)._cold_wait_ms(), 501),
    "remote.list.offsets.request.timeout.ms": ("502", lambda of: of.handler(2)._cold_timeout_ms(), 502),
    "remote.log.index.file.cache.total.size.bytes": (
        "503",
        lambda of: of.tier.cold_reads._settings().index_bytes,
        503,
    ),
    "remote.log.manager.copier.thread.pool.size": ("9", lambda of: of.tier._copiers()._limiter.total_tokens, 9),
    "remote.log.manager.copy.max.bytes.per.second": (
        "1000000",
        lambda of: of.tier.passes._pace._bytes_per_second(),
        1_000_000,
    ),
    "remote.log.reader.threads": ("8", lambda of: of.tier.cold_reads._settings().threads, 8),
    "replica.alter.log.dirs.io.max.bytes.per.second": ("1000000", Readers.move_rate, 1_000_000),
    "transaction.partition.verification.enable": (
        "false",
        lambda of: of.parts.requests.produce._admission._settings().verifies,
        False,
    ),
    "unclean.leader.election.enable": ("true", lambda of: of.may_lose("plain"), True),
}


TOPIC_READINGS: Final[Table] = {
    # the same for the keys of a topic
    "cleanup.policy": ("delete,compact", lambda of: of.cleanup.cleanup_policy, ("delete", "compact")),
    "compression.gzip.level": ("4", lambda of: of.rules.compression_level, 4),
    "compression.type": ("gzip", lambda of: of.rules.compression, CompressionType.GZIP),
    "delete.retention.ms": ("86", lambda of: of.cleanup.delete_retention_ms, 86),
    "file.delete.delay.ms": ("13", lambda of: of.log._delete_delay_ms, 13),
    "flush.messages": ("10", lambda of: of.log._flush_messages, 10),
    "flush.ms": ("3000", lambda of: of.log._flush_ms, 3000),
    "index.interval.bytes": ("100", lambda of: of.log._index_interval, 100),
    "follower.replication.throttled.replicas": (
        "0:1",
        lambda of: names_replica(of.replica("plain").settings.throttled_followers, 0, 1),
        True,
    ),
    "leader.replication.throttled.replicas": (
        "*",
        lambda of: names_replica(of.replica("plain").settings.throttled_leaders, 0, 1),
        True,
    ),
    "local.retention.bytes": ("5", lambda of: of.tiered.settings.local_retention_bytes, 5),
    "local.retention.ms": ("6", lambda of: of.tiered.settings.local_retention_ms, 6),
    "max.compaction.lag.ms": ("20000", lambda of: of.cleanup.max_compaction_lag_ms, 20_000),
    "max.message.bytes": ("1000", lambda of: of.rules.max_message_bytes, 1000),
    "message.timestamp.after.max.ms": ("8", lambda of: of.rules.timestamp_after_max_ms, 8),
    "message.timestamp.before.max.ms": ("9", lambda of: of.rules.timestamp_before_max_ms, 9),
    "message.timestamp.type": ("LogAppendTime", lambda of: of.rules.timestamp_type, TimestampType.LOG_APPEND_TIME),
    "min.cleanable.dirty.ratio": ("0.25", lambda of: of.cleanup.min_cleanable_dirty_ratio, 0.25),
    "min.compaction.lag.ms": ("77", lambda of: of.cleanup.min_compaction_lag_ms, 77),
    "min.insync.replicas": ("2", lambda of: of.replica("plain").settings.min_insync_replicas, 2),
    "odradek.compaction.header": ("h", lambda of: of.cleanup.values["odradek.compaction.header"], "h"),
    "odradek.compaction.strategy": ("header", lambda of: of.cleanup.values["odradek.compaction.strategy"], "header"),
    "odradek.ttl.lag.ms": ("55", lambda of: of.cleanup.values["odradek.ttl.lag.ms"], 55),
    "preallocate": ("true", lambda of: of.log.config.preallocate, True),
    "remote.log.copy.disable": ("true", lambda of: of.uncopied.settings.remote_log_copy_disable, True),
    "retention.bytes": ("123456", lambda of: of.cleanup.retention_bytes, 123_456),
    "retention.ms": ("234567", lambda of: of.cleanup.retention_ms, 234_567),
    "segment.bytes": ("2000000", lambda of: of.log._segment_bytes, 2_000_000),
    "segment.index.bytes": ("4096", lambda of: of.log._index_bytes, 4096),
    "segment.jitter.ms": ("11", lambda of: of.log.config.segment_jitter_ms, 11),
    "segment.ms": ("12000", lambda of: of.log.config.segment_ms, 12_000),
    "unclean.leader.election.enable": ("true", lambda of: of.may_lose("plain"), True),
}

OF_EACH_BROKER: Final = frozenset({"cordoned.log.dirs"})
"""Keys whose value names what only one broker has: there is none for all."""
OF_THE_CLUSTER: Final = {"min.insync.replicas"}
"""Of these no broker has a value of its own, while replicas may be eligible leaders."""

ELSEWHERE: Final = {
    "compression.lz4.level": "as that of gzip; of the broker above",
    "compression.zstd.level": "as that of gzip; of the broker above",
    "odradek.delay.enable": "has batches split (test_delayed_topics.py)",
    "odradek.delay.levels": "rounds delays up (test_delayed_topics.py)",
    "odradek.delay.max.ms": "as odradek.delay.enable",
    "odradek.retry.attempts": "has failed records wait (test_retry_commands.py)",
    "errors.deadletterqueue.group.enable": "pauses dead letters (test_retry_commands.py)",
    "odradek.retry.auto": "has topics of failed records made (test_retry_commands.py)",
    "odradek.retry.breaker.minimum": "as odradek.retry.breaker.share",
    "odradek.retry.breaker.share": "has dead letters paused (test_retry_commands.py)",
    "odradek.retry.breaker.window.ms": "as odradek.retry.breaker.share",
    "odradek.retry.dead.letters.of": "has dead letters taken (test_retry_commands.py)",
    "odradek.retry.group": "as odradek.retry.attempts",
    "odradek.retry.levels": "as odradek.retry.attempts",
    "odradek.retry.order": "read by consumers (test_ordered_consumer.py)",
    "odradek.retry.order.waiting.max": "as the one above",
    "odradek.retry.policy": "as odradek.retry.attempts",
    "odradek.retry.topic": "as odradek.retry.attempts",
    "internal.segment.bytes": "in place of segment.bytes (test_cleanup.py)",
    "remote.log.delete.on.disable": "read when remote.storage.enable is altered (test_tiered_topics.py)",
    "remote.storage.enable": "has logs wrapped and unwrapped (test_tiered_topics.py)",
}


def alter(address: str, kind: int, name: str, texts: Mapping[str, str]) -> tuple[int, str | None]:
    """Alter keys by one request; return the error and what it says."""
    configs = [alter_configs.AlterableConfig(name=key, config_operation=0, value=text) for key, text in texts.items()]
    resource = alter_configs.AlterConfigsResource(resource_type=kind, resource_name=name, configs=configs)
    with Client(address) as client:
        answer = client.ask(alter_configs.IncrementalAlterConfigsRequest(resources=[resource]), 1)
    assert isinstance(answer, alter_configs.IncrementalAlterConfigsResponse)
    return answer.responses[0].error_code, answer.responses[0].error_message


def altered(directory: Path, readings: Table, resources: Mapping[tuple[int, str], Collection[str]]) -> dict[str, Any]:
    """Alter keys of resources on a broker that serves; return those of which something else is read then.

    Args:
        directory: For its data.
        readings: What is to be read.
        resources: Kind and name to keys.
    """
    wrong: dict[str, Any] = {}

    async def alter_and_look(parts: BrokerParts) -> None:
        for name, configs in TOPICS.items():
            await create_topic(parts, name, **configs)
        before = Readers(parts)
        assert [name for name, (_, read, then) in readings.items() if read(before) == then] == []
        address = address_of(parts)
        for (kind, name), keys in resources.items():
            texts = {key: readings[key][0] for key in keys}
            assert await trio.to_thread.run_sync(alter, address, kind, name, texts) == (ErrorCode.NONE, None)
        after = Readers(parts)
        wrong.update({name: read(after) for name, (_, read, then) in readings.items() if read(after) != then})

    work_beside([f"log.dirs={directory / 'data'}", "remote.log.storage.system.enable=true"], alter_and_look)
    return wrong


def test_what_a_client_alters_of_the_brokers_is_followed_by_who_reads_it(tmp_path: Path) -> None:
    readings = {name: reading for name, reading in READINGS.items() if name not in OF_EACH_BROKER}

    assert altered(tmp_path, readings, {(BROKER, ""): readings}) == {}


def test_what_a_client_alters_of_one_broker_is_followed_by_who_reads_it(tmp_path: Path) -> None:
    readings = {name: reading for name, reading in READINGS.items() if name not in OF_THE_CLUSTER}

    assert altered(tmp_path, readings, {(BROKER, "1"): readings}) == {}


def test_what_the_cluster_has_one_value_of_is_refused_of_one_broker(tmp_path: Path) -> None:
    """The code and the text are Apache Kafka's, 4.3.1."""
    with running_broker(data_dir=tmp_path) as broker:
        for name in OF_THE_CLUSTER:
            assert alter(broker.bootstrap, BROKER, "1", {name: READINGS[name][0]}) == (
                ErrorCode.INVALID_CONFIG,
                f"Broker-level {name} cannot be altered while ELR is enabled.",
            )


def test_what_a_client_alters_of_a_topic_is_followed_by_who_reads_it(tmp_path: Path) -> None:
    keys = {
        "tiered": {key for key in TOPIC_READINGS if key.startswith("local.")},
        "uncopied": {"remote.log.copy.disable"},
    }
    keys["plain"] = TOPIC_READINGS.keys() - keys["tiered"] - keys["uncopied"]

    assert altered(tmp_path, TOPIC_READINGS, {(TOPIC, topic): names for topic, names in keys.items()}) == {}


def test_no_key_that_can_be_altered_is_left_out_above(tmp_path: Path) -> None:
    registry = read_broker_options(config=None, environment={}, options=(), data_dir=tmp_path).config.registry
    alterable = {
        scope: {
            key.name
            for key in registry.keys[scope].values()
            if key.is_dynamic and key.part.stands and not key.refused_because
        }
        for scope in (Scope.BROKER, Scope.TOPIC)
    }

    assert set(READINGS) == alterable[Scope.BROKER]
    assert TOPIC_READINGS.keys() | ELSEWHERE.keys() == alterable[Scope.TOPIC]
