"""Placement spreads leaders and replicas over racks and brokers, and says why it cannot."""

from __future__ import annotations

import random
from collections import Counter

import hypothesis.strategies as st
import pytest
from hypothesis import given

from odradek.kernel.controller.placement import place_replicas
from odradek.kernel.errors import ErrorCode, KafkaError
from odradek.kernel.machine.turnstile import run_at_once
from odradek.kernel.metadata.image import BrokerImage
from odradek.kernel.types import ZERO_ID


def brokers(racks: list[str | None], fenced: frozenset[int] = frozenset()) -> list[BrokerImage]:
    return [
        BrokerImage(number, 0, ZERO_ID, {}, rack, (), number in fenced, in_controlled_shutdown=False)
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
    for replicas in run_at_once(place_replicas(brokers(racks), count, factor, random.Random(seed))):
        used = Counter(racks[replica] or "" for replica in replicas)

        assert factor == len(set(replicas)) == len(replicas)
        assert len(used) == min(factor, racks_count)


@given(count=st.integers(1, 40), size=st.integers(1, 6), seed=st.integers(0, 1000))
def test_leaders_differ_by_one_at_most_without_racks(count: int, size: int, seed: int) -> None:
    placed = run_at_once(place_replicas(brokers([None] * size), count, 1, random.Random(seed)))
    leaders = Counter(replicas[0] for replicas in placed)

    assert max(leaders.values()) - min((leaders[number] for number in range(size)), default=0) <= 1


@given(fenced=st.sets(st.integers(0, 4), max_size=4), seed=st.integers(0, 100))
def test_a_fenced_broker_never_leads_a_new_partition(fenced: set[int], seed: int) -> None:
    racks = brokers(["a", "a", "b", "b", "c"], frozenset(fenced))
    placed = run_at_once(place_replicas(racks, 10, 3, random.Random(seed)))

    assert not fenced & {replicas[0] for replicas in placed}


@pytest.mark.parametrize(
    ("fenced", "factor", "reason"), [({0, 1}, 1, "All brokers are currently fenced"), (set(), 3, "only 2 broker")]
)
def test_too_few_brokers_are_told(fenced: set[int], factor: int, reason: str) -> None:
    with pytest.raises(KafkaError, match=reason) as caught:
        run_at_once(place_replicas(brokers([None, None], frozenset(fenced)), 1, factor, random.Random(1)))

    assert ErrorCode.INVALID_REPLICATION_FACTOR is caught.value.code
