"""Names of keys: those that articles and old configurations use, and those that nobody knows."""

from __future__ import annotations

import pytest

from odradek.kernel.config.keys import ConfigKey, Importance, Part, Scope, UpdateMode
from odradek.kernel.config.registry import Registry, builtin_registry
from odradek.kernel.config.values import ConfigType
from odradek.kernel.errors import ConfigError, PluginError

REGISTRY = builtin_registry()

KNOWN = [
    "auto.create.topics.enable",
    "auto.leader.rebalance.enable",
    "broker.id",
    "compression.type",
    "delete.topic.enable",
    "fetch.max.bytes",
    "follower.replication.throttled.rate",
    "leader.imbalance.check.interval.seconds",
    "leader.replication.throttled.rate",
    "log.cleaner.delete.retention.ms",
    "log.cleaner.enable",
    "log.cleanup.policy",
    "log.dirs",
    "log.flush.interval.messages",
    "log.flush.interval.ms",
    "log.index.interval.bytes",
    "log.index.size.max.bytes",
    "log.message.timestamp.type",
    "log.preallocate",
    "log.retention.bytes",
    "log.retention.check.interval.ms",
    "log.retention.hours",
    "log.retention.ms",
    "log.roll.hours",
    "log.roll.jitter.ms",
    "log.roll.ms",
    "log.segment.bytes",
    "log.segment.delete.delay.ms",
    "min.insync.replicas",
    "num.partitions",
    "offsets.topic.num.partitions",
    "offsets.topic.replication.factor",
    "replica.lag.time.max.ms",
    "request.timeout.ms",
    "unclean.leader.election.enable",
]

KNOWN_OF_TOPICS = [
    "cleanup.policy",
    "compression.type",
    "delete.retention.ms",
    "file.delete.delay.ms",
    "flush.messages",
    "flush.ms",
    "follower.replication.throttled.replicas",
    "index.interval.bytes",
    "leader.replication.throttled.replicas",
    "max.compaction.lag.ms",
    "max.message.bytes",
    "message.timestamp.type",
    "min.cleanable.dirty.ratio",
    "min.compaction.lag.ms",
    "min.insync.replicas",
    "preallocate",
    "retention.bytes",
    "retention.ms",
    "segment.bytes",
    "segment.index.bytes",
    "segment.jitter.ms",
    "segment.ms",
    "unclean.leader.election.enable",
]

HINTED = {
    # the name in an article: what the hint must name
    "auto.commit.interval.ms": "client",
    "auto.offset.reset": "client",
    "batch.size": "client",
    "bootstrap.servers": "client",
    "broker.max.id": "reserved.broker.max.id",
    "buffer.memory": "client",
    "cleanup.policy": "log.cleanup.policy",
    "delete.retention.ms": "log.cleaner.delete.retention.ms",
    "enable.auto.commit": "client",
    "enable.idempotence": "client",
    "exclude.internal.topics": "client",
    "fetch.max.wait.ms": "client",
    "fetch.min.bytes": "client",
    "fetch.timeout.ms": "fetch.max.wait.ms",
    "file.delete.delay.ms": "log.segment.delete.delay.ms",
    "flush.messages": "log.flush.interval.messages",
    "group.id": "client",
    "host.name": "listeners",
    "index.interval.bytes": "log.index.interval.bytes",
    "inter.broker.protocol.version": "metadata.version",
    "isolation.level": "client",
    "linger.ms": "client",
    "linger.size": "batch.size",
    "log.index.interval": "log.index.interval.bytes",
    "log.message.format.version": "version 2",
    "log.message.timestamp.difference.max.ms": "log.message.timestamp.before.max.ms",
    "log.min.cleanable.dirty.ratio": "log.cleaner.min.cleanable.ratio",
    "log.min.compaction.lag.ms": "log.cleaner.min.compaction.lag.ms",
    "max.block.ms": "client",
    "max.in.flight.requests.per.connection": "client",
    "max.message.bytes": "message.max.bytes",
    "max.partation.fetch.bytes": "max.partition.fetch.bytes",
    "max.poll.interval.ms": "client",
    "max.poll.records": "client",
    "max.request.size": "client",
    "message.downconversion.enable": "version 2",
    "message.format.version": "version 2",
    "message.send.max.retries": "retries",
    "message.timestamp.difference.max.ms": "message.timestamp.before.max.ms",
    "metadata.max.age.ms": "client",
    "min.cleanable.dirty.ratio": "log.cleaner.min.cleanable.ratio",
    "partition.assignment.strategy": "client",
    "partition.class": "partitioner.class",
    "partitions.assignment.strategy": "partition.assignment.strategy",
    "receive.buffer.bytes": "client",
    "reconnect.backoff.ms": "client",
    "replica.lag.max.messages": "replica.lag.time.max.ms",
    "request.required.acks": "acks",
    "retention.bytes": "log.retention.bytes",
    "retry.backoff.ms": "client",
    "segment.bytes": "log.segment.bytes",
    "send.buffer.bytes": "client",
    "session.timeout.ms": "client",
    "timeout.ms": "request.timeout.ms",
    "transactional.id": "client",
    "unclean.leader.election": "unclean.leader.election.enable",
    "unclean.leader.election.enble": "unclean.leader.election.enable",
    "zookeeper.connect": "ZooKeeper",
    "zookeeper.session.timeout.ms": "ZooKeeper",
    # misspellings that stand in no table
    "num.partition": "num.partitions",
    "log.dris": "log.dirs",
    "advertised.listener": "advertised.listeners",
    "odradek.storag": "odradek.storage",
}

