"""Everything that has a group rebalance, in both protocols, on virtual time: who gets what, and when.

=========================  =============================================================
a member joins             at once
a member leaves            at once
its session is lost        when the session's time is over
its poll interval passed   when that is over, though its heartbeats go on until then
its subscription changes   with its next heartbeat
a topic gets partitions    classic: when the leader's metadata is renewed; else at once
the coordinator moves      a stable group stays as it is; a rebalance under way begins anew
=========================  =============================================================
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import trio

from odradek.client import CommitFailedError, Consumer, TopicPartition
from odradek.kernel.wire.messages.api_10_find_coordinator import FindCoordinatorRequest

from .simulated_cluster import PROTOCOLS, SESSION_S, SimulatedCluster, with_cluster

if TYPE_CHECKING:
    from collections.abc import Sequence

EVERY_PROTOCOL = pytest.mark.parametrize("protocol", PROTOCOLS)
HEARTBEAT_S = 5
"""The longest interval between two heartbeats of the defaults."""
MATCHES_AGAIN_S = 10
"""After which brokers look again for topics that a pattern matches."""
STEP_MS = 500


async def poll_in_turn(consumers: Sequence[Consumer], seconds: float) -> None:
    """Have members poll for so long."""

    async def poll(consumer: Consumer) -> None:
        while trio.current_time() < end_s:
            await consumer.poll(timeout_ms=STEP_MS)

    end_s = trio.current_time() + seconds
    async with trio.open_nursery() as nursery:
        for each in consumers:
            nursery.start_soon(poll, each)


async def seconds_until(consumers: Sequence[Consumer], counts: Sequence[int], limit_s: float = 600) -> float:
    """Poll until members own so many partitions, all different; return how long that took."""
    begin_s = trio.current_time()
    while [len(each.assignment) for each in consumers] != list(counts):
        assert trio.current_time() - begin_s < limit_s, [each.assignment for each in consumers]
        await poll_in_turn(consumers, STEP_MS / 1_000)
    owned = [partition for each in consumers for partition in each.assignment]

    assert len(set(owned)) == len(owned)
    return trio.current_time() - begin_s


@EVERY_PROTOCOL
def test_a_member_that_joins_gets_its_share(protocol: str) -> None:
    async def test(cluster: SimulatedCluster) -> None:
        async with (
            cluster.consumer("a", protocol) as first,
            cluster.consumer("b", protocol) as second,
        ):
            first.subscribe(["t"])
            assert await seconds_until([first], [4]) < 1
            before = first.group_metadata.generation_id
            second.subscribe(["t"])
            assert await seconds_until([first, second], [2, 2]) <= 3 * HEARTBEAT_S
            assert first.group_metadata.generation_id > before

    with_cluster(test, {"t": 4})


@EVERY_PROTOCOL
def test_what_a_member_had_that_leaves_is_given_at_once(protocol: str) -> None:
    async def test(cluster: SimulatedCluster) -> None:
        async with cluster.consumer("a", protocol) as stays:
            stays.subscribe(["t"])
            async with cluster.consumer("b", protocol) as leaves:
                leaves.subscribe(["t"])
                await seconds_until([stays, leaves], [2, 2])
            assert await seconds_until([stays], [4]) <= HEARTBEAT_S

    with_cluster(test, {"t": 4})


@EVERY_PROTOCOL
def test_what_a_member_had_whose_session_is_lost_is_given_when_that_is_over(protocol: str) -> None:
    async def test(cluster: SimulatedCluster) -> None:
        async with (
            cluster.consumer("a", protocol) as stays,
            cluster.consumer("b", protocol) as silent,
        ):
            for each in (stays, silent):
                each.subscribe(["t"])
            await seconds_until([stays, silent], [2, 2])
            await poll_in_turn([stays, silent], 60)
            cluster.unplug("b")
            assert SESSION_S - HEARTBEAT_S <= await seconds_until([stays], [4]) <= SESSION_S + HEARTBEAT_S

    with_cluster(test, {"t": 4})


@EVERY_PROTOCOL
def test_a_member_that_is_not_polled_gives_up_its_share_by_itself(protocol: str) -> None:
    async def test(cluster: SimulatedCluster) -> None:
        async with (
            cluster.consumer("a", protocol) as stays,
            cluster.consumer("b", protocol, max_poll_interval_ms=100_000, enable_auto_commit=False) as stuck,
        ):
            for number in range(4):
                await cluster.append("t", number, *range(10))
            for each in (stays, stuck):
                each.subscribe(["t"])
            await seconds_until([stays, stuck], [2, 2])
            await poll_in_turn([stays, stuck], 11)  # so that it does not leave at the very beat of the other's heart
            await poll_in_turn([stays], 95)
            assert len(stays.assignment) == 2  # heartbeats go on, though nobody polls
            assert await seconds_until([stays], [4]) <= 5 + HEARTBEAT_S
            committed = await cluster.committed()
            with pytest.raises(CommitFailedError):
                await stuck.commit(dict.fromkeys(stuck.assignment, 1))
            assert committed == await cluster.committed()
            await seconds_until([stays, stuck], [2, 2])

    with_cluster(test, {"t": 4})


@EVERY_PROTOCOL
def test_a_changed_subscription_changes_who_reads_what(protocol: str) -> None:
    async def test(cluster: SimulatedCluster) -> None:
        async with (
            cluster.consumer("a", protocol) as first,
            cluster.consumer("b", protocol) as second,
        ):
            for each in (first, second):
                each.subscribe(["t"])
            await seconds_until([first, second], [2, 2])
            second.subscribe(["u"])
            assert await seconds_until([first, second], [4, 2]) <= 3 * HEARTBEAT_S
            assert {"t"} == {partition.topic for partition in first.assignment}
            assert {"u"} == {partition.topic for partition in second.assignment}
            second.subscribe(["t", "u"])
            counts = [2, 4] if protocol == "eager" else [3, 3]  # range shares each topic out for itself
            assert await seconds_until([first, second], counts) <= 3 * HEARTBEAT_S

    with_cluster(test, {"t": 4, "u": 2})


@EVERY_PROTOCOL
def test_partitions_that_are_added_are_given(protocol: str) -> None:
    async def test(cluster: SimulatedCluster) -> None:
        async with (
            cluster.consumer("a", protocol, metadata_max_age_ms=30_000) as first,
            cluster.consumer("b", protocol, metadata_max_age_ms=30_000) as second,
        ):
            for each in (first, second):
                each.subscribe(["t"])
            await seconds_until([first, second], [1, 1])
            await cluster.add_partitions("t", 6)
            limit_s = 3 * HEARTBEAT_S if protocol == "consumer" else 30 + 3 * HEARTBEAT_S
            assert await seconds_until([first, second], [3, 3]) <= limit_s

    with_cluster(test, {"t": 2})


@pytest.mark.parametrize("protocol", ["cooperative", "consumer"])
def test_a_pattern_brings_topics_that_come_later(protocol: str) -> None:
    """Clients match when they refresh their metadata; brokers, for a pattern of KIP-848's, look anew now and then."""

    async def test(cluster: SimulatedCluster) -> None:
        async with cluster.consumer("a", protocol, metadata_max_age_ms=MATCHES_AGAIN_S * 1_000) as consumer:
            consumer.subscribe(pattern="p-[ab]")
            await seconds_until([consumer], [1])
            await cluster.create_topic("p-b", [[1]])
            assert await seconds_until([consumer], [2]) <= MATCHES_AGAIN_S + 3 * HEARTBEAT_S
            assert consumer.assignment == {("p-a", 0), ("p-b", 0)}

    with_cluster(test, {"p-a": 1, "p-a-not": 1})


