"""The log of one retry partition in memory: what a broker makes of failed records, and delivers, byte for byte."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import NamedTuple

from odradek.client.fetched_records import ConsumerRecord, FetchedRecords
from odradek.kernel.delay.carrying import carry
from odradek.kernel.delay.companion import Companion, WaitingEntry, build_companion, read_companion
from odradek.kernel.delay.headers import delivered_headers
from odradek.kernel.delay.stage import diverted
from odradek.kernel.records.batch import assign_offset_and_epoch, iterate_batches, read_header
from odradek.kernel.records.builder import BatchBuilder
from odradek.kernel.records.control import ControlRecordType, EndTransactionMarker, build_control_batch
from odradek.kernel.records.record import Record
from odradek.kernel.retry.rewriting import Owner, take_failed
from odradek.kernel.types import TopicPartition

HOME, RETRY = TopicPartition("orders", 0), TopicPartition("orders.billing.retry", 0)
OWNER = Owner("orders", "billing")
LEVELS_MS = (10, 40, 20)
EPOCH = 0

Headers = Sequence[tuple[str, bytes | None]]


class Produced(NamedTuple):
    """A record that is produced to the partition."""

    key: bytes | None
    value: bytes
    headers: Headers = ()


def decide(attempt: int, record: Record) -> int | None:
    return None if attempt > len(LEVELS_MS) else LEVELS_MS[attempt - 1]


class RetryLog:
    """The log; `now_ms` is its broker's clock."""

    def __init__(self) -> None:
        self.data = bytearray()
        self.end_offset = 0
        self.now_ms = 1_000
        self.dead: list[bytes] = []
        self._waiting: list[tuple[int, int, Record]] = []
        self._open: dict[int, list[tuple[int, int, Record]]] = {}

    def append(self, batch: bytearray) -> int:
        header = read_header(batch)
        assign_offset_and_epoch(batch, header, self.end_offset, EPOCH)
        self.data += batch
        self.end_offset = header.next_offset
        return header.base_offset

    def produce(self, records: Sequence[Produced], *, producer_id: int = -1) -> int:
        """Append a batch of failed records; return the offset of the first."""
        builder = BatchBuilder(
            producer_id=producer_id,
            producer_epoch=-1 if producer_id < 0 else 0,
            base_sequence=-1 if producer_id < 0 else 0,
            is_transactional=producer_id >= 0,
        )
        for record in records:
            builder.append(record.key, record.value, timestamp=self.now_ms, headers=record.headers)
        batch = builder.build()
        made = diverted(take_failed(batch, read_header(batch), OWNER, decide, self.now_ms))
        before = bytearray(made.before)
        self.append(before)
        companion = read_companion(before, read_header(before))
        assert companion is not None
        for entry, held in companion.records():
            if entry.is_dead:
                self.dead.append(held.value or b"")
            elif producer_id < 0:
                heapq.heappush(self._waiting, (entry.due_ms, held.offset, held))
            else:
                self._open.setdefault(producer_id, []).append((entry.due_ms, held.offset, held))
        offset = self.append(bytearray(made.batch))
        if made.behind is not None:
            self.append(bytearray(made.behind))
        return offset

    def end(self, producer_id: int, *, commits: bool) -> None:
        """End a producer's transaction."""
        kind = ControlRecordType.COMMIT if commits else ControlRecordType.ABORT
        marker = EndTransactionMarker(kind, 0)
        self.append(build_control_batch([marker], timestamp=self.now_ms, producer_id=producer_id, producer_epoch=0))
        failed = self._open.pop(producer_id, [])
        for waiting in failed if commits else ():
            heapq.heappush(self._waiting, waiting)

    def pass_time(self, ms: int) -> None:
        """Let time pass, and deliver what is due then."""
        self.now_ms += ms
        due: list[tuple[int, int, Record]] = []
        while self._waiting and self._waiting[0][0] <= self.now_ms:
            due.append(heapq.heappop(self._waiting))
        if not due:
            return
        builder = BatchBuilder()
        for _, _, record in due:
            builder.append(record.key, record.value, timestamp=self.now_ms, headers=delivered_headers(record, EPOCH))
        batch = builder.build()
        last = WaitingEntry(due[-1][0], due[-1][1], EPOCH)
        crc = read_header(batch).crc
        self.append(build_companion(Companion((last,), b"", crc=crc, is_delivery=True), timestamp=self.now_ms))
        self.append(batch)

    def carry(self, below: int) -> None:
        """Append again what waits below an offset, as is done where retention wants that gone."""
        waiting = {offset for _, offset, _ in self._waiting}
        for position, header in list(iterate_batches(self.data)):
            if header.base_offset >= below:
                break
            batch = bytes(self.data[position : position + header.length_bytes])
            companion = read_companion(batch, header) if header.is_control and not header.has_producer_id else None
            if companion is None or companion.is_delivery:
                continue
            entries = [entry for entry in companion.entries if not entry.is_dead and entry.origin in waiting]
            for made in carry(header.base_offset, companion, entries, self.now_ms):
                self.append(made)

    @property
    def next_due_ms(self) -> int | None:
        return self._waiting[0][0] if self._waiting else None

    def read(self, offset: int, batches: int | None = None) -> bytes:
        """Return batches from an offset on."""
        found = bytearray()
        for position, header in iterate_batches(self.data):
            if header.next_offset > offset and (batches is None or batches > 0):
                found += self.data[position : position + header.length_bytes]
                batches = None if batches is None else batches - 1
        return bytes(found)

    def records(self, offset: int) -> list[ConsumerRecord]:
        """Return what a consumer sees from an offset on."""
        data = self.read(offset)
        return list(FetchedRecords(RETRY, data, offset, None, checks_crcs=True)) if data else []
