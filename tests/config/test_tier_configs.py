"""What a topic's and a broker's keys of tiered storage must fulfil together.

Texts were answered by Apache Kafka 4.3.1 with remote.log.storage.system.enable=true and a remote storage in a folder,
2026-11-21.
"""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from odradek.kernel.config.alter import Alteration, AlterConfigOp, alter_topic
from odradek.kernel.config.broker import BrokerConfig, Setting
from odradek.kernel.config.checks import check_together
from odradek.kernel.config.registry import builtin_registry
from odradek.kernel.config.topic import TopicConfig, check_topic, expand_storage
from odradek.kernel.contracts.tiering import TierSettings
from odradek.kernel.errors import ConfigError, ErrorCode, KafkaError

REMOTE = {"remote.storage.enable": "true"}
COPY_DISABLED = "When `remote.log.copy.disable` is set to true, the `local.{0}` and `{0}` must be set to the identical "
STAYS_ON = "It is invalid to disable remote storage without deleting remote data. "


def broker(texts: Mapping[str, str] | None = None, *, is_on: bool = True) -> BrokerConfig:
    static = {name: Setting(text, "here") for name, text in (texts or {}).items()}
    static["remote.log.storage.system.enable"] = Setting(str(is_on).lower(), "here")
    return BrokerConfig(builtin_registry(), static)


@pytest.mark.parametrize(
    ("overrides", "detail"),
    [
        (
            {"local.retention.ms": "1000", "retention.ms": "500"},
            "Invalid value 1000 for configuration local.retention.ms: "
            "Value must not be more than retention.ms property value: 500",
        ),
        (
            {"local.retention.ms": "-1", "retention.ms": "500"},
            "Invalid value -1 for configuration local.retention.ms: "
            "Value must not be -1 as retention.ms value is set as 500.",
        ),
        (
            {"local.retention.bytes": "1000", "retention.bytes": "500"},
            "Invalid value 1000 for configuration local.retention.bytes: "
            "Value must not be more than retention.bytes property value: 500",
        ),
        (
            {"local.retention.bytes": "-1", "retention.bytes": "500"},
            "Invalid value -1 for configuration local.retention.bytes: "
            "Value must not be -1 as retention.bytes value is set as 500.",
        ),
        (
            {"remote.log.copy.disable": "true", "local.retention.ms": "100"},
            COPY_DISABLED.format("retention.ms") + "value because there will be no more logs copied to the remote "
            "storage.",
        ),
        (
            {"remote.log.copy.disable": "true", "local.retention.bytes": "100", "retention.bytes": "1000"},
            COPY_DISABLED.format("retention.bytes") + "value because there will be no more logs copied to the remote "
            "storage.",
        ),
    ],
)
def test_local_limits_are_refused_in_kafkas_words(overrides: dict[str, str], detail: str) -> None:
    with pytest.raises(KafkaError) as refusal:
        check_topic(broker(), {**REMOTE, **overrides})

    assert (refusal.value.code, refusal.value.detail) == (ErrorCode.INVALID_CONFIG, detail)
    check_topic(broker(), overrides)  # of a topic that is not tiered nothing is asked


@pytest.mark.parametrize(
    "overrides",
    [
        {"local.retention.ms": "-1", "retention.ms": "-1"},
        {"local.retention.ms": "100", "retention.ms": "-1"},
        {"local.retention.bytes": "0"},
        {"remote.log.copy.disable": "true"},
        {"remote.log.copy.disable": "true", "local.retention.ms": "-2", "local.retention.bytes": "-2"},
        {"remote.log.copy.disable": "true", "local.retention.ms": "500", "retention.ms": "500"},
        {"cleanup.policy": "compact"},
    ],
)
def test_what_kafka_takes_is_taken_and_compacted_topics_too(overrides: dict[str, str]) -> None:
    check_topic(broker(), {**REMOTE, **overrides})


def test_a_topic_asks_for_tiers_in_vain_where_they_are_off() -> None:
    with pytest.raises(KafkaError) as refusal:
        check_topic(broker(is_on=False), REMOTE)

    assert refusal.value.detail == (
        "Tiered Storage functionality is disabled in the broker. Topic cannot be configured with remote log storage."
    )


