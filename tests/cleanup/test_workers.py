"""Workers: a process does what a thread does, and whatever becomes of it, the log stays whole."""

from __future__ import annotations

import logging
import os
import pickle
import signal
import threading
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, cast

import attrs
import pytest
import trio
import trio.testing

from odradek.kernel.api import KeyTable
from odradek.kernel.cleanup.compaction_job import CompactionDone, CompactionJob, GroupRewritten, Step
from odradek.kernel.cleanup.compactor import PAUSE_S_MIN, Compactor, CompactorSettings
from odradek.kernel.cleanup.log_states import Policies
from odradek.kernel.cleanup.metrics import cleanup_metrics
from odradek.kernel.cleanup.setbacks import DEATHS_MAX, PAUSE_MS_MAX, RETRY_MS
from odradek.kernel.cleanup.workers import (
    BROKER_GONE,
    ProcessWorker,
    ThreadWorker,
    Worker,
    death_notice,
    start_worker,
)
from odradek.kernel.contracts.cleanup import CleanupPlan, CleanupPolicy, CleanupSettings, Compaction, LogState
from odradek.kernel.contracts.tiering import TieredLog, TierSettings
from odradek.kernel.machine.machine import Machine
from odradek.kernel.machine.system.machine import real_machine
from odradek.kernel.machine.system.processes import SystemProcess, SystemProcesses
from odradek.kernel.machine.turnstile import run_at_once
from odradek.kernel.partitions.log_move import begin_move, give_up
from odradek.kernel.partitions.replica import Replica
from odradek.testing.far_tier import FarLog
from tests.cleanup.compacted import CompactedTopic, compactor_on, in_process, no_retention, retention_on
from tests.machines import machine_with
from tests.partitions.hosted import unlimited
from tests.partitions.test_upkeep import upkeep_of
from tests.waiting import until_async


@pytest.fixture
def topic(tmp_path: Path) -> Iterator[CompactedTopic]:
    topic = CompactedTopic(tmp_path)
    topic.put([(b"a", b"1"), (b"a", b"2"), (b"b", b"1")])
    topic.roll()
    yield topic
    topic.hosted.lifecycle.close()


class KilledWorker(ProcessWorker):
    """Is killed before it gets its job."""

    def __init__(self, job: CompactionJob) -> None:
        super().__init__(job, SystemProcesses())
        assert isinstance(self._process, SystemProcess)
        os.kill(self._process.process_id, signal.SIGKILL)


class OnThread(ThreadWorker):
    """One on this machine."""

    def __init__(self, job: CompactionJob) -> None:
        super().__init__(job, real_machine())


class FullDisk(OnThread):
    """Finds no room."""

    def next_step(self) -> Step:
        raise OSError(28, "No space left on device")


class Hanging(OnThread):
    """Gives nothing until somebody has told of it; what it would do then touches nothing."""

    ends_at_close = True
    told = threading.Event()

    def next_step(self) -> Step:
        assert self.told.wait(60)
        return super().next_step()


class Unpicklable(CleanupPolicy):
    compacts = True

    def plan(self, log: LogState) -> CleanupPlan:
        return CleanupPlan(compaction=Compaction(0, 3, 1.0, lambda memory_bytes, records_max, load_factor: None))  # type: ignore[arg-type] # a policy's bug


SETTINGS = CompactorSettings(True, 1, 1 << 20, 0.9, 1 << 19, 1e300, 15_000)


def compactor_of(
    topic: CompactedTopic,
    start: Callable[[CompactionJob], Worker] = in_process,
    policies: Policies | None = None,
    settings: Callable[[], CompactorSettings] = lambda: SETTINGS,
    after_pass: Callable[[Replica, CleanupSettings], Awaitable[None]] = no_retention,
) -> Compactor:
    return compactor_on(topic.hosted, start, policies=policies, settings=settings, after_pass=after_pass)


