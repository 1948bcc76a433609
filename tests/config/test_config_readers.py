"""Every key of a part that stands acts somewhere: this table says where, and what stands there."""

from __future__ import annotations

from pathlib import Path

import pytest

from odradek.kernel.config.keys import Scope
from odradek.kernel.config.registry import builtin_registry

ROOT = Path(__file__).parents[2]

ACTS_OF_BROKER = {
    # key: the file and the piece of code without which the key would do nothing
    "add.partitions.to.txn.retry.backoff.max.ms": (
        "kernel/dispatch/produce_admission.py",
        'get_int("add.partitions.to.txn.retry.backoff.max.ms")',
    ),
    "add.partitions.to.txn.retry.backoff.ms": (
        "kernel/dispatch/produce_admission.py",
        'get_int("add.partitions.to.txn.retry.backoff.ms")',
    ),
    "advertised.listeners": ("kernel/broker/broker.py", "listener.advertised(port, host_name)"),
    "auto.create.topics.enable": ("kernel/dispatch/handlers/api_03_metadata.py", "self._may_create_topics()"),
    "broker.id": ("kernel/config/settings.py", 'static["node.id"] = broker'),
    "broker.id.generation.enable": ("kernel/config/roles.py", "config.get_bool(GENERATES)"),
    "reserved.broker.max.id": ("kernel/cluster/introduction.py", "config.get_int(RESERVED_MAX) + 1"),
    "broker.rack": ("kernel/controller/placement.py", ".rack"),
    "broker.heartbeat.interval.ms": ("kernel/cluster/member.py", 'get_int("broker.heartbeat.interval.ms")'),
    "cordoned.log.dirs": ("kernel/config/cordons.py", "config.get_list(CORDONED)"),
    "log.dir.failure.timeout.ms": ("kernel/cluster/member.py", "get_int(FAILURE_TIMEOUT)"),
    "broker.session.timeout.ms": ("kernel/broker/metadata_parts.py", 'get_int("broker.session.timeout.ms")'),
    "connections.max.idle.ms": ("kernel/network/loop.py", "self.settings.connections_idle_ms_max"),
    "controlled.shutdown.enable": ("kernel/cluster/member.py", 'get_bool("controlled.shutdown.enable")'),
    "controller.listener.names": ("kernel/config/listeners.py", "in controllers"),
    "controller.quorum.auto.join.enable": ("kernel/quorum/own_voter.py", "config.get_bool(AUTO_JOIN)"),
    "controller.quorum.bootstrap.servers": ("kernel/config/roles.py", "config.get_list(BOOTSTRAP)"),
    "controller.quorum.election.backoff.max.ms": ("plugins/election_quorum/timing.py", "config.get_int(BACKOFF_KEY)"),
    "controller.quorum.election.timeout.ms": (
        "plugins/election_quorum/timing.py",
        "config.get_int(ELECTION_TIMEOUT_KEY)",
    ),
    "controller.quorum.fetch.timeout.ms": ("plugins/election_quorum/timing.py", "config.get_int(FETCH_TIMEOUT_KEY)"),
    "controller.quorum.fetch.max.bytes": (
        "kernel/cluster/metadata_fetches.py",
        'get_int("controller.quorum.fetch.max.bytes")',
    ),
    "controller.quorum.fetch.snapshot.max.bytes": (
        "kernel/cluster/metadata_fetches.py",
        'get_int("controller.quorum.fetch.snapshot.max.bytes")',
    ),
    "controller.quorum.request.timeout.ms": (
        "kernel/quorum/quorum_view.py",
        "get_int(QUORUM_REQUEST_TIMEOUT)",
    ),
    "controller.quorum.retry.backoff.ms": (
        "kernel/cluster/peer_settings.py",
        'get_int("controller.quorum.retry.backoff.ms")',
    ),
    "controller.quorum.voters": ("kernel/config/roles.py", "config.get_list(VOTERS)"),
    "num.replica.fetchers": ("kernel/replication/settings.py", 'get_int("num.replica.fetchers")'),
    "replica.fetch.backoff.ms": ("kernel/replication/replication.py", 'get_int("replica.fetch.backoff.ms")'),
    "replica.fetch.max.bytes": ("kernel/replication/settings.py", 'get_int("replica.fetch.max.bytes")'),
    "replica.fetch.min.bytes": ("kernel/replication/settings.py", 'get_int("replica.fetch.min.bytes")'),
    "replica.fetch.response.max.bytes": (
        "kernel/replication/settings.py",
        'get_int("replica.fetch.response.max.bytes")',
    ),
    "replica.fetch.wait.max.ms": ("kernel/replication/settings.py", 'get_int("replica.fetch.wait.max.ms")'),
    "replica.lag.time.max.ms": ("plugins/election_isr/machine.py", "get_int(LAG_KEY)"),
    "replica.socket.timeout.ms": ("kernel/replication/settings.py", 'get_int("replica.socket.timeout.ms")'),
    "leader.replication.throttled.rate": ("kernel/replication/throttling.py", '"leader.replication.throttled.rate"'),
    "follower.replication.throttled.rate": (
        "kernel/replication/throttling.py",
        '"follower.replication.throttled.rate"',
    ),
    "alter.log.dirs.replication.quota.window.num": ("kernel/broker/log_parts.py", '"alter.log.dirs.replication.quota"'),
    "alter.log.dirs.replication.quota.window.size.seconds": (
        "kernel/broker/log_parts.py",
        '"alter.log.dirs.replication.quota"',
    ),
    "replication.quota.window.num": ("kernel/replication/throttling.py", '"replication.quota"'),
    "replication.quota.window.size.seconds": ("kernel/replication/throttling.py", '"replication.quota"'),
    "follower.fetch.last.tiered.offset.enable": (
        "kernel/replication/settings.py",
        'get_bool("follower.fetch.last.tiered.offset.enable")',
    ),
    "default.replication.factor": ("kernel/controller/topic_creation.py", 'get_int("default.replication.factor")'),
    "delete.topic.enable": ("kernel/controller/topic_deletion.py", 'get_bool("delete.topic.enable")'),
    "fetch.max.bytes": ("kernel/dispatch/handlers/api_01_fetch.py", "self._max_bytes"),
    "group.consumer.assignment.interval.ms": ("plugins/groups/consumer/settings.py", "config.get_int(keys.default)"),
    "group.consumer.assignors": ("plugins/groups/consumer/settings.py", 'get_list("group.consumer.assignors")'),
    "group.consumer.heartbeat.interval.ms": ("plugins/groups/consumer/settings.py", "config.get_int(keys.default)"),
    "group.consumer.max.assignment.interval.ms": ("plugins/groups/consumer/settings.py", "config.get_int(keys.most)"),
    "group.consumer.max.heartbeat.interval.ms": ("plugins/groups/consumer/settings.py", "config.get_int(keys.most)"),
    "group.consumer.max.session.timeout.ms": ("plugins/groups/consumer/settings.py", "config.get_int(keys.most)"),
    "group.consumer.max.size": ("plugins/groups/consumer/settings.py", 'get_int("group.consumer.max.size")'),
    "group.consumer.migration.policy": (
        "plugins/groups/consumer/settings.py",
        'get_text("group.consumer.migration.policy")',
    ),
    "group.consumer.min.assignment.interval.ms": ("plugins/groups/consumer/settings.py", "config.get_int(keys.least)"),
    "group.consumer.min.heartbeat.interval.ms": ("plugins/groups/consumer/settings.py", "config.get_int(keys.least)"),
    "group.consumer.min.session.timeout.ms": ("plugins/groups/consumer/settings.py", "config.get_int(keys.least)"),
    "group.consumer.regex.refresh.interval.ms": (
        "plugins/groups/consumer/settings.py",
        'get_int("group.consumer.regex.refresh.interval.ms")',
    ),
    "group.consumer.session.timeout.ms": ("plugins/groups/consumer/settings.py", "config.get_int(keys.default)"),
    "group.coordinator.rebalance.protocols": (
        "plugins/groups/handlers/consumer_protocol.py",
        "group.coordinator.rebalance.protocols",
    ),
    "group.initial.rebalance.delay.ms": ("plugins/groups/classic/rebalance.py", "get_int(INITIAL_DELAY_KEY)"),
    "group.max.session.timeout.ms": (
        "plugins/groups/handlers/api_11_join_group.py",
        'f"group.{end}.session.timeout.ms"',
    ),
    "group.max.size": ("plugins/groups/classic/joining.py", "get_int(MAX_SIZE_KEY)"),
    "group.min.session.timeout.ms": (
        "plugins/groups/handlers/api_11_join_group.py",
        'f"group.{end}.session.timeout.ms"',
    ),
    "offset.metadata.max.bytes": ("plugins/groups/offsets.py", 'get_int("offset.metadata.max.bytes")'),
    "offsets.commit.timeout.ms": ("plugins/groups/coordinator.py", 'write_timeout_key = "offsets.commit.timeout.ms"'),
    "offsets.load.buffer.size": ("plugins/groups/coordinator.py", 'load_buffer_key = "offsets.load.buffer.size"'),
    "offsets.retention.check.interval.ms": (
        "plugins/groups/offsets.py",
        'get_int("offsets.retention.check.interval.ms")',
    ),
    "offsets.retention.minutes": ("plugins/groups/offsets.py", 'get_int("offsets.retention.minutes")'),
    "offsets.topic.compression.codec": (
        "plugins/groups/coordinator.py",
        'compression_key="offsets.topic.compression.codec"',
    ),
    "offsets.topic.num.partitions": ("plugins/groups/coordinator.py", 'partitions_key="offsets.topic.num.partitions"'),
    "offsets.topic.replication.factor": (
        "plugins/groups/coordinator.py",
        'replication_factor_key="offsets.topic.replication.factor"',
    ),
    "offsets.topic.segment.bytes": ("plugins/groups/coordinator.py", '"segment.bytes": "offsets.topic.segment.bytes"'),
    "initial.broker.registration.timeout.ms": (
        "kernel/cluster/member.py",
        'get_int("initial.broker.registration.timeout.ms")',
    ),
    "inter.broker.listener.name": ("kernel/config/listeners.py", 'get_text("inter.broker.listener.name")'),
    "listener.security.protocol.map": ("kernel/network/configure.py", "listener.security_protocol"),
    "listeners": ("kernel/network/server.py", "settings.listeners"),
    "log.dir": ("kernel/config/broker.py", 'self.get_list("log.dir")'),
    "log.dirs": ("plugins/storage_segment/log_dirs.py", "context.log_dirs"),
    "log.cleaner.backoff.ms": ("kernel/cleanup/compactor.py", 'get_int("log.cleaner.backoff.ms")'),
    "log.cleaner.dedupe.buffer.size": ("kernel/cleanup/compactor.py", 'get_int("log.cleaner.dedupe.buffer.size")'),
    "log.cleaner.enable": ("kernel/cleanup/compactor.py", 'get_bool("log.cleaner.enable")'),
    "log.cleaner.io.buffer.load.factor": (
        "kernel/cleanup/compactor.py",
        'get_float("log.cleaner.io.buffer.load.factor")',
    ),
    "log.cleaner.io.buffer.size": ("kernel/cleanup/compactor.py", 'get_int("log.cleaner.io.buffer.size")'),
    "log.cleaner.io.max.bytes.per.second": (
        "kernel/cleanup/compactor.py",
        'get_float("log.cleaner.io.max.bytes.per.second")',
    ),
    "replica.alter.log.dirs.io.max.bytes.per.second": (
        "kernel/broker/log_parts.py",
        'get_int("replica.alter.log.dirs.io.max.bytes.per.second")',
    ),
    "log.cleaner.threads": ("kernel/cleanup/compactor.py", 'get_int("log.cleaner.threads")'),
    "log.retention.check.interval.ms": ("kernel/cleanup/retention.py", "_settings().check_interval_ms"),
    "log.flush.scheduler.interval.ms": ("kernel/partitions/upkeep.py", "settings.flush_check_interval_ms"),
    "log.initial.task.delay.ms": ("kernel/cleanup/retention.py", "_settings().initial_delay_ms"),
    "log.flush.offset.checkpoint.interval.ms": ("kernel/partitions/upkeep.py", "settings.snapshot_interval_ms"),
    "remote.log.index.file.cache.total.size.bytes": (
        "plugins/storage_tiered/cold_reads.py",
        "index_bytes=config.get_int(INDEX_BYTES_KEY)",
    ),
    "remote.log.manager.copier.thread.pool.size": (
        "plugins/storage_tiered/tier.py",
        '"remote.log.manager.copier.thread.pool.size"',
    ),
    "remote.log.manager.copy.max.bytes.per.second": (
        "plugins/storage_tiered/tier.py",
        '"remote.log.manager.copy.max.bytes.per.second"',
    ),
    "remote.log.manager.task.interval.ms": ("plugins/storage_tiered/tier.py", '"remote.log.manager.task.interval.ms"'),
    "remote.log.manager.task.retry.backoff.max.ms": (
        "plugins/storage_tiered/removals.py",
        '"remote.log.manager.task.retry.backoff.max.ms"',
    ),
    "remote.log.manager.task.retry.backoff.ms": (
        "plugins/storage_tiered/removals.py",
        '"remote.log.manager.task.retry.backoff.ms"',
    ),
    "remote.log.manager.task.retry.jitter": (
        "plugins/storage_tiered/removals.py",
        '"remote.log.manager.task.retry.jitter"',
    ),
    "remote.log.reader.max.pending.tasks": (
        "plugins/storage_tiered/cold_reads.py",
        '"remote.log.reader.max.pending.tasks"',
    ),
    "remote.log.reader.threads": ("plugins/storage_tiered/cold_reads.py", '"remote.log.reader.threads"'),
    "remote.fetch.max.wait.ms": ("kernel/broker/handlers.py", 'get_int("remote.fetch.max.wait.ms")'),
    "remote.list.offsets.request.timeout.ms": (
        "kernel/broker/handlers.py",
        'get_int("remote.list.offsets.request.timeout.ms")',
    ),
    "remote.log.storage.system.enable": ("kernel/broker/log_parts.py", 'get_bool("remote.log.storage.system.enable")'),
    "max.connections": ("kernel/network/loop.py", "self.settings.connections_max"),
    "max.connections.per.ip": ("kernel/network/loop.py", "self.settings.connections_per_ip_max"),
    "max.connections.per.ip.overrides": ("kernel/network/loop.py", "self.settings.connections_per_ip_overrides"),
    "max.incremental.fetch.session.cache.slots": ("kernel/dispatch/fetch_session.py", "slots"),
    "max.request.partition.size.limit": (
        "kernel/dispatch/handlers/api_75_describe_topic_partitions.py",
        "self._partitions_max()",
    ),
    "metadata.log.dir": ("kernel/controller/opening.py", "log_dir=config.metadata_log_dir"),
    "metadata.log.max.record.bytes.between.snapshots": ("kernel/controller/snapshots.py", ">= self.bytes_between"),
    "metadata.log.max.snapshot.interval.ms": ("kernel/controller/snapshots.py", "< self.interval_ms <="),
    "metadata.log.segment.bytes": ("kernel/controller/opening.py", "metadata_log_config(config)"),
    "metadata.log.segment.ms": ("kernel/controller/opening.py", "metadata_log_config(config)"),
    "node.id": ("plugins/storage_segment/log_dirs.py", "context.node_id"),
    "num.partitions": ("kernel/controller/topic_creation.py", 'get_int("num.partitions")'),
    "odradek.cluster.id": ("plugins/storage_segment/log_dirs.py", "context.cluster_id"),
    "odradek.internal.election": ("kernel/coordinator/internal_topics.py", "config.value(INTERNAL_ELECTION)"),
    "odradek.metadata.election": ("kernel/config/roles.py", "config.get_text(METADATA_ELECTION)"),
    "auto.leader.rebalance.enable": (
        "kernel/controller/serving.py",
        'get_bool("auto.leader.rebalance.enable")',
    ),
    "leader.imbalance.check.interval.seconds": (
        "kernel/controller/serving.py",
        'get_int("leader.imbalance.check.interval.seconds")',
    ),
    "unclean.leader.election.enable": ("kernel/controller/partition_states.py", "get_bool(UNCLEAN_ELECTION)"),
    "replica.selector.class": ("kernel/dispatch/replica_selection.py", "get_text(SELECTOR_KEY)"),
    "odradek.placement": ("kernel/controller/topic_creation.py", 'get_text("odradek.placement")'),
    "odradek.metadata.version.max": ("kernel/metadata/features.py", 'get_int("odradek.metadata.version.max")'),
    "odradek.network.loop": ("kernel/network/server.py", "settings.loop"),
    "odradek.network.memory.bytes": ("kernel/network/loop.py", "self.settings.request_memory_bytes"),
    "odradek.produce.validation": ("kernel/partitions/topic_plan.py", "walks_records="),
    "odradek.shutdown.timeout.ms": ("kernel/network/server.py", "self.settings.drain_timeout_ms"),
    "process.roles": ("kernel/config/roles.py", "config.get_list(ROLES)"),
    "producer.id.expiration.check.interval.ms": (
        "kernel/partitions/upkeep.py",
        "settings.producer_expiration_interval_ms",
    ),
    "producer.id.expiration.ms": ("kernel/partitions/producer_table.py", "def remove_expired_in_steps"),
    "queued.max.request.bytes": ("kernel/network/configure.py", 'config.get_int("queued.max.request.bytes")'),
    "replica.high.watermark.checkpoint.interval.ms": (
        "kernel/partitions/upkeep.py",
        "settings.checkpoint_interval_ms",
    ),
    "security.inter.broker.protocol": ("kernel/config/listeners.py", 'get_text("security.inter.broker.protocol")'),
    "socket.listen.backlog.size": ("kernel/network/listener.py", "backlog=settings.backlog"),
    "socket.receive.buffer.bytes": ("kernel/network/listener.py", "receive_buffer_bytes=settings.receive_buffer_bytes"),
    "socket.request.max.bytes": ("kernel/network/listener.py", "request_limit_bytes"),
    "socket.send.buffer.bytes": ("kernel/network/listener.py", "SO_SNDBUF, settings.send_buffer_bytes"),
    "ssl.client.auth": ("kernel/network/tls.py", "_VERIFY_MODES[settings.client_auth]"),
    "ssl.enabled.protocols": ("kernel/network/tls.py", "settings.enabled_protocols"),
    "ssl.key.password": ("kernel/key_stores/loading.py", "settings.key_password or"),
    "ssl.keystore.certificate.chain": ("kernel/key_stores/loading.py", "{settings.keystore_certificate_chain}"),
    "ssl.keystore.key": ("kernel/key_stores/loading.py", "{settings.keystore_key}"),
    "ssl.keystore.location": ("kernel/key_stores/loading.py", "settings.keystore_location,"),
    "ssl.keystore.password": ("kernel/key_stores/loading.py", "settings.keystore_password,"),
    "ssl.keystore.type": ("kernel/key_stores/loading.py", "settings.keystore_type,"),
    "ssl.truststore.certificates": ("kernel/key_stores/loading.py", "settings.truststore_certificates,"),
    "ssl.truststore.location": ("kernel/key_stores/loading.py", "settings.truststore_location,"),
    "ssl.truststore.password": ("kernel/key_stores/loading.py", "settings.truststore_password,"),
    "ssl.truststore.type": ("kernel/key_stores/loading.py", "settings.truststore_type,"),
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": (
        "plugins/transactions/coordinator.py",
        'get_int("transaction.abort.timed.out.transaction.cleanup.interval.ms")',
    ),
    "request.timeout.ms": ("kernel/broker/request_parts.py", 'get_int("request.timeout.ms")'),
    "transaction.max.timeout.ms": (
        "plugins/transactions/coordinator.py",
        'get_int("transaction.max.timeout.ms")',
    ),
    "transaction.partition.verification.enable": (
        "kernel/dispatch/produce_admission.py",
        'get_bool("transaction.partition.verification.enable")',
    ),
    "transaction.remove.expired.transaction.cleanup.interval.ms": (
        "plugins/transactions/coordinator.py",
        'get_int("transaction.remove.expired.transaction.cleanup.interval.ms")',
    ),
    "transaction.state.log.load.buffer.size": (
        "plugins/transactions/coordinator.py",
        'load_buffer_key = "transaction.state.log.load.buffer.size"',
    ),
    "transaction.state.log.min.isr": (
        "plugins/transactions/coordinator.py",
        '"min.insync.replicas": "transaction.state.log.min.isr"',
    ),
    "transaction.state.log.num.partitions": (
        "plugins/transactions/coordinator.py",
        '"transaction.state.log.num.partitions"',
    ),
    "transaction.state.log.replication.factor": (
        "plugins/transactions/coordinator.py",
        '"transaction.state.log.replication.factor"',
    ),
    "transaction.state.log.segment.bytes": (
        "plugins/transactions/coordinator.py",
        '"segment.bytes": "transaction.state.log.segment.bytes"',
    ),
    "transactional.id.expiration.ms": (
        "plugins/transactions/coordinator.py",
        'get_int("transactional.id.expiration.ms")',
    ),
}

