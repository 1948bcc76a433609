"""`cleanup.policy` takes what active plugins offer, and keeps what they offered once."""

from __future__ import annotations

import pytest

from odradek.kernel.api import CleanupPlan, CleanupPolicy, LogState
from odradek.kernel.config.alter import Alteration, alter_topic
from odradek.kernel.config.broker import BrokerConfig, Setting
from odradek.kernel.config.registry import Registry
from odradek.kernel.config.topic import TopicConfig, check_topic
from odradek.kernel.errors import ConfigError, ErrorCode, KafkaError
from odradek.plugins.cleanup import odradek_cleanup_policies, odradek_config_keys

SET, APPEND = 0, 2


class NewestPolicy(CleanupPolicy):
    """A stranger's."""

    compacts = True
    requires_keys = True

    def plan(self, log: LogState) -> CleanupPlan:
        return CleanupPlan()


def config(*, with_plugin: bool = True, **policies: CleanupPolicy) -> BrokerConfig:
    keys = [("cleanup", key) for key in odradek_config_keys()] if with_plugin else []
    offered = {**(odradek_cleanup_policies() if with_plugin else {}), **policies}
    return BrokerConfig(Registry.of(keys).with_cleanup_policies(offered))


def refusal(broker: BrokerConfig, **overrides: str) -> str:
    with pytest.raises(KafkaError) as refused:
        check_topic(broker, {name.replace("_", "."): text for name, text in overrides.items()})
    assert refused.value.code == ErrorCode.INVALID_CONFIG
    return refused.value.detail


def test_every_policy_that_a_plugin_offers_can_be_chosen() -> None:
    broker = config(newest=NewestPolicy())
    for text in ("ttl", "compact,ttl", "delete , newest", ""):
        check_topic(broker, {"cleanup.policy": text})


def test_a_policy_that_no_plugin_offers_is_refused_with_those_that_there_are() -> None:
    assert refusal(config(), cleanup_policy="delete,newest") == (
        "Invalid value newest for configuration cleanup.policy: String must be one of: compact, delete, ttl; "
        "others need a plugin that offers them"
    )
    with pytest.raises(KafkaError, match="newest"):
        alter_topic(config(), {"cleanup.policy": "ttl"}, [Alteration("cleanup.policy", APPEND, "newest")])


def test_the_brokers_default_is_bound_too() -> None:
    with pytest.raises(ConfigError, match=r"a file: Invalid value ttl for configuration log\.cleanup\.policy"):
        BrokerConfig(
            config(with_plugin=False).registry, static={"log.cleanup.policy": Setting("ttl", "a file")}
        ).get_list("log.cleanup.policy")


def test_a_topic_keeps_a_policy_whose_plugin_is_gone_and_gets_no_other_in_its_place() -> None:
    bare = config(with_plugin=False)
    overrides = {"cleanup.policy": "compact,ttl", "odradek.ttl.lag.ms": "5", "retention.ms": "1"}

    assert TopicConfig.resolve(bare, overrides).cleanup_policy == ("compact", "ttl")
    assert TopicConfig.resolve(bare, overrides).is_compacted
    after = alter_topic(bare, overrides, [Alteration("retention.ms", SET, "2")])
    assert after == {**overrides, "retention.ms": "2"}
    with pytest.raises(KafkaError, match=r"cleanup\.policy"):
        alter_topic(bare, overrides, [Alteration("cleanup.policy", SET, "ttl")])


def test_a_topic_needs_keys_when_one_of_its_policies_does() -> None:
    broker = config(newest=NewestPolicy())
    needing = {
        text: TopicConfig.resolve(broker, {"cleanup.policy": text}).is_compacted
        for text in ("delete", "ttl", "delete,ttl", "compact", "ttl,newest")
    }

    assert needing == {"delete": False, "ttl": False, "delete,ttl": False, "compact": True, "ttl,newest": True}


def test_segments_of_a_topic_that_needs_keys_close_after_the_compaction_lag() -> None:
    resolved = TopicConfig.resolve(
        config(newest=NewestPolicy()), {"cleanup.policy": "newest", "max.compaction.lag.ms": "9"}
    )

    assert resolved.log_config().segment_ms == 9


def test_a_strategy_by_header_needs_a_header() -> None:
    text = refusal(config(), cleanup_policy="compact", odradek_compaction_strategy="header")

    assert text == (
        "odradek.compaction.strategy=header needs odradek.compaction.header: the name of the header whose number "
        "decides"
    )
    check_topic(config(), {"cleanup.policy": "delete", "odradek.compaction.strategy": "header"})


@pytest.mark.parametrize(
    ("key", "text", "told"),
    [
        ("odradek.compaction.strategy", "newest", "String must be one of: offset, timestamp, header"),
        ("odradek.ttl.lag.ms", "-1", "Value must be at least 0"),
        ("min.cleanable.dirty.ratio", "1.5", "Value must be no more than 1"),
        ("delete.retention.ms", "-1", "Value must be at least 0"),
        ("max.compaction.lag.ms", "0", "Value must be at least 1"),
        ("retention.ms", "-2", "Value must be at least -1"),
        ("min.compaction.lag.ms", "x", "Not a number of type LONG"),
    ],
)
def test_a_value_out_of_range_is_refused_with_the_range(key: str, text: str, told: str) -> None:
    assert told in refusal(config(), **{key: text})


def test_a_least_lag_above_the_largest_is_refused() -> None:
    told = refusal(config(), min_compaction_lag_ms="10", max_compaction_lag_ms="9")

    assert "min.compaction.lag.ms (10) > max.compaction.lag.ms (9)" in told