def job_of(topic: CompactedTopic, bytes_per_second: float = 1e300) -> CompactionJob:
    topic.flush()
    return CompactionJob(
        compaction=Compaction(0, 3, 1.0, KeyTable),
        rewrite=topic.replica.log.begin_rewrite(3),
        aborted=(),
        last_records={},
        memory_bytes=1 << 20,
        load_factor=0.9,
        buffer_bytes=1 << 19,
        bytes_per_second=bytes_per_second,
        segment_bytes=1 << 20,
        segment_index_bytes=1 << 20,
        delete_retention_ms=0,
        now_ms=0,
    )


def offsets(topic: CompactedTopic) -> list[int]:
    return [seen.offset for seen in topic.uncommitted()]


def test_a_process_compacts(topic: CompactedTopic) -> None:
    assert topic.compact(compactor_of(topic))
    assert offsets(topic) == [1, 2]


def test_a_thread_writes_what_a_process_writes(topic: CompactedTopic) -> None:
    """What a machine without processes does with the same job."""
    job = job_of(topic)

    def done_by(machine: Machine) -> tuple[list[Step], dict[str, bytes]]:
        worker = start_worker(job, machine)
        steps = [worker.next_step(), worker.next_step()]
        worker.close()
        cleaned = sorted(Path(topic.replica.log.log_dir).glob("*/*.cleaned*"))
        return steps, {path.name: path.read_bytes() for path in cleaned}

    by_process, by_thread = done_by(real_machine()), done_by(machine_with(processes=None))

    assert by_process == by_thread
    assert by_thread[1]


def test_dead_workers_are_told_of_and_started_again_after_growing_pauses(
    topic: CompactedTopic, caplog: pytest.LogCaptureFixture
) -> None:
    compactor = compactor_of(topic, KilledWorker)
    pauses_ms = []
    for _ in range(DEATHS_MAX):
        pause_ms = 0
        while not topic.compact(compactor):
            topic.hosted.clock.advance(5_000)
            pause_ms += 5_000
        pauses_ms.append(pause_ms)

    assert pauses_ms == [0, 15_000, 30_000]
    reason = "the worker was ended by signal SIGKILL, as a system does that has no memory left"
    assert list(compactor.uncleanable.values()) == [reason]
    assert compactor.statistics.deaths_count == DEATHS_MAX
    told = [record.getMessage() for record in caplog.records if record.levelname == "ERROR"]
    assert [reason in line for line in told] == [True] * (DEATHS_MAX + 1)
    assert "is not compacted, and grows" in told[-1]
    assert offsets(topic) == [0, 1, 2]


def test_a_worker_that_gives_nothing_is_told_of_and_waited_for(
    topic: CompactedTopic, caplog: pytest.LogCaptureFixture
) -> None:
    def note(record: logging.LogRecord) -> bool:
        if "has given nothing for 20 minutes" in record.getMessage():
            Hanging.told.set()
        return True

    caplog.handler.addFilter(note)

    assert topic.compact(compactor_of(topic, Hanging), trio.testing.MockClock(autojump_threshold=0))
    assert "compaction of t-0: its worker has given nothing for 10 minutes" in caplog.text
    assert offsets(topic) == [1, 2]


def test_a_log_that_was_given_up_is_tried_again_later_and_at_once_under_other_settings(topic: CompactedTopic) -> None:
    compactor = compactor_of(topic, policies=Policies({"compact": Unpicklable()}))
    assert topic.compact(compactor)
    assert not topic.compact(compactor)
    topic.hosted.clock.advance(RETRY_MS)
    assert topic.compact(compactor)
    assert not topic.compact(compactor)
    topic.configure(delete_retention_ms=5)
    assert topic.compact(compactor)
    assert len(compactor.uncleanable) == 1


@pytest.mark.parametrize(
    ("change", "is_tried"),
    [({"dedupe_buffer_size": 2 << 20}, True), ({"io_buffer_load_factor": 0.5}, True), ({"backoff_ms": 1}, False)],
    ids=str,
)
def test_a_log_that_was_given_up_is_tried_again_at_once_with_another_table(
    topic: CompactedTopic, change: dict[str, Any], is_tried: bool
) -> None:
    chosen = [SETTINGS]
    compactor = compactor_of(topic, policies=Policies({"compact": Unpicklable()}), settings=lambda: chosen[-1])
    assert topic.compact(compactor)
    assert not topic.compact(compactor)
    chosen.append(attrs.evolve(SETTINGS, **change))

    assert topic.compact(compactor) == is_tried
    assert not topic.compact(compactor)


