"""Which brokers a plan gives which replicas: what must hold of every plan, and what people expect of some."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.cli.placing.balance import planned
from odradek.cli.placing.layout import PlacedBroker, PlacedPartition
from odradek.kernel.errors import ConfigError
from odradek.kernel.types import TopicPartition

MIB = 1024 * 1024
ANY_SIZE = 1 << 60


def brokers_of(*racks: str | None) -> list[PlacedBroker]:
    return [PlacedBroker(number, rack) for number, rack in enumerate(racks, 1)]


def partitions_of(*replicas: tuple[int, ...], size_bytes: int = 0, topic: str = "t") -> list[PlacedPartition]:
    return [PlacedPartition(TopicPartition(topic, number), each, size_bytes) for number, each in enumerate(replicas)]


def after(
    partitions: Iterable[PlacedPartition], plan: Mapping[TopicPartition, tuple[int, ...]]
) -> list[PlacedPartition]:
    return [
        PlacedPartition(each.partition, plan.get(each.partition, each.replicas), each.size_bytes) for each in partitions
    ]


def counts_of(partitions: Iterable[PlacedPartition], brokers: Iterable[PlacedBroker]) -> Counter[int]:
    counts = Counter({each.broker_id: 0 for each in brokers})
    counts.update(broker_id for each in partitions for broker_id in each.replicas)
    return counts


def moves_of(before: Iterable[PlacedPartition], plan: Mapping[TopicPartition, tuple[int, ...]]) -> int:
    return sum(len({*plan.get(each.partition, each.replicas)} - {*each.replicas}) for each in before)


@st.composite
def clusters(draw: st.DrawFn, racks: str = "abc") -> tuple[list[PlacedBroker], list[PlacedPartition]]:
    """Up to six brokers in up to three racks, and partitions anywhere on them."""
    brokers = brokers_of(*draw(st.lists(st.sampled_from(racks), min_size=1, max_size=6)))
    ids = [each.broker_id for each in brokers]
    partitions = []
    for topic in ("t", "u"):
        factor = draw(st.integers(1, min(3, len(ids))))
        for number in range(draw(st.integers(0, 6))):
            replicas = draw(st.permutations(ids))[:factor]
            size = draw(st.integers(0, 40)) * MIB
            partitions.append(PlacedPartition(TopicPartition(topic, number), tuple(replicas), size))
    return brokers, partitions


def is_spread(replicas: tuple[int, ...], brokers: Iterable[PlacedBroker]) -> bool:
    """Whether no rack has two replicas more than another that has a broker without one."""
    crowds = Counter(each.rack for each in brokers if each.broker_id in replicas)
    free = {each.rack for each in brokers if each.broker_id not in replicas}
    return all(crowds[rack] - crowds[other] <= 1 for rack in crowds for other in free)


@given(clusters())
def test_every_plan_keeps_replicas_apart_and_racks_spread(made: tuple[list[Any], list[Any]]) -> None:
    brokers, partitions = made
    for each in after(partitions, planned(brokers, partitions, small_bytes=0)):
        assert len({*each.replicas}) == len(each.replicas)
        assert is_spread(each.replicas, brokers)


@given(clusters())
def test_a_plan_changes_no_number_of_replicas_and_names_only_what_changes(made: tuple[list[Any], list[Any]]) -> None:
    brokers, partitions = made
    plan = planned(brokers, partitions, small_bytes=0)
    before = {each.partition: each.replicas for each in partitions}

    assert all(len(replicas) == len(before[each]) and replicas != before[each] for each, replicas in plan.items())


@given(clusters())
def test_what_was_planned_needs_no_second_plan(made: tuple[list[Any], list[Any]]) -> None:
    brokers, partitions = made
    evened = after(partitions, planned(brokers, partitions, small_bytes=0))

    assert planned(brokers, evened, small_bytes=0) == {}


@given(clusters(racks="a"))
def test_without_racks_counts_differ_by_one_with_just_the_moves_that_takes(made: tuple[list[Any], list[Any]]) -> None:
    brokers, partitions = made
    before = counts_of(partitions, brokers)
    share, rest = divmod(before.total(), len(brokers))
    above = sum(max(count - share - bool(rest), 0) for count in before.values())
    below = sum(max(share - count, 0) for count in before.values())
    plan = planned(brokers, partitions, small_bytes=ANY_SIZE)
    counts = counts_of(after(partitions, plan), brokers).values()

    assert max(counts) - min(counts) <= 1
    assert moves_of(partitions, plan) <= max(above, below)


@given(clusters(racks="a"))
def test_bytes_are_never_less_even_than_counts_alone_leave_them(made: tuple[list[Any], list[Any]]) -> None:
    brokers, partitions = made

    def spread(plan: Mapping[TopicPartition, tuple[int, ...]]) -> int:
        size_bytes = Counter({each.broker_id: 0 for each in brokers})
        for each in after(partitions, plan):
            size_bytes.update(dict.fromkeys(each.replicas, each.size_bytes))
        mean = size_bytes.total() / len(brokers)
        return sum(int(max(abs(each - mean) - mean * 0.1, 0)) for each in size_bytes.values())

    assert spread(planned(brokers, partitions, small_bytes=0)) <= spread(
        planned(brokers, partitions, small_bytes=ANY_SIZE)
    )


@given(clusters(), st.data())
def test_who_is_drained_has_nothing_and_nobody_else_moves(
    made: tuple[list[Any], list[Any]], data: st.DataObject
) -> None:
    brokers, partitions = made
    drained = data.draw(st.sampled_from([each.broker_id for each in brokers]))
    targets = frozenset(each.broker_id for each in brokers) - {drained}
    factor = max((len(each.replicas) for each in partitions), default=0)
    if len(targets) < factor:
        return
    plan = planned(brokers, partitions, targets=targets, is_evened=False)

    assert counts_of(after(partitions, plan), brokers)[drained] == 0
    assert {*plan} == {each.partition for each in partitions if drained in each.replicas}
    for old, new in zip(partitions, after(partitions, plan), strict=True):
        assert {*old.replicas} - {drained} <= {*new.replicas}


@given(clusters(), st.integers(1, 4))
def test_a_replication_factor_is_reached_with_no_more_moves_than_replicas_lack(
    made: tuple[list[Any], list[Any]], factor: int
) -> None:
    brokers, partitions = made
    if factor > len(brokers):
        return
    plan = planned(brokers, partitions, replicas_count=factor, is_evened=False)

    assert all(len(each.replicas) == factor for each in after(partitions, plan))
    assert moves_of(partitions, plan) == sum(max(factor - len(each.replicas), 0) for each in partitions)


def test_a_new_broker_gets_its_share_and_no_replica_moves_between_the_others() -> None:
    brokers = brokers_of(None, None, None, None)
    partitions = partitions_of(*[(1, 2), (2, 3), (3, 1)] * 4)
    plan = planned(brokers, partitions)

    assert counts_of(after(partitions, plan), brokers) == {1: 6, 2: 6, 3: 6, 4: 6}
    assert moves_of(partitions, plan) == 6
    assert all(
        4 in replicas for each, replicas in plan.items() if {*replicas} != {*partitions[each.partition].replicas}
    )
    leaders = Counter(each.replicas[0] for each in after(partitions, plan))
    assert leaders == {1: 3, 2: 3, 3: 3, 4: 3}


def test_what_moves_is_what_evens_out_the_bytes() -> None:
    sizes = [100, 900, 500, 500]
    partitions = [PlacedPartition(TopicPartition("t", number), (1,), size) for number, size in enumerate(sizes)]
    moved = planned(brokers_of(None, None), partitions, small_bytes=0)

    assert sum(sizes[each.partition] for each in moved) == 1000


def test_where_counts_are_even_a_large_replica_is_exchanged_for_a_small_one() -> None:
    sizes = [800 * MIB, 600 * MIB, 100 * MIB, 100 * MIB]
    placed = [(1,), (1,), (2,), (2,)]
    partitions = [
        PlacedPartition(TopicPartition("t", number), replicas, sizes[number]) for number, replicas in enumerate(placed)
    ]
    plan = planned(brokers_of(None, None), partitions)

    assert counts_of(after(partitions, plan), brokers_of(None, None)) == {1: 2, 2: 2}
    assert sorted(sizes[each.partition] for each in plan) == [100 * MIB, 800 * MIB]


def test_nothing_is_moved_for_a_few_bytes() -> None:
    partitions = partitions_of((1,), (2,), size_bytes=0)
    partitions.append(PlacedPartition(TopicPartition("u", 0), (1, 2), 0))
    partitions[0] = PlacedPartition(TopicPartition("t", 0), (1,), 50 * MIB)

    assert planned(brokers_of(None, None), partitions) == {}


def test_a_second_replica_in_a_rack_goes_to_a_rack_without_one() -> None:
    brokers = brokers_of("a", "a", "b")
    plan = planned(brokers, partitions_of((1, 2)))

    assert [{*replicas} for replicas in plan.values()] in ([{1, 3}], [{2, 3}])


def test_leaders_are_evened_over_a_broker_between_without_a_move() -> None:
    """Brokers 1 and 3 share no partition: 1 gives one to 2, and 2 another one to 3."""
    partitions = partitions_of((1, 2), (1, 2), (1, 2), (2, 3), (2, 3), (3, 2))
    brokers = [*brokers_of(None, None, None)]
    plan = planned(brokers, partitions, targets=None)
    leaders = Counter(each.replicas[0] for each in after(partitions, plan))

    assert leaders == {1: 2, 2: 2, 3: 2}


def test_who_is_away_keeps_what_it_has_and_gets_nothing() -> None:
    brokers = [PlacedBroker(1), PlacedBroker(2), PlacedBroker(3, may_gain=False)]
    partitions = partitions_of((1, 3), (1, 3), (1, 3), (1, 3))
    plan = planned(brokers, partitions)

    assert counts_of(after(partitions, plan), brokers) == {1: 2, 2: 2, 3: 4}


def test_a_replica_too_many_is_taken_where_there_is_most_and_never_the_leaders() -> None:
    partitions = partitions_of((1, 2, 3), (1, 2, 3), (3, 1, 2))
    plan = planned(brokers_of(None, None, None), partitions, replicas_count=2, is_evened=False)

    assert [each.replicas[0] for each in after(partitions, plan)] == [1, 1, 3]
    assert counts_of(after(partitions, plan), brokers_of(None, None, None)) == {1: 2, 2: 2, 3: 2}


def test_too_few_brokers_are_told() -> None:
    with pytest.raises(ConfigError, match="no broker left for another replica of t-0"):
        planned(brokers_of(None, None), partitions_of((1, 2)), replicas_count=3)
