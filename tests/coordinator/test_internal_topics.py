"""Internal topics are created with Kafka's settings, as far as there are brokers for them."""

from __future__ import annotations

import pytest

from odradek.kernel.config.broker import BrokerConfig, Setting
from odradek.kernel.config.registry import Registry
from odradek.kernel.contracts.coordinator import TopicKeys
from odradek.kernel.coordinator.internal_topics import internal_topic

KEYS = TopicKeys(
    "transaction.state.log.num.partitions",
    "transaction.state.log.replication.factor",
    {
        "cleanup.policy": "=compact",
        "min.insync.replicas": "transaction.state.log.min.isr",
        "segment.bytes": "transaction.state.log.segment.bytes",
        "unclean.leader.election.enable": "unclean.leader.election.enable",
    },
)


def config(**texts: str) -> BrokerConfig:
    static = {key.replace("_", "."): Setting(text, "test") for key, text in texts.items()}
    return BrokerConfig(Registry.of(), static=static)


@pytest.mark.parametrize(
    ("usable_brokers_count", "replication_factor", "min_insync_replicas"), [(0, 1, 1), (1, 1, 1), (2, 2, 2), (5, 3, 2)]
)
def test_there_are_never_more_replicas_than_brokers(
    usable_brokers_count: int, replication_factor: int, min_insync_replicas: int
) -> None:
    topic = internal_topic("__transaction_state", KEYS, config(), usable_brokers_count)
    configs = {each.name: each.value for each in topic.configs}

    assert (topic.num_partitions, topic.replication_factor) == (50, replication_factor)
    assert configs == {
        "cleanup.policy": "compact",
        "min.insync.replicas": str(min_insync_replicas),
        "segment.bytes": "104857600",
        "unclean.leader.election.enable": "false",
    }


@pytest.mark.parametrize("usable_brokers_count", [1, 2, 5])
def test_where_replicas_vote_there_are_as_many_as_the_keys_say_or_the_topic_is_not_made(
    usable_brokers_count: int,
) -> None:
    broker = config(odradek_internal_election="quorum")
    topic = internal_topic("__transaction_state", KEYS, broker, usable_brokers_count, {"quorum"})

    assert topic.replication_factor == 3
    assert ("odradek.election", "quorum") in [(each.name, each.value) for each in topic.configs]


def test_internal_topics_are_as_topics_that_choose_no_election_unless_they_are_given_one() -> None:
    voted = internal_topic("__transaction_state", KEYS, config(odradek_election="quorum"), 1, {"quorum"})
    chosen = config(odradek_election="quorum", odradek_internal_election="isr")
    in_sync = internal_topic("__transaction_state", KEYS, chosen, 1, {"quorum"})

    assert voted.replication_factor == 3
    assert "odradek.election" not in [each.name for each in voted.configs]
    assert in_sync.replication_factor == 1
    assert ("odradek.election", "isr") in [(each.name, each.value) for each in in_sync.configs]


def test_the_brokers_keys_decide() -> None:
    broker = config(transaction_state_log_num_partitions="7", transaction_state_log_segment_bytes="2000000")
    topic = internal_topic("__transaction_state", KEYS, broker, 1)

    assert topic.num_partitions == 7
    assert ("segment.bytes", "2000000") in [(each.name, each.value) for each in topic.configs]