def test_a_full_disk_puts_compaction_off_and_never_for_long(topic: CompactedTopic) -> None:
    compactor = compactor_of(topic, FullDisk)
    for _ in range(10):
        assert topic.compact(compactor)
        assert not topic.compact(compactor)
        topic.hosted.clock.advance(PAUSE_MS_MAX)

    assert not compactor.uncleanable
    assert topic.compact(compactor_of(topic))
    assert offsets(topic) == [1, 2]


@pytest.mark.parametrize(
    ("status", "last_words", "told"),
    [
        (-9, "", "the worker was ended by signal SIGKILL, as a system does that has no memory left"),
        (-11, "Segmentation fault", "the worker was ended by signal SIGSEGV: Segmentation fault"),
        (BROKER_GONE, "", "the worker found the broker's end of its pipe closed"),
        (1, "MemoryError", "the worker died, exit status 1: MemoryError"),
        (
            1,
            "ImportError: cannot import name 'x'",
            "the worker died, exit status 1: ImportError: cannot import name 'x'; was the package changed under the "
            "running broker? Start it again",
        ),
    ],
)
def test_a_death_is_told_with_its_reason(status: int, last_words: str, told: str) -> None:
    assert death_notice(status, last_words) == told


def test_a_worker_whose_package_does_not_load_tells_why(
    topic: CompactedTopic, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "odradek.py").write_text("raise ImportError('half of an upgrade')")
    monkeypatch.setattr("sys.path", [str(broken)])
    compactor = compactor_of(topic)
    topic.compact(compactor)
    ((partition, known),) = compactor._setbacks._known.items()

    assert partition == topic.replica.partition
    assert "ImportError: half of an upgrade; was the package changed" in known.reason


class Talks(KeyTable):
    """A stranger's selection that was left with its author's debugging in it."""

    def __init__(self, memory_bytes: int, records_max: int, load_factor: float) -> None:
        super().__init__(memory_bytes, records_max, load_factor)
        print("x" * 200_000)  # noqa: T201 - what it must not do


def test_what_a_policy_prints_disturbs_nothing(topic: CompactedTopic) -> None:
    worker = ProcessWorker(attrs.evolve(job_of(topic), compaction=Compaction(0, 3, 1.0, Talks)), SystemProcesses())
    steps = [worker.next_step(), worker.next_step()]
    worker.close()

    assert [type(step) for step in steps] == [GroupRewritten, CompactionDone]


def test_a_worker_ends_when_its_broker_does(topic: CompactedTopic) -> None:
    worker = ProcessWorker(job_of(topic), SystemProcesses())
    pickle.dump(job_of(topic, bytes_per_second=1), worker._process.stdin)
    worker._process.stdin.close()

    assert worker._process.last_words()[0] == BROKER_GONE
    worker.close()


def test_a_selection_that_cannot_travel_makes_the_partition_uncleanable(topic: CompactedTopic) -> None:
    compactor = compactor_of(topic, policies=Policies({"compact": Unpicklable()}))
    topic.compact(compactor)

    assert len(compactor.uncleanable) == 1
    assert offsets(topic) == [0, 1, 2]


def test_a_job_that_is_cancelled_ends_its_process_and_changes_nothing(topic: CompactedTopic) -> None:
    compactor = compactor_of(topic)
    topic.replica.log.flush()
    topic.hosted.replicas.engines["segment"].checkpoint({})

    async def cancelled() -> None:
        with trio.CancelScope() as scope:
            scope.cancel()
            await compactor.round()

    trio.run(cancelled)

    assert offsets(topic) == [0, 1, 2]


def test_metrics_tell_what_was_done(topic: CompactedTopic) -> None:
    compactor = compactor_of(topic, OnThread)
    topic.compact(compactor)
    retention = retention_on(topic.hosted)
    told = {metric.name: metric.read()[()] for _, metric in cleanup_metrics(retention, compactor)}

    assert told["odradek_cleaner_compactions_total"] == 1
    assert told["kafka_log_logcleanermanager_uncleanable_partitions_count"] == 0
    assert told["kafka_log_logcleanermanager_max_dirty_percent"] == 100