@pytest.mark.parametrize(
    "change",
    [("remote.storage.enable", AlterConfigOp.SET, "false"), ("remote.storage.enable", AlterConfigOp.DELETE, None)],
)
def test_tiers_are_turned_off_only_with_what_is_remote(change: tuple[str, int, str | None]) -> None:
    with pytest.raises(KafkaError) as refusal:
        alter_topic(broker(), REMOTE, [Alteration(*change)])

    assert refusal.value.detail.startswith(STAYS_ON)
    assert refusal.value.detail.endswith("please set `remote.storage.enable=false,remote.log.delete.on.disable=true`.")
    deleting = Alteration("remote.log.delete.on.disable", AlterConfigOp.SET, "true")
    after = alter_topic(broker(), REMOTE, [Alteration(*change), deleting])
    assert not TopicConfig.resolve(broker(), after).remote_storage_enable


def test_a_tier_is_told_the_whole_logs_limits_where_the_local_ones_follow_them() -> None:
    overrides = {**REMOTE, "retention.ms": "5000", "retention.bytes": "700", "local.retention.bytes": "70"}
    topic = TopicConfig.resolve(broker(), overrides)

    assert topic.tier_settings() == TierSettings(
        local_retention_ms=5000,
        local_retention_bytes=70,
        remote_log_copy_disable=False,
        cleanup=topic.cleanup_settings(),
    )
    assert TopicConfig.resolve(broker(), {}).tier_settings() is None


@pytest.mark.parametrize(
    ("default", "overrides", "expected"),
    [
        ("segment", {}, {}),
        ("segment", {"odradek.storage": "memory"}, {"odradek.storage": "memory"}),
        ("segment", {"odradek.storage": "tiered"}, {"odradek.storage": "segment", **REMOTE}),
        ("tiered", {}, {"odradek.storage": "segment", **REMOTE}),
        ("tiered", {"odradek.storage": "memory"}, {"odradek.storage": "memory"}),
        (
            "tiered",
            {"remote.storage.enable": "false"},
            {"odradek.storage": "segment", "remote.storage.enable": "false"},
        ),
    ],
)
def test_tiered_is_written_out_when_a_topic_is_created(
    default: str, overrides: dict[str, str], expected: dict[str, str]
) -> None:
    assert expand_storage(broker({"odradek.storage": default}), overrides, "t") == expected


def test_an_internal_topic_gets_the_storage_without_the_tier() -> None:
    config = broker({"odradek.storage": "tiered"})

    assert expand_storage(config, {"segment.bytes": "9"}, "__consumer_offsets") == {
        "odradek.storage": "segment",
        "segment.bytes": "9",
    }


def test_a_topic_cannot_be_tiered_and_not() -> None:
    with pytest.raises(
        KafkaError, match=r"odradek\.storage=tiered is short for segment with remote\.storage\.enable=true"
    ):
        expand_storage(broker(), {"odradek.storage": "tiered", "remote.storage.enable": "False"}, "t")


@pytest.mark.parametrize(
    ("texts", "what"),
    [
        ({"log.local.retention.ms": "3600001"}, "Value must not be more than log.retention.ms property value: 3600000"),
        ({"log.local.retention.ms": "-1"}, "Value must not be -1 as log.retention.ms value is set as 3600000."),
        (
            {"log.retention.bytes": "5", "log.local.retention.bytes": "7"},
            "Invalid value 7 for configuration log.local.retention.bytes: "
            "Value must not be more than log.retention.bytes property value: 5",
        ),
    ],
)
def test_a_brokers_local_limits_are_within_the_whole_logs(texts: dict[str, str], what: str) -> None:
    with pytest.raises(ConfigError) as refusal:
        check_together(broker({"log.retention.hours": "1", **texts}))

    assert what in refusal.value.message
    check_together(broker({"log.retention.hours": "1", **texts}, is_on=False))


def test_the_default_storage_is_tiered_only_where_tiers_are_on() -> None:
    with pytest.raises(ConfigError, match=r"odradek\.storage=tiered needs tiered storage, which is off"):
        check_together(broker({"odradek.storage": "tiered"}, is_on=False))

    check_together(broker({"odradek.storage": "tiered"}))
    assert broker({"odradek.storage": "tiered"}).storage == "segment"
