"""A plugin that fails while it runs, where a topic's name, or a file, tells it to."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

import trio

from odradek.kernel.api import (
    AppendStage,
    AppendStageFactory,
    BrokerHandle,
    CleanupPlan,
    CleanupPolicy,
    LogConfig,
    LogState,
    Metric,
    RetryPolicy,
    RetryPolicyFactory,
    SegmentRewrite,
    Service,
    StorageContext,
    StorageError,
    StorageFactory,
    TopicIdPartition,
    hookimpl,
)
from odradek.storage_base import EngineBase, LogBase, LogSegment, StoredBatch, Work

BLOCKS_S = 2.5


class GuiltyLog(LogBase[LogSegment]):
    """A log in memory that fails in the method that its topic is named after."""

    def __init__(self, partition: TopicIdPartition, config: LogConfig) -> None:
        self.fault = partition.topic.partition(".")[2]
        self.kept: dict[int, list[StoredBatch]] = {}
        if self.fault == "open":
            self.fail()
        super().__init__(partition, config, now_ms=lambda: 0)

    def fail(self) -> None:
        raise RuntimeError(f"the stranger's bug in {self.fault}")

    def new_segment(self, base_offset: int) -> LogSegment:
        return LogSegment(base_offset, 0)

    def append(self, batches: Any, base_offset: int, last_offset: int, max_timestamp: int) -> None:
        if self.fault == "append":
            self.fail()
        if self.fault == "block":
            time.sleep(BLOCKS_S)
        super().append(batches, base_offset, last_offset, max_timestamp)

    def write_batches(self, batches: Sequence[tuple[LogSegment, StoredBatch]]) -> None:
        if self.fault == "write":
            self.fail()
        for segment, batch in batches:
            self.kept.setdefault(segment.base_offset, []).append(batch._replace(data=bytes(batch.data)))

    def stored(self, segment: LogSegment, offset: int) -> Iterator[StoredBatch]:
        if self.fault == "read":
            self.fail()
        return iter([batch for batch in self.kept.get(segment.base_offset, ()) if batch.last_offset >= offset])

    def batch_for_timestamp(self, timestamp: int, start_offset: int) -> bytes | None:
        if self.fault == "time":
            self.fail()
        return super().batch_for_timestamp(timestamp, start_offset)

    def sync(self) -> None:
        if self.fault == "flush":
            self.fail()

    def cut_segment(self, segment: LogSegment, offset: int) -> None:
        return

    def drop_segments(self, segments: Sequence[LogSegment]) -> None:
        return

    def rewrite_of(self, segments: Sequence[tuple[LogSegment, int]]) -> SegmentRewrite:
        raise StorageError("these logs are not compacted")

    def take_rewritten(self, base_offset: int) -> tuple[LogSegment, Mapping[str, bytes]]:
        raise StorageError("these logs are not compacted")

    def sidecar_places(self) -> list[tuple[str, int]]:
        return []

    def read_sidecar(self, offset: int, kind: str) -> bytes:
        raise StorageError("there are none")

    def put_sidecar(self, offset: int, kind: str, data: bytes | None) -> None:
        return


class GuiltyEngine(EngineBase[GuiltyLog]):
    """An engine of such logs."""

    def open(self, partition: TopicIdPartition, config: LogConfig) -> GuiltyLog:
        if partition.topic == "guilty.half":
            return cast("GuiltyLog", object())
        return GuiltyLog(partition, config)

    def forget(self, partition: TopicIdPartition) -> None:
        return

    def begin_checkpoint(self, high_watermarks: Mapping[TopicIdPartition, int]) -> Work:
        return Work()

    def high_watermarks(self) -> Mapping[TopicIdPartition, int]:
        return {}


class GuiltyPolicy(CleanupPolicy):
    """A policy with a bug."""

    def plan(self, log: LogState) -> CleanupPlan:
        if log.partition.topic == "no_plan":
            return cast("CleanupPlan", None)
        raise RuntimeError("the stranger's bug in plan")


class GuiltyStage:
    """A stage with a bug."""

    def accept(self, batch: memoryview) -> memoryview:
        raise RuntimeError("the stranger's bug in accept")


class GivesText:
    """A stage that gives what is no batch."""

    def accept(self, batch: memoryview) -> bytes:
        return b"no batch"


def make_stage(partition: TopicIdPartition, settings: Mapping[str, object]) -> AppendStage | None:
    match partition.topic.partition(".")[0]:
        case "stage":
            return GuiltyStage()
        case "no_batch":
            return GivesText()
        case "no_stage":
            raise RuntimeError("the stranger's bug in a factory")
        case "half_a_stage":
            return cast("AppendStage", object())
        case _:
            return None


class GuiltyRetryPolicy:
    """A retry policy with a bug."""

    def delay_ms(self, attempt: int, drawn: float) -> int | None:
        raise RuntimeError("the stranger's bug in delay_ms")


def make_retry_policy(settings: Mapping[str, object]) -> RetryPolicy:
    return GuiltyRetryPolicy()


def make_no_retry_policy(settings: Mapping[str, object]) -> RetryPolicy:
    raise RuntimeError("the stranger's bug in a factory")


def make_half_a_retry_policy(settings: Mapping[str, object]) -> RetryPolicy:
    return cast("RetryPolicy", object())


async def crash_once(*, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
    global crashes
    task_status.started()
    crashes += 1
    if crashes == 1:
        raise RuntimeError("the stranger's bug in a service")
    await trio.sleep_forever()


crashes = 0


@hookimpl
def odradek_storages() -> Mapping[str, StorageFactory]:
    return {"guilty": make_engine}


def make_engine(context: StorageContext) -> GuiltyEngine:
    return GuiltyEngine(context)


@hookimpl
def odradek_cleanup_policies() -> Mapping[str, CleanupPolicy]:
    return {"guilty": GuiltyPolicy()}


@hookimpl
def odradek_append_stages() -> Mapping[str, AppendStageFactory]:
    return {"guilty": make_stage}


@hookimpl
def odradek_retry_policies() -> Mapping[str, RetryPolicyFactory]:
    return {"guilty": make_retry_policy, "none": make_no_retry_policy, "half": make_half_a_retry_policy}


@hookimpl
def odradek_services(broker: BrokerHandle) -> Sequence[Service]:
    return [Service("guilty service", crash_once)]


@hookimpl
def odradek_leader_changed(partition: TopicIdPartition) -> None:
    if partition.topic == "listener":
        raise RuntimeError("the stranger's bug in a notification")


@hookimpl
def odradek_metrics(broker: BrokerHandle) -> Sequence[Metric]:
    return []
