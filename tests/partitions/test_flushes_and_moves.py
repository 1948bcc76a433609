"""Flushes and moves of logs on worker threads, beside what the reactor's task does to the same replicas."""

import errno
import threading
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from pathlib import Path
from typing import cast

import pytest
import trio
import trio.testing

from odradek.kernel.contracts.api_handler import RequestContext
from odradek.kernel.contracts.disk_work import DiskWork
from odradek.kernel.contracts.storage import LogConfig
from odradek.kernel.dispatch.handlers.api_35_describe_log_dirs import DescribeLogDirsHandler
from odradek.kernel.errors import ErrorCode, KafkaError, StorageError
from odradek.kernel.machine.files import OsFiles, disk_error
from odradek.kernel.machine.system.threads import SystemThreads
from odradek.kernel.machine.threads import Workers
from odradek.kernel.machine.turnstile import run_at_once
from odradek.kernel.partitions import flush_service, log_move
from odradek.kernel.partitions.flush_service import FlushService
from odradek.kernel.partitions.log_move import begin_move, move_replica
from odradek.kernel.partitions.replica import Replica
from odradek.kernel.wire.messages.api_35_describe_log_dirs import DescribeLogDirsRequest
from odradek.plugins.storage_segment.moving import MoveWork, SwapWork
from tests.waiting import until_async

from .hosted import Hosted, unlimited
from .test_upkeep import upkeep_of

FLUSHED = LogConfig(flush_messages=1)


class HeldFiles(OsFiles):
    """The machine's files; one call of a worker thread is held until it may go on."""

    def __init__(self) -> None:
        super().__init__()
        self.held = ""
        self.is_there = threading.Event()
        self.may_go_on = threading.Event()
        self._real_fsync = self.fsync
        self._real_pread = self.pread
        self.fsync = self._fsync
        self.pread = self._pread

    def hold(self, name: str) -> None:
        """Hold the next call of `name` that a thread makes."""
        self.held = name

    def _hold(self, name: str) -> None:
        if self.held == name and threading.current_thread() is not threading.main_thread():
            self.held = ""
            self.is_there.set()
            self.may_go_on.wait()

    def _fsync(self, fd: int, /) -> None:
        self._hold("fsync")
        self._real_fsync(fd)

    def _pread(self, fd: int, size_bytes: int, position: int, /) -> bytes:
        self._hold("pread")
        return self._real_pread(fd, size_bytes, position)

    async def wait_held(self) -> None:
        await trio.to_thread.run_sync(self.is_there.wait)


@pytest.fixture
def files() -> HeldFiles:
    return HeldFiles()


@pytest.fixture
def progressed() -> list[str]:
    return []


@pytest.fixture
def hosted(tmp_path: Path, files: HeldFiles, progressed: list[str]) -> Iterator[Hosted]:
    hosted = Hosted(tmp_path, lambda replicas: progressed.extend(each.partition.topic for each in replicas), files)
    yield hosted
    hosted.lifecycle.close()


def other_dir(hosted: Hosted, replica: Replica) -> str:
    (target,) = [path for path in hosted.dirs if path != replica.log.log_dir]
    return target


def run(hosted: Hosted, scenario: Callable[[FlushService, trio.Nursery], Awaitable[None]]) -> None:
    async def main() -> None:
        service = FlushService(hosted.writes, SystemThreads())
        async with trio.open_nursery() as nursery:
            await nursery.start(service.run)
            await scenario(service, nursery)
            nursery.cancel_scope.cancel()

    trio.run(main)


async def move(hosted: Hosted, replica: Replica, log_dir: str, worker: Workers) -> None:
    begin_move(hosted.replicas, replica, log_dir, unlimited())
    await move_replica(*hosted.local, replica, worker)


def ask(hosted: Hosted, service: FlushService, *replicas: Replica) -> None:
    hosted.writes.flush_queue += replicas
    service.wake()


# ------------------------------------------------------------------------------------------------------------- flushes