def test_how_long_no_log_was_looked_at_is_known(topic: CompactedTopic) -> None:
    compactor = compactor_of(topic, OnThread)
    topic.hosted.clock.advance(20_000)
    before_ms = compactor.silence_ms()

    async def work() -> None:
        async with trio.open_nursery() as nursery:
            await nursery.start(compactor.run)
            with trio.fail_after(3_600):
                while compactor.silence_ms():  # noqa: ASYNC110 - the clock is a mock: this is no polling
                    await trio.sleep(1)
            nursery.cancel_scope.cancel()

    trio.run(work, clock=trio.testing.MockClock(autojump_threshold=0.01))

    assert (before_ms, compactor.silence_ms()) == (20_000, 0)


async def test_a_worker_that_hangs_keeps_no_other_log_from_being_compacted(
    topic: CompactedTopic, tmp_path: Path
) -> None:
    """Nor does a log of which there is so much that it takes hours."""
    topics = [topic, *(CompactedTopic(tmp_path, beside=topic, name=name) for name in ("u", "v", "w"))]
    for each in topics[1:]:
        each.put([(b"a", b"1"), (b"a", b"2")])
        each.roll()
    for each in topics:
        each.flush()
    settings = attrs.evolve(SETTINGS, threads=2, backoff_ms=50)
    started: list[str] = []
    Hanging.told.clear()

    def start(job: CompactionJob) -> Worker:
        started.append(next(iter(job.rewrite.sources[0].paths.values())).parent.name)
        return Hanging(job) if started[-1] == "t-0" else OnThread(job)

    compactor = compactor_of(topic, start, settings=lambda: settings)
    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(compactor.round)
            await until_async(lambda: compactor.statistics.compactions_count == 3)
            topics[1].put([(b"a", b"3")])
            topics[1].roll()
            topics[1].flush()
            await until_async(lambda: compactor.statistics.compactions_count == 4)
            topic.hosted.clock.advance(1_000)
            await until_async(lambda: compactor.silence_ms() == 0)
            Hanging.told.set()
    finally:
        Hanging.told.set()

    assert sorted(started) == ["t-0", "u-0", "u-0", "v-0", "w-0"]
    assert [offsets(each) for each in topics] == [[1, 2], [2], [1], [1]]
    assert compactor.statistics.compactions_count == 5


async def test_a_pass_on_a_thread_is_not_begun_anew_beside_itself(topic: CompactedTopic) -> None:
    class HangingOnThread(Hanging):
        ends_at_close = False

    started: list[Worker] = []
    settings = [attrs.evolve(SETTINGS, backoff_ms=0)]
    Hanging.told.clear()

    def start(job: CompactionJob) -> Worker:
        started.append(HangingOnThread(job))
        return started[-1]

    topic.flush()
    compactor = compactor_of(topic, start, settings=lambda: settings[0])
    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(compactor.round)
            await until_async(lambda: len(started) == 1)
            settings[0] = attrs.evolve(settings[0], io_max_bytes_per_second=1e299)
            compactor.settings_altered()
            await trio.testing.wait_all_tasks_blocked()
            Hanging.told.set()
    finally:
        Hanging.told.set()

    assert (len(started), compactor.statistics.compactions_count) == (1, 1)
    assert offsets(topic) == [1, 2]


