"""A controller that fetches what the leader has: appended, flushed, told the election in that order."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Generator
from contextlib import asynccontextmanager
from typing import TypeVar
from uuid import UUID

import pytest
import trio

from odradek.kernel.cluster.metadata_fetches import MetadataFetcher
from odradek.kernel.contracts.election import ElectionInput, FetchEnded, PeerRefused, Role
from odradek.kernel.controller.snapshots import SnapshotId
from odradek.kernel.errors import ConfigError, CorruptionError, ErrorCode, StorageError
from odradek.kernel.metadata.records import ConfigRecord
from odradek.kernel.quorum.following import MetadataFollowing
from odradek.kernel.records.batch import iterate_batches
from odradek.kernel.types import Buffer
from odradek.kernel.wire.messages.api_01_fetch import EpochEndOffset
from odradek.lab.simulator.running import run_in_world
from odradek.lab.simulator.seeds import Seeds
from odradek.lab.simulator.world import SECOND, World
from odradek.testing.faults import PowerLoss

from ..cluster.fake_controllers import CLUSTER_ID, Controllers

T = TypeVar("T")
RECORD = ConfigRecord(resource_type=4, resource_name="", name="broker.rack", value="b")


class FakeLog:
    """A replica with an election that believes what it is told.

    Attributes:
        inputs: What the election was told.
        done: What happened to the log, in order.
        refused: Snapshots that are not taken the first time, and why.
    """

    def __init__(self) -> None:
        self.role, self.leader_id, self.leader_epoch = Role.FOLLOWER, -1, -1
        self.end_offset, self.latest_epoch, self.high_watermark = 0, -1, 0
        self.inputs: list[ElectionInput] = []
        self.done: list[str] = []
        self.refused: dict[bytes, Exception] = {}
        self._flushed = 0
        self._changed = trio.Event()

    def be(self, role: Role, leader_id: int, leader_epoch: int) -> None:
        self.role, self.leader_id, self.leader_epoch = role, leader_id, leader_epoch
        self._tell()

    def _tell(self) -> None:
        self._changed.set()
        self._changed = trio.Event()

    def follows(self, leader_epoch: int) -> bool:
        return self.role is Role.FOLLOWER and self.leader_epoch == leader_epoch

    async def wait_changed(self) -> None:
        await self._changed.wait()

    def append_fetched_in_steps(self, records: Buffer, leader_epoch: int) -> Generator[None, None, None]:
        for _, header in iterate_batches(records):
            if not self.follows(leader_epoch):
                return
            assert header.base_offset == self.end_offset
            self.end_offset, self.latest_epoch = header.next_offset, header.partition_leader_epoch
            self.done.append(f"append {header.base_offset}")
            yield

    async def flush(self) -> None:
        await trio.sleep(0.001)
        if self._flushed != self.end_offset:
            self._flushed = self.end_offset
            self.done.append(f"flush {self.end_offset}")
            self._tell()

    def learn_high_watermark(self, offset: int) -> None:
        offset = min(offset, self._flushed)
        if offset > self.high_watermark:
            self.high_watermark = offset
            self.done.append(f"commit {offset}")
            self._tell()

    def diverging_offset(self, leader_epoch: int, end_offset: int) -> int:
        return min(end_offset, self.end_offset)

    def truncate(self, offset: int) -> None:
        if offset < self.high_watermark:
            raise StorageError("that is committed")
        self.end_offset = self._flushed = offset
        self.done.append(f"truncate {offset}")

    async def take_snapshot(self, identifier: SnapshotId, data: bytes) -> None:
        if data in self.refused:
            raise self.refused.pop(data)
        self.end_offset = self._flushed = self.high_watermark = identifier.end_offset
        self.latest_epoch = identifier.epoch
        self.done.append(f"snapshot {identifier.end_offset} of {data!r}")

    def step(self, event: ElectionInput) -> None:
        self.inputs.append(event)
        if isinstance(event, FetchEnded):
            self.done.append(f"ended {event.broker_id}")
            is_news = event.leader_epoch > self.leader_epoch or self.leader_id < 0
            if is_news and event.leader_epoch >= self.leader_epoch:
                self.be(Role.FOLLOWER, event.leader_id, event.leader_epoch)


class Following(Controllers):
    """A fourth controller beside three, the first of which leads."""

    def __init__(self, world: World, nursery: trio.Nursery) -> None:
        super().__init__(world, nursery, {})
        self.log = FakeLog()
        fetcher = MetadataFetcher(
            replica_id=9, cluster_id=CLUSTER_ID, fetch_bytes=1000, snapshot_bytes=4, directory_id=UUID(int=9)
        )
        self.following = MetadataFollowing(
            self.log, self.log, fetcher, config=self.config, machine=self.machine, nodes=self.nodes
        )

    async def caught_up(self) -> int:
        """Wait until all that there is is committed here; return how long that took, in milliseconds."""
        return await self.until(lambda: self.log.high_watermark == len(self.quorum.batches))


def beside(main: Callable[[Following], Awaitable[T]], *, knows_leader: bool = True) -> T:
    """Run a task in a world with three controllers and one that follows them, which knows its leader or does not."""
    world = World(Seeds(1))

    async def root() -> T:
        async with _running(world, knows_leader=knows_leader) as following:
            return await main(following)

    return run_in_world(world, root, limit_ns=600 * SECOND)


@asynccontextmanager
async def _running(world: World, *, knows_leader: bool) -> AsyncIterator[Following]:
    async with trio.open_nursery() as nursery:
        following = Following(world, nursery)
        await following.start()
        if knows_leader:
            following.log.be(Role.FOLLOWER, 1, 1)
        await nursery.start(following.following.run)
        yield following
        nursery.cancel_scope.cancel()


def test_what_is_fetched_is_durable_before_anybody_hears_of_it() -> None:
    async def main(following: Following) -> list[str]:
        await following.caught_up()
        await following.until(lambda: bool(following.log.inputs))
        return following.log.done

    assert beside(main) == ["append 0", "append 1", "flush 2", "commit 2", "ended 1"]


def test_each_fetch_says_what_is_durable_and_what_is_known_to_be_committed() -> None:
    async def main(following: Following) -> list[tuple[int, int, int, int]]:
        await following.caught_up()
        following.quorum.append(RECORD)
        await following.caught_up()
        await trio.sleep(0.1)
        return following.quorum.fetches

    assert beside(main) == [(1, 0, 0, 0), (1, 2, 1, 2), (1, 3, 1, 3)]


def test_every_answer_is_told_the_election_also_one_without_news() -> None:
    async def main(following: Following) -> list[ElectionInput]:
        await following.caught_up()
        following.log.inputs.clear()
        await trio.sleep(1.6)
        return following.log.inputs

    assert beside(main) == [FetchEnded(1, ErrorCode.NONE, 1, 1)] * 3


def test_who_knows_no_leader_asks_until_it_is_told() -> None:
    async def main(following: Following) -> tuple[list[ElectionInput], int]:
        await following.caught_up()
        return following.log.inputs[:2], following.log.leader_id

    following_first, leader_id = beside(main, knows_leader=False)

    assert following_first[0] == FetchEnded(1, ErrorCode.FENCED_LEADER_EPOCH, 1, 1)
    assert leader_id == 1


def test_a_log_that_went_another_way_is_truncated_and_nothing_is_committed_by_that() -> None:
    async def main(following: Following) -> list[str]:
        following.log.end_offset = 7
        following.quorum.diverging = EpochEndOffset(epoch=1, end_offset=1)
        await following.caught_up()
        await following.until(lambda: len(following.log.inputs) >= 2)
        return following.log.done

    done = beside(main)

    assert done[:3] == ["flush 7", "truncate 1", "ended 1"]
    assert done[3:] == ["append 1", "flush 2", "commit 2", "ended 1"]


def test_a_leader_that_lost_what_was_committed_is_not_followed() -> None:
    async def main(following: Following) -> None:
        await following.caught_up()
        following.quorum.diverging = EpochEndOffset(epoch=1, end_offset=1)
        following.quorum.tell()
        await trio.sleep(5)

    with pytest.raises(ExceptionGroup) as refusal:
        beside(main)
    assert refusal.group_contains(StorageError, match="that is committed")


def test_a_directory_of_another_cluster_than_all_others_is_refused() -> None:
    async def main(following: Following) -> None:
        following.quorum.strangers = {1, 2, 3}
        await trio.sleep(10)

    with pytest.raises(ExceptionGroup) as refusal:
        beside(main, knows_leader=False)
    assert refusal.group_contains(ConfigError, match="are of another cluster than this node's directories")


@pytest.mark.parametrize("has_followed", [False, True], ids=["all but one", "all, later"])
def test_controllers_that_turn_out_to_be_another_clusters_may_be_wrong_themselves(has_followed: bool) -> None:
    async def main(following: Following) -> int:
        if has_followed:
            await following.caught_up()
        following.quorum.strangers = {1, 2, 3} if has_followed else {2, 3}
        following.quorum.tell()
        await trio.sleep(10)
        following.quorum.strangers = set()
        following.quorum.append(RECORD)
        return await following.caught_up()

    assert beside(main, knows_leader=has_followed) < 5000


def test_a_snapshot_is_taken_part_by_part_and_the_leader_lives_all_the_while() -> None:
    async def main(following: Following) -> list[str]:
        following.quorum.start_offset, following.quorum.snapshot = 2, b"all before"
        following.quorum.append(RECORD)
        await following.caught_up()
        await following.until(lambda: len(following.log.inputs) >= 5)
        return following.log.done

    parts = ["ended 1"] * 3
    taken = [*parts, "snapshot 2 of b'all before'", "ended 1"]

    assert beside(main) == [*taken, "append 2", "flush 3", "commit 3", "ended 1"]


def test_a_snapshot_that_was_torn_is_fetched_again() -> None:
    async def main(following: Following) -> list[str]:
        following.quorum.start_offset, following.quorum.snapshot = 2, b"all before"
        following.log.refused = {b"all before": CorruptionError("the snapshot breaks off")}
        following.quorum.append(RECORD)
        await following.caught_up()
        return [each for each in following.log.done if not each.startswith("ended")]

    assert beside(main)[:2] == ["snapshot 2 of b'all before'", "append 2"]


def test_a_snapshot_of_a_newer_version_ends_the_controller_that_cannot_read_it() -> None:
    async def main(following: Following) -> None:
        following.quorum.start_offset, following.quorum.snapshot = 2, b"all before"
        following.log.refused = {b"all before": StorageError("metadata of format version 9")}
        following.quorum.append(RECORD)
        await trio.sleep(60)

    with pytest.raises(ExceptionGroup) as refusal:
        beside(main)
    assert refusal.group_contains(StorageError, match="format version 9")


def test_a_leader_whose_machine_refuses_is_told_at_once() -> None:
    async def main(following: Following) -> tuple[int, list[ElectionInput]]:
        await following.caught_up()
        following.log.inputs.clear()
        following.controllers[1].host.kill_process()
        elapsed_ms = await following.until(lambda: PeerRefused(1) in following.log.inputs)
        return elapsed_ms, following.log.inputs

    elapsed_ms, inputs = beside(main)

    assert elapsed_ms <= 5
    assert inputs == [PeerRefused(1)]


def test_of_a_leader_that_is_silent_nothing_is_said() -> None:
    async def main(following: Following) -> list[ElectionInput]:
        await following.caught_up()
        following.log.inputs.clear()
        following.controllers[1].host.lose_power(PowerLoss.LOST)
        await trio.sleep(20)
        return following.log.inputs

    inputs = beside(main)

    assert not any(isinstance(each, PeerRefused) for each in inputs)
    assert {(each.broker_id, each.error) for each in inputs if isinstance(each, FetchEnded)} == {
        (2, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (3, ErrorCode.NOT_LEADER_OR_FOLLOWER),
    }


def test_another_controller_that_refuses_is_no_news() -> None:
    async def main(following: Following) -> list[ElectionInput]:
        following.controllers[1].host.kill_process()
        following.controllers[2].host.kill_process()
        following.quorum.elect(3)
        await following.caught_up()
        return following.log.inputs

    inputs = beside(main, knows_leader=False)

    assert not any(isinstance(each, PeerRefused) for each in inputs)


def test_a_fetch_of_an_epoch_that_is_over_is_waited_for_no_longer() -> None:
    async def main(following: Following) -> int:
        await following.caught_up()
        following.quorum.silent = {1}
        await trio.sleep(0.6)
        following.quorum.elect(2)
        following.quorum.append(RECORD)
        following.log.be(Role.FOLLOWER, 2, 2)
        return await following.caught_up()

    assert beside(main) <= 80


def test_the_next_epoch_of_the_same_leader_does_not_wait_for_the_answer_of_the_one_before() -> None:
    async def main(following: Following) -> int:
        await following.caught_up()
        await trio.sleep(0.1)
        following.quorum.epoch = 2  # nobody wakes the fetch that waits
        following.log.be(Role.FOLLOWER, 1, 2)
        return await following.until(lambda: FetchEnded(1, ErrorCode.NONE, 1, 2) in following.log.inputs)

    assert beside(main) <= 520, "a fetch without news waits for half a second, and not two of them"


def test_who_stands_itself_fetches_nothing() -> None:
    async def main(following: Following) -> int:
        await following.caught_up()
        following.log.be(Role.CANDIDATE, -1, 2)
        await trio.sleep(0.01)
        before = len(following.quorum.fetches)
        await trio.sleep(5)
        return len(following.quorum.fetches) - before

    assert beside(main) == 0


def test_a_follower_follows_on_where_another_one_leads() -> None:
    async def main(following: Following) -> list[int]:
        await following.caught_up()
        took = []
        for leader_id in (2, 3, 1):
            following.quorum.elect(leader_id)
            following.quorum.append(RECORD)
            took.append(await following.caught_up())
        return took

    assert max(beside(main)) <= 30
