"""The accumulator against a naive model: order, memory, limits."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from odradek.client.accumulator import Accumulator, ProducerBatch, record_size
from odradek.kernel.records.batch import read_header
from odradek.kernel.records.compression import CompressionType
from odradek.kernel.records.reader import read_records
from odradek.kernel.types import TopicPartition

PARTITIONS = [TopicPartition("t", number) for number in range(3)]
BATCH_BYTES = 300
MEMORY_BYTES = 3_000
LINGER_MS = 10


def everything(batch: ProducerBatch) -> bool:
    return bool(batch.partition)


class AccumulatorMachine(RuleBasedStateMachine):
    """Batches drained, sent again, split and released in any order: no record is lost, doubled or overtaken."""

    def __init__(self) -> None:
        super().__init__()
        self.accumulator = Accumulator(BATCH_BYTES, LINGER_MS, MEMORY_BYTES, CompressionType.NONE)
        self.now_ms = 1_000
        self.next_value = 0
        self.waiting: dict[TopicPartition, list[int]] = {partition: [] for partition in PARTITIONS}
        self.out: list[ProducerBatch] = []

    @staticmethod
    def values(batch: ProducerBatch) -> list[int]:
        return [int(record.value or b"") for record in read_records(batch.encode())]

    @rule(partition=st.sampled_from(PARTITIONS), padding=st.integers(0, 400))
    def append(self, partition: TopicPartition, padding: int) -> None:
        value = str(self.next_value).encode()
        headers = [("pad", b"x" * padding)]
        before = self.accumulator.used_bytes
        size_bytes = record_size(None, value, headers)
        appended = self.accumulator.append(partition, None, value, headers, self.now_ms, self.now_ms, size_bytes)
        if appended is None:
            assert before + size_bytes + 61 > MEMORY_BYTES
            assert before == self.accumulator.used_bytes
            return
        batch, index = appended
        assert index == batch.records_count - 1
        assert batch.records_count == 1 or batch.reserved_bytes <= BATCH_BYTES
        self.waiting[partition].append(self.next_value)
        self.next_value += 1

    @rule(duration_ms=st.integers(1, 20))
    def pass_time(self, duration_ms: int) -> None:
        self.now_ms += duration_ms

    @rule(flushing=st.booleans())
    def drain(self, flushing: bool) -> None:
        self.accumulator.is_flushing = flushing
        ready = self.accumulator.ready(self.now_ms, lambda _: 1)
        partitions = ready.nodes.get(1, [])
        for batch in self.accumulator.drain(partitions, 10**6, everything):
            values = self.values(batch)
            assert values == self.waiting[batch.partition][: len(values)], "the oldest records leave first"
            del self.waiting[batch.partition][: len(values)]
            self.out.append(batch)
        assert ready.next_ms > self.now_ms

    @precondition(lambda self: self.out)
    @rule(data=st.data())
    def send_again(self, data: st.DataObject) -> None:
        batch = self.out.pop(data.draw(st.integers(0, len(self.out) - 1)))
        self.accumulator.requeue(batch, self.now_ms + data.draw(st.integers(0, 5)))
        self.waiting[batch.partition] = sorted(self.waiting[batch.partition] + self.values(batch))

    @precondition(lambda self: any(batch.records_count > 1 for batch in self.out))
    @rule()
    def split(self) -> None:
        batch = next(batch for batch in self.out if batch.records_count > 1)
        self.out.remove(batch)
        values = self.values(batch)
        parts = self.accumulator.split(batch)
        assert values == [value for part in parts for value in self.values(part)]
        for index, value in enumerate(values):
            found, place = batch.find(index)
            assert value == self.values(found)[place]
        self.waiting[batch.partition] = sorted(self.waiting[batch.partition] + values)

    @precondition(lambda self: self.out)
    @rule(data=st.data())
    def acknowledge(self, data: st.DataObject) -> None:
        batch = self.out.pop(data.draw(st.integers(0, len(self.out) - 1)))
        self.accumulator.release(batch)
        batch.finish()

    @invariant()
    def memory_is_what_unfinished_batches_take(self) -> None:
        unfinished = self.accumulator.unfinished
        assert self.accumulator.used_bytes == sum(batch.reserved_bytes for batch in unfinished)
        for batch in unfinished:
            assert not batch.is_closed or read_header(batch.encode()).length_bytes <= batch.reserved_bytes


TestAccumulator = AccumulatorMachine.TestCase
TestAccumulator.settings = settings(max_examples=40, stateful_step_count=40, deadline=None)
