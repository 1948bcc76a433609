"""Whatever goes wrong with one item that is asked of a broker, the others are asked, and told."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from odradek.kernel.cluster.peer_batches import PeerBatches
from odradek.kernel.errors import ErrorCode
from odradek.kernel.peers.errors import ConnectionFailedError
from odradek.kernel.wire.message import Message
from odradek.kernel.wire.messages.api_03_metadata import MetadataRequest

from .asked_brokers import AskedBrokers, running
from .images import image


class OneByOne:
    """An exchange of one item a request; of the item `request`, `answered` or `failed` that step goes wrong."""

    purpose = "items"

    def __init__(self) -> None:
        self.told: list[tuple[str, object]] = []

    def take(self, queue: deque[str]) -> list[str]:
        return [queue.popleft()]

    def request(self, items: Sequence[str]) -> Message:
        assert items != ["request"]
        return MetadataRequest(topics=[])

    def answered(self, items: Sequence[str], response: Any) -> None:
        assert items != ["answered"]
        self.told += [(item, response) for item in items]

    def failed(self, items: Sequence[str], code: ErrorCode) -> None:
        assert items != ["failed"]
        self.told += [(item, code) for item in items]


class Asking:
    """Items of one broker; what they are told stands in `told`."""

    def __init__(self) -> None:
        self.exchange, self.brokers = OneByOne(), AskedBrokers()
        self.batches = PeerBatches(self.exchange, self.brokers, lambda: 1000)

    @property
    def told(self) -> list[tuple[str, object]]:
        """What became of each item."""
        return self.exchange.told

    def put(self, *items: str) -> None:
        """Have them asked of broker 2."""
        for item in items:
            self.batches.put(2, item)


@pytest.mark.parametrize("outcome", ["an answer", ConnectionFailedError("it is gone")], ids=["answered", "failed"])
def test_an_item_that_cannot_be_told_does_not_hold_up_the_next(outcome: object) -> None:
    async def main() -> list[tuple[str, object]]:
        asking = Asking()
        async with running(asking.batches):
            asking.put("answered" if outcome == "an answer" else "failed", "next")
            await (await asking.brokers.next()).answer(outcome)
            await (await asking.brokers.next()).answer("well")
            asking.put("later")
            await (await asking.brokers.next()).answer("well")
        return asking.told

    assert trio.run(main) == [("next", "well"), ("later", "well")]


def test_an_item_that_cannot_be_asked_is_told_so() -> None:
    async def main() -> list[tuple[str, object]]:
        asking = Asking()
        async with running(asking.batches):
            asking.put("request", "next")
            await (await asking.brokers.next()).answer("well")
        return asking.told

    assert trio.run(main) == [("request", ErrorCode.UNKNOWN_SERVER_ERROR), ("next", "well")]


def test_what_is_queued_is_asked_when_the_service_runs_again() -> None:
    async def main() -> list[tuple[str, object]]:
        asking = Asking()
        async with running(asking.batches):
            asking.put("first", "second")
            await asking.brokers.next()
        async with running(asking.batches):
            asking.put("third")
            await (await asking.brokers.next()).answer("well")
            await (await asking.brokers.next()).answer("well")
        return asking.told

    assert trio.run(main) == [("second", "well"), ("third", "well")]


def test_what_is_queued_for_a_broker_that_is_fenced_waits_for_nothing() -> None:
    async def main() -> tuple[list[tuple[str, object]], list[tuple[str, object]]]:
        asking = Asking()
        async with running(asking.batches):
            asking.put("first", "second", "third")
            await asking.brokers.next()
            asking.batches.image_changed(image({"t": [2]}, fenced=[2]))
            await wait_all_tasks_blocked()
            fenced = list(asking.told)
            asking.put("when it is back")
            await (await asking.brokers.next()).answer("well")
        return fenced, asking.told[len(fenced) :]

    fenced, told = trio.run(main)

    assert fenced == [(item, ErrorCode.NETWORK_EXCEPTION) for item in ("first", "second", "third")]
    assert told == [("when it is back", "well")]


def test_what_is_queued_for_a_broker_that_is_fenced_is_told_so_as_much_at_once_as_one_request_would_bring() -> None:
    names = [f"item {number}" for number in range(20)]

    async def main() -> list[int]:
        asking, counts = Asking(), [0]
        async with running(asking.batches):
            asking.put(*names)
            await asking.brokers.next()
            asking.batches.image_changed(image({"t": [2]}, fenced=[2]))
            while len(asking.told) < len(names):
                await trio.lowlevel.checkpoint()
                counts.append(len(asking.told))
        assert [item for item, _ in asking.told] == names
        return [after - before for before, after in pairwise(counts)]

    assert max(trio.run(main)) <= 2  # between two steps of one task another may make two
