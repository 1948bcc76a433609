"""How elections' messages leave: what is sent after the service crashed, and was started again."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
import trio
import trio.testing

from odradek.kernel.replication.vote_channels import PARTITIONS_MAX, VoteChannels
from odradek.kernel.replication.vote_messages import parts
from odradek.kernel.types import TopicIdPartition
from odradek.kernel.wire.message import Message
from odradek.kernel.wire.messages.api_52_vote import VoteRequest
from odradek.kernel.wire.messages.api_54_end_quorum_epoch import EndQuorumEpochRequest

from .test_vote_messages import end_of, vote_of

PARTITION = TopicIdPartition(uuid.UUID(int=1), "t", 0)


class Brokers:
    """Broker 2, of which one request is a bug's end."""

    def __init__(self) -> None:
        self.requests = 0

    async def request(self, broker_id: int, request: Any, *, timeout_ms: int, purpose: str) -> Message:
        self.requests += 1
        if self.requests == 1:
            raise ZeroDivisionError("a bug")
        return vote_of(PARTITION)


def test_a_service_that_is_started_again_sends_to_whom_it_knew() -> None:
    brokers, answers = Brokers(), []

    async def take(broker_id: int, _answer: Message) -> None:
        answers.append(broker_id)

    channels = VoteChannels(
        brokers,  # type: ignore[arg-type] # no more is asked of it here
        cluster_id=lambda: "cluster",
        timeout_ms=lambda: 1_000,
        on_answer=take,
    )

    async def main() -> None:
        channels.send(2, PARTITION, vote_of(PARTITION))
        with pytest.RaisesGroup(ZeroDivisionError):
            await channels.run()
        channels.send(2, PARTITION, vote_of(PARTITION))
        async with trio.open_nursery() as nursery:
            await nursery.start(channels.run)
            await trio.testing.wait_all_tasks_blocked()
            nursery.cancel_scope.cancel()

    trio.run(main)

    assert (brokers.requests, answers) == (2, [2])


class Counting:
    """Broker 2, which tells how many partitions each request had."""

    def __init__(self) -> None:
        self.counts: list[tuple[type[Message], int]] = []

    async def request(self, broker_id: int, request: Any, *, timeout_ms: int, purpose: str) -> Message:
        self.counts.append((type(request), sum(1 for _ in parts(request))))
        await trio.lowlevel.checkpoint()
        return vote_of(PARTITION)


def test_no_request_has_more_partitions_than_are_answered_in_time_and_kinds_take_turns() -> None:
    brokers = Counting()

    async def take(_broker_id: int, _answer: Message) -> None:
        pass

    channels = VoteChannels(
        brokers,  # type: ignore[arg-type] # no more is asked of it here
        cluster_id=lambda: "cluster",
        timeout_ms=lambda: 1_000,
        on_answer=take,
    )
    for number in range(2 * PARTITIONS_MAX + 1):
        partition = TopicIdPartition(PARTITION.topic_id, "t", number)
        channels.send(2, partition, vote_of(partition))
    channels.send(2, PARTITION, end_of(PARTITION))

    async def main() -> None:
        async with trio.open_nursery() as nursery:
            await nursery.start(channels.run)
            await trio.testing.wait_all_tasks_blocked()
            nursery.cancel_scope.cancel()

    trio.run(main)

    assert brokers.counts == [
        (VoteRequest, PARTITIONS_MAX),
        (EndQuorumEpochRequest, 1),
        (VoteRequest, PARTITIONS_MAX),
        (VoteRequest, 1),
    ]