ACTS_OF_TOPIC = {
    "follower.replication.throttled.replicas": (
        "kernel/partitions/topic_plan.py",
        "config.follower_replication_throttled_replicas",
    ),
    "leader.replication.throttled.replicas": (
        "kernel/partitions/topic_plan.py",
        "config.leader_replication_throttled_replicas",
    ),
    "cleanup.policy": ("kernel/cleanup/log_states.py", "settings.cleanup_policy"),
    "compression.gzip.level": ("kernel/partitions/topic_plan.py", "config.compression_gzip_level"),
    "compression.lz4.level": ("kernel/partitions/topic_plan.py", "config.compression_lz4_level"),
    "compression.type": ("kernel/records/validation.py", "rules.compression"),
    "compression.zstd.level": ("kernel/partitions/topic_plan.py", "config.compression_zstd_level"),
    "delete.retention.ms": ("kernel/cleanup/compactor.py", "cleanup.delete_retention_ms"),
    "file.delete.delay.ms": ("plugins/storage_segment/writer.py", "config.file_delete_delay_ms"),
    "flush.messages": ("plugins/storage_segment/writer.py", "config.flush_messages"),
    "flush.ms": ("kernel/partitions/upkeep.py", "log_config.flush_ms"),
    "index.interval.bytes": ("plugins/storage_segment/writer.py", "config.index_interval_bytes"),
    "internal.segment.bytes": ("kernel/config/topic.py", "_INTERNAL_SEGMENT_BYTES in own"),
    "unclean.leader.election.enable": ("kernel/controller/partition_states.py", "own.get(UNCLEAN_ELECTION)"),
    "max.compaction.lag.ms": ("plugins/cleanup/compact.py", "settings.max_compaction_lag_ms"),
    "max.message.bytes": ("kernel/records/validation.py", "rules.max_message_bytes"),
    "message.timestamp.after.max.ms": ("kernel/records/validation.py", "rules.timestamp_after_max_ms"),
    "message.timestamp.before.max.ms": ("kernel/records/validation.py", "rules.timestamp_before_max_ms"),
    "message.timestamp.type": ("kernel/records/validation.py", "rules.timestamp_type"),
    "min.cleanable.dirty.ratio": ("plugins/cleanup/compact.py", "settings.min_cleanable_dirty_ratio"),
    "min.compaction.lag.ms": ("plugins/cleanup/compact.py", "settings.min_compaction_lag_ms"),
    "min.insync.replicas": ("plugins/election_isr/machine.py", "min_insync_replicas"),
    "odradek.delay.enable": ("kernel/config/topic.py", "takes_new=self.odradek_delay_enable"),
    "odradek.delay.max.ms": ("kernel/partitions/delays.py", "settings.delay_ms_max"),
    "odradek.delay.queue": ("kernel/partitions/delays.py", "settings.queue"),
    "odradek.election": ("kernel/partitions/replica_opener.py", '"odradek.election"'),
    "errors.deadletterqueue.group.enable": (
        "kernel/partitions/topic_plan.py",
        "config.errors_deadletterqueue_group_enable",
    ),
    "odradek.retry.auto": ("kernel/metadata/retry_topics.py", "RETRY_AUTO"),
    "odradek.retry.breaker.minimum": ("kernel/retry/breaker.py", "settings.minimum"),
    "odradek.retry.breaker.share": ("kernel/retry/breaker.py", "settings.share"),
    "odradek.retry.breaker.window.ms": ("kernel/retry/breaker.py", "settings.window_ms"),
    "odradek.retry.dead.letters.of": ("kernel/partitions/dead_letters.py", "settings.dead_letters_of"),
    "odradek.retry.group": ("kernel/partitions/delays.py", "settings.group"),
    "odradek.retry.order": ("src/odradek/client/ordered/order_keeper.py", "ORDER_KEY"),
    "odradek.retry.order.waiting.max": ("src/odradek/client/ordered/order_keeper.py", "WAITING_MAX_KEY"),
    "odradek.retry.policy": ("kernel/partitions/delays.py", "settings.policy"),
    "odradek.retry.topic": ("kernel/partitions/delays.py", "settings.topic"),
    "odradek.storage": ("kernel/partitions/replica_opener.py", '"odradek.storage"'),
    "preallocate": ("plugins/storage_segment/directory.py", "if config.preallocate"),
    "local.retention.bytes": ("plugins/storage_tiered/planning.py", "settings.local_retention_bytes"),
    "local.retention.ms": ("plugins/storage_tiered/planning.py", "settings.local_retention_ms"),
    "remote.log.copy.disable": ("plugins/storage_tiered/planning.py", "settings.remote_log_copy_disable"),
    "remote.log.delete.on.disable": ("kernel/config/tier_checks.py", "topic.remote_log_delete_on_disable"),
    "remote.storage.enable": ("kernel/config/topic.py", "self.remote_storage_enable"),
    "retention.bytes": ("plugins/cleanup/delete.py", "settings.retention_bytes"),
    "retention.ms": ("plugins/cleanup/delete.py", "settings.retention_ms"),
    "segment.bytes": ("plugins/storage_segment/writer.py", "config.segment_bytes"),
    "segment.index.bytes": ("plugins/storage_segment/writer.py", "config.segment_index_bytes"),
    "segment.jitter.ms": ("plugins/storage_segment/writer.py", "config.segment_jitter_ms"),
    "segment.ms": ("plugins/storage_segment/writer.py", "config.segment_ms"),
}

