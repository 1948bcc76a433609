"""Where replicas lie, told to the controller: what differs, and what is no use while its disk is full."""

from __future__ import annotations

import errno
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from uuid import UUID

import attrs
import pytest
import trio
import trio.testing

from odradek.kernel.broker.metadata_parts import CallsOfThisBroker
from odradek.kernel.errors import ErrorCode, KafkaError
from odradek.kernel.machine.files import disk_error
from odradek.kernel.partitions.directory_reports import DirectoryReports
from odradek.kernel.types import LOST_DIRECTORY
from odradek.kernel.wire.messages.api_73_assign_replicas_to_dirs import AssignReplicasToDirsResponse
from odradek.plugins.storage_segment.log import SegmentLog

from .hosted import Hosted


class Reported:
    """A replica, what the controller knows of where it lies, and how often there was news of room."""

    def __init__(self, directory: Path) -> None:
        self.hosted = Hosted(directory)
        self.news = 0
        self.hosted.replicas.on_room_changed = self.note_news
        self.hosted.open("t")
        self.hosted.produce("t", 0)
        self.cordoned: frozenset[str] | None = None
        self.known: dict[tuple[UUID, int], UUID] = {}
        self.refusals_left = 0
        self.asked_s: list[float] = []
        self.reports = DirectoryReports(
            replicas=self.hosted.replicas,
            known_directory=lambda topic_id, index: self.known.get((topic_id, index), UUID(int=0)),
            assign=self.assign,
            cordoned_paths=lambda: self.cordoned,
        )

    def note_news(self) -> None:
        self.news += 1

    async def assign(self, found: Mapping[tuple[UUID, int], UUID]) -> None:
        self.asked_s.append(trio.current_time())
        if self.refusals_left:
            self.refusals_left -= 1
            raise KafkaError(ErrorCode.REQUEST_TIMED_OUT)
        self.known.update(found)

    def report(self) -> UUID:
        trio.run(self.reports.report)
        return self.known[self.hosted.replicas.get("t", 0).partition.topic_id, 0]

    def run_out_of_room(self, *, isr: tuple[int, ...]) -> None:
        replica = self.hosted.replicas.get("t", 0)
        assert replica.state is not None
        replica.state = attrs.evolve(replica.state, replicas=(1, 2), isr=isr)
        assert isinstance(replica.log, SegmentLog)
        replica.log.set_offline("the disk is full")
        self.hosted.replicas.fail(replica, disk_error(OSError(errno.ENOSPC, "full"), "write", Path("there")))

    def fail_directory(self) -> None:
        """Let the directory of the replica fail, as a disk does."""
        replica = self.hosted.replicas.get("t", 0)
        directories: Any = getattr(self.hosted.replicas.engines["segment"], "_dirs", None)
        (home,) = [each for each in directories if each.name == replica.log.log_dir]
        error = disk_error(OSError(errno.EIO, "broken"), "write", home.path)
        directories.set_offline(home, error)
        self.hosted.replicas.fail(replica, error)


@pytest.fixture
def reported(tmp_path: Path) -> Iterator[Reported]:
    reported = Reported(tmp_path)
    yield reported
    reported.hosted.lifecycle.close()


def test_a_replica_without_room_is_lost_while_others_are_in_sync_and_back_when_there_is_some(
    reported: Reported,
) -> None:
    here = reported.report()
    reported.run_out_of_room(isr=(1, 2))
    lost = reported.report()
    trio.run(reported.hosted.lifecycle.retry_failed_logs)

    assert here == reported.report() != lost == LOST_DIRECTORY
    assert reported.news == 2


def test_the_last_replica_in_sync_stays_where_it_is_though_it_has_no_room(reported: Reported) -> None:
    here = reported.report()
    reported.run_out_of_room(isr=(1,))

    assert reported.report() == here