def test_a_flush_of_a_log_that_moved_meanwhile_does_not_take_the_replica_offline(
    hosted: Hosted, files: HeldFiles
) -> None:
    hosted.open("slow")
    hosted.open("moved", log_config=FLUSHED)
    slow, moved = hosted.produce("slow", 0), hosted.produce("moved", 0)

    async def scenario(service: FlushService, nursery: trio.Nursery) -> None:
        files.hold("fsync")
        ask(hosted, service, slow, moved)
        await files.wait_held()
        await move(hosted, moved, other_dir(hosted, moved), Workers(SystemThreads(), 1))
        ask(hosted, service, moved)
        files.may_go_on.set()
        await until_async(lambda: service.flushes_count >= 2)

    run(hosted, scenario)

    assert moved.offline_reason is None
    assert hosted.produce("moved", 1).log.log_end_offset == 2


def test_who_waits_for_a_flush_does_not_wait_for_closed_segments_of_others(hosted: Hosted, files: HeldFiles) -> None:
    hosted.open("large")
    hosted.open("urgent", log_config=FLUSHED)
    large, urgent = hosted.produce("large", 0), hosted.produce("urgent", 0)
    large.log.roll()
    hosted.produce("large", 1)

    async def scenario(service: FlushService, nursery: trio.Nursery) -> None:
        files.hold("fsync")
        service.flush_closed_segments([large])
        await files.wait_held()
        ask(hosted, service, urgent)
        await until_async(lambda: urgent.high_watermark == 1)
        assert large.log.recovery_point == 0
        files.may_go_on.set()
        await until_async(lambda: large.log.recovery_point == 1)

    run(hosted, scenario)

    assert large.log.log_end_offset == 2


def test_a_flush_is_told_before_its_round_is_over(hosted: Hosted, files: HeldFiles) -> None:
    for topic in ("first", "second"):
        hosted.open(topic, log_config=FLUSHED)
    first, second = hosted.produce("first", 0), hosted.produce("second", 0)
    begin = second.log.begin_flush

    async def scenario(service: FlushService, nursery: trio.Nursery) -> None:
        second.log.begin_flush = lambda **options: Held(begin(**options), files)  # type: ignore[method-assign]
        ask(hosted, service, first, second)
        await files.wait_held()
        await until_async(lambda: first.high_watermark == 1)
        assert second.high_watermark == 0
        files.may_go_on.set()
        await until_async(lambda: second.high_watermark == 1)

    run(hosted, scenario)


