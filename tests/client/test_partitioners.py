"""Partitioners: the hash of the Java clients, and the choice for records without a key."""

from __future__ import annotations

import random
import uuid
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.partitioner.default import murmur2 as kafka_python_murmur2

from odradek.client.cluster import Cluster, PartitionInfo, TopicInfo
from odradek.client.partitioners import RoundRobinPartitioner, StickyPartitioner, murmur2, partition_for_key

# From Apache Kafka's UtilsTest.testMurmur2, as signed 32-bit numbers.
JAVA_HASHES = {
    b"21": -973932308,
    b"foobar": -790332482,
    b"a-little-bit-long-string": -985981536,
    b"a-little-bit-longer-string": -1486304829,
    b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
    b"abc": 479470107,
}


def topic_of(count: int, leaderless: frozenset[int] = frozenset()) -> TopicInfo:
    partitions = {
        number: PartitionInfo("t", number, -1 if number in leaderless else 1, 0, (1,), (1,)) for number in range(count)
    }
    return TopicInfo("t", uuid.UUID(int=7), False, partitions)


@pytest.mark.parametrize(("key", "expected"), JAVA_HASHES.items())
def test_murmur2_is_java_s(key: bytes, expected: int) -> None:
    actual = murmur2(key)

    assert expected & 0xFFFFFFFF == actual


@given(st.binary(max_size=200))
def test_murmur2_agrees_with_kafka_python(key: bytes) -> None:
    assert kafka_python_murmur2(key) & 0xFFFFFFFF == murmur2(key)


@given(st.binary(max_size=50), st.integers(1, 1000))
def test_a_key_always_goes_to_the_same_existing_partition(key: bytes, count: int) -> None:
    assert 0 <= partition_for_key(key, count) < count
    assert partition_for_key(key, count) == partition_for_key(bytearray(key), count)


def test_round_robin_visits_every_partition_with_a_leader_in_turn() -> None:
    cluster = Cluster()
    cluster.topics["t"] = topic_of(4, frozenset({2}))
    partitioner = RoundRobinPartitioner()

    chosen = [partitioner.partition("t", None, None, None, None, cluster) for _ in range(6)]

    assert chosen == [0, 1, 3, 0, 1, 3]


def test_the_sticky_partition_changes_when_a_batch_is_full() -> None:
    topic = topic_of(50)
    sticky = StickyPartitioner(1_000, False, random.Random(1))
    first = sticky.choose(topic, {})
    sticky.appended(topic, 999, ends_batch=True, queue_sizes={})

    assert first == sticky.choose(topic, {})

    sticky.appended(topic, 1, ends_batch=True, queue_sizes={})

    assert first != sticky.choose(topic, {})


def test_the_sticky_partition_waits_for_the_end_of_a_batch_but_not_for_ever() -> None:
    topic = topic_of(50)
    sticky = StickyPartitioner(1_000, False, random.Random(1))
    first = sticky.choose(topic, {})
    sticky.appended(topic, 1_500, ends_batch=False, queue_sizes={})

    assert first == sticky.choose(topic, {})

    sticky.appended(topic, 500, ends_batch=False, queue_sizes={})

    assert first != sticky.choose(topic, {})


@given(st.integers(0, 2**32))
def test_partitions_without_a_leader_and_excluded_ones_are_passed_over(seed: int) -> None:
    topic = topic_of(4, frozenset({0}))
    sticky = StickyPartitioner(1, True, random.Random(seed))

    chosen = sticky.choose(topic, {1: 3}, frozenset({2}))

    assert chosen in {1, 3}


def test_with_adaptive_choice_long_queues_get_less() -> None:
    topic = topic_of(3)
    sticky = StickyPartitioner(1, True, random.Random(3))
    chosen: Counter[int] = Counter()
    for _ in range(3_000):
        chosen[sticky.choose(topic, {})] += 1
        sticky.appended(topic, 10, ends_batch=True, queue_sizes={0: 8, 1: 4, 2: 0})

    # The longest queue has 8, so the chances are (9-8) : (9-4) : (9-0).
    assert chosen[0] < chosen[1] < chosen[2]
    assert 0.5 < chosen[2] / 3_000 < 0.7
