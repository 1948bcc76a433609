"""What was carried forward counts once, whatever the log's start is; and what is appended to carry it."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.kernel.contracts.delay_queue import WaitingRecord
from odradek.kernel.delay import carrying
from odradek.kernel.delay.carrying import carry
from odradek.kernel.delay.companion import (
    Companion,
    CompanionReader,
    WaitingEntry,
    build_companion,
    read_companion,
)
from odradek.kernel.delay.ledger import DelayLedger
from odradek.kernel.records.batch import CorruptRecordsError, assign_offset_and_epoch, read_header
from odradek.kernel.records.compression import CompressionType, compress
from odradek.kernel.records.record import encode_record
from odradek.plugins.delay_wheel.factory import WheelFactory

TIME = 1_700_000_000_000
EPOCH = 3


def new_ledger() -> DelayLedger:
    return DelayLedger(WheelFactory(), on_due=lambda due_ms: None, on_unreadable=lambda offset, error: None)


def settled(dues: Sequence[int], codec: CompressionType = CompressionType.NONE) -> Companion:
    """Return a companion that counts alone; the records have the values 0, 1, and so on."""
    entries = tuple(WaitingEntry(due_ms, number) for number, due_ms in enumerate(dues))
    payload = b"".join(encode_record(number, number, None, b"%d" % number) for number in range(len(dues)))
    return Companion(entries, compress(codec, payload), codec=codec, base_timestamp=TIME)


class Log:
    """Companions, each with an offset of its own choice, told to a ledger."""

    def __init__(self) -> None:
        self.ledger = new_ledger()
        self.batches: dict[int, bytes] = {}

    def append(self, offset: int, companion: Companion | bytearray) -> Companion:
        batch = bytearray(companion if isinstance(companion, bytearray) else build_companion(companion, timestamp=TIME))
        assign_offset_and_epoch(batch, read_header(batch), offset, EPOCH)
        self.batches[offset] = bytes(batch)
        self.ledger.saw(batch, read_header(batch))
        read = read_companion(batch, read_header(batch))
        assert read is not None

        return read

    def carry(self, offset: int, to: int) -> Companion:
        batch = self.batches[offset]
        companion = read_companion(batch, read_header(batch))
        assert companion is not None
        (carried,) = carry(offset, companion, self.ledger.waiting_of(offset, companion), TIME)

        return self.append(to, carried)

    def deliver(self, offset: int, due_ms: int, origin: int) -> None:
        self.append(offset, Companion((WaitingEntry(due_ms, origin, EPOCH),), b"", is_delivery=True))

    def from_start(self, start: int) -> DelayLedger:
        """Return the ledger of a replica whose log starts there."""
        ledger = new_ledger()
        ledger.start_advanced(start)
        for offset, batch in self.batches.items():
            if offset >= start:
                ledger.saw(batch, read_header(batch))
        return ledger


def waiting(ledger: DelayLedger) -> list[WaitingRecord]:
    """Return all that waits, in order; none is taken out."""
    while not ledger.queue.prepare(2**62):
        pass
    return list(ledger.queue.due(2**62, 1_000))


def test_what_is_carried_is_the_records_as_they_stood() -> None:
    companion = settled([10, 20, 30], CompressionType.GZIP)
    placed = [entry._replace(origin=101 + entry.origin, leader_epoch=EPOCH) for entry in companion.entries]
    log = Log()
    log.append(100, companion)

    carried = log.carry(100, 500)

    assert (carried.entries, carried.carried_from, carried.codec) == (tuple(placed), 100, CompressionType.GZIP)
    assert [(entry.due_ms, record.offset, record.value, record.timestamp) for entry, record in carried.records()] == [
        (10, 101, b"0", TIME),
        (20, 102, b"1", TIME + 1),
        (30, 103, b"2", TIME + 2),
    ]


def test_only_what_waits_is_carried() -> None:
    log = Log()
    log.append(100, settled([10, 20, 30]))
    log.deliver(200, 20, 102)

    assert [entry.due_ms for entry in log.carry(100, 500).entries] == [30]


def test_what_was_carried_from_a_companion_is_not_carried_from_there_again() -> None:
    log = Log()
    companion = log.append(100, settled([10, 20]))
    log.carry(100, 500)

    assert not log.ledger.waiting_of(100, companion)


def test_many_are_carried_in_batches_that_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(carrying, "CARRIED_RECORDS_MAX", 4)
    log = Log()
    companion = log.append(100, settled(range(1, 11)))
    counts: list[int] = []
    for batch in carry(100, companion, companion.entries, TIME):
        read = log.append(500 + len(counts), batch)
        counts.append(len(list(read.records())))

    assert counts == [4, 4, 2]
    log.ledger.start_advanced(101)
    assert [record.origin for record in waiting(log.ledger)] == list(range(101, 111))


def test_what_cannot_be_read_is_not_carried() -> None:
    companion = settled([10])
    broken = Companion(companion.entries, b"\xff\xff")

    with pytest.raises(CorruptRecordsError):
        list(carry(100, broken, broken.entries, TIME))


def test_the_original_counts_while_the_log_has_it() -> None:
    log = Log()
    log.append(100, settled([10]))
    log.carry(100, 500)

    assert waiting(log.ledger) == [WaitingRecord(10, 101, 100)]
    assert log.ledger.needed_from(0) == 0
    log.ledger.start_advanced(101)
    assert waiting(log.ledger) == [WaitingRecord(10, 101, 500)]


def test_of_a_chain_the_first_that_the_log_has_counts() -> None:
    log = Log()
    log.append(100, settled([10]))
    log.carry(100, 500)
    behind = log.from_start(101)
    log.ledger.start_advanced(101)
    log.carry(500, 9_000)
    behind.saw(log.batches[9_000], read_header(log.batches[9_000]))

    assert waiting(behind) == waiting(log.ledger) == [WaitingRecord(10, 101, 500)]
    assert waiting(log.from_start(50)) == [WaitingRecord(10, 101, 100)]
    for ledger in (log.ledger, behind, log.from_start(101), log.from_start(501), log.from_start(9_000)):
        ledger.start_advanced(501)
        assert waiting(ledger) == [WaitingRecord(10, 101, 9_000)]


def test_what_was_delivered_since_does_not_come_back() -> None:
    log = Log()
    log.append(100, settled([10, 20]))
    log.carry(100, 500)
    log.deliver(600, 10, 101)
    log.ledger.start_advanced(101)

    assert waiting(log.ledger) == waiting(log.from_start(101)) == [WaitingRecord(20, 102, 500)]


def test_what_came_when_deliveries_had_gone_further_is_carried_until_it_is_delivered() -> None:
    log = Log()
    log.append(100, settled([50]))
    log.deliver(200, 50, 101)
    late = log.append(300, settled([10, 60]))
    assert [entry.due_ms for entry in log.ledger.waiting_of(300, late)] == [10, 60]
    carried = log.carry(300, 500)
    kept = new_ledger()
    kept.restore(b"".join(log.ledger.encode()))
    for ledger in (log.ledger, kept):
        ledger.start_advanced(301)
        assert waiting(ledger) == [WaitingRecord(10, 301, 500), WaitingRecord(60, 302, 500)]

    log.deliver(600, 10, 301)
    assert waiting(log.ledger) == [WaitingRecord(60, 302, 500)]
    assert [entry.due_ms for entry in log.ledger.waiting_of(500, carried)] == [60]
    assert not log.ledger.waiting_of(300, late)


def test_a_companion_is_told_with_the_batch_that_it_counts_with() -> None:
    behind = build_companion(settled([1]), timestamp=TIME)
    assign_offset_and_epoch(behind, read_header(behind), 101, EPOCH)
    companion = Companion((WaitingEntry(10, 0),), b"", crc=read_header(behind).crc)
    batch = build_companion(companion, timestamp=TIME)
    assign_offset_and_epoch(batch, read_header(batch), 100, EPOCH)
    reader = CompanionReader()

    assert reader.saw(batch, read_header(batch)) is None
    assert reader.is_amidst
    counted = reader.saw(behind, read_header(behind))
    assert counted is not None
    assert counted.header.base_offset == 100
    assert not reader.is_amidst


EVENTS = st.lists(
    st.one_of(
        st.tuples(st.just("waits"), st.integers(1, 50)),
        st.tuples(st.just("carry"), st.integers(0, 9)),
        st.tuples(st.just("deliver"), st.integers(1, 50)),
        st.tuples(st.just("start"), st.integers(0, 9)),
        st.tuples(st.just("keep"), st.just(0)),
    ),
    max_size=30,
)


@given(EVENTS)
def test_every_replica_has_the_same_wait_wherever_its_log_starts(events: list[tuple[str, int]]) -> None:
    """Against a set: the log's start goes only where everything that waits was carried to."""
    log = Log()
    end, start = 0, 0
    waits: set[tuple[int, int]] = set()
    for kind, value in events:
        holding = [offset for offset in log.batches if offset >= start]
        if kind == "waits":
            log.append(end, settled([value]))
            waits.add((value, end + 1))
        elif kind == "deliver":
            log.deliver(end, value, end)
            waits = {key for key in waits if key > (value, end)}
        elif kind == "keep":
            kept = b"".join(log.ledger.encode())
            log.ledger = new_ledger()
            log.ledger.restore(kept)
            continue
        elif holding:
            for offset in holding[: value + 1]:
                companion = read_companion(log.batches[offset], read_header(log.batches[offset]))
                if companion is not None and not companion.is_delivery and log.ledger.waiting_of(offset, companion):
                    log.carry(offset, end)
                    end += 10
            if kind == "start":
                start = holding[: value + 1][-1] + 1
                log.ledger.start_advanced(start)
        end += 10

    for ledger in (log.ledger, log.from_start(start)):
        assert [record[:2] for record in waiting(ledger)] == sorted(waits)
        ledger.queue.prepare(0)
        assert ledger.queue.waiting_count == len(waits)