async def test_settings_that_are_altered_during_a_pass_have_it_begun_anew(topic: CompactedTopic) -> None:
    jobs: list[CompactionJob] = []
    settings = [attrs.evolve(SETTINGS, backoff_ms=3_600_000)]
    Hanging.told.clear()

    def start(job: CompactionJob) -> Worker:
        jobs.append(job)
        return Hanging(job) if len(jobs) == 1 else OnThread(job)

    topic.flush()
    compactor = compactor_of(topic, start, settings=lambda: settings[0])
    try:
        async with trio.open_nursery() as nursery:
            await nursery.start(compactor.run)
            await trio.testing.wait_all_tasks_blocked()
            settings[0] = attrs.evolve(settings[0], backoff_ms=0)
            compactor.settings_altered()
            await until_async(lambda: len(jobs) == 1)
            compactor.settings_altered()  # of something else
            settings[0] = attrs.evolve(settings[0], io_max_bytes_per_second=1e299, backoff_ms=3_600_000)
            compactor.settings_altered()
            await until_async(lambda: compactor.statistics.compactions_count == 1)
            nursery.cancel_scope.cancel()
    finally:
        Hanging.told.set()

    assert [job.bytes_per_second for job in jobs] == [1e300, 1e299]
    assert offsets(topic) == [1, 2]


async def test_settings_that_are_altered_during_passes_on_threads_count_when_these_are_over(
    topic: CompactedTopic, tmp_path: Path
) -> None:
    """Which no other pass prolongs that would begin with the old ones."""

    class Gated(OnThread):
        def __init__(self, job: CompactionJob, gate: threading.Event) -> None:
            super().__init__(job)
            self._gate = gate

        def next_step(self) -> Step:
            assert self._gate.wait(60)
            return super().next_step()

    other = CompactedTopic(tmp_path, beside=topic, name="u")
    other.put([(b"a", b"1"), (b"a", b"2")])
    other.roll()
    for each in (topic, other):
        each.flush()
    settings = [attrs.evolve(SETTINGS, threads=2, backoff_ms=3_600_000)]
    gates = {"t-0": threading.Event(), "u-0": threading.Event()}
    begun: list[tuple[str, float]] = []

    def start(job: CompactionJob) -> Worker:
        name = next(iter(job.rewrite.sources[0].paths.values())).parent.name
        begun.append((name, job.bytes_per_second * max(settings[0].threads, 1)))
        return Gated(job, gates[name])

    compactor = compactor_of(topic, start, settings=lambda: settings[0])
    try:
        async with trio.open_nursery() as nursery:
            await nursery.start(compactor.run)
            settings[0] = attrs.evolve(settings[0], backoff_ms=0)
            compactor.settings_altered()
            await until_async(lambda: len(begun) == 2)
            settings[0] = attrs.evolve(settings[0], io_max_bytes_per_second=1e299)
            compactor.settings_altered()
            other.put([(b"a", b"3"), (b"a", b"4")])
            other.roll()
            other.flush()
            gates["u-0"].set()
            await until_async(lambda: compactor.statistics.compactions_count == 1)
            await trio.sleep(3 * PAUSE_S_MIN)
            gates["t-0"].set()
            await until_async(lambda: compactor.statistics.compactions_count == 3)
            nursery.cancel_scope.cancel()
    finally:
        for gate in gates.values():
            gate.set()

    assert sorted(begun[:2]) == [("t-0", 1e300), ("u-0", 1e300)]
    assert begun[2:] == [("u-0", 1e299)]


# ------------------------------------------------------------------------------- what else changes a log during a pass


class Interrupted(OnThread):
    """Something is done on the reactor's task before each of its steps is taken."""

    act: Callable[[], Awaitable[None]]

    def next_step(self) -> Step:
        step = super().next_step()
        trio.from_thread.run(self.act)
        return step


def test_retention_waits_for_a_pass_and_is_made_up_for_at_its_end(topic: CompactedTopic) -> None:
    """A pass opens segments by their names, and one that is gone would cost it all its work, again and again."""
    topic.configure(cleanup_policy=("compact", "delete"), retention_ms=500)
    topic.hosted.clock.advance(1_000)
    topic.put([(b"b", b"2"), (b"c", b"1")])
    topic.roll()
    topic.put([(b"c", b"2")])
    topic.let_segments_grow_to(100)  # each is made anew by itself
    retention, looks = retention_on(topic.hosted), []

    class Retained(Interrupted):
        @staticmethod
        async def act() -> None:
            await retention.clean()
            looks.append(topic.replica.log.segments()[0].base_offset)

    compactor = compactor_of(topic, Retained, after_pass=retention.after_pass)
    assert topic.compact(compactor)
    assert (looks, compactor.statistics.compactions_count) == ([0] * len(looks), 1)
    assert len(looks) > 1

    assert (topic.replica.log.log_start_offset, retention.deleted_segments) == (3, 1)
    assert offsets(topic) == [3, 4, 5]