@EVERY_PROTOCOL
def test_a_group_at_rest_does_not_notice_that_its_coordinator_moves(protocol: str) -> None:
    async def test(cluster: SimulatedCluster) -> None:
        async with (
            cluster.consumer("a", protocol) as first,
            cluster.consumer("b", protocol) as second,
        ):
            members = [first, second]
            for each in members:
                each.subscribe(["t"])
            await seconds_until(members, [2, 2])
            await poll_in_turn(members, 2 * HEARTBEAT_S)
            before = first.group_metadata.generation_id, [each.assignment for each in members]
            await cluster.move_coordinator()
            await poll_in_turn(members, 2 * SESSION_S)
            assert before == (first.group_metadata.generation_id, [each.assignment for each in members])
            where = min(first.assignment)
            await first.commit({where: 7})
            assert (await cluster.committed())[where] == 7

    with_cluster(test, {"t": 4}, brokers_count=2)


@EVERY_PROTOCOL
def test_the_least_loaded_broker_is_asked_who_coordinates(protocol: str) -> None:
    """Both are connected; the one whose partition is paused has no fetch to answer."""

    async def test(cluster: SimulatedCluster) -> None:
        await cluster.create_topic("t", [[1], [2]])
        async with cluster.consumer("a", protocol, fetch_max_wait_ms=20_000) as consumer:
            consumer.subscribe(["t"])
            await seconds_until([consumer], [2])
            await poll_in_turn([consumer], 10)
            consumer.pause(TopicPartition("t", 1))
            await poll_in_turn([consumer], 60)
            cluster.requests.noted.clear()
            for _ in range(10):
                await cluster.move_coordinator()
                await poll_in_turn([consumer], 7)

        searches = cluster.requests.of(FindCoordinatorRequest, "a")
        assert [search.node_id for search in searches] == [2] * 10

    with_cluster(test, {}, brokers_count=2)


@EVERY_PROTOCOL
def test_a_rebalance_whose_coordinator_moves_comes_to_its_end(protocol: str) -> None:
    async def test(cluster: SimulatedCluster) -> None:
        async with (
            cluster.consumer("a", protocol) as first,
            cluster.consumer("b", protocol) as second,
            cluster.consumer("c", protocol) as third,
        ):
            for each in (first, second):
                each.subscribe(["t"])
            await seconds_until([first, second], [3, 3])
            third.subscribe(["t"])
            await poll_in_turn([second, third], 2 * HEARTBEAT_S)  # everybody waits for the first one, who does not poll
            await cluster.move_coordinator()
            assert await seconds_until([first, second, third], [2, 2, 2]) <= SESSION_S
            everything = {TopicPartition("t", number) for number in range(6)}
            assert everything == first.assignment | second.assignment | third.assignment

    with_cluster(test, {"t": 6}, brokers_count=2)


@EVERY_PROTOCOL
def test_members_that_lost_their_session_while_the_coordinator_moved_are_told_when_they_are_back(protocol: str) -> None:
    async def test(cluster: SimulatedCluster) -> None:
        async with (
            cluster.consumer("a", protocol) as first,
            cluster.consumer("b", protocol) as second,
        ):
            for each in (first, second):
                each.subscribe(["t"])
            await seconds_until([first, second], [2, 2])
            cluster.unplug("b")
            await cluster.move_coordinator()
            await seconds_until([first], [4])
            cluster.plug_in("b")
            await seconds_until([first, second], [2, 2])

    with_cluster(test, {"t": 4}, brokers_count=2)
