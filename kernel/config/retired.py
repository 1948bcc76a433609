"""Pure core: names that people still write and Kafka 4.3 does not know: removed, renamed, misspelled, a client's.

Each gets a hint that names what to write today. A name that only stands in the wrong scope needs no entry here: the
registry finds its counterpart by itself.
"""

from __future__ import annotations

from typing import Final

from .keys import Scope

_ZOOKEEPER: Final = "Kafka runs without ZooKeeper since 4.0, and so does this broker; remove it"
_OLD_CLIENT: Final = "that was a setting of the Scala clients, removed in Kafka 0.11; today a producer sets {!r}"
_FORMAT: Final = "Kafka 4 writes record batches of version 2 only; remove it"
_TIMESTAMPS: Final = "since Kafka 3.6 {0}.before.max.ms and {0}.after.max.ms take its place"

HINTS: Final[dict[tuple[Scope | None, str], str]] = {
    # Removed for good.
    (None, "log.message.format.version"): _FORMAT,
    (None, "message.format.version"): _FORMAT,
    (None, "log.message.downconversion.enable"): _FORMAT,
    (None, "message.downconversion.enable"): _FORMAT,
    (
        None,
        "inter.broker.protocol.version",
    ): "Kafka 4 has features instead (UpdateFeatures: metadata.version); remove it",
    (None, "replica.lag.max.messages"): "removed in Kafka 0.9; 'replica.lag.time.max.ms' alone decides who is in sync",
    (None, "broker.max.id"): "the key is 'reserved.broker.max.id'",
    (None, "control.plane.listener.name"): "removed in Kafka 4.0; use 'controller.listener.names'",
    (None, "controlled.shutdown.max.retries"): "removed in Kafka 4.0, shutdown goes through heartbeats; remove it",
    (None, "controlled.shutdown.retry.backoff.ms"): "removed in Kafka 4.0, shutdown goes through heartbeats; remove it",
    (None, "leader.imbalance.per.broker.percentage"): "removed in Kafka 4.0; 'auto.leader.rebalance.enable' remains",
    (None, "delegation.token.master.key"): "renamed 'delegation.token.secret.key'",
    (None, "offsets.topic.compression.type"): "the key is 'offsets.topic.compression.codec'",
    (None, "metadata.max.snapshot.interval.ms"): "the key is 'metadata.log.max.snapshot.interval.ms'",
    (None, "password.encoder.secret"): _ZOOKEEPER,
    (None, "password.encoder.old.secret"): _ZOOKEEPER,
    (None, "password.encoder.keyfactory.algorithm"): _ZOOKEEPER,
    (None, "password.encoder.cipher.algorithm"): _ZOOKEEPER,
    (None, "password.encoder.key.length"): _ZOOKEEPER,
    (None, "password.encoder.iterations"): _ZOOKEEPER,
    (None, "zookeeper.metadata.migration.enable"): _ZOOKEEPER,
    (None, "zookeeper.metadata.migration.min.batch.size"): _ZOOKEEPER,
    **{
        (None, f"zookeeper.{name}"): _ZOOKEEPER
        for name in (
            "connect",
            "connection.timeout.ms",
            "session.timeout.ms",
            "sync.time.ms",
            "set.acl",
            "max.in.flight.requests",
            "clientCnxnSocket",
            "ssl.client.enable",
            "ssl.keystore.location",
            "ssl.keystore.password",
            "ssl.keystore.type",
            "ssl.truststore.location",
            "ssl.truststore.password",
            "ssl.truststore.type",
            "ssl.protocol",
            "ssl.enabled.protocols",
            "ssl.cipher.suites",
            "ssl.endpoint.identification.algorithm",
            "ssl.crl.enable",
            "ssl.ocsp.enable",
        )
    },
    (None, "offsets.commit.required.acks"): "removed in Kafka 4.0, offset commits always wait for all; remove it",
    (None, "auto.include.jmx.reporter"): "removed in Kafka 4.0; 'metric.reporters' names the reporters",
    (None, "group.coordinator.new.enable"): "removed in Kafka 4.0, the new coordinator is the only one; remove it",
    (None, "group.share.enable"): "removed in Kafka 4.2; 'group.coordinator.rebalance.protocols' names the protocols",
    (None, "group.share.max.groups"): "removed in Kafka 4.1; remove it",
    (None, "eligible.leader.replicas.enable"): "Kafka 4 has the feature eligible.leader.replicas.version instead",
    (None, "unstable.metadata.versions.enable"): "renamed 'unstable.feature.versions.enable'",
    # Renamed.
    (None, "host.name"): "removed in Kafka 3.0; set 'listeners'",
    (None, "port"): "removed in Kafka 3.0; set 'listeners'",
    (None, "advertised.host.name"): "removed in Kafka 3.0; set 'advertised.listeners'",
    (None, "advertised.port"): "removed in Kafka 3.0; set 'advertised.listeners'",
    (None, "log.message.timestamp.difference.max.ms"): _TIMESTAMPS.format("log.message.timestamp"),
    (None, "message.timestamp.difference.max.ms"): _TIMESTAMPS.format("message.timestamp"),
    (None, "log.cleaner.min.cleanable.dirty.ratio"): "the broker's key is 'log.cleaner.min.cleanable.ratio'",
    (Scope.BROKER, "log.min.cleanable.dirty.ratio"): "the broker's key is 'log.cleaner.min.cleanable.ratio'",
    (Scope.TOPIC, "log.min.cleanable.dirty.ratio"): "the topic's key is 'min.cleanable.dirty.ratio'",
    (Scope.BROKER, "log.min.compaction.lag.ms"): "the broker's key is 'log.cleaner.min.compaction.lag.ms'",
    (Scope.TOPIC, "log.min.compaction.lag.ms"): "the topic's key is 'min.compaction.lag.ms'",
    (Scope.BROKER, "log.max.compaction.lag.ms"): "the broker's key is 'log.cleaner.max.compaction.lag.ms'",
    (Scope.TOPIC, "log.max.compaction.lag.ms"): "the topic's key is 'max.compaction.lag.ms'",
    (Scope.BROKER, "log.file.delete.delay.ms"): "the broker's key is 'log.segment.delete.delay.ms'",
    (Scope.BROKER, "log.index.interval"): "the broker's key is 'log.index.interval.bytes'",
    (
        None,
        "log.delete.delay.ms",
    ): "the broker's key is 'log.segment.delete.delay.ms', a topic's 'file.delete.delay.ms'",
    (None, "log.file.size"): "the broker's key is 'log.segment.bytes', a topic's 'segment.bytes'",
    (None, "log.retention.size"): "the broker's key is 'log.retention.bytes', a topic's 'retention.bytes'",
    (None, "default.flush.interval.ms"): "the broker's key is 'log.flush.interval.ms'",
    # Misspelled, as found in articles.
    (None, "unclean.leader.election"): "the key is 'unclean.leader.election.enable'",
    (None, "unclean.leader.election.enble"): "the key is 'unclean.leader.election.enable'",
    (None, "log.retention"): "the broker's keys are 'log.retention.ms', '.minutes', '.hours' and '.bytes'",
    # Of the Scala clients.
    (None, "request.required.acks"): _OLD_CLIENT.format("acks"),
    (None, "message.send.max.retries"): _OLD_CLIENT.format("retries"),
    (None, "queue.buffering.max.ms"): _OLD_CLIENT.format("linger.ms"),
    (None, "producer.type"): _OLD_CLIENT.format("linger.ms"),
    (None, "batch.num.messages"): _OLD_CLIENT.format("batch.size"),
    (None, "metadata.broker.list"): _OLD_CLIENT.format("bootstrap.servers"),
    (None, "partition.class"): _OLD_CLIENT.format("partitioner.class"),
    (None, "linger.size"): _OLD_CLIENT.format("batch.size"),
    (None, "timeout.ms"): _OLD_CLIENT.format("request.timeout.ms"),
    (
        None,
        "max.partation.fetch.bytes",
    ): "a consumer's key is 'max.partition.fetch.bytes', the broker has no such setting",
    (
        None,
        "partitions.assignment.strategy",
    ): "a consumer's key is 'partition.assignment.strategy'",
    (None, "fetch.timeout.ms"): "a consumer's key is 'fetch.max.wait.ms', the broker has no such setting",
}
"""(Scope, or `None` for any; name) to what to say."""

