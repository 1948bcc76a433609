"""Other brokers that answer what a test lets them answer, when it lets them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import attrs
import trio
from trio.testing import wait_all_tasks_blocked

from odradek.kernel.cluster.peer_batches import PeerBatches
from odradek.kernel.wire.message import Message


@attrs.define(eq=False)
class Asked:
    """A request that a broker has, and did not answer yet."""

    node_id: int
    message: Any
    purpose: str
    done: trio.Event = attrs.field(factory=trio.Event)
    outcome: Any = None

    async def answer(self, outcome: object) -> None:
        """Answer with a response, or with an exception in its stead."""
        self.outcome = outcome
        self.done.set()
        await wait_all_tasks_blocked()


class AskedBrokers:
    """A `BrokerRequests`; what is asked stands in `asked`, the oldest first."""

    def __init__(self) -> None:
        self.asked: list[Asked] = []

    async def request(self, node_id: int, message: Message, *, timeout_ms: int, purpose: str = "") -> Any:
        """Keep it until it is answered."""
        asked = Asked(node_id, message, purpose)
        self.asked.append(asked)
        await asked.done.wait()
        if isinstance(asked.outcome, Exception):
            raise asked.outcome
        return asked.outcome

    async def next(self) -> Asked:
        """Let everything happen that can, and take the oldest request."""
        await wait_all_tasks_blocked()
        return self.asked.pop(0)


@asynccontextmanager
async def running(batches: PeerBatches[Any]) -> AsyncIterator[None]:
    """Their service runs."""
    async with trio.open_nursery() as nursery:
        await nursery.start(batches.run)
        yield
        nursery.cancel_scope.cancel()
