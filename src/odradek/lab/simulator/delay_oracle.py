"""Pure core: what must be true of records that are seen later: told what was sent and became of it, then what was read.

| rule | |
| --- | --- |
| origin | what is read was sent, to this partition |
| early | nothing is read before it is due |
| aborted | nothing is read of a transaction whose abort was answered |
| change | what was read at an offset is what is read there later |
| kept | what was acknowledged, and what was read, is there in the end, when all is due |
| once | each record is there once |
| order | what waited comes by its due time, then by where it was produced, but for what began to wait later |
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from .oracle import SHOWN, PromiseBrokenError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


@attrs.frozen
class Later:
    """A record as it was sent.

    Attributes:
        value: What it says: no two say the same.
        partition: Where to.
        due_ms: When it is due, by the wall clock; 0 for at once.
        transaction: Of which transaction it is; empty for none.
    """

    value: str
    partition: int
    due_ms: int
    transaction: str = ""


@attrs.frozen
class Seen:
    """A record as it was read.

    Attributes:
        offset: Where.
        value: What it says.
        timestamp: Its timestamp.
        origin: The offset that it was produced at, where it was delayed; else None.
    """

    offset: int
    value: str
    timestamp: int
    origin: int | None


class DelayOracle:
    """All partitions of one topic. One owner.

    Attributes:
        acknowledged_count: How many records were acknowledged, or committed.
        delivered_count: How many were read that had waited.
        open_count: How many were sent and have no fate yet.
    """

    def __init__(self) -> None:
        """Know nothing yet."""
        self._sent: dict[str, Later] = {}
        self._kept: set[str] = set()
        self._aborted: set[str] = set()
        self._seen: dict[tuple[int, int], str] = {}
        self.acknowledged_count = 0
        self.delivered_count = 0
        self.open_count = 0

    def sent(self, record: Later) -> None:
        """Note that a record is on its way."""
        self._sent[record.value] = record
        self.open_count += 1

    def given_up(self, records: Iterable[Later]) -> None:
        """Note that nobody knows what became of records."""
        self.open_count -= len(list(records))

    def acknowledged(self, records: Iterable[Later]) -> None:
        """Note that records were acknowledged, or their transaction committed."""
        values = {record.value for record in records}
        self._kept |= values
        self.acknowledged_count += len(values)
        self.open_count -= len(values)

    def aborted(self, records: Iterable[Later]) -> None:
        """Note that the transaction of records was aborted."""
        values = {record.value for record in records}
        self._aborted |= values
        self.open_count -= len(values)

    def read(self, partition: int, seen: Seen, now_ms: int) -> None:
        """Check a record that a consumer of committed records was given."""
        self.delivered_count += seen.origin is not None
        sent = self._checked(partition, seen)
        if now_ms < sent.due_ms:
            early_ms = sent.due_ms - now_ms
            what = f"partition {partition} has {seen.value} at {seen.offset}, {early_ms} ms before it is due"
            raise PromiseBrokenError("early", what)
        before = self._seen.setdefault((partition, seen.offset), seen.value)
        if before != seen.value:
            what = f"partition {partition}, offset {seen.offset} was {before} and is {seen.value}"
            raise PromiseBrokenError("change", what)

    def _checked(self, partition: int, seen: Seen) -> Later:
        sent = self._sent.get(seen.value)
        if sent is None or sent.partition != partition:
            what = f"nobody sent what partition {partition} has at {seen.offset}: {seen.value[:SHOWN]!r}"
            raise PromiseBrokenError("origin", what)
        if seen.value in self._aborted:
            raise PromiseBrokenError("aborted", f"partition {partition} has {seen.value} at {seen.offset}")
        return sent

    def check_log(self, partition: int, records: Sequence[Seen]) -> None:
        """Check a whole partition, read when all is due and nothing happens any more."""
        places: dict[str, int] = {}
        for seen in records:
            self._checked(partition, seen)
            if seen.value in places:
                what = f"partition {partition} has {seen.value} at {places[seen.value]} and at {seen.offset}"
                raise PromiseBrokenError("once", what)
            places[seen.value] = seen.offset
        for value in sorted(self._kept):
            if self._sent[value].partition == partition and value not in places:
                raise PromiseBrokenError("kept", f"partition {partition} has no {value}, which was acknowledged")
        for (of, offset), value in self._seen.items():
            if of == partition and places.get(value) != offset:
                raise PromiseBrokenError("kept", f"partition {partition} has no {value} at {offset}, which was read")
        self._check_order(partition, records)

    def _check_order(self, partition: int, records: Sequence[Seen]) -> None:
        last: Seen | None = None
        for seen in records:
            if seen.origin is None or self._sent[seen.value].transaction:  # that waits from its commit on
                continue
            is_behind = last is None or (seen.timestamp, seen.origin) > (last.timestamp, last.origin)
            if not is_behind and last is not None and seen.origin < last.offset:
                what = f"partition {partition} has {seen.value} at {seen.offset}, behind {last.value} at {last.offset}"
                raise PromiseBrokenError("order", what)
            if is_behind:
                last = seen
