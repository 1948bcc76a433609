"""Long polls beside a naive model: answered exactly when there is enough to read, or time is over, with just that."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import attrs
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from odradek.kernel.contracts.transactions import Admission
from odradek.kernel.errors import ErrorCode
from odradek.kernel.records.batch import read_header
from odradek.kernel.types import TopicPartition
from odradek.kernel.wire.messages.api_01_fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from odradek.kernel.wire.messages.api_27_write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)

from .house import House, batch, produce_parts, produce_request
from .memory_client import MemoryClient

PARTITIONS = 3
READERS = 3
PRODUCER_ID = 5
VERSION = 12
WAITS_MS = (0, 100, 500)
READ_COMMITTED = 1


@attrs.define
class Log:
    """What a partition should hold: base offset, next offset and size of each batch."""

    batches: list[tuple[int, int, int]] = attrs.field(factory=list)
    open_from: int | None = None
    sequence: int = 0

    @property
    def end(self) -> int:
        return self.batches[-1][1] if self.batches else 0

    def add(self, count: int, size_bytes: int) -> None:
        self.batches.append((self.end, self.end + count, size_bytes))

    def visible(self, offset: int, isolation: int) -> list[tuple[int, int, int]]:
        """Return the batches that a read from `offset` gives."""
        end = self.end if isolation != READ_COMMITTED or self.open_from is None else self.open_from
        return [each for each in self.batches if each[1] > offset and each[1] <= end]


@attrs.define
class Reader:
    """A consumer: where it is in each partition it reads, and the poll that it waits for."""

    client: MemoryClient
    offsets: dict[int, int] = attrs.field(factory=dict)
    told: dict[int, int] = attrs.field(factory=dict)
    session_id: int = 0
    epoch: int = 0
    isolation: int = 0
    min_bytes: int = 1
    deadline_ms: int | None = None


class Agreeing:
    """A coordinator of transactions that lets every partition take part."""

    def admit(self, admission: Admission, done: Callable[[Mapping[TopicPartition, ErrorCode]], None]) -> None:
        done(dict.fromkeys(admission.partitions, ErrorCode.NONE))

    def init_producer_id(self, request: object, context: object) -> Any:
        raise AssertionError("nobody asks")


class Polls(RuleBasedStateMachine):
    """Producers, transactions and readers with and without sessions; after each step every poll is looked at."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory(prefix="odradek-test-")
        self.house = House(Path(self.folder.name), Agreeing())
        self.house.hosted.open("t", PARTITIONS)
        self.logs = [Log() for _ in range(PARTITIONS)]
        self.readers = [Reader(MemoryClient(self.house.router)) for _ in range(READERS)]

    def teardown(self) -> None:
        self.house.hosted.lifecycle.close()
        self.folder.cleanup()

    # -- what changes logs ---------------------------------------------------------------------------------------------

    @rule(partition=st.integers(0, PARTITIONS - 1), count=st.integers(1, 3), value_bytes=st.sampled_from([1, 500]))
    def append(self, partition: int, count: int, value_bytes: int) -> None:
        records = batch(*[bytes(value_bytes)] * count)
        (part,) = produce_parts(self.house.client.ask(produce_request((partition, records)), VERSION))
        assert part.base_offset == self.logs[partition].end
        self.logs[partition].add(count, len(records))

    @rule(counts=st.lists(st.integers(0, 2), min_size=PARTITIONS, max_size=PARTITIONS))
    def append_to_several(self, counts: list[int]) -> None:
        parts = [(index, batch(*[b"v"] * count)) for index, count in enumerate(counts) if count]
        if parts:
            self.house.client.ask(produce_request(*parts), VERSION)
        for index, records in parts:
            self.logs[index].add(counts[index], len(records))

    @rule(partition=st.integers(0, PARTITIONS - 1))
    def append_in_a_transaction(self, partition: int) -> None:
        log = self.logs[partition]
        records = batch(
            b"t", producer_id=PRODUCER_ID, producer_epoch=0, base_sequence=log.sequence, is_transactional=True
        )
        request = produce_request((partition, records))
        request.transactional_id = "x"
        (part,) = produce_parts(self.house.client.ask(request, VERSION))
        assert part.error_code == 0
        log.sequence += 1
        if log.open_from is None:
            log.open_from = log.end
        log.add(1, len(records))

    @rule(partition=st.integers(0, PARTITIONS - 1), is_commit=st.booleans())
    def end_the_transaction(self, partition: int, is_commit: bool) -> None:
        marker = WritableTxnMarker(
            producer_id=PRODUCER_ID,
            producer_epoch=0,
            transaction_result=is_commit,
            topics=[WritableTxnMarkerTopic(name="t", partition_indexes=[partition])],
        )
        self.house.client.ask(WriteTxnMarkersRequest(markers=[marker]), 1)
        log = self.logs[partition]
        read = self.house.hosted.replicas.get("t", partition).log.read(log.end, 1 << 20, log.end + 1, at_least_one=True)
        log.add(1, read.size_bytes)
        log.open_from = None

    # -- readers -------------------------------------------------------------------------------------------------------

    @rule(
        number=st.integers(0, READERS - 1),
        partitions=st.sets(st.integers(0, PARTITIONS - 1), min_size=1),
        has_session=st.booleans(),
        isolation=st.integers(0, READ_COMMITTED),
        min_bytes=st.sampled_from([0, 1, 150, 700]),
        wait_ms=st.sampled_from(WAITS_MS),
    )
    def poll(
        self, number: int, partitions: set[int], has_session: bool, isolation: int, min_bytes: int, wait_ms: int
    ) -> None:
        reader = self.readers[number]
        if reader.deadline_ms is not None:
            return
        changed = {index: reader.offsets.get(index, 0) for index in partitions}
        if reader.session_id:
            # The session knows the others, where they were; what was read meanwhile is told.
            changed |= {index: offset for index, offset in reader.offsets.items() if offset != reader.told[index]}
        else:
            reader.offsets = {}
            reader.isolation = isolation
        reader.offsets |= changed
        reader.told |= changed
        reader.min_bytes = min_bytes
        reader.deadline_ms = self.house.clock.monotonic_ms() + wait_ms
        wanted = [
            FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=1 << 20)
            for index, offset in sorted(changed.items())
        ]
        request = FetchRequest(
            max_wait_ms=wait_ms,
            min_bytes=min_bytes,
            isolation_level=reader.isolation,
            session_id=reader.session_id,
            session_epoch=reader.epoch if reader.session_id or has_session else -1,
            topics=[FetchTopic(topic="t", partitions=wanted)],
        )
        reader.client.send(request, VERSION)
        reader.client.turn()

    @rule(number=st.integers(0, READERS - 1))
    def leave(self, number: int) -> None:
        self.readers[number].client.leave()
        self.readers[number] = Reader(MemoryClient(self.house.router))

    @rule(duration_ms=st.sampled_from([1, 100, 400]))
    def pass_time(self, duration_ms: int) -> None:
        self.house.pass_time(duration_ms)

    # -- what must hold ------------------------------------------------------------------------------------------------

    @invariant()
    def every_poll_is_answered_exactly_when_it_should_be(self) -> None:
        now_ms = self.house.clock.monotonic_ms()
        for number, reader in enumerate(self.readers):
            answers = reader.client.received()
            if reader.deadline_ms is None:
                assert not answers
                continue
            there = {index: self.logs[index].visible(at, reader.isolation) for index, at in reader.offsets.items()}
            size_bytes = sum(size for batches in there.values() for *_, size in batches)
            is_due = size_bytes >= reader.min_bytes or now_ms >= reader.deadline_ms
            assert is_due == bool(answers), f"reader {number} has {size_bytes} of {reader.min_bytes} bytes"
            if answers:
                (answer,) = answers
                assert isinstance(answer, FetchResponse)
                self.check_answer(reader, answer, there)

    def check_answer(self, reader: Reader, answer: FetchResponse, there: dict[int, list[tuple[int, int, int]]]) -> None:
        assert answer.error_code == 0
        parts = {part.partition_index: part for topic in answer.responses for part in topic.partitions}
        for index, batches in there.items():
            if index not in parts:
                assert reader.session_id, "only who has a session may be spared what is not new"
                assert not batches
                continue
            part = parts[index]
            log = self.logs[index]
            assert (part.error_code, part.high_watermark) == (0, log.end)
            assert part.last_stable_offset == (log.end if log.open_from is None else log.open_from)
            assert type(part.records) is memoryview
            assert [size for *_, size in batches] == sizes(part.records)
            if batches:
                reader.offsets[index] = batches[-1][1]
        reader.deadline_ms = None
        if answer.session_id:
            assert reader.session_id in (0, answer.session_id)
            reader.session_id = answer.session_id
            reader.epoch += 1


def sizes(records: memoryview) -> list[int]:
    """Return the sizes of the batches in these bytes."""
    found = []
    while records:
        found.append(read_header(records).length_bytes)
        records = records[found[-1] :]
    return found


TestPolls = Polls.TestCase
TestPolls.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