HINTED_OF_TOPICS = {
    "log.retention.ms": "retention.ms",
    "log.retention.hours": "retention.ms",
    "log.min.cleanable.dirty.ratio": "min.cleanable.dirty.ratio",
    "message.max.bytes": "max.message.bytes",
    "message.format.version": "version 2",
    "retention.hours": "retention",
    "num.partitions": "broker",
    "acks": "client",
}


@pytest.mark.parametrize("name", KNOWN)
def test_a_brokers_key_of_the_articles_is_known(name: str) -> None:
    assert REGISTRY.get(Scope.BROKER, name).name == name


@pytest.mark.parametrize("name", KNOWN_OF_TOPICS)
def test_a_topics_key_of_the_articles_is_known(name: str) -> None:
    assert REGISTRY.get(Scope.TOPIC, name).name == name


@pytest.mark.parametrize("name", HINTED)
def test_an_unknown_brokers_key_is_refused_with_a_hint(name: str) -> None:
    with pytest.raises(ConfigError) as refusal:
        REGISTRY.get(Scope.BROKER, name, "a.properties, line 3")

    assert HINTED[name] in refusal.value.hint
    assert refusal.value.where == "a.properties, line 3"


@pytest.mark.parametrize("name", HINTED_OF_TOPICS)
def test_an_unknown_topics_key_is_refused_with_a_hint(name: str) -> None:
    assert REGISTRY.find(Scope.TOPIC, name) is None
    assert HINTED_OF_TOPICS[name] in REGISTRY.hint(Scope.TOPIC, name)


def test_a_group_key_on_the_broker_names_its_counterpart() -> None:
    assert "group.consumer.session.timeout.ms" in REGISTRY.hint(Scope.BROKER, "consumer.session.timeout.ms")


def test_a_name_like_no_other_gets_no_hint() -> None:
    assert REGISTRY.hint(Scope.BROKER, "xyzzy") == ""


def test_no_retired_name_is_a_known_key() -> None:
    from odradek.kernel.config.retired import CLIENT_KEYS, HINTS

    known_anyway = {
        (scope, name)
        for scope, name in HINTS
        for each in ((scope,) if scope else (Scope.BROKER, Scope.TOPIC))
        if REGISTRY.find(each, name)
    }

    assert known_anyway == set()
    assert not CLIENT_KEYS & set(REGISTRY.keys[Scope.BROKER])


def test_a_key_of_one_listener_is_known_by_the_key_it_stands_for() -> None:
    key = REGISTRY.get(Scope.BROKER, "listener.name.internal.ssl.keystore.password")

    assert key.is_sensitive
    assert key.synonyms == ("listener.name.internal.ssl.keystore.password", "ssl.keystore.password")
    assert REGISTRY.find(Scope.BROKER, "listener.name.internal.no.such.key") is None


def test_settings_of_a_remote_storage_plugin_are_known() -> None:
    assert REGISTRY.get(Scope.BROKER, "rsm.config.anything.at.all").part is Part.TIERED_CLASSES


def plugin_key(name: str) -> ConfigKey:
    return ConfigKey(
        name,
        ConfigType.INT,
        5,
        None,
        Scope.TOPIC,
        Importance.LOW,
        UpdateMode.CLUSTER_WIDE,
        Part.LOG,
        doc="A key of a plugin.",
    )


def test_a_plugins_key_is_known_and_listed_last() -> None:
    registry = Registry.of([("zebra", plugin_key("odradek.zebra.count"))])

    assert registry.get(Scope.TOPIC, "odradek.zebra.count").default == 5
    assert registry.listed(Scope.TOPIC)[-1].name == "odradek.zebra.count"


def test_a_plugins_key_must_carry_our_prefix_and_be_new() -> None:
    with pytest.raises(PluginError, match=r"plugin 'zebra' \(odradek_config_keys\): .*'zebra.count' does not begin"):
        Registry.of([("zebra", plugin_key("zebra.count"))])
    with pytest.raises(PluginError, match=r"plugin 'okapi' .*'odradek.zebra.count' is plugin 'zebra''s already"):
        Registry.of([("zebra", plugin_key("odradek.zebra.count")), ("okapi", plugin_key("odradek.zebra.count"))])
    with pytest.raises(PluginError, match=r"plugin 'okapi' .*'odradek.storage' is the kernel's already"):
        Registry.of([("okapi", plugin_key("odradek.storage"))])


def test_choices_bind_a_key_to_what_plugins_offer() -> None:
    registry = Registry.of().with_choices("odradek.storage", ["segment", "memory"])

    assert registry.get(Scope.TOPIC, "odradek.storage").parse("memory") == "memory"
    with pytest.raises(ValueError, match="String must be one of: segment, memory"):
        registry.get(Scope.BROKER, "odradek.storage").parse("tape")


def test_every_key_is_documented_in_a_sentence_of_its_own() -> None:
    for known in REGISTRY.keys.values():
        for key in known.values():
            assert key.doc.endswith("."), key.name
            assert key.doc[0].isupper(), key.name


def test_our_own_keys_are_listed_after_those_of_kafka() -> None:
    for scope in (Scope.BROKER, Scope.TOPIC):
        ours = [key.name.startswith("odradek.") for key in REGISTRY.listed(scope)]

        assert ours == sorted(ours)
        assert any(ours)