def test_records_that_are_deleted_during_a_pass_leave_the_disk_at_its_end(topic: CompactedTopic) -> None:
    topic.put([(b"b", b"2"), (b"c", b"1")])
    topic.roll()
    topic.let_segments_grow_to(100)  # each is made anew by itself
    retention, looks = retention_on(topic.hosted), []

    class Deleted(Interrupted):
        @staticmethod
        async def act() -> None:
            replica = topic.replica
            replica.log.advance_log_start(3)
            topic.hosted.replicas.changed.note((replica,))
            await upkeep_of(topic.hosted)[0].give_up_segments()
            looks.append(replica.log.segments()[0].base_offset)

    compactor = compactor_of(topic, Deleted, after_pass=retention.after_pass)
    assert topic.compact(compactor)
    assert (looks, compactor.statistics.compactions_count) == ([0] * len(looks), 1)
    assert topic.replica.log.segments()[0].base_offset == 3


@pytest.mark.parametrize("is_failing", [False, True])
def test_a_tier_hears_of_a_pass_and_of_its_end(topic: CompactedTopic, is_failing: bool) -> None:
    """What leaves the local log or the store during a pass would cost it all its work, as with retention."""
    replica = topic.replica
    far = FarLog(replica.log, TierSettings(-1, -1, remote_log_copy_disable=False, cleanup=CleanupSettings()))
    replica.take_log(replica.log, cast("TieredLog", far))
    looks = []

    class Looks(OnThread):
        def next_step(self) -> Step:
            looks.append(far.is_read)
            if is_failing:
                raise OSError(5, "Input/output error")
            return super().next_step()

    compactor = compactor_of(topic, Looks)
    assert topic.compact(compactor)

    assert compactor.statistics.compactions_count == (not is_failing)
    assert (looks, far.is_read) == ([True] * len(looks), False)
    assert looks


def test_retention_that_was_left_to_a_pass_that_failed_is_made_up_for_too(topic: CompactedTopic) -> None:
    topic.configure(cleanup_policy=("compact", "delete"), retention_ms=500)
    topic.hosted.clock.advance(1_000)
    topic.put([(b"c", b"2")])
    retention = retention_on(topic.hosted)

    class Failed(OnThread):
        def next_step(self) -> Step:
            trio.from_thread.run(retention.clean)
            raise OSError(5, "Input/output error")

    assert topic.compact(compactor_of(topic, Failed, after_pass=retention.after_pass))
    assert topic.replica.log.log_start_offset == 3


async def test_retention_that_was_left_to_a_pass_that_was_cut_short_is_made_up_for_before_the_next_one(
    topic: CompactedTopic,
) -> None:
    topic.configure(cleanup_policy=("compact", "delete"), retention_ms=500)
    topic.hosted.clock.advance(1_000)
    topic.put([(b"c", b"1"), (b"c", b"2")])
    topic.roll()
    topic.flush()
    retention, starts = retention_on(topic.hosted), []
    settings = [attrs.evolve(SETTINGS, backoff_ms=0)]
    Hanging.told.clear()

    def start(job: CompactionJob) -> Worker:
        starts.append(topic.replica.log.log_start_offset)
        return Hanging(job) if len(starts) == 1 else OnThread(job)

    compactor = compactor_of(topic, start, settings=lambda: settings[0], after_pass=retention.after_pass)
    try:
        async with trio.open_nursery() as nursery:
            await nursery.start(compactor.run)
            await until_async(lambda: len(starts) == 1)
            await retention.clean()
            settings[0] = attrs.evolve(settings[0], io_max_bytes_per_second=1e299)
            compactor.settings_altered()
            await until_async(lambda: compactor.statistics.compactions_count == 1)
            nursery.cancel_scope.cancel()
    finally:
        Hanging.told.set()

    assert (starts, retention.deleted_segments) == ([0, 3], 1)
    assert offsets(topic) == [4]