CLIENT_KEYS: Final = frozenset(
    [
        "acks",
        "allow.auto.create.topics",
        "auto.commit.interval.ms",
        "auto.offset.reset",
        "batch.size",
        "bootstrap.servers",
        "buffer.memory",
        "check.crcs",
        "client.dns.lookup",
        "client.id",
        "client.rack",
        "default.api.timeout.ms",
        "delivery.timeout.ms",
        "enable.auto.commit",
        "enable.idempotence",
        "enable.metrics.push",
        "exclude.internal.topics",
        "fetch.max.wait.ms",
        "fetch.min.bytes",
        "group.id",
        "group.instance.id",
        "group.protocol",
        "group.remote.assignor",
        "heartbeat.interval.ms",
        "interceptor.classes",
        "isolation.level",
        "key.deserializer",
        "key.serializer",
        "linger.ms",
        "max.block.ms",
        "max.in.flight.requests.per.connection",
        "max.partition.fetch.bytes",
        "max.poll.interval.ms",
        "max.poll.records",
        "max.request.size",
        "metadata.max.age.ms",
        "metadata.max.idle.ms",
        "metadata.recovery.strategy",
        "partition.assignment.strategy",
        "partitioner.adaptive.partitioning.enable",
        "partitioner.availability.timeout.ms",
        "partitioner.class",
        "partitioner.ignore.keys",
        "receive.buffer.bytes",
        "reconnect.backoff.max.ms",
        "reconnect.backoff.ms",
        "retries",
        "retry.backoff.max.ms",
        "retry.backoff.ms",
        "security.protocol",
        "send.buffer.bytes",
        "session.timeout.ms",
        "transaction.timeout.ms",
        "transactional.id",
        "value.deserializer",
        "value.serializer",
    ]
)
"""Keys of producers, consumers and admin clients that the broker does not share."""
