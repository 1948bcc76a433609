"""A topic's configuration: overrides over the broker's keys that stand in, checks, alterations."""

from __future__ import annotations

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.kernel.config.alter import (
    Alteration,
    AlterConfigOp,
    alter_broker,
    alter_client_metrics,
    alter_topic,
    replace_broker,
    replace_topic,
)
from odradek.kernel.config.broker import BrokerConfig, Setting
from odradek.kernel.config.definitions.odradek import LATER_KEYS
from odradek.kernel.config.describe import describe_broker, describe_cluster, describe_topic
from odradek.kernel.config.keys import ConfigKey, Importance, Part, Scope, UpdateMode
from odradek.kernel.config.registry import Registry, builtin_registry
from odradek.kernel.config.topic import TopicConfig, check_topic
from odradek.kernel.config.values import ConfigType
from odradek.kernel.contracts.storage import LogConfig
from odradek.kernel.errors import ConfigError, ErrorCode, KafkaError

COUNT = ConfigKey(
    "odradek.zebra.count",
    ConfigType.INT,
    5,
    scope=Scope.TOPIC,
    importance=Importance.LOW,
    update_mode=UpdateMode.CLUSTER_WIDE,
    part=Part.LOG,
    refused_because="zebras cannot be counted",
)


def broker(**texts: str) -> BrokerConfig:
    static = {name.replace("_", "."): Setting(text, "here") for name, text in texts.items()}
    return BrokerConfig(builtin_registry(), static)


def test_a_topic_that_sets_nothing_has_the_defaults_of_kafka() -> None:
    topic = TopicConfig.resolve(broker())

    for field in attrs.fields(TopicConfig):
        key = builtin_registry().find(Scope.TOPIC, field.name.replace("_", "."))
        if key is not None:
            assert getattr(topic, field.name) == key.default, field.name


def test_every_key_of_a_topic_has_its_attribute() -> None:
    fields = {field.name.replace("_", ".") for field in attrs.fields(TopicConfig)} - {
        "extra",
        "overrides",
        "is.compacted",
    }
    later = {key.name for key in LATER_KEYS}
    topic_keys = builtin_registry().keys[Scope.TOPIC].values()
    keys = {key.name for key in topic_keys if not key.is_internal or key.name in later}

    assert keys == fields


def test_the_brokers_key_stands_in_in_its_own_unit() -> None:
    resolved = TopicConfig.resolve(
        broker(log_retention_hours="2", log_roll_hours="3", log_roll_jitter_hours="1", message_max_bytes="9")
    )

    assert resolved.retention_ms == 2 * 3_600_000
    assert resolved.segment_ms == 3 * 3_600_000
    assert resolved.segment_jitter_ms == 3_600_000
    assert resolved.max_message_bytes == 9


def test_the_nearest_of_the_brokers_keys_stands_in() -> None:
    assert TopicConfig.resolve(broker(log_retention_minutes="3", log_retention_hours="2")).retention_ms == 180_000
    assert TopicConfig.resolve(broker(log_retention_ms="7", log_retention_minutes="3")).retention_ms == 7
    assert TopicConfig.resolve(broker(log_flush_scheduler_interval_ms="5")).flush_ms == 5


def test_for_ever_is_for_ever_in_every_unit() -> None:
    assert TopicConfig.resolve(broker(log_retention_hours="-1")).retention_ms == -1


def test_an_override_wins() -> None:
    topic = TopicConfig.resolve(broker(log_retention_hours="2"), {"retention.ms": " 7 ", "cleanup.policy": "compact"})

    assert topic.retention_ms == 7
    assert topic.is_compacted
    assert topic.overrides == {"retention.ms": " 7 ", "cleanup.policy": "compact"}


def test_an_override_of_another_version_is_left_out() -> None:
    topic = TopicConfig.resolve(broker(), {"segment.bytes": "5", "no.such.key": "1"})

    assert topic.segment_bytes == 1 << 30


def test_the_internal_segment_size_goes_below_the_bound() -> None:
    assert TopicConfig.resolve(broker(), {"internal.segment.bytes": "1000"}).segment_bytes == 1000


def test_a_topic_tells_its_logs_what_they_need() -> None:
    topic = TopicConfig.resolve(broker(), {"segment.bytes": "2000000", "preallocate": "true"})

    assert topic.log_config() == LogConfig(segment_bytes=2_000_000, preallocate=True)


def test_a_plugins_key_is_found_by_name_and_refused_with_its_reason() -> None:
    config = BrokerConfig(Registry.of([("zebra", COUNT)]))

    assert TopicConfig.resolve(config, {"odradek.zebra.count": "7"}).extra == {"odradek.zebra.count": 7}
    with pytest.raises(KafkaError, match="zebras cannot be counted"):
        check_topic(config, {"odradek.zebra.count": "7"})
    check_topic(config, {"odradek.zebra.count": "5"})