async def test_a_pass_that_was_cut_short_is_nothing_to_a_topic_that_was_deleted(topic: CompactedTopic) -> None:
    settings, started, ended = [attrs.evolve(SETTINGS, backoff_ms=0)], [], []
    Hanging.told.clear()

    def start(job: CompactionJob) -> Worker:
        started.append(job)
        return Hanging(job)

    async def after_pass(replica: Replica, _settings: CleanupSettings) -> None:
        ended.append(replica)

    topic.flush()
    compactor = compactor_of(topic, start, settings=lambda: settings[0], after_pass=after_pass)
    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(compactor.round)
            await until_async(lambda: len(started) == 1)
            settings[0] = attrs.evolve(settings[0], io_max_bytes_per_second=1e299)
            compactor.settings_altered()
        run_at_once(topic.hosted.lifecycle.delete_topic_in_steps("t", 1))
        assert not await compactor.round()
    finally:
        Hanging.told.set()

    assert (len(started), ended) == (1, [])


def test_what_a_pass_made_of_a_log_that_was_truncated_meanwhile_is_given_up(topic: CompactedTopic) -> None:
    """Also where the segments begin where they did: what the leader did not have must not be back."""

    class Truncated(Interrupted):
        @staticmethod
        async def act() -> None:
            replica = topic.replica
            replica.log.truncate_to(0)
            replica.note_cut(0)
            topic.put([(b"a", b"another"), (b"b", b"another")])
            topic.roll()

    compactor = compactor_of(topic, Truncated)
    assert topic.compact(compactor)
    assert compactor.statistics.compactions_count == 0
    assert [(seen.offset, seen.value) for seen in topic.uncommitted()] == [(0, b"another"), (1, b"another")]


@pytest.mark.parametrize("offset", [3, 5])
def test_a_truncation_of_what_a_pass_does_not_read_leaves_it_its_work(topic: CompactedTopic, offset: int) -> None:
    """A follower that was a record ahead of the next leader has its active segment cut, at each failover."""
    topic.put([(b"a", b"3"), (b"c", b"1")])
    topic.put([(b"c", b"2")])

    class Truncated(Interrupted):
        @staticmethod
        async def act() -> None:
            topic.replica.log.truncate_to(offset)
            topic.replica.note_cut(offset)

    compactor = compactor_of(topic, Truncated)
    assert topic.compact(compactor)
    assert (compactor.statistics.compactions_count, topic.replica.log.clean_end) == (1, 3)
    assert offsets(topic) == [1, 2, 3, 4][: offset - 1]


def test_a_log_whose_move_is_under_way_is_not_compacted_and_one_that_waits_for_its_turn_is(
    topic: CompactedTopic,
) -> None:
    """Its segments are being copied: a new one would have all of them copied once more."""
    replica = topic.replica
    (other,) = [path for path in topic.hosted.dirs if path != replica.log.log_dir]
    begin_move(topic.hosted.replicas, replica, other, unlimited())
    assert replica.future is not None
    replica.future.is_under_way = True
    assert not topic.compact()
    replica.future.is_under_way = False
    assert topic.compact()
    assert offsets(topic) == [1, 2]


def test_a_compaction_during_which_a_move_gets_its_turn_is_given_up(topic: CompactedTopic) -> None:
    replica = topic.replica
    (other,) = [path for path in topic.hosted.dirs if path != replica.log.log_dir]
    begin_move(topic.hosted.replicas, replica, other, unlimited())
    assert replica.future is not None
    before = topic.batches()

    class Overtaken(OnThread):
        def next_step(self) -> Step:
            assert replica.future is not None
            replica.future.is_under_way = True
            return super().next_step()

    compactor = compactor_of(topic, Overtaken)
    assert topic.compact(compactor)
    assert (topic.batches(), compactor.statistics.compactions_count) == (before, 0)
    give_up(replica)
    topic.hosted.clock.advance(PAUSE_MS_MAX)
    assert topic.compact()
    assert offsets(topic) == [1, 2]
