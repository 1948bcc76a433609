"""Placement spreads leaders and replicas over racks and brokers, and says why it cannot."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import MutableSequence
from typing import Any
from uuid import UUID

import attrs
import hypothesis.strategies as st
import pytest
from hypothesis import given

from odradek.kernel.controller.placement import PLACEMENTS, place_replicas
from odradek.kernel.errors import ErrorCode, KafkaError
from odradek.kernel.machine.turnstile import run_at_once
from odradek.kernel.metadata.image import BrokerEndpoint, BrokerImage
from odradek.kernel.types import ZERO_ID

LISTENERS = {"PLAINTEXT": BrokerEndpoint("PLAINTEXT", "broker", 9092, 0)}


def brokers(racks: list[str | None], fenced: frozenset[int] = frozenset()) -> list[BrokerImage]:
    return [
        BrokerImage(number, 0, ZERO_ID, LISTENERS, rack, (), number in fenced, in_controlled_shutdown=False)
        for number, rack in enumerate(racks)
    ]


@given(
    racks=st.lists(st.sampled_from(["a", "b", "c", None]), min_size=1, max_size=8),
    count=st.integers(1, 30),
    seed=st.integers(0, 1000),
    data=st.data(),
)
def test_replicas_are_distinct_and_no_rack_has_two_before_every_rack_has_one(
    racks: list[str | None], count: int, seed: int, data: st.DataObject
) -> None:
    factor = data.draw(st.integers(1, len(racks)))
    racks_count = len({rack or "" for rack in racks})
    for replicas in run_at_once(place_replicas("striped", brokers(racks), 0, count, factor, random.Random(seed))):
        used = Counter(racks[replica] or "" for replica in replicas)

        assert factor == len(set(replicas)) == len(replicas)
        assert len(used) == min(factor, racks_count)


@given(count=st.integers(1, 40), size=st.integers(1, 6), seed=st.integers(0, 1000))
def test_leaders_differ_by_one_at_most_without_racks(count: int, size: int, seed: int) -> None:
    placed = run_at_once(place_replicas("striped", brokers([None] * size), 0, count, 1, random.Random(seed)))
    leaders = Counter(replicas[0] for replicas in placed)

    assert max(leaders.values()) - min((leaders[number] for number in range(size)), default=0) <= 1


@pytest.mark.parametrize("strategy", PLACEMENTS)
@given(fenced=st.sets(st.integers(0, 4), max_size=4), first=st.integers(0, 9), seed=st.integers(0, 100))
def test_a_fenced_broker_never_leads_a_new_partition(strategy: str, fenced: set[int], first: int, seed: int) -> None:
    racks = brokers(["a", "a", "b", "b", "c"], frozenset(fenced))
    placed = run_at_once(place_replicas(strategy, racks, first, 10, 3, random.Random(seed)))

    assert not fenced & {replicas[0] for replicas in placed}
    assert all(len(set(replicas)) == 3 for replicas in placed)


@pytest.mark.parametrize("strategy", PLACEMENTS)
def test_a_fenced_broker_gets_a_replica_only_when_too_few_live(strategy: str) -> None:
    racks = brokers([None] * 4, frozenset({1}))

    def placed(factor: int) -> list[list[int]]:
        return run_at_once(place_replicas(strategy, racks, 0, 12, factor, random.Random(1)))

    assert all(1 not in replicas for replicas in placed(3))
    assert all(1 in replicas[1:] for replicas in placed(4))


@pytest.mark.parametrize("strategy", PLACEMENTS)
def test_an_id_that_was_taken_and_where_nobody_listens_gets_no_replica(strategy: str) -> None:
    racks = brokers([None] * 3, frozenset({1}))
    racks[1] = attrs.evolve(racks[1], listeners={})

    placed = run_at_once(place_replicas(strategy, racks, 0, 12, 2, random.Random(1)))
    with pytest.raises(KafkaError) as refusal:
        run_at_once(place_replicas(strategy, racks, 0, 1, 3, random.Random(1)))

    assert all(1 not in replicas for replicas in placed)
    assert refusal.value.code is ErrorCode.INVALID_REPLICATION_FACTOR


@pytest.mark.parametrize("strategy", PLACEMENTS)
def test_a_broker_that_stops_gets_no_replica(strategy: str) -> None:
    stopping = [attrs.evolve(broker, in_controlled_shutdown=broker.broker_id == 2) for broker in brokers([None] * 3)]
    placed = run_at_once(place_replicas(strategy, stopping, 0, 12, 2, random.Random(1)))

    assert {frozenset(replicas) for replicas in placed} == {frozenset({0, 1})}
    with pytest.raises(KafkaError, match="only 2 broker"):
        run_at_once(place_replicas(strategy, stopping, 0, 1, 3, random.Random(1)))


@pytest.mark.parametrize("strategy", PLACEMENTS)
def test_a_broker_all_of_whose_log_directories_are_cordoned_gets_no_replica(strategy: str) -> None:
    one, two = UUID(int=1), UUID(int=2)
    cordons = [(), (one,), (one, two)]
    disks = [
        attrs.evolve(broker, log_dirs=(one, two), cordoned_log_dirs=cordoned)
        for broker, cordoned in zip(brokers([None] * 3), cordons, strict=True)
    ]
    placed = run_at_once(place_replicas(strategy, disks, 0, 12, 2, random.Random(1)))

    assert {frozenset(replicas) for replicas in placed} == {frozenset({0, 1})}
    with pytest.raises(KafkaError, match="only 2 broker"):
        run_at_once(place_replicas(strategy, disks, 0, 1, 3, random.Random(1)))
    with pytest.raises(KafkaError, match=r"^All brokers are currently fenced, or have all their log directories cord"):
        run_at_once(place_replicas(strategy, disks[2:], 0, 1, 1, random.Random(1)))


def test_stripes_are_kafkas_when_the_rounds_begin_at_the_first() -> None:
    # By hand, from the description of Kafka's placer: three racks of three; the next partition begins one rack further.
    racks = brokers(["a", "a", "a", "b", "b", "b", "c", "c", "c"])
    placed = run_at_once(place_replicas("striped", racks, 0, 3, 3, FirstAlways()))

    assert placed == [[0, 3, 6], [4, 7, 1], [8, 2, 5]]


def test_the_leaders_rack_is_the_last_to_hold_a_second_replica() -> None:
    racks = brokers(["a", "a", "b", "c"])
    placed = run_at_once(place_replicas("striped", racks, 0, 1, 4, FirstAlways()))

    assert placed == [[0, 2, 3, 1]]


def test_the_simple_placement_is_told_by_the_numbers_alone() -> None:
    placed = run_at_once(place_replicas("simple", brokers([None] * 3), 0, 4, 2, random.Random(1)))

    assert placed == [[0, 1], [1, 2], [2, 0], [0, 1]]


def test_partitions_that_are_added_go_on_where_the_topic_ends() -> None:
    placed = run_at_once(place_replicas("simple", brokers([None] * 3), 4, 2, 2, random.Random(1)))

    assert placed == [[1, 2], [2, 0]]


class FirstAlways(random.Random):
    """Chance that always begins with the first and leaves every order as it is."""

    def randrange(self, start: int, stop: int | None = None, step: int = 1) -> int:
        """Choose the first of so many."""
        return 0 if stop is None else start

    def shuffle(self, x: MutableSequence[Any]) -> None:
        """Leave it as it is."""


@pytest.mark.parametrize(
    ("fenced", "factor", "reason"), [({0, 1}, 1, "All brokers are currently fenced"), (set(), 3, "only 2 broker")]
)
def test_too_few_brokers_are_told(fenced: set[int], factor: int, reason: str) -> None:
    with pytest.raises(KafkaError, match=reason) as caught:
        run_at_once(place_replicas("striped", brokers([None, None], frozenset(fenced)), 0, 1, factor, random.Random(1)))

    assert ErrorCode.INVALID_REPLICATION_FACTOR is caught.value.code
