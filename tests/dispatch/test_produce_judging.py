"""Where append stages are asked: on the reactor's task what is brief, on a worker thread what may be asked there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import attrs
import pytest

from odradek.kernel.contracts.api_handler import ConnectionInfo
from odradek.kernel.contracts.append_stage import AppendStage, Diverted
from odradek.kernel.delay.headers import DELIVER_AFTER
from odradek.kernel.dispatch.produce_judging import JudgedBatch, LongJudging
from odradek.kernel.errors import ErrorCode, KafkaError, PluginError
from odradek.kernel.records.batch import BatchHeader, read_header
from odradek.kernel.records.builder import BatchBuilder
from odradek.kernel.records.reader import read_batch
from tests.partitions.delayed_partition import DelayedPartition

VERSION = 9


class Elsewhere:
    """A stage that says of every batch that it takes long; it knows where it was asked."""

    def __init__(self) -> None:
        self.places: list[str] = []
        self.here = "reactor"

    def is_brief(self, batch: memoryview) -> bool:
        return False

    def accept(self, batch: memoryview) -> memoryview:
        self.places.append(self.here)
        return batch


class Plain:
    """A plugin's stage, which lets every batch pass."""

    def accept(self, batch: memoryview) -> memoryview:
        return batch


class Rebuilds:
    """A stage that makes a new batch of every batch; `like` begins it, and `records_count` of its records are kept."""

    def __init__(self, like: Callable[[BatchHeader], BatchBuilder], records_count: int) -> None:
        self.like = like
        self.records_count = records_count

    def accept(self, batch: memoryview) -> bytes:
        header = read_header(batch)
        builder = self.like(header)
        builder.extend(list(read_batch(batch, 0, header))[: self.records_count])
        return bytes(builder.build())


class Connection:
    """Whose memory is kept."""

    kept_bytes = 0

    def keep_memory(self, size_bytes: int) -> None:
        self.kept_bytes += size_bytes

    def let_memory_go(self, size_bytes: int) -> None:
        self.kept_bytes -= size_bytes


@pytest.fixture
def partition(tmp_path: Path) -> Iterator[DelayedPartition]:
    partition = DelayedPartition(tmp_path)
    yield partition
    partition.close()


def judged(partition: DelayedPartition, *stages: AppendStage, delayed: int = 0) -> JudgedBatch:
    partition.replica.stages = (*stages, *partition.replica.stages) if delayed else stages
    builder = BatchBuilder()
    builder.append(None, b"v", timestamp=partition.now_ms)
    for _ in range(delayed):
        builder.append(None, b"v", timestamp=partition.now_ms, headers=[(DELIVER_AFTER, b"9")])
    data = memoryview(builder.build())
    return JudgedBatch(partition.replica, data, read_header(data), VERSION)


def judge_long(partition: DelayedPartition, batch: JudgedBatch, stage: Elsewhere) -> int:
    """Have a batch judged as by a worker thread; return how often."""
    waiting: list[LongJudging] = []
    done: list[bool] = []
    connection = Connection()
    waiting.append(
        LongJudging(
            [batch],
            cast("ConnectionInfo", connection),
            partition.hosted.clock,
            waiting.append,
            lambda: done.append(True),
        )
    )
    times = 0
    while not done:
        work = waiting.pop()
        times += 1
        stage.here = "worker"
        work.run()
        stage.here = "reactor"
        work.finish(None)
    assert connection.kept_bytes == 0
    return times


def sent_by_a_producer(partition: DelayedPartition, *stages: AppendStage) -> JudgedBatch:
    """Return three records as an idempotent producer sends them, as yet not judged."""
    partition.replica.stages = stages
    builder = BatchBuilder(producer_id=9, producer_epoch=2, base_sequence=5)
    for number in range(3):
        builder.append(None, b"%d" % number, timestamp=partition.now_ms)
    data = memoryview(builder.build())
    return JudgedBatch(partition.replica, data, read_header(data), VERSION)


def without(**numbers: Any) -> Callable[[BatchHeader], BatchBuilder]:
    """Return what begins a batch like another, but for some of its producer's numbers."""
    return lambda header: attrs.evolve(BatchBuilder.like(header), **numbers)


@pytest.mark.parametrize(
    ("like", "records_count"),
    [
        pytest.param(BatchBuilder.like, 2, id="a record less"),
        pytest.param(lambda _header: BatchBuilder(), 3, id="no producer"),
        pytest.param(without(producer_id=8), 3, id="another producer"),
        pytest.param(without(producer_epoch=1), 3, id="another epoch"),
        pytest.param(without(base_sequence=6), 3, id="another sequence"),
        pytest.param(without(is_transactional=True), 3, id="in a transaction"),
    ],
)
@pytest.mark.parametrize("before", [0, 1])
def test_a_stage_whose_new_batch_is_not_its_producers_is_named(
    partition: DelayedPartition, like: Callable[[BatchHeader], BatchBuilder], records_count: int, before: int
) -> None:
    """The producer would be told OUT_OF_ORDER_SEQUENCE_NUMBER later, or what it sends again is appended twice."""
    well = Rebuilds(BatchBuilder.like, 3)
    batch = sent_by_a_producer(partition, *[well] * before, Rebuilds(like, records_count))

    batch.judge_briefly(partition.now_ms)

    assert batch.is_judged
    assert isinstance(batch.error, PluginError)
    assert "its append stage at" in str(batch.error)
    assert "`BatchBuilder.like`" in str(batch.error)


def test_a_new_batch_of_the_same_producer_is_appended(partition: DelayedPartition) -> None:
    batch = sent_by_a_producer(partition, *[Rebuilds(BatchBuilder.like, 3)] * 2)

    batch.judge_briefly(partition.now_ms)

    assert (batch.is_judged, batch.error) == (True, None)
    assert (batch.header.producer_id, batch.header.base_sequence, batch.header.records_count) == (9, 5, 3)


@pytest.mark.parametrize("before", range(3))
def test_a_stage_that_takes_long_is_asked_beside_the_reactor_wherever_it_stands(
    partition: DelayedPartition, before: int
) -> None:
    stage = Elsewhere()
    batch = judged(partition, *[Plain() for _ in range(before)], stage)

    times = judge_long(partition, batch, stage)

    assert (stage.places, batch.error) == (["worker"], None)
    assert times == min(before, 1) + 1


def test_a_stage_that_takes_long_is_not_asked_where_all_else_is_brief(partition: DelayedPartition) -> None:
    stage = Elsewhere()
    batch = judged(partition, Plain(), stage)

    assert batch.judge_briefly(partition.now_ms) is None
    assert stage.places == []
    assert judge_long(partition, batch, stage) == 1
    assert stage.places == ["worker"]


def test_what_waits_has_to_fit_into_a_segment(partition: DelayedPartition) -> None:
    """The batch itself does, but what holds its records has more bytes."""
    batch = judged(partition, delayed=20)
    rules = attrs.evolve(partition.replica.settings.rules, segment_bytes=len(batch.data) + 100)
    partition.replica.settings = attrs.evolve(partition.replica.settings, rules=rules)

    batch.judge_briefly(partition.now_ms)

    assert isinstance(batch.error, KafkaError)
    assert batch.error.code is ErrorCode.RECORD_LIST_TOO_LARGE
    fits = judged(partition, delayed=1)
    fits.judge_briefly(partition.now_ms)
    assert isinstance(fits.diverted, Diverted)
