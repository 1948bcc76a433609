"""What a broker does for its logs now and then, over real segment files."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import cast

import attrs
import pytest
import trio
import trio.testing

from odradek.kernel.contracts.api_handler import RequestContext
from odradek.kernel.contracts.storage import NO_LIMIT, LogConfig
from odradek.kernel.errors import ErrorCode, KafkaError, StorageError
from odradek.kernel.machine.system.threads import SystemThreads
from odradek.kernel.machine.turnstile import SLICE_STEPS, run_at_once
from odradek.kernel.partitions.flush_service import FlushService
from odradek.kernel.partitions.producer_snapshot import SNAPSHOT_KIND, decode_snapshot
from odradek.kernel.partitions.replica import Replica
from odradek.kernel.partitions.upkeep import Upkeep, UpkeepSettings
from odradek.kernel.types import NO_OFFSET
from odradek.kernel.wire.messages.api_21_delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from tests.dispatch.deleting import deleting_handler
from tests.one_object import patch_one

from .hosted import Hosted

SETTINGS = UpkeepSettings(
    checkpoint_interval_ms=5_000,
    snapshot_interval_ms=60_000,
    producer_expiration_interval_ms=600_000,
    flush_check_interval_ms=NO_LIMIT,
)


@pytest.fixture
def hosted(tmp_path: Path) -> Iterator[Hosted]:
    hosted = Hosted(tmp_path)
    hosted.open("t")
    yield hosted
    hosted.lifecycle.close()


def upkeep_of(
    hosted: Hosted, settings: UpkeepSettings = SETTINGS, kind: type[Upkeep] = Upkeep
) -> tuple[Upkeep, FlushService]:
    flushes = FlushService(hosted.writes, SystemThreads())
    hosted.on_flush_wanted = flushes.wake
    upkeep = kind(
        replicas=hosted.replicas,
        lifecycle=hosted.lifecycle,
        writes=hosted.writes,
        flushes=flushes,
        clock=hosted.clock,
        threads=SystemThreads(),
        settings=settings,
    )
    return upkeep, flushes


def do(hosted: Hosted, work: Callable[[Upkeep], Callable[[], Awaitable[None]]]) -> FlushService:
    """Do one piece of work, and the flushes that it asks for."""

    async def main() -> FlushService:
        upkeep, flushes = upkeep_of(hosted)
        async with trio.open_nursery() as nursery:
            await nursery.start(flushes.run)
            await work(upkeep)()
            await trio.testing.wait_all_tasks_blocked()
            nursery.cancel_scope.cancel()
        return flushes

    return trio.run(main)


def replica_of(hosted: Hosted) -> Replica:
    return hosted.replicas.get("t", 0)


def files_of(hosted: Hosted, pattern: str) -> list[str]:
    return sorted(path.name for folder in hosted.dirs for path in Path(folder).glob(pattern))


def test_high_watermarks_are_kept(hosted: Hosted) -> None:
    hosted.produce("t", 0, 3)
    do(hosted, lambda upkeep: upkeep.checkpoint)
    kept = [(Path(folder) / "replication-offset-checkpoint").read_text() for folder in hosted.dirs]

    assert sorted(kept) == ["0\n0\n", "0\n1\nt 0 3\n"]


def test_producers_are_kept_once_for_each_end_of_the_log_and_old_snapshots_go(hosted: Hosted) -> None:
    for count in range(4):
        hosted.produce("t", count)
        do(hosted, lambda upkeep: upkeep.keep_producers)
        do(hosted, lambda upkeep: upkeep.keep_producers)

    assert files_of(hosted, "t-0/*.snapshot") == [f"{offset:020}.snapshot" for offset in (3, 4)]


def test_a_log_without_producers_and_segments_needs_no_snapshot(hosted: Hosted) -> None:
    hosted.produce("t", -1, producer_id=-1, epoch=-1)
    do(hosted, lambda upkeep: upkeep.keep_producers)

    assert files_of(hosted, "t-0/*.snapshot") == []


def test_producers_that_cannot_be_kept_are_told_and_hurt_nobody(
    hosted: Hosted, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    hosted.open("u")
    failing, sound = hosted.produce("t", 0), hosted.produce("u", 0)

    def fail(*_: object) -> None:
        raise StorageError("the disk is full")

    patch_one(monkeypatch, failing.log, "begin_sidecar", fail)
    do(hosted, lambda upkeep: upkeep.keep_producers)

    assert failing.snapshot_offset != 1
    assert sound.snapshot_offset == 1
    assert "producers of t-0" in caplog.text
    assert "the disk is full" in caplog.text


def test_a_producer_that_was_silent_for_too_long_is_forgotten(hosted: Hosted) -> None:
    replica = hosted.produce("t", 0)
    hosted.clock.advance(86_400_000 - 1)
    do(hosted, lambda upkeep: upkeep.forget_producers)
    assert len(replica.producers) == 1

    hosted.clock.advance(2)
    do(hosted, lambda upkeep: upkeep.forget_producers)
    assert len(replica.producers) == 0


def test_files_of_a_deleted_topic_go_when_their_delay_is_over(hosted: Hosted) -> None:
    hosted.produce("t", 0)
    run_at_once(hosted.lifecycle.delete_topic_in_steps("t", 1))
    do(hosted, lambda upkeep: upkeep.remove_files)
    assert len(files_of(hosted, "t-0.*-delete")) == 1

    hosted.clock.advance(60_001)
    do(hosted, lambda upkeep: upkeep.remove_files)
    assert files_of(hosted, "t-0.*") == []


def test_deleted_records_leave_the_disk_in_the_background_and_readers_keep_theirs(hosted: Hosted) -> None:
    replica = hosted.produce("t", 0, 3)
    replica.log.roll()
    hosted.produce("t", 3, 2)
    read = replica.log.read(0, 1 << 20)
    assert not isinstance(read.data, bytes | memoryview)
    before = read.data.read()
    handler = deleting_handler(hosted.replicas, lambda _topic: True)
    wanted = DeleteRecordsTopic(name="t", partitions=[DeleteRecordsPartition(partition_index=0, offset=4)])
    handler.handle(DeleteRecordsRequest(topics=[wanted]), cast("RequestContext", None))

    assert (replica.log.log_start_offset, len(files_of(hosted, "t-0/*.log"))) == (4, 2)
    do(hosted, lambda upkeep: upkeep.give_up_segments)
    assert (len(files_of(hosted, "t-0/*.log")), len(files_of(hosted, "t-0/*.log.deleted"))) == (1, 1)
    hosted.clock.advance(60_001)
    do(hosted, lambda upkeep: upkeep.remove_files)
    assert (files_of(hosted, "t-0/*.deleted"), replica.log.log_start_offset) == ([], 4)
    assert read.data.read() == before


def test_closed_segments_are_flushed_and_the_active_one_is_not(hosted: Hosted) -> None:
    replica = hosted.produce("t", 0, 3)
    replica.log.roll()
    hosted.produce("t", 3, 2)
    flushes = do(hosted, lambda upkeep: upkeep.flush_closed_segments)
    assert (replica.log.recovery_point, replica.log.log_end_offset, flushes.flushes_count) == (3, 5, 1)

    assert do(hosted, lambda upkeep: upkeep.flush_closed_segments).flushes_count == 0


def test_a_topic_that_wants_it_is_flushed_by_time(hosted: Hosted) -> None:
    replica = hosted.produce("t", 0)
    assert do(hosted, lambda upkeep: upkeep.flush_by_time).flushes_count == 0

    plan = hosted.replicas.topics["t"].plan
    run_at_once(
        hosted.lifecycle.reconfigure_topic_in_steps("t", attrs.evolve(plan, log_config=LogConfig(flush_ms=1_000)))
    )
    assert do(hosted, lambda upkeep: upkeep.flush_by_time).flushes_count == 1
    assert replica.log.recovery_point == 1

    hosted.produce("t", 1)
    hosted.clock.advance(999)
    assert do(hosted, lambda upkeep: upkeep.flush_by_time).flushes_count == 0
    hosted.clock.advance(1)
    assert do(hosted, lambda upkeep: upkeep.flush_by_time).flushes_count == 1
    hosted.clock.advance(1_000)
    assert do(hosted, lambda upkeep: upkeep.flush_by_time).flushes_count == 0


@pytest.mark.parametrize(
    ("interval_ms", "is_wanted", "looks"),
    [
        (NO_LIMIT, False, [1, 2, 3, 4, 5]),
        (NO_LIMIT, True, [1, 1.25, 1.5, 1.75, 2, 2.25]),
        (2_000, True, [2, 4, 6]),
        (2_000, False, [2, 4, 6]),
    ],
)
def test_flushes_by_time_are_looked_for_rarely_until_a_topic_wants_them_but_as_often_as_the_key_says(
    hosted: Hosted, interval_ms: int, is_wanted: bool, looks: list[float]
) -> None:
    looked_s: list[float] = []
    began_s = 0.0

    class Watched(Upkeep):
        async def flush_by_time(self) -> None:
            looked_s.append(trio.current_time() - began_s)
            await super().flush_by_time()

    if is_wanted:
        plan = hosted.replicas.topics["t"].plan
        run_at_once(
            hosted.lifecycle.reconfigure_topic_in_steps("t", attrs.evolve(plan, log_config=LogConfig(flush_ms=1_000)))
        )
        hosted.produce("t", 0)

    async def main() -> None:
        nonlocal began_s
        began_s = trio.current_time()
        upkeep, _ = upkeep_of(hosted, attrs.evolve(SETTINGS, flush_check_interval_ms=interval_ms), Watched)
        with trio.move_on_after(looks[-1] + 0.1):
            await upkeep.run()

    trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))

    assert looked_s == pytest.approx(looks)


def test_a_log_that_failed_is_not_flushed(hosted: Hosted) -> None:
    replica = hosted.produce("t", 0)
    replica.log.roll()
    hosted.replicas.fail(replica, StorageError("gone"))

    assert do(hosted, lambda upkeep: upkeep.flush_closed_segments).flushes_count == 0
    with pytest.raises(KafkaError) as caught:
        replica.check_leader(-1)
    assert caught.value.code == ErrorCode.KAFKA_STORAGE_ERROR


def run_for(hosted: Hosted, upkeep: Upkeep, seconds: float) -> None:
    async def main() -> None:
        with trio.move_on_after(seconds):
            await upkeep.run()

    trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))


class Counting(Upkeep):
    """Counts instead of working; its removal has a bug, its checkpoints meet a bad disk."""

    checkpoints = removals = 0

    async def checkpoint(self) -> None:
        self.checkpoints += 1
        raise StorageError("the disk is gone")

    async def remove_files(self) -> None:
        self.removals += 1
        raise RuntimeError("a bug")


@pytest.mark.parametrize(("interval_ms", "most"), [(5_000, 2), (0, 100), (-1, 100)])
def test_work_is_done_as_often_as_its_key_says_and_never_without_a_pause(
    hosted: Hosted, caplog: pytest.LogCaptureFixture, interval_ms: int, most: int
) -> None:
    caplog.set_level(logging.ERROR)
    settings = attrs.evolve(SETTINGS, checkpoint_interval_ms=interval_ms)
    upkeep = Counting(
        replicas=hosted.replicas,
        lifecycle=hosted.lifecycle,
        writes=hosted.writes,
        flushes=FlushService(hosted.writes, SystemThreads()),
        clock=hosted.clock,
        threads=SystemThreads(),
        settings=settings,
    )
    run_for(hosted, upkeep, 10.05)

    assert (most, 10) == (upkeep.checkpoints, upkeep.removals)
    assert "checkpoint: the disk is gone" in caplog.text
    assert "remove_files failed" in caplog.text


def test_a_snapshot_of_many_producers_is_taken_in_slices_and_is_of_when_it_was_begun(hosted: Hosted) -> None:
    count = 3 * SLICE_STEPS
    for producer_id in range(count):
        hosted.produce("t", 0, producer_id=producer_id)
    replica = replica_of(hosted)
    expected, offset = replica.producers.snapshot(), replica.log.log_end_offset
    upkeep, _ = upkeep_of(hosted)

    async def main() -> int:
        passes = 0
        async with trio.open_nursery() as nursery:
            nursery.start_soon(upkeep.keep_producers)
            for _ in range(2):  # in the pass of the second it has begun
                await trio.lowlevel.checkpoint()
            while replica.snapshot_offset == NO_OFFSET:
                # The first and the last change, others come, while they are written down.
                hosted.produce("t", 1 + passes, producer_id=count - 1)
                hosted.produce("t", 1 + passes, producer_id=0)
                hosted.produce("t", 0, producer_id=count + passes)
                passes += 1
                await trio.lowlevel.checkpoint()
        return passes

    assert trio.run(main) > count // SLICE_STEPS
    assert decode_snapshot(replica.log.read_sidecar(offset, SNAPSHOT_KIND)) == expected


def test_many_producers_are_forgotten_in_slices(hosted: Hosted) -> None:
    count = 3 * SLICE_STEPS
    for producer_id in range(count):
        hosted.produce("t", 0, producer_id=producer_id)
    hosted.clock.advance(86_400_001)
    producers = replica_of(hosted).producers
    upkeep, _ = upkeep_of(hosted)
    left: list[int] = []

    async def watch() -> None:
        while len(producers):
            left.append(len(producers))
            await trio.lowlevel.checkpoint()

    async def main() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(watch)
            nursery.start_soon(upkeep.forget_producers)

    trio.run(main)

    assert {count - SLICE_STEPS, count - 2 * SLICE_STEPS} <= set(left)