@pytest.mark.parametrize(
    ("overrides", "what"),
    [
        ({"no.such.key": "1"}, "Unknown topic config name: no.such.key"),
        ({"log.retention.ms": "1"}, "the topic's is 'retention.ms'"),
        ({"segment.bytes": "1000"}, "Value must be at least 1048576"),
        ({"min.compaction.lag.ms": "10", "max.compaction.lag.ms": "5"}, "conflict topic config setting"),
        ({"remote.storage.enable": "true"}, "Tiered Storage functionality is disabled"),
        ({"odradek.storage": ""}, "String must be non-empty"),
    ],
)
def test_wrong_overrides_are_an_invalid_config(overrides: dict[str, str], what: str) -> None:
    with pytest.raises(KafkaError) as refusal:
        check_topic(broker(), overrides)

    assert refusal.value.code is ErrorCode.INVALID_CONFIG
    assert what in refusal.value.detail


def test_keys_of_parts_that_are_not_built_are_warned_of() -> None:
    names = ["log.cleanup.policy", "quota.window.num", "log.segment.bytes", "unknown"]
    assert list(broker().registry.without_effect(Scope.BROKER, names)) == [
        ("quota.window.num", "quota.window.num belongs to quotas, which are not built yet; it has no effect"),
    ]


def test_what_a_topic_is_made_of_cannot_change() -> None:
    config = broker()
    change = [Alteration("odradek.storage", AlterConfigOp.SET, "memory")]
    with pytest.raises(KafkaError, match="cannot be changed: it is segment"):
        alter_topic(config, {}, change)

    same = [Alteration("odradek.storage", AlterConfigOp.SET, "segment")]
    assert alter_topic(config, {}, same) == {"odradek.storage": "segment"}


def test_replacing_drops_what_is_not_named() -> None:
    assert replace_topic(broker(), {"retention.ms": "5", "flush.ms": "1"}, {"flush.ms": "2"}) == {"flush.ms": "2"}
    with pytest.raises(KafkaError, match="Null value not supported for"):
        replace_topic(broker(), {}, {"flush.ms": None})


def test_a_brokers_layer_can_be_replaced() -> None:
    config = broker().with_dynamic(cluster={"message.max.bytes": "7"}, broker={"log.roll.ms": "5"})

    assert replace_broker(config, {"log.roll.ms": "6"}, whole_cluster=True) == {"log.roll.ms": "6"}
    assert replace_broker(config, {}, whole_cluster=False) == {}


def test_rules_over_several_keys_hold_for_dynamic_changes_too() -> None:
    change = [Alteration("max.connections.per.ip", AlterConfigOp.SET, "0")]
    with pytest.raises(KafkaError, match="can be 0 only where") as refusal:
        alter_broker(broker(), change, whole_cluster=True)

    assert refusal.value.code is ErrorCode.INVALID_REQUEST


LISTS = st.lists(st.sampled_from(["delete", "compact"]), unique=True)
EDITS = st.lists(st.tuples(st.sampled_from(list(AlterConfigOp)), LISTS.map(",".join)), max_size=6)


@given(EDITS)
def test_a_list_is_edited_as_a_list(edits: list[tuple[AlterConfigOp, str]]) -> None:
    config = broker()
    overrides: dict[str, str] = {}
    model: list[str] | None = None
    for operation, text in edits:
        entries = [entry for entry in text.split(",") if entry]
        now = ["delete"] if model is None else model
        if operation is AlterConfigOp.DELETE:
            model = None
        elif operation is AlterConfigOp.SET:
            model = entries
        elif not entries:
            continue  # what appending nothing means is not asked here
        elif operation is AlterConfigOp.APPEND:
            model = now + [entry for entry in entries if entry not in now]
        else:
            model = [entry for entry in now if entry not in entries]
        overrides = alter_topic(config, overrides, [Alteration("cleanup.policy", operation, text)])

        expected = ("delete",) if model is None else tuple(model)

        assert expected == TopicConfig.resolve(config, overrides).cleanup_policy


def test_secrets_are_never_shown() -> None:
    config = broker(ssl_key_password="hunter2")
    shown = [row for row in describe_broker(config) if "hunter2" in repr(row)]

    assert shown == []
    assert "hunter2" not in repr(config)
    assert config.shown("ssl.key.password") == "[hidden]"
    assert config.shown("num.partitions") == "1"


