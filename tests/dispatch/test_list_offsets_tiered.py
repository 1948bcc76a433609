"""ListOffsets over a log whose beginning lies in a remote store.

The offsets of the first test were answered by Apache Kafka 4.3.1 with a remote storage in a folder, for six batches of
two records, a segment each, 2026-11-21.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import trio
import trio.testing

from odradek.kernel.contracts.api_handler import AS_TASK, RequestContext
from odradek.kernel.contracts.cleanup import CleanupSettings
from odradek.kernel.contracts.disk_work import DiskWork
from odradek.kernel.contracts.storage import PartitionLog
from odradek.kernel.contracts.tiering import RecordsAreRemoteError, TieredLog, TierSettings
from odradek.kernel.dispatch.handlers.api_02_list_offsets import LOOKUPS_TOGETHER, ListOffsetsHandler
from odradek.kernel.errors import ErrorCode, StorageError
from odradek.kernel.machine.system.threads import SystemThreads
from odradek.kernel.wire.messages.api_02_list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from odradek.testing.far_tier import FarLog, FarTier
from tests.partitions.hosted import Hosted
from tests.waiting_aside import wait_here

CONTEXT = cast("RequestContext", SimpleNamespace(api_version=11, wait_aside=wait_here))
TIERED = TierSettings(-1, -1, remote_log_copy_disable=False, cleanup=CleanupSettings())
NONE = (0, -1, -1)


def fail() -> None:
    raise OSError("the store is away")


class Setup:
    def __init__(self, directory: Path) -> None:
        self.tier = FarTier()
        self.hosted = Hosted(directory, tier=self.tier)
        self.hosted.open("t", tier=TIERED)
        self.handler = ListOffsetsHandler(
            replicas=self.hosted.replicas, cold_timeout_ms=lambda: 30_000, threads=SystemThreads()
        )
        self.begin_ms = self.hosted.clock.now_ms()

    @property
    def log(self) -> FarLog:
        (log,) = self.tier.logs.values()
        return log

    def fill(self) -> None:
        """Write six segments of two records, a second apart; all but the last are far, and nowhere else."""
        for sequence in range(0, 12, 2):
            self.hosted.produce("t", sequence, 2).log.roll()
            self.hosted.clock.advance(1_000)
        self.log.send(10)

    def request(self, timestamp: int, timeout_ms: int = 0) -> ListOffsetsRequest:
        part = ListOffsetsPartition(partition_index=0, timestamp=timestamp, current_leader_epoch=-1)
        return ListOffsetsRequest(topics=[ListOffsetsTopic(name="t", partitions=[part])], timeout_ms=timeout_ms)

    def ask(self, timestamp: int, timeout_ms: int = 0) -> tuple[int, int, int]:
        request = self.request(timestamp, timeout_ms)
        answer: Any = self.handler.handle(request, CONTEXT)
        if answer is AS_TASK:
            answer = trio.run(self.handler.handle_async, request, CONTEXT)
        part = answer.topics[0].partitions[0]
        return part.error_code, part.offset, part.leader_epoch


@pytest.fixture
def setup(tmp_path: Path) -> Iterator[Setup]:
    setup = Setup(tmp_path)
    yield setup
    setup.hosted.lifecycle.close()


def test_special_offsets_are_those_of_kafka(setup: Setup) -> None:
    assert [setup.ask(timestamp) for timestamp in (-2, -4, -5, -6)] == [(0, 0, 0), (0, 0, 0), NONE, NONE]

    setup.fill()
    setup.log.border = 0  # nothing was sent yet
    assert [setup.ask(timestamp) for timestamp in (-2, -4, -5, -6)] == [(0, 0, 0), (0, 0, 0), NONE, (0, 0, 0)]

    setup.log.border = 10
    assert [setup.ask(timestamp) for timestamp in (-1, -2, -3, -4, -5, -6)] == [
        (0, 12, 0),
        (0, 0, 0),
        (0, 10, 0),
        (0, 10, 0),
        (0, 9, 0),
        (0, 10, 0),
    ]

    setup.log.advance_log_start(3)
    assert [setup.ask(timestamp) for timestamp in (-2, -4, -5, -6)] == [(0, 3, 0), (0, 10, 0), (0, 9, 0), (0, 10, 0)]

    setup.log.advance_log_start(12)
    assert [setup.ask(timestamp) for timestamp in (-2, -4, -6)] == [(0, 12, 0), (0, 12, 0), NONE]


def test_a_time_in_the_far_part_is_looked_for_by_a_thread(setup: Setup) -> None:
    setup.fill()
    wanted = setup.begin_ms + 1_000

    assert setup.handler.handle(setup.request(wanted), CONTEXT) is AS_TASK
    assert setup.ask(wanted) == (0, 2, 0)


def test_the_largest_time_is_asked_of_the_local_log_alone(setup: Setup) -> None:
    setup.fill()
    setup.log.look_up = fail

    assert setup.ask(-3) == (0, 10, 0)


def test_a_store_that_is_away_is_a_retriable_error_of_times_in_the_far_part(setup: Setup) -> None:
    setup.fill()
    setup.log.look_up = fail

    assert setup.ask(setup.begin_ms) == (ErrorCode.KAFKA_STORAGE_ERROR, -1, -1)
    assert setup.ask(setup.begin_ms + 5_000) == (0, 10, 0)


@pytest.mark.parametrize(("timeout_ms", "expected_s"), [(0, 30.0), (5_000, 5.0)])
def test_a_store_that_does_not_answer_costs_the_time_that_the_request_allows(
    setup: Setup, timeout_ms: int, expected_s: float
) -> None:
    setup.fill()
    is_over = threading.Event()
    setup.log.look_up = is_over.wait

    async def ask() -> tuple[int, float]:
        begun_s = trio.current_time()
        answer: Any = await setup.handler.handle_async(setup.request(setup.begin_ms, timeout_ms), CONTEXT)
        is_over.set()
        return answer.topics[0].partitions[0].error_code, trio.current_time() - begun_s

    code, duration_s = trio.run(ask, clock=trio.testing.MockClock(autojump_threshold=0.05))

    assert code == ErrorCode.REQUEST_TIMED_OUT
    assert duration_s == pytest.approx(expected_s)


class ForgetfulLog(FarLog):
    """One of many logs that together remember the last answers of the store, as those of a broker do."""

    remembered: OrderedDict[tuple[int, int], None]
    looked_up: list[int]
    at_once: list[int]

    def begin_time_lookup(self, timestamp: int) -> DiskWork | None:
        """See `PartitionLog.begin_time_lookup`."""
        if (self.partition.partition, timestamp) in self.remembered:
            return None
        return cast("DiskWork", SimpleNamespace(run=self._ask_store, finish=lambda error: self._remember(timestamp)))

    def _ask_store(self) -> None:
        self.at_once.append(1)
        time.sleep(0.001)
        self.at_once.append(-1)

    def _remember(self, timestamp: int) -> None:
        self.looked_up.append(self.partition.partition)
        self.remembered[self.partition.partition, timestamp] = None
        if len(self.remembered) > 64:
            self.remembered.popitem(last=False)

    def batch_for_timestamp(self, timestamp: int, start_offset: int) -> bytes | None:
        """See `PartitionLog.batch_for_timestamp`."""
        if (self.partition.partition, timestamp) not in self.remembered:
            raise RecordsAreRemoteError
        return self.inner.batch_for_timestamp(timestamp, start_offset)


class ForgetfulTier(FarTier):
    """Remembers the last 64 answers of its store, whoever asked."""

    def __init__(self) -> None:
        super().__init__()
        self.remembered: OrderedDict[tuple[int, int], None] = OrderedDict()
        self.looked_up: list[int] = []
        self.at_once: list[int] = []

    def wrap(self, partition_log: PartitionLog, settings: TierSettings, *, is_new: bool = False) -> TieredLog:
        """See `Tier.wrap`."""
        log = self.logs[partition_log.partition] = ForgetfulLog(partition_log, settings)
        log.remembered, log.looked_up, log.at_once = self.remembered, self.looked_up, self.at_once
        return cast("TieredLog", log)


def test_of_more_partitions_than_the_tier_remembers_each_is_looked_up_once_and_answered(tmp_path: Path) -> None:
    count = 100
    tier = ForgetfulTier()
    hosted = Hosted(tmp_path, tier=tier)
    hosted.open("t", count, tier=TIERED)
    for index in range(count):
        hosted.produce("t", 0, 2, partition=index)
    handler = ListOffsetsHandler(replicas=hosted.replicas, cold_timeout_ms=lambda: 30_000, threads=SystemThreads())
    parts = [
        ListOffsetsPartition(partition_index=index, timestamp=hosted.clock.now_ms(), current_leader_epoch=-1)
        for index in range(count)
    ]
    request = ListOffsetsRequest(topics=[ListOffsetsTopic(name="t", partitions=parts)])

    answer: Any = trio.run(handler.handle_async, request, CONTEXT)

    answered = [(part.error_code, part.offset) for part in answer.topics[0].partitions]
    assert answered == [(ErrorCode.NONE, 0)] * count
    assert sorted(tier.looked_up) == list(range(count))
    assert 1 < max(accumulate(tier.at_once)) <= LOOKUPS_TOGETHER
    hosted.lifecycle.close()


def test_what_is_wrong_with_one_log_is_told_of_its_partition_alone(setup: Setup) -> None:
    setup.fill()

    def fails(timestamp: int) -> None:
        raise StorageError("the disk failed")

    setup.log.begin_time_lookup = fails  # type: ignore[method-assign] # as a log that went offline
    request = setup.request(setup.begin_ms)
    setup.hosted.open("u")
    setup.hosted.produce("u", 0)
    part = ListOffsetsPartition(partition_index=0, timestamp=0, current_leader_epoch=-1)
    request.topics.append(ListOffsetsTopic(name="u", partitions=[part]))

    answer: Any = trio.run(setup.handler.handle_async, request, CONTEXT)

    codes = {topic.name: topic.partitions[0].error_code for topic in answer.topics}
    assert codes == {"t": ErrorCode.KAFKA_STORAGE_ERROR, "u": ErrorCode.NONE}