def test_flushes_of_many_logs_begin_some_at_a_time_and_at_its_end_the_service_waits_for_those_under_way(
    hosted: Hosted, files: HeldFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(flush_service, "FLUSHES_MAX", 1)
    for topic in ("first", "second"):
        hosted.open(topic, log_config=FLUSHED)
    first, second = hosted.produce("first", 0), hosted.produce("second", 0)
    begin = second.log.begin_flush
    begun: list[str] = []

    def note_begin(*, closed_only: bool) -> DiskWork:
        begun.append("second")
        return begin(closed_only=closed_only)

    async def scenario(service: FlushService, nursery: trio.Nursery) -> None:
        second.log.begin_flush = note_begin  # type: ignore[method-assign, assignment]
        files.hold("fsync")
        ask(hosted, service, first, second)
        await files.wait_held()
        assert begun == []
        nursery.cancel_scope.cancel()
        files.may_go_on.set()

    run(hosted, scenario)

    assert begun == []
    assert (first.high_watermark, second.high_watermark) == (1, 0)


class Held:
    """A work that waits before it runs."""

    def __init__(self, work: DiskWork, files: HeldFiles) -> None:
        self.work = work
        self.files = files

    def run(self) -> None:
        self.files.is_there.set()
        self.files.may_go_on.wait()
        self.work.run()

    def finish(self, error: Exception | None) -> None:
        self.work.finish(error)


class Buggy:
    """A work of a storage with a bug."""

    def run(self) -> None:
        raise ZeroDivisionError("a bug of a storage")

    def finish(self, error: Exception | None) -> None:
        if error is not None:
            raise error


@pytest.mark.parametrize("when", ["begin", "run"])
def test_a_storage_with_a_bug_loses_its_own_partition_and_no_other_flush(hosted: Hosted, when: str) -> None:
    for topic in ("buggy", "sound"):
        hosted.open(topic, log_config=FLUSHED)
    buggy, sound = hosted.produce("buggy", 0), hosted.produce("sound", 0)

    def begin_flush(*, closed_only: bool) -> Buggy:
        if when == "begin":
            raise ZeroDivisionError("a bug of a storage")
        return Buggy()

    async def scenario(service: FlushService, nursery: trio.Nursery) -> None:
        buggy.log.begin_flush = begin_flush  # type: ignore[method-assign, assignment]
        ask(hosted, service, buggy, sound)
        await until_async(lambda: sound.high_watermark == 1)

    run(hosted, scenario)

    assert buggy.offline_reason == "a bug of a storage"
    assert sound.offline_reason is None


# --------------------------------------------------------------------------------------------------------------- moves


def test_a_move_counts_what_it_flushed_and_wakes_who_waits(hosted: Hosted, progressed: list[str]) -> None:
    hosted.open("t", log_config=FLUSHED)
    replica = hosted.produce("t", 0, 3)
    before = replica.high_watermark
    progressed.clear()
    trio.run(move, hosted, replica, other_dir(hosted, replica), Workers(SystemThreads(), 1))

    assert (before, replica.high_watermark, replica.appended_offset) == (0, 3, 3)
    assert "t" in progressed


def test_a_replica_serves_while_it_is_copied_and_what_comes_meanwhile_moves_too(
    hosted: Hosted, files: HeldFiles
) -> None:
    hosted.open("t")
    replica = hosted.produce("t", 0, 3)
    target = other_dir(hosted, replica)
    futures: list[tuple[str, int, bool]] = []

    async def main() -> None:
        async with trio.open_nursery() as nursery:
            files.hold("pread")
            nursery.start_soon(move, hosted, replica, target, Workers(SystemThreads(), 1))
            await files.wait_held()
            hosted.produce("t", 3, 2)
            described = DescribeLogDirsHandler(replicas=hosted.replicas, is_cordoned=lambda _path: False).handle(
                DescribeLogDirsRequest(topics=None), cast("RequestContext", None)
            )
            futures.extend(
                (result.log_dir, part.offset_lag, part.is_future_key)
                for result in described.results
                for topic in result.topics
                for part in topic.partitions
                if part.is_future_key
            )
            with pytest.raises(KafkaError):
                await move(hosted, replica, target, Workers(SystemThreads(), 1))
            files.may_go_on.set()

    trio.run(main)

    assert futures == [(target, 5, True)]
    assert (replica.log.log_dir, replica.log.log_end_offset, replica.future) == (target, 5, None)
    assert len(list(replica.log.batches(0))) == 2
    assert hosted.produce("t", 5).log.log_end_offset == 6


def test_what_was_written_since_a_move_was_asked_for_is_copied_before_clients_have_to_wait(
    hosted: Hosted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_move, "PAUSED_BYTES_MAX", 0)
    hosted.open("t")
    replica = hosted.produce("t", 0, 3)
    begin_move(hosted.replicas, replica, other_dir(hosted, replica), unlimited())
    hosted.produce("t", 3, 2)
    copied: list[int] = []
    left: list[tuple[int, int]] = []
    run, begin_swap = MoveWork.run, MoveWork.begin_swap

    def copy(move: MoveWork, wait_for: Callable[[int], object]) -> None:
        run(move, wait_for)
        copied.append(move.copied_offset)
        if len(copied) == 1:
            trio.from_thread.run_sync(hosted.produce, "t", 5, 4)

    def while_paused(move: MoveWork) -> SwapWork:
        left.append((move.begin_copy(), move.copied_offset))
        return begin_swap(move)

    monkeypatch.setattr(MoveWork, "run", copy)
    monkeypatch.setattr(MoveWork, "begin_swap", while_paused)
    trio.run(partial(move_replica, *hosted.local, replica, Workers(SystemThreads(), 1)))

    assert (copied, left) == ([5, 9], [(0, 9)])
    assert replica.log.log_end_offset == 9


def test_a_replica_refuses_while_its_log_is_swapped_and_takes_new_leadership_afterwards(
    hosted: Hosted, monkeypatch: pytest.MonkeyPatch
) -> None:
    hosted.open("t")
    replica = hosted.produce("t", 0, 3)
    target = other_dir(hosted, replica)
    codes: list[ErrorCode] = []
    begin_swap = MoveWork.begin_swap

    def while_paused(move: MoveWork) -> SwapWork:
        with pytest.raises(KafkaError) as caught:
            replica.check_leader(-1)
        codes.append(caught.value.code)
        hosted.open("t", epoch=4)
        return begin_swap(move)

    monkeypatch.setattr(MoveWork, "begin_swap", while_paused)
    trio.run(move, hosted, replica, target, Workers(SystemThreads(), 1))

    assert codes == [ErrorCode.KAFKA_STORAGE_ERROR]
    assert (replica.log.log_dir, replica.leader_epoch, replica.is_leader) == (target, 4, True)
    assert hosted.produce("t", 3).log.log_end_offset == 4


def test_a_leader_whose_log_has_moved_knows_its_epoch_still_that_has_no_record(hosted: Hosted) -> None:
    """An epoch without a record is in no file, and followers of a log that does not know it are never in sync."""
    hosted.open("t")
    hosted.produce("t", 0, 3)
    hosted.open("t", epoch=4)
    replica = hosted.replicas.get("t", 0)
    trio.run(move, hosted, replica, other_dir(hosted, replica), Workers(SystemThreads(), 1))

    assert list(replica.log.epoch_entries()) == [(0, 0), (4, 3)]
    hosted.produce("t", 3)
    assert replica.log.end_offset_for_epoch(4) == (4, 4)


def test_what_has_failed_while_its_log_is_swapped_stays_offline(
    hosted: Hosted, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """As a stage, an election or a look at the log does that meets a bug: nobody knows what the replica is since."""
    hosted.open("t")
    replica = hosted.produce("t", 0, 3)
    target = other_dir(hosted, replica)
    begin_swap = MoveWork.begin_swap

    def while_paused(move: MoveWork) -> SwapWork:
        hosted.replicas.fail(replica, ZeroDivisionError("a bug"))
        hosted.open("t", epoch=4)
        return begin_swap(move)

    monkeypatch.setattr(MoveWork, "begin_swap", while_paused)
    trio.run(move, hosted, replica, target, Workers(SystemThreads(), 1))

    assert (replica.offline_reason, replica.future) == ("a bug", None)
    assert (replica.is_paused, replica.leader_epoch) == (False, 4)
    with pytest.raises(KafkaError):
        replica.check_leader(-1)


def test_what_finds_no_room_while_its_log_is_swapped_is_served_again_when_there_is_some(
    hosted: Hosted, monkeypatch: pytest.MonkeyPatch
) -> None:
    hosted.open("t")
    replica = hosted.produce("t", 0, 3)
    target = other_dir(hosted, replica)
    begin_swap = MoveWork.begin_swap

    def while_paused(move: MoveWork) -> SwapWork:
        hosted.replicas.fail(replica, disk_error(OSError(errno.ENOSPC, "full"), "write", Path(target)))
        return begin_swap(move)

    monkeypatch.setattr(MoveWork, "begin_swap", while_paused)
    trio.run(move, hosted, replica, target, Workers(SystemThreads(), 1))

    assert replica.lacks_room
    assert replica.offline_reason is not None

    trio.run(hosted.lifecycle.retry_failed_logs)
    fresh = hosted.replicas.get("t", 0)

    assert (fresh is replica, fresh.log.log_dir, fresh.is_leader) == (False, target, True)
    assert hosted.produce("t", 3).log.log_end_offset == 4


def test_a_topic_deleted_while_it_moves_leaves_nothing_to_its_namesake(hosted: Hosted, files: HeldFiles) -> None:
    hosted.open("t")
    replica = hosted.produce("t", 0, 3)
    target = other_dir(hosted, replica)

    async def main() -> None:
        files.hold("pread")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(refused, replica, target)
            await files.wait_held()
            run_at_once(hosted.lifecycle.delete_topic_in_steps("t", 1))
            hosted.open("t")
            hosted.produce("t", 0)
            files.may_go_on.set()

    async def refused(replica: Replica, target: str) -> None:
        with pytest.raises((StorageError, KafkaError)):
            await move(hosted, replica, target, Workers(SystemThreads(), 1))

    trio.run(main)
    namesake = hosted.replicas.get("t", 0)

    assert (namesake is replica, namesake.log.log_end_offset, namesake.offline_reason) == (False, 1, None)
    assert len([path for name in hosted.dirs for path in Path(name).glob("t-0")]) == 1


def test_a_cancelled_move_stops_at_its_next_chunk_and_the_replica_goes_on_where_it_was(
    hosted: Hosted, files: HeldFiles
) -> None:
    hosted.open("t")
    replica = hosted.produce("t", 0, 3)
    here, target = replica.log.log_dir, other_dir(hosted, replica)

    async def main() -> None:
        files.hold("pread")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(move, hosted, replica, target, Workers(SystemThreads(), 1))
            await files.wait_held()
            nursery.cancel_scope.cancel()
            with trio.CancelScope(shield=True):
                await trio.testing.wait_all_tasks_blocked()
            files.may_go_on.set()

    trio.run(main)

    assert (replica.log.log_dir, replica.offline_reason, replica.is_leader) == (here, None, True)
    assert hosted.produce("t", 3).log.log_end_offset == 4
    assert not list(Path(target).glob("t-0"))


def test_a_move_cancelled_before_the_log_was_closed_counts_nothing_that_is_not_flushed(
    hosted: Hosted, files: HeldFiles
) -> None:
    hosted.open("t", log_config=FLUSHED)
    replica = hosted.produce("t", 0)

    async def main() -> None:
        worker = Workers(SystemThreads(), 1)
        files.hold("fsync")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(move, hosted, replica, other_dir(hosted, replica), worker)
            await files.wait_held()
            hosted.produce("t", 1)  # while it is copied
            nursery.cancel_scope.cancel()
            files.may_go_on.set()

    trio.run(main)
    counted = replica.appended_offset

    async def later(service: FlushService, nursery: trio.Nursery) -> None:
        service.wake()
        await until_async(lambda: replica.appended_offset == 2)

    run(hosted, later)

    assert (counted, replica.offline_reason, replica.high_watermark) == (0, None, 2)


def test_a_move_that_fails_leaves_the_replica_where_it_was(hosted: Hosted) -> None:
    hosted.open("t")
    replica = hosted.produce("t", 0, 3)
    here, target = replica.log.log_dir, other_dir(hosted, replica)
    (Path(target) / "t-0").mkdir()
    (Path(target) / "t-0" / "00000000000000000000.log").touch()
    with pytest.raises(StorageError):
        trio.run(move, hosted, replica, target, Workers(SystemThreads(), 1))

    assert (replica.log.log_dir, replica.offline_reason) == (here, None)
    assert hosted.produce("t", 3).log.log_end_offset == 4


def test_a_new_log_takes_no_records_that_lie_where_it_is_to_be(hosted: Hosted) -> None:
    for name in hosted.dirs:
        (Path(name) / "t-0").mkdir()
        (Path(name) / "t-0" / "00000000000000000000.log").write_bytes(b"records of somebody else")
    hosted.open("t")
    hosted.produce("t", 0)
    with pytest.raises(KafkaError) as caught:
        hosted.produce("t", 1)

    assert caught.value.code == ErrorCode.KAFKA_STORAGE_ERROR
    assert "nobody knows whose" in str(hosted.replicas.get("t", 0).offline_reason)
    assert [len(list((Path(name) / "t-0").iterdir())) for name in hosted.dirs] == [1, 1]


# -------------------------------------------------------------------------------------------------------------- upkeep


def test_a_snapshot_of_a_deleted_topic_is_not_its_namesakes(hosted: Hosted, files: HeldFiles) -> None:
    hosted.open("t")
    hosted.produce("t", 0, 3)

    async def main() -> None:
        files.hold("fsync")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(upkeep_of(hosted)[0].keep_producers)
            await files.wait_held()
            run_at_once(hosted.lifecycle.delete_topic_in_steps("t", 1))
            hosted.open("t")
            files.may_go_on.set()

    trio.run(main)
    namesake = hosted.replicas.get("t", 0)

    assert list(namesake.log.sidecars("snapshot")) == []
    assert namesake.offline_reason is None


def test_a_checkpoint_under_way_sees_nothing_of_what_comes_and_goes(hosted: Hosted, files: HeldFiles) -> None:
    hosted.open("old", 3)
    replica = hosted.produce("old", 0, 3)
    replica.log.flush()

    async def main() -> None:
        files.hold("fsync")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(upkeep_of(hosted)[0].checkpoint)
            await files.wait_held()
            hosted.open("new", 5)
            for index in range(5):
                hosted.produce("new", 0, partition=index)
            run_at_once(hosted.lifecycle.delete_topic_in_steps("old", 3))
            files.may_go_on.set()
        await upkeep_of(hosted)[0].checkpoint()

    trio.run(main)
    texts = [(Path(path) / "recovery-point-offset-checkpoint").read_text() for path in hosted.dirs]

    assert ("old" in "".join(texts), "".join(texts).count("new")) == (False, 5)
