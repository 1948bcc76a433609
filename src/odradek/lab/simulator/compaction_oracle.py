"""Pure core: what must be true of a compacted topic, whatever happened, for who reads what is committed.

| rule | |
| --- | --- |
| origin | what is read was sent, to this partition |
| change | what was read at an offset is what is read there later, or it is gone |
| order | offsets rise, and so do the numbers of one key's records |
| aborted | nothing is read of what was aborted |
| last | who reads from the beginning ends with each key's last record that was acknowledged, or a later one |
| tombstone | a key's tombstone is there for `delete.retention.ms` at least |

Each key has one writer, which writes its records one after the other: so there is a last one. A tombstone that is older
may be gone, with everything before it.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

import attrs

from .oracle import PromiseBrokenError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


class WriteFate(Enum):
    """What a writer was told of a record."""

    UNKNOWN = "unknown"
    KEPT = "kept"
    ABORTED = "aborted"


@attrs.define(eq=False)
class Write:
    """A record that was sent.

    Attributes:
        key: Its key.
        number: The how many-th of its key, from 0.
        partition: Where to.
        is_tombstone: Whether it has no value.
        sent_ms: When, by the wall clock.
        fate: What its writer was told.
        offset: Where it was told that it is; -1 where it was told nothing.
    """

    key: str
    number: int
    partition: int
    is_tombstone: bool
    sent_ms: int
    fate: WriteFate = WriteFate.UNKNOWN
    offset: int = -1

    @property
    def name(self) -> str:
        """What it is called, in a header: a tombstone has nothing else to say."""
        return f"{self.key}/{self.number}"


@attrs.frozen
class ReadRecord:
    """A record as somebody read it.

    Attributes:
        partition: Where.
        offset: Where there.
        name: What it is called.
        is_tombstone: Whether it has no value.
    """

    partition: int
    offset: int
    name: str
    is_tombstone: bool


@attrs.frozen
class Beginning:
    """What was known as somebody began to read from the beginning.

    Attributes:
        kept: By key the records of which their writer knew that they are kept.
        now_ms: When that was.
    """

    kept: dict[str, tuple[Write, ...]]
    now_ms: int

    def last(self, key: str, ends: Mapping[int, int]) -> Write | None:
        """Return the last one of a key that lies before where partitions ended: an open transaction hides the rest."""
        return next((write for write in reversed(self.kept[key]) if write.offset < ends[write.partition]), None)


class CompactionOracle:
    """All partitions of one topic. One owner.

    Attributes:
        delivered_count: How many records were read.
        tombstones_gone_count: How often a key was found gone with its tombstone.
    """

    def __init__(self, delete_retention_ms: int) -> None:
        """Know nothing yet.

        Args:
            delete_retention_ms: How long tombstones stay.
        """
        self._delete_retention_ms = delete_retention_ms
        self._writes: dict[str, list[Write]] = {}
        self._by_name: dict[str, Write] = {}
        self._kept: dict[str, tuple[Write, ...]] = {}
        self._seen: dict[tuple[int, int], str] = {}
        self.delivered_count = 0
        self.tombstones_gone_count = 0

    # -- what happens ------------------------------------------------------------------------------------------------

    def sent(self, key: str, partition: int, *, is_tombstone: bool, now_ms: int) -> Write:
        """Note that a record is sent, and return it."""
        writes = self._writes.setdefault(key, [])
        write = Write(key, len(writes), partition, is_tombstone, now_ms)
        writes.append(write)
        self._by_name[write.name] = write
        return write

    def settled(self, writes: Iterable[Write], fate: WriteFate) -> None:
        """Note what their writer was told of records, in the order in which they were sent."""
        for write in writes:
            write.fate = fate
            if fate is WriteFate.KEPT:
                self._kept[write.key] = (*self._kept.get(write.key, ()), write)

    def begin(self, now_ms: int) -> Beginning:
        """Return what is known now, as somebody begins to read from the beginning."""
        return Beginning(dict(self._kept), now_ms)

    # -- what is read ------------------------------------------------------------------------------------------------

    def delivered(self, record: ReadRecord) -> Write:
        """Check a record that a consumer was given, and return what was sent."""
        self.delivered_count += 1
        where = f"partition {record.partition}, offset {record.offset}"
        write = self._by_name.get(record.name)
        if write is None or write.partition != record.partition or write.is_tombstone != record.is_tombstone:
            raise PromiseBrokenError("origin", f"{where}: nobody sent {record}")
        before = self._seen.setdefault((record.partition, record.offset), record.name)
        if before != record.name:
            raise PromiseBrokenError("change", f"{where} was {before} and is {record.name}")
        if write.fate is WriteFate.ABORTED:
            raise PromiseBrokenError("aborted", f"{where}: {record.name} was aborted")
        return write

    def check(
        self, begun: Beginning, ends: Mapping[int, int], logs: Iterable[Sequence[ReadRecord]], now_ms: int
    ) -> None:
        """Check what somebody read from the beginning to the end.

        Args:
            begun: What `begin` returned.
            ends: Up to where each partition could be read then.
            logs: What each partition held.
            now_ms: When the end was reached.
        """
        found: dict[str, Write] = {}
        for records in logs:
            offset = -1
            for record in records:
                if record.offset <= offset:
                    raise PromiseBrokenError("order", f"{record} was read after offset {offset}")
                offset = record.offset
                write = self.delivered(record)
                before = found.get(write.key)
                if before is not None and before.number >= write.number:
                    raise PromiseBrokenError("order", f"{write.name} was read after {before.name}")
                found[write.key] = write
        for key in begun.kept:
            last = begun.last(key, ends)
            if last is not None:
                self._check_last(found.get(key), last, begun, now_ms)

    def _check_last(self, found: Write | None, last: Write, begun: Beginning, now_ms: int) -> None:
        if found is not None and found.number >= last.number:
            return
        # A tombstone may have gone: this one, or one that came later.
        later = self._writes[last.key][last.number :]
        tombstones = [write for write in later if write.is_tombstone and write.fate is not WriteFate.ABORTED]
        gone = [write for write in tombstones if write.sent_ms + self._delete_retention_ms <= now_ms]
        what = "nothing" if found is None else found.name
        if not gone:
            rule = "tombstone" if last.is_tombstone and found is None else "last"
            raise PromiseBrokenError(rule, f"of key {last.key} {what} is there, not {last.name}")
        if found is None:
            self.tombstones_gone_count += 1
            return
        # Who reads for longer than tombstones stay may see what one had been written for, and not the tombstone.
        if now_ms - begun.now_ms < self._delete_retention_ms:
            raise PromiseBrokenError("last", f"of key {last.key} {found.name} is there again, {gone[0].name} is gone")
