"""How elections' messages leave: what is sent after the service crashed, and was started again."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
import trio
import trio.testing

from odradek.kernel.replication.vote_channels import VoteChannels
from odradek.kernel.types import TopicIdPartition
from odradek.kernel.wire.message import Message

from .test_vote_messages import vote_of

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
