"""Workers: a process does what a thread does, and whatever becomes of it, the log stays whole."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
import trio

from odradek.kernel.cleanup.compaction import CompactionJob, Step
from odradek.kernel.cleanup.compactor import DEATHS_MAX, Compactor, CompactorSettings
from odradek.kernel.cleanup.log_states import Policies
from odradek.kernel.cleanup.metrics import cleanup_metrics
from odradek.kernel.cleanup.retention import Retention, RetentionSettings
from odradek.kernel.cleanup.throttle import Throttle
from odradek.kernel.cleanup.workers import ProcessWorker, ThreadWorker, Worker, start_worker
from odradek.kernel.contracts.cleanup import CleanupPlan, CleanupPolicy, Compaction, LogState
from tests.cleanup.compacted import CompactedTopic


@pytest.fixture
def topic(tmp_path: Path) -> Iterator[CompactedTopic]:
    topic = CompactedTopic(tmp_path)
    topic.put([(b"a", b"1"), (b"a", b"2"), (b"b", b"1")])
    topic.roll()
    yield topic
    topic.hosted.replicas.close()


class KilledWorker(ProcessWorker):
    """Is killed before it gets its job."""

    def __init__(self, job: CompactionJob) -> None:
        super().__init__(job)
        os.kill(self._process.pid, signal.SIGKILL)


class FullDisk(ThreadWorker):
    """Finds no room."""

    def next_step(self) -> Step:
        raise OSError(28, "No space left on device")


class Unpicklable(CleanupPolicy):
    compacts = True

    def plan(self, log: LogState) -> CleanupPlan:
        return CleanupPlan(compaction=Compaction(0, 3, 1.0, lambda memory_bytes, records_max, load_factor: None))  # type: ignore[arg-type] # a policy's bug


def compactor_of(
    topic: CompactedTopic, start: type[Worker] | None = None, policies: Policies | None = None
) -> Compactor:
    made = topic.make_compactor()
    return Compactor(
        replicas=topic.hosted.replicas,
        policies=policies or made._policies,
        clock=topic.hosted.clock,
        settings=lambda: CompactorSettings(True, 1, 1 << 20, 0.9, 1 << 19, 1e300, 15_000),
        start_worker=start or start_worker,
    )


def offsets(topic: CompactedTopic) -> list[int]:
    return [seen.offset for seen in topic.uncommitted()]


def test_a_process_compacts(topic: CompactedTopic) -> None:
    assert topic.compact(compactor_of(topic))
    assert offsets(topic) == [1, 2]


def test_a_log_whose_workers_die_is_given_up_after_some_tries(topic: CompactedTopic) -> None:
    compactor = compactor_of(topic, KilledWorker)
    for _ in range(DEATHS_MAX):
        compactor._resting.clear()
        topic.compact(compactor)

    assert list(compactor.uncleanable.values()) == [f"{DEATHS_MAX} workers died of it"]
    assert compactor.statistics.deaths_count == DEATHS_MAX
    assert offsets(topic) == [0, 1, 2]


def test_a_full_disk_puts_compaction_off(topic: CompactedTopic) -> None:
    compactor = compactor_of(topic, FullDisk)
    topic.compact(compactor)

    assert not compactor.uncleanable
    assert not topic.compact(compactor)
    assert topic.compact(compactor_of(topic))
    assert offsets(topic) == [1, 2]


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
    compactor = compactor_of(topic, ThreadWorker)
    topic.compact(compactor)
    retention = Retention(
        replicas=topic.hosted.replicas,
        policies=Policies({}),
        clock=topic.hosted.clock,
        settings=lambda: RetentionSettings(1),
    )
    told = {metric.name: metric.read()[()] for _, metric in cleanup_metrics(retention, compactor)}

    assert told["odradek_cleaner_compactions_total"] == 1
    assert told["kafka_log_LogCleanerManager_uncleanable_partitions_count"] == 0
    assert told["kafka_log_LogCleanerManager_max_dirty_percent"] == 100


def test_the_throttle_sleeps_until_the_rate_is_kept() -> None:
    now = [0.0]
    slept: list[float] = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        now[0] += seconds

    throttle = Throttle(1_000, lambda: now[0], sleep)
    for _ in range(20):
        throttle.note(50)

    assert sum(slept) == pytest.approx(1.0)