REGISTRY = builtin_registry()
STAND_INS = {name for key in REGISTRY.keys[Scope.TOPIC].values() for name in key.synonyms}
"""Keys of a broker that a topic's key reads where the topic has none of its own."""


def names_that_stand(scope: Scope) -> set[str]:
    keys = REGISTRY.keys[scope].values()
    left_out = STAND_INS if scope is Scope.BROKER else set()
    return {key.name for key in keys if key.part.stands and not key.refused_because} - left_out


def test_every_key_of_a_part_that_stands_has_its_place_in_the_table() -> None:
    assert names_that_stand(Scope.BROKER) == ACTS_OF_BROKER.keys() - STAND_INS
    assert names_that_stand(Scope.TOPIC) == ACTS_OF_TOPIC.keys()


@pytest.mark.parametrize(("name", "place"), [*ACTS_OF_BROKER.items(), *ACTS_OF_TOPIC.items()])
def test_a_key_acts_where_the_table_says(name: str, place: tuple[str, str]) -> None:
    file, code = place

    assert code in (ROOT / file).read_text(encoding="utf-8"), f"{name} acts nowhere: {file} has no {code!r}"


def test_a_stand_in_of_a_topics_key_is_one_of_the_brokers_own() -> None:
    assert {name for name in STAND_INS if name not in REGISTRY.keys[Scope.BROKER]} == set()
