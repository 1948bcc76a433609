"""Batches of failed records, as a retry topic's leader makes and appends them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import attrs

from odradek.kernel.delay.stage import diverted
from odradek.kernel.records.batch import assign_offset_and_epoch, read_header
from odradek.kernel.records.builder import BatchBuilder
from odradek.kernel.records.compression import CompressionType
from odradek.kernel.records.control import ControlRecordType, EndTransactionMarker, build_control_batch
from odradek.kernel.records.record import Record
from odradek.kernel.retry.headers import ATTEMPT, DEAD
from odradek.kernel.retry.rewriting import Owner, take_failed

OWNER = Owner("orders", "billing")
NOW_MS = 1_700_000_000_000
ATTEMPTS = 3


class Failed(NamedTuple):
    """One failed record of a test: value, how often it was given back, whether it is wanted no more, more headers."""

    value: bytes
    attempts: int = 0
    is_dead: bool = False
    more: tuple[tuple[str, bytes], ...] = ()

    @property
    def headers(self) -> list[tuple[str, bytes]]:
        found = [("own", b"1"), *self.more]
        if self.attempts:
            found.append((ATTEMPT, b"%d" % self.attempts))
        return [*found, (DEAD, b"1")] if self.is_dead else found


def decide(attempt: int, record: Record) -> int | None:
    return None if attempt > ATTEMPTS else attempt * 100


def produced(
    records: Sequence[Failed],
    *,
    producer_id: int = -1,
    is_transactional: bool = False,
    codec: CompressionType = CompressionType.NONE,
) -> bytearray:
    builder = BatchBuilder(
        producer_id=producer_id,
        producer_epoch=-1 if producer_id < 0 else 0,
        base_sequence=-1 if producer_id < 0 else 4,
        is_transactional=is_transactional,
        compression=codec,
    )
    for number, record in enumerate(records):
        builder.append(b"k", record.value, timestamp=NOW_MS - 50 + number, headers=record.headers)
    return builder.build()


class FailedLog:
    """The batches of one partition of a retry topic, placed."""

    def __init__(self) -> None:
        self.batches: list[bytes] = []
        self.end_offset = 0

    def append(self, batch: bytearray) -> int:
        """Append a batch; return its first offset."""
        header = read_header(batch)
        assign_offset_and_epoch(batch, header, self.end_offset, 0)
        self.batches.append(bytes(batch))
        self.end_offset = header.next_offset
        return header.base_offset

    def fail(self, records: Sequence[Failed], *, producer_id: int = -1) -> int:
        """Append what the stage makes of a batch; return the first offset of the batch itself."""
        batch = produced(records, producer_id=producer_id, is_transactional=producer_id >= 0)
        made = diverted(take_failed(batch, read_header(batch), OWNER, decide, NOW_MS))
        self.append(bytearray(made.before))
        base_offset = self.append(bytearray(made.batch))
        if made.behind is not None:
            self.append(bytearray(made.behind))
        return base_offset

    def fail_unreadably(self, records: Sequence[Failed]) -> None:
        """The same, and what the companion holds is nothing that can be read, though its CRC is right."""
        batch = produced(records)
        split = take_failed(batch, read_header(batch), OWNER, decide, NOW_MS)
        made = diverted(attrs.evolve(split, companion=attrs.evolve(split.companion, payload=b"\xff" * 20)))
        self.append(bytearray(made.before))
        self.append(bytearray(made.batch))

    def end(self, producer_id: int, *, is_commit: bool) -> None:
        kind = ControlRecordType.COMMIT if is_commit else ControlRecordType.ABORT
        marker = EndTransactionMarker(kind, 0)
        self.append(build_control_batch([marker], timestamp=NOW_MS, producer_id=producer_id, producer_epoch=0))

    def deliver(self, value: bytes) -> None:
        """Append an ordinary record."""
        builder = BatchBuilder()
        builder.append(None, value, timestamp=NOW_MS)
        self.append(builder.build())