def test_a_replica_that_failed_otherwise_is_not_told_as_lost(reported: Reported) -> None:
    here = reported.report()
    replica = reported.hosted.replicas.get("t", 0)
    assert replica.state is not None
    replica.state = attrs.evolve(replica.state, replicas=(1, 2), isr=(1, 2))
    reported.hosted.replicas.fail(replica, ZeroDivisionError("a bug"))

    assert (reported.report(), reported.news) == (here, 0)


@pytest.mark.parametrize("is_moved", [False, True])
def test_a_directory_that_failed_before_it_was_told_is_told_all_the_same(reported: Reported, is_moved: bool) -> None:
    """The controller knows of no directory, as of a new partition, or of the one from where the replica was moved."""
    replica = reported.hosted.replicas.get("t", 0)
    infos = {info.path: info.directory_id for info in reported.hosted.replicas.engines["segment"].log_dirs()}
    here = infos.pop(replica.log.log_dir)
    if is_moved:
        reported.known[replica.partition.topic_id, 0] = infos.popitem()[1]
    reported.fail_directory()

    assert reported.report() == here


def test_a_directory_that_failed_and_is_known_is_told_no_more(reported: Reported) -> None:
    reported.report()
    reported.fail_directory()
    before = len(reported.asked_s)
    reported.report()

    assert len(reported.asked_s) == before


def test_replicas_are_told_again_once_a_directory_is_seen_to_have_failed(reported: Reported) -> None:
    async def main() -> tuple[int, int]:
        async with trio.open_nursery() as nursery:
            await nursery.start(reported.reports.run)
            await trio.sleep(1)
            reported.known.clear()
            reported.fail_directory()
            counts = []
            for _ in range(2):  # heartbeats
                assert len(reported.reports.failed()) == 1
                await trio.sleep(1)
                counts.append(len(reported.asked_s))
                reported.known.clear()
            nursery.cancel_scope.cancel()
        return counts[0], counts[1]

    assert trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0)) == (2, 2)


@pytest.mark.parametrize(("refusals_count", "seconds"), [(1, 1.4), (3, 7.8), (12, 244)])
def test_what_the_controller_did_not_take_note_of_is_told_again(
    reported: Reported, refusals_count: int, seconds: float
) -> None:
    reported.refusals_left = refusals_count

    async def main() -> None:
        with trio.move_on_after(3600):
            await reported.reports.run()

    trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))

    assert len(reported.known) == 1
    assert len(reported.asked_s) == refusals_count + 1, "and nothing more once it has"
    assert reported.asked_s[-1] - reported.asked_s[0] <= seconds


def test_news_are_told_at_once_though_the_controller_refused_what_was_told_before(reported: Reported) -> None:
    reported.refusals_left = 6

    async def main() -> float:
        async with trio.open_nursery() as nursery:
            await nursery.start(reported.reports.run)
            await trio.sleep(20)
            count, began_s = len(reported.asked_s), trio.current_time()
            reported.reports.wake()
            await trio.sleep(1)
            nursery.cancel_scope.cancel()
        return reported.asked_s[count] - began_s

    assert trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0)) < 0.5


def test_a_report_that_is_refused_as_a_whole_fails() -> None:
    class Stranger:
        broker_epoch = 5

        async def ask(self, request: Any, timeout_ms: int | None = None) -> AssignReplicasToDirsResponse:
            return AssignReplicasToDirsResponse(error_code=ErrorCode.STALE_BROKER_EPOCH)

    keeping: Any = Stranger()
    calls = CallsOfThisBroker(1)
    calls.keeping = keeping
    with pytest.raises(KafkaError) as refusal:
        trio.run(calls.assign_directories, {(UUID(int=1), 0): UUID(int=2)})

    assert refusal.value.code is ErrorCode.STALE_BROKER_EPOCH


def test_cordoned_directories_are_told_by_their_ids(reported: Reported) -> None:
    info, *_ = reported.hosted.replicas.engines["segment"].log_dirs()
    assert reported.reports.cordoned() is None
    reported.cordoned = frozenset()
    assert reported.reports.cordoned() == []
    reported.cordoned = frozenset({info.path, "elsewhere"})

    assert reported.reports.cordoned() == [info.directory_id]
