"""What elections ask of in-sync sets is asked until it is answered, whatever comes in between."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import trio
import trio.testing

from odradek.kernel.contracts.election import IsrChange
from odradek.kernel.errors import ErrorCode
from odradek.kernel.partitions.replica import Replica
from odradek.kernel.wire.message import Message
from odradek.kernel.wire.messages.api_56_alter_partition import (
    AlterPartitionResponse,
    ResponsePartitionData,
    ResponseTopicData,
)

from .small_cluster import Cluster, Node, running

PAUSE_S = 1


def run(body: Callable[[], Awaitable[None]]) -> None:
    """Run a test on virtual time."""
    trio.run(body, clock=trio.testing.MockClock(autojump_threshold=0))


async def resume_soon(replica: Replica) -> None:
    """What the end of a log's move does, after a while."""
    await trio.sleep(PAUSE_S)
    replica.is_paused = False
    replica.resume(replica.log, None)


async def leaves(cluster: Cluster) -> None:
    """Have broker 3 lag, and wait until it is out of the in-sync set."""
    cluster.cut(3, 1)
    cluster.leader.produce(b"what 3 lacks")
    await cluster.wait("3 is out", lambda: cluster.state.isr == (1, 2), seconds=100)


def test_what_was_asked_before_the_log_moves_is_asked_all_the_same(tmp_path: Path) -> None:
    async def body() -> None:
        async with running(tmp_path) as cluster, trio.open_nursery() as nursery:
            await cluster.acknowledged(cluster.leader.produce(b"a"))
            reports = cluster.leader.reports
            ask = reports.ask

            def ask_and_pause(replica: Replica, change: IsrChange) -> None:
                reports.ask = ask  # type: ignore[method-assign]
                ask(replica, change)
                replica.pause("its log moves")
                nursery.start_soon(resume_soon, replica)

            reports.ask = ask_and_pause  # type: ignore[method-assign]
            await leaves(cluster)

    run(body)


def refusal(leader: Node) -> AlterPartitionResponse:
    """The controller's answer to a leader's request that it has not done."""
    part = ResponsePartitionData(partition_index=0, error_code=ErrorCode.OPERATION_NOT_ATTEMPTED)
    return AlterPartitionResponse(
        topics=[ResponseTopicData(topic_id=leader.replica().partition.topic_id, partitions=[part])]
    )


def test_a_refusal_that_comes_while_the_log_moves_lets_the_leader_ask_again(tmp_path: Path) -> None:
    async def body() -> None:
        async with running(tmp_path) as cluster, trio.open_nursery() as nursery:
            leader = cluster.leader
            await cluster.acknowledged(leader.produce(b"a"))
            ask = leader.ask

            async def refuse(request: Message, timeout_ms: int | None = None) -> Any:
                leader.ask = ask  # type: ignore[method-assign]
                leader.replica().pause("its log moves")
                nursery.start_soon(resume_soon, leader.replica())
                await trio.sleep(PAUSE_S / 2)
                return refusal(leader)

            leader.ask = refuse  # type: ignore[method-assign]
            await leaves(cluster)

    run(body)


def test_nobody_who_waits_is_told_while_the_log_moves(tmp_path: Path) -> None:
    async def body() -> None:
        async with running(tmp_path) as cluster, trio.open_nursery() as nursery:
            leader = cluster.leader
            await cluster.acknowledged(leader.produce(b"a"))
            told: list[str | None] = []
            progressed = leader.replicas.progressed

            def note(replicas: Any) -> None:
                told.extend(replica.offline_reason for replica in replicas)
                progressed(replicas)

            leader.replicas.progressed = note
            ask = leader.ask

            async def pause_and_ask(request: Message, timeout_ms: int | None = None) -> Any:
                leader.ask = ask  # type: ignore[method-assign]
                cluster.deaf.add(1)
                leader.replica().pause("its log moves")
                nursery.start_soon(resume_soon, leader.replica())
                return await ask(request, timeout_ms)

            leader.ask = pause_and_ask  # type: ignore[method-assign]
            await leaves(cluster)
            await cluster.wait("it is answered", lambda: leader.reports.shrinks_count == 1)

            assert sorted(leader.replica().election.isr) == [1, 2]
            assert set(told) <= {None}

    run(body)


def test_what_was_asked_outlives_an_error_that_nobody_foresaw(tmp_path: Path) -> None:
    async def body() -> None:
        async with running(tmp_path) as cluster:
            leader = cluster.leader
            await cluster.acknowledged(leader.produce(b"a"))
            ask = leader.ask

            async def fail(request: Message, timeout_ms: int | None = None) -> Any:
                leader.ask = ask  # type: ignore[method-assign]
                raise ValueError("a bug")

            leader.ask = fail  # type: ignore[method-assign]
            await leaves(cluster)

    run(body)
