"""A thousand members: a heartbeat of a stable group costs the same however many there are, and leaves little behind."""

from __future__ import annotations

import gc
import sys
import tracemalloc

import pytest

from odradek.kernel.api import CoordinatorResult
from odradek.kernel.wire.messages.api_68_consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from odradek.plugins.groups.group import Caller

from ..driven import CLIENT, GROUP
from .driven_consumers import DrivenConsumers

CALLER = Caller(CLIENT, "/127.0.0.1", 1)
FRAMES_MAX = 50
"""How far up a stack is looked for who called."""


def stable_group(size: int) -> DrivenConsumers:
    """Return a group of members that have one partition each."""
    driven = DrivenConsumers({"group.consumer.assignment.interval.ms": 1000}, {"wide": size})
    for number in range(size):
        driven.enter(f"m{number}", "wide")
    driven.harness.advance(1000)
    for _ in range(4):
        for member in list(driven.group.members.values()):
            owned = {"wide": sorted(part for parts in member.assigned.values() for part in parts)}
            driven.beat(member.member_id, member.member_epoch, topic_partitions=driven.partitions(owned))
        driven.harness.advance(0)

    assert driven.group.state_name == "Stable"
    assert all(len(parts) == 1 for member in driven.group.members.values() for parts in member.assigned.values())
    return driven


def calls_of_a_heartbeat(driven: DrivenConsumers, member_id: str) -> int:
    """Return how many Python functions a heartbeat of a member calls."""
    request = ConsumerGroupHeartbeatRequest(
        group_id=GROUP, member_id=member_id, member_epoch=driven.group.members[member_id].member_epoch
    )
    shard, now_ms, calls = driven.shard, driven.harness.now_ms, 0

    def count(frame: object, event: str, argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        result = shard.consumer.consumer_heartbeat(request, CALLER, now_ms)
    finally:
        sys.setprofile(None)

    assert isinstance(result, CoordinatorResult)
    assert not result.records
    return calls


def test_a_heartbeat_of_a_stable_group_costs_the_same_in_a_small_and_in_a_large_group() -> None:
    small, large = stable_group(10), stable_group(300)

    assert calls_of_a_heartbeat(small, "m3") == calls_of_a_heartbeat(large, "m233") < 90


def test_heartbeats_of_a_stable_group_arm_no_timers_and_leave_nothing_behind() -> None:
    driven = stable_group(100)
    members = list(driven.group.members.values())
    requests = [
        ConsumerGroupHeartbeatRequest(group_id=GROUP, member_id=one.member_id, member_epoch=one.member_epoch)
        for one in members
    ]
    armed = dict(driven.harness.armed)

    def beat_all() -> None:
        for request in requests:
            driven.shard.consumer.consumer_heartbeat(request, CALLER, driven.harness.now_ms)

    beat_all()
    tracemalloc.start(FRAMES_MAX)
    try:
        for _ in range(10):
            beat_all()
        gc.collect()
        # Other threads of a test run allocate too: what counts came about under a call from this file.
        here = tracemalloc.Filter(inclusive=True, filename_pattern=__file__, all_frames=True)
        kept = tracemalloc.take_snapshot().filter_traces([here])
    finally:
        tracemalloc.stop()

    assert armed == driven.harness.armed
    assert sum(trace.size for trace in kept.traces) < 20_000, kept.statistics("lineno")[:10]


@pytest.mark.parametrize("size", [1000])
def test_a_thousand_members_join_and_are_spread(size: int) -> None:
    driven = stable_group(size)

    assert len(driven.group.members) == size
    assert (
        len({part for member in driven.group.members.values() for ps in member.assigned.values() for part in ps})
        == size
    )