def test_our_keys_are_described_with_their_synonyms() -> None:
    (row,) = describe_topic(broker(odradek_storage="memory"), {}, ["odradek.storage"])

    assert row.value == "memory"
    assert [(s.name, s.text) for s in row.synonyms] == [("odradek.storage", "memory"), ("odradek.storage", "segment")]
    assert row.documentation


def test_asking_for_an_unknown_key_is_our_own_mistake() -> None:
    with pytest.raises(ConfigError):
        broker().get_int("no.such.key")


def test_typed_access_reads_every_type() -> None:
    config = broker(log_cleaner_min_cleanable_ratio="0.25", log_preallocate="TRUE")

    assert config.get_float("log.cleaner.min.cleanable.ratio") == 0.25
    assert config.get_bool("log.preallocate") is True


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("metrics", "*"),
        ("interval.ms", " 100 "),
        ("match", ""),
        ("match", "client_id=a.*,client_source_port = 9.* "),
        ("match", "client_id=a="),
        ("match", r"client_id=\p{L}+"),
        ("match", "client_id=(?<!a)b"),
    ],
)
def test_client_metrics_are_altered_by_their_own_keys(name: str, text: str) -> None:
    assert alter_client_metrics(broker(), {}, [Alteration(name, AlterConfigOp.SET, text)]) == {name: text}


@pytest.mark.parametrize(
    ("name", "text", "code", "what"),
    [
        ("nope", "x", ErrorCode.INVALID_REQUEST, "Unknown client metrics configuration: nope"),
        ("interval.ms", "99", ErrorCode.INVALID_REQUEST, "Invalid value 99 for interval.ms, interval must be between"),
        ("interval.ms", "x", ErrorCode.INVALID_CONFIG, "Not a number of type INT"),
        ("match", "client_id=a,", ErrorCode.INVALID_CONFIG, "Configuration 'match' values must not be empty."),
        ("match", "client_id", ErrorCode.INVALID_CONFIG, "Illegal client matching pattern: client_id"),
        ("match", "client_id=a=b", ErrorCode.INVALID_CONFIG, "Illegal client matching pattern: client_id=a=b"),
        ("match", "no_such_name=a", ErrorCode.INVALID_CONFIG, "Illegal client matching pattern: no_such_name=a"),
        ("match", "client_id=[", ErrorCode.INVALID_CONFIG, "Illegal client matching pattern: client_id=["),
        ("match", "client_id=[[", ErrorCode.INVALID_CONFIG, "Illegal client matching pattern: client_id=[["),
    ],
)
def test_client_metrics_refuse_what_kafka_refuses(name: str, text: str, code: ErrorCode, what: str) -> None:
    with pytest.raises(KafkaError) as refusal:
        alter_client_metrics(broker(), {}, [Alteration(name, AlterConfigOp.SET, text)])

    assert refusal.value.code is code
    assert what in refusal.value.detail


@pytest.mark.parametrize(
    ("threads", "bound"),
    [
        (4, ""),
        (16, ""),
        (3, "value should be at least half the current value 8"),
        (17, "value should not be greater than double the current value 8"),
    ],
)
def test_threads_double_at_most_and_halve_at_most(threads: int, bound: str) -> None:
    change = [Alteration("num.io.threads", AlterConfigOp.SET, str(threads))]
    if not bound:
        assert alter_broker(broker(), change, whole_cluster=False) == {"num.io.threads": str(threads)}
        return
    with pytest.raises(KafkaError) as refusal:
        alter_broker(broker(), change, whole_cluster=False)

    assert refusal.value.code is ErrorCode.INVALID_REQUEST
    assert bound in refusal.value.detail


def test_dynamic_keys_of_another_version_are_described_as_secrets() -> None:
    config = broker().with_dynamic(cluster={"new.key": "1", "message.max.bytes": "much"}, broker={"new.key": "2"})
    (row,) = describe_broker(config, ["new.key"])
    cluster = {row.name: row for row in describe_cluster(config)}

    assert (row.value, row.is_sensitive, row.read_only, row.type) == (None, True, True, 0)
    assert [source.source for source in row.synonyms] == [2, 3]
    assert cluster["new.key"].value is None
    assert cluster["message.max.bytes"].value == "much"
    assert [row.name for row in describe_cluster(config, ["new.key"])] == ["new.key"]
    assert not row.is_default


def test_a_refused_value_is_refused_while_running_too() -> None:
    change = [Alteration("config.providers", AlterConfigOp.SET, "vault")]
    with pytest.raises(KafkaError, match="is refused: its Java classes cannot run here"):
        alter_broker(broker(), change, whole_cluster=True)


def test_an_unknown_operation_is_an_invalid_request() -> None:
    with pytest.raises(KafkaError, match="Unknown config operation 9"):
        alter_topic(broker(), {}, [Alteration("cleanup.policy", 9, "x")])
