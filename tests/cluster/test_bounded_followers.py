"""Who follows the metadata, or says so, takes a bounded part of the controller's listener."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from odradek.kernel.dispatch.controller.fetch import MetadataFetchHandler
from odradek.kernel.dispatch.controller.fetch_snapshot import PART_BYTES_MAX, FetchSnapshotHandler
from odradek.kernel.dispatch.controller.news_waits import STRANGERS_MAX, WAIT_MS_MAX, NewsWaits
from odradek.kernel.errors import ErrorCode
from odradek.kernel.types import METADATA_TOPIC, METADATA_TOPIC_ID
from odradek.kernel.wire.messages.api_01_fetch import FetchPartition, FetchRequest, FetchTopic, ReplicaState
from odradek.kernel.wire.messages.api_59_fetch_snapshot import (
    FetchSnapshotRequest,
    PartitionSnapshot,
    SnapshotId,
    TopicSnapshot,
)
from tests.waiting_aside import wait_here

from .controller_feed import ControllerFeed

HOUR_MS = 3_600_000
CONTEXT: Any = SimpleNamespace(api_version=17, wait_aside=wait_here)
SNAPSHOT_BYTES = 3 * PART_BYTES_MAX


class Followers:
    """Fetches from the end of the log that are ready to wait for long; who is answered stands in `answered`."""

    def __init__(self, nursery: trio.Nursery) -> None:
        feed = ControllerFeed()
        self._handler = MetadataFetchHandler(feed=lambda: feed)
        self._nursery = nursery
        self.answered: list[tuple[int, float]] = []

    async def _fetch(self, replica_id: int) -> None:
        partition = FetchPartition(
            current_leader_epoch=1, fetch_offset=10, last_fetched_epoch=1, partition_max_bytes=1000
        )
        request = FetchRequest(
            replica_state=ReplicaState(replica_id=replica_id),
            max_wait_ms=HOUR_MS,
            min_bytes=1,
            topics=[FetchTopic(topic=METADATA_TOPIC, topic_id=METADATA_TOPIC_ID, partitions=[partition])],
        )
        answer = await self._handler.handle_async(request, CONTEXT)
        assert answer.responses[0].partitions[0].error_code == ErrorCode.NONE
        self.answered.append((replica_id, trio.current_time()))

    async def begin(self, *replica_ids: int) -> None:
        """Let them ask, and see who is answered at once."""
        for replica_id in replica_ids:
            self._nursery.start_soon(self._fetch, replica_id)
        await wait_all_tasks_blocked()


@pytest.mark.parametrize("replica_id", [2, 99], ids=["a broker", "a stranger"])
def test_nobody_waits_longer_than_that(replica_id: int) -> None:
    async def main() -> tuple[list[tuple[int, float]], float]:
        started_s = trio.current_time()
        async with trio.open_nursery() as nursery:
            followers = Followers(nursery)
            await followers.begin(replica_id)
        return followers.answered, started_s

    answered, started_s = trio.run(main, clock=MockClock(autojump_threshold=0))

    assert [(who, at_s - started_s) for who, at_s in answered] == [(replica_id, WAIT_MS_MAX / 1000)]


def test_of_a_broker_the_newest_fetch_waits() -> None:
    async def main() -> list[list[int]]:
        seen = []
        async with trio.open_nursery() as nursery:
            followers = Followers(nursery)
            for replica_ids in ((2, 3), (2,), (2, 2)):
                await followers.begin(*replica_ids)
                seen.append([who for who, _ in followers.answered])
            nursery.cancel_scope.cancel()
        return seen

    assert trio.run(main, clock=MockClock()) == [[], [2], [2, 2, 2]]


def test_of_those_who_are_no_brokers_a_few_wait() -> None:
    async def main() -> tuple[int, list[int]]:
        async with trio.open_nursery() as nursery:
            followers = Followers(nursery)
            await followers.begin(*range(100, 400))
            at_once = len(followers.answered)
            await followers.begin(2)
            later = [who for who, _ in followers.answered[at_once:]]
            nursery.cancel_scope.cancel()
        return at_once, later

    assert trio.run(main, clock=MockClock()) == (300 - STRANGERS_MAX, [])


def snapshot_request(*names: str, parts: int = 1, max_bytes: int = 1000) -> FetchSnapshotRequest:
    wanted = PartitionSnapshot(current_leader_epoch=1, snapshot_id=SnapshotId(end_offset=5, epoch=1), position=7)
    return FetchSnapshotRequest(
        max_bytes=max_bytes, topics=[TopicSnapshot(name=name, partitions=[wanted] * parts) for name in names]
    )


def test_a_snapshot_is_given_in_bounded_parts() -> None:
    feed = ControllerFeed(snapshots={(5, 1): bytes(SNAPSHOT_BYTES)})
    handler = FetchSnapshotHandler(feed=lambda: feed)

    answer = handler.handle(snapshot_request(METADATA_TOPIC, max_bytes=(1 << 31) - 1), CONTEXT)

    (part,) = answer.topics[0].partitions
    assert (part.error_code, part.size, len(part.unaligned_records)) == (ErrorCode.NONE, SNAPSHOT_BYTES, PART_BYTES_MAX)
    assert feed.read == [(7, PART_BYTES_MAX)]


@pytest.mark.parametrize(
    "request_of_more",
    [
        snapshot_request(),
        snapshot_request(METADATA_TOPIC, parts=0),
        snapshot_request(METADATA_TOPIC, parts=2),
        snapshot_request(METADATA_TOPIC, METADATA_TOPIC),
    ],
    ids=["no topic", "no partition", "twice", "two topics"],
)
def test_who_asks_for_more_than_one_snapshot_is_refused(request_of_more: FetchSnapshotRequest) -> None:
    feed = ControllerFeed()

    answer = FetchSnapshotHandler(feed=lambda: feed).handle(request_of_more, CONTEXT)

    assert (answer.error_code, answer.topics, feed.read) == (ErrorCode.INVALID_REQUEST, [], [])


def test_a_wait_that_gave_its_place_to_one_that_is_over_already_ends_in_peace() -> None:
    waits = NewsWaits()

    async def main() -> None:
        with waits.wait(1, HOUR_MS), waits.wait(1, HOUR_MS):
            pass  # the later one ends first

    trio.run(main)

    assert repr(waits) == "NewsWaits([], 0 strangers)"
