"""Pure core: what waits in one partition, as its log says: told of batches, it tells the queue of records.

    companion -> held until the batch behind it shows whether it counts
              -> of a transaction: held by its producer until the transaction's end, dropped where that is an abort
              -> the queue, which knows what is due next
              -> carried forward: kept beside it, until the log starts behind the companion that it was carried from
    delivery  -> the queue: nothing up to there waits any more
    canceller -> noted beside it (`withdrawals`): whose name a record has is read when it comes due, and looked up then

On every replica, and whenever a log is read again, it hears the same, so a new leader goes on with its own. A leader
tells it only of what concerns delays: no ordinary batch is looked at.

`encode` writes all of it, to be kept beside the log with the offset up to which that was read.

.. versionadded:: 0.1
"""

from __future__ import annotations

import struct
import zlib
from collections import Counter, deque
from typing import TYPE_CHECKING, Final, NamedTuple

from ..contracts.delay_queue import WaitingRecord
from ..records.batch import CorruptRecordsError
from ..records.control import ControlRecordType, EndTransactionMarker, read_control_record
from ..types import NO_PRODUCER_ID
from .carried import CarriedEntry, CarriedRecords
from .companion import CompanionReader, WaitingEntry
from .headers import ID_DIGEST_BYTES
from .withdrawals import ENTRY_BYTES, Withdrawals

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from ..contracts.delay_queue import DelayQueue, DelayQueueFactory
    from ..records.batch import BatchHeader
    from ..types import Buffer
    from .companion import Companion

_HELD_SHIFT: Final = 12
"""What must stay of a log is known in stretches of so many offsets (a power of two)."""
_DELIVERIES_MAX: Final = 1000
"""So many deliveries are told apart that may not be committed yet."""
_MAGIC: Final = b"odrl"
_VERSION: Final = 4
_HEAD: Final = struct.Struct(">4sbqqqqqqqiiiiiq")
_HELD: Final = struct.Struct(">qq")
_LATE: Final = struct.Struct(">qq")
_OPEN: Final = struct.Struct(">qqqqi16s")
_LAST: Final = struct.Struct(">qqi16s")
_CRC: Final = struct.Struct(">I")
_BEFORE_ALL: Final = (-1, -1)
_NO_DIGEST: Final = bytes(ID_DIGEST_BYTES)


def stretch_of(offset: int) -> int:
    """Return the number of an offset's stretch, see `DelayLedger.needed_stretches`."""
    return offset >> _HELD_SHIFT


def stretch_end(offset: int) -> int:
    """Return where the stretch of an offset ends: so finely is it known where something waits."""
    return ((offset >> _HELD_SHIFT) + 1) << _HELD_SHIFT


class OpenEntry(NamedTuple):
    """What waits, or is withdrawn, once its transaction is committed; `companion` is the offset of what holds it."""

    companion: int
    entry: WaitingEntry


class DelayLedger:
    """What waits in one partition. Owned by its replica, on the reactor's task.

    Attributes:
        queue: In what order.
        last_delivery: What the last note says, a delivery whose only entry has a digest; None before the first. So
            says how far a dead-letter partition was taken: what waited here itself and was delivered says nothing.
        last_delivery_offset: Where that stands.
        start_offset: The log's, as it was told; where what waits begins, of a log in two tiers.
        withdrawn_below: What was produced below this offset a DeleteRecords has withdrawn.
        on_due: Called with the earliest due time of what has begun to wait; with 0 when the queue is to `prepare` soon.
        on_unreadable: Called with the offset of a companion that cannot be read, and why: nothing of it waits.
    """

    def __init__(
        self,
        factory: DelayQueueFactory,
        *,
        on_due: Callable[[int], None],
        on_unreadable: Callable[[int, Exception], None],
    ) -> None:
        """Begin with an empty log."""
        self._factory = factory
        self.on_due = on_due
        self.on_unreadable = on_unreadable
        self.clear()

    def __repr__(self) -> str:
        return f"<DelayLedger: {self.queue.waiting_count} wait, {len(self._open)} transactions are open>"

    def clear(self) -> None:
        """Begin anew: the log is read again from its begin, or from what `restore` is given."""
        self.queue: DelayQueue = self._factory.new()
        self.last_delivery: WaitingEntry | None = None
        self.last_delivery_offset = -1
        self._reader = CompanionReader()
        self._open: dict[int, list[OpenEntry]] = {}
        self._open_names: Counter[bytes] = Counter()  # that cancellers in there name
        self._carried = CarriedRecords()
        self._withdrawals = Withdrawals()
        self.start_offset = 0
        self.withdrawn_below = 0
        self._carried_end = 0
        self._held: dict[int, int] = {}
        self._through = _BEFORE_ALL
        self._late: set[tuple[int, int]] = set()  # came to wait when deliveries had gone further, and waits
        self._committed_ms = -1
        self._deliveries: deque[tuple[int, int]] = deque()

    @property
    def is_amidst(self) -> bool:
        """Whether the last batch was a companion whose batch is to come: nothing can be kept here."""
        return self._reader.is_amidst

    @property
    def open_count(self) -> int:
        """How many records wait for their transaction's end, and are in no queue yet."""
        return sum(not each.entry.is_canceller for entries in self._open.values() for each in entries)

    # ----------------------------------------------------------------------------------------------- what the log says

    def saw(self, batch: Buffer, header: BatchHeader) -> None:
        """Take note of a batch of the log, placed; of each in its order, but that a leader leaves out ordinary ones."""
        try:
            counted = self._reader.saw(batch, header)
        except CorruptRecordsError as error:
            self.on_unreadable(header.base_offset, error)
            return
        if counted is not None:
            self._take(counted.header.base_offset, counted.companion, end=header.next_offset)
        if header.is_control and header.has_producer_id and header.records_count:
            marker = read_control_record(batch, header)
            if isinstance(marker, EndTransactionMarker):
                self._end(header.producer_id, is_commit=marker.type is ControlRecordType.COMMIT)

    def start_advanced(self, offset: int) -> None:
        """Take note that the log starts at an offset: what is held below waits where it was carried to, or nowhere.

        Of a log in two tiers that is where the local part does, or is about to; where the whole of it starts says less.
        """
        offset = max(offset, self.start_offset)
        if offset > self.start_offset:
            self.start_offset = offset
            self.on_due(0)
        self.queue.start_advanced(offset)
        first = offset >> _HELD_SHIFT
        self._held = {stretch: due_ms for stretch, due_ms in self._held.items() if stretch >= first}
        for producer_id, entries in list(self._open.items()):
            stay = [each for each in entries if each.companion >= offset]
            if len(stay) < len(entries):
                self._close(producer_id)
                for each in stay:
                    self._add_open(producer_id, each)
        self._admit(self._carried.start_advanced(offset))

    # --------------------------------------------------------------------------------------- what the log has to keep

    def needed_from(self, kept_end: int) -> int | None:
        """Return an offset at or below the first companion of which something waits; None where nothing does.

        Args:
            kept_end: What a delivery behind it has delivered may wait again: there another leader may not have it, or a
                loss of power may take it.
        """
        self._forget_delivered(kept_end)
        starts = [max(stretch << _HELD_SHIFT, self.start_offset) for stretch in self._held]
        return min([*starts, *self._open_companions()], default=None)

    def needed_at(self, offset: int, kept_end: int) -> int | None:
        """Return the first offset from `offset` on where a companion may lie of which something waits; None: nowhere.

        What waits for the end of its transaction is left out, see `first_open`.
        """
        self._forget_delivered(kept_end)
        first = offset >> _HELD_SHIFT
        stretch = min((stretch for stretch in self._held if stretch >= first), default=None)
        return None if stretch is None else max(stretch << _HELD_SHIFT, offset)

    def needed_stretches(self, kept_end: int) -> frozenset[int]:
        """Return the numbers of all stretches where a companion may lie of which something waits, or may come to."""
        self._forget_delivered(kept_end)
        opened = (each.companion for entries in self._open.values() for each in entries)
        return frozenset(self._held).union(map(stretch_of, opened))

    def has_note_below(self, offset: int) -> bool:
        """Return whether the last note of how far a dead-letter partition was taken stands below an offset."""
        return -1 < self.last_delivery_offset < offset

    @property
    def first_open(self) -> int | None:
        """The offset of the first companion that waits for the end of its transaction; None without one."""
        return min(self._open_companions(), default=None)

    def waiting_of(self, offset: int, companion: Companion) -> list[WaitingEntry]:
        """Return what is to be carried forward from a companion: what waits, was not withdrawn, and nowhere else waits.

        Args:
            offset: Its offset. Below the log's start, as it was told, nothing waits: the log itself may start earlier
                after a kill, since each is kept for itself, and what was carried on from there counts already.
            companion: It counts, and its transaction was committed.
        """
        if offset < self.start_offset:
            return []
        elsewhere = self._carried.of(offset)
        found = []
        for entry in companion.entries:
            is_record = not entry.is_canceller and not entry.is_dead
            if is_record and entry[:2] not in elsewhere and self.still_waits(entry):
                found.append(entry)
        return found

    def still_waits(self, entry: WaitingEntry) -> bool:
        """Return whether a record that has waited was neither delivered nor withdrawn."""
        key = entry[:2]
        return (key > self._through or key in self._late) and not self.is_withdrawn(entry)

    def is_withdrawn(self, entry: WaitingEntry) -> bool:
        """Return whether a record that waits was withdrawn: by its name, or by a DeleteRecords."""
        return entry.origin < self.withdrawn_below or self._withdrawals.has(entry.id_digest, entry.origin)

    def may_be_withdrawn(self, entry: WaitingEntry) -> bool:
        """Return whether a transaction that is open names a record: it is withdrawn once that is committed.

        Until then it must not be carried forward. Withdrawals are not: what they withdraw lies before them. A copy that
        lies behind one would wait again for who has the log from there on.
        """
        return entry.id_digest in self._open_names

    @property
    def has_carried(self) -> bool:
        """Whether the log may have something that waits, and was produced below its start."""
        return self._carried_end > self.start_offset

    def _open_companions(self) -> list[int]:
        return [entries[0].companion for entries in self._open.values()]

    def _forget_delivered(self, kept_end: int) -> None:
        while self._deliveries and self._deliveries[0][0] <= kept_end:
            self._committed_ms = self._deliveries.popleft()[1]
        if not self.queue.waiting_count and not self._deliveries:
            self._held.clear()
        else:
            self._held = {stretch: due_ms for stretch, due_ms in self._held.items() if due_ms >= self._committed_ms}

    def _hold(self, offset: int, due_ms: int) -> None:
        stretch = offset >> _HELD_SHIFT
        self._held[stretch] = max(self._held.get(stretch, -1), due_ms, self._through[0])

    # -------------------------------------------------------------------------------------------------------- inside

    def _take(self, offset: int, companion: Companion, *, end: int) -> None:
        """Take a companion that counts; what belongs to it ends at an offset."""
        withdrawn = companion.withdrawn
        if withdrawn is not None:
            self.withdrawn_below = max(self.withdrawn_below, withdrawn.below)
        elif companion.is_delivery:
            (last,) = companion.entries
            if last.id_digest is not None:
                self.last_delivery, self.last_delivery_offset = last, offset
            self._delivered(last, end)
        elif companion.is_carried:
            self._take_carried(companion.carried_from, [CarriedEntry(offset, entry) for entry in companion.entries])
        elif companion.producer_id == NO_PRODUCER_ID:
            self._admit([OpenEntry(offset, entry) for entry in companion.entries])
        else:
            for entry in companion.entries:
                self._add_open(companion.producer_id, OpenEntry(offset, entry))
                if not entry.is_canceller and not entry.is_dead:
                    self._withdrawals.note_due(entry.due_ms)

    def _take_carried(self, carried_from: int, entries: list[CarriedEntry]) -> None:
        self._carried_end = max((each.companion + 1 for each in entries), default=self._carried_end)
        if carried_from < self.start_offset:
            self._admit(entries)
            return
        self._carried.take(carried_from, entries)
        for offset, entry in entries:
            self._hold(offset, entry.due_ms)

    def _end(self, producer_id: int, *, is_commit: bool) -> None:
        entries = self._close(producer_id)
        if entries and is_commit:
            self._admit(entries)

    def _add_open(self, producer_id: int, opened: OpenEntry) -> None:
        self._open.setdefault(producer_id, []).append(opened)
        name = opened.entry.id_digest
        if opened.entry.is_canceller and name is not None:
            self._open_names[name] += 1

    def _close(self, producer_id: int) -> list[OpenEntry]:
        """Take out what a producer's transaction holds."""
        entries = self._open.pop(producer_id, [])
        for _, entry in entries:
            name = entry.id_digest
            if entry.is_canceller and name is not None:
                self._open_names[name] -= 1
                if not self._open_names[name]:
                    del self._open_names[name]
        return entries

    def _admit(self, entries: Sequence[OpenEntry | CarriedEntry]) -> None:
        earliest_ms: int | None = None
        for offset, entry in entries:
            if entry.is_dead:
                continue
            if entry.is_canceller:
                assert entry.id_digest is not None, "a canceller has a name"
                self._withdrawals.add(entry.id_digest, entry.origin)
                continue
            if offset < self.start_offset:
                continue  # it was read for what else it says
            due_ms = entry.due_ms
            self._withdrawals.note_due(due_ms)
            self.queue.waits(WaitingRecord(due_ms, entry.origin, offset))
            if entry[:2] <= self._through:
                self._late.add(entry[:2])
            earliest_ms = due_ms if earliest_ms is None else min(earliest_ms, due_ms)
            self._hold(offset, due_ms)
        if earliest_ms is not None:
            self.on_due(earliest_ms)

    def _delivered(self, last: WaitingEntry, end: int) -> None:
        self.queue.delivered(last.due_ms, last.origin)
        through = last[:2]
        self._through = max(self._through, through)
        if self._late:
            self._late = {key for key in self._late if key > through}
        self._carried.delivered(end, *through)
        if len(self._deliveries) >= _DELIVERIES_MAX:  # nobody asks: the last two are told as the later one
            self._deliveries.pop()
        self._deliveries.append((end, self._through[0]))
        pending = min((entries[0].entry.origin for entries in self._open.values()), default=None)
        self._withdrawals.forget(last.due_ms, pending)

    # ---------------------------------------------------------------------------------------------------- checkpoints

    def encode(self) -> Iterator[bytes]:
        """Write all of it, in pieces; nothing may be changed meanwhile."""
        assert not self.is_amidst, "a companion is kept with its batch"
        opened = [(producer_id, each) for producer_id, entries in self._open.items() for each in entries]
        carried = list(self._carried.waiting())
        kept: list[tuple[int, OpenEntry | CarriedEntry]] = [*opened, *carried]
        counts = len(self._held), len(self._late), len(opened), len(carried), len(self._withdrawals)
        told = self.start_offset, self.withdrawn_below, self._carried_end, self._withdrawals.latest_due_ms
        numbers = *self._through, *told, *counts
        head = _HEAD.pack(_MAGIC, _VERSION, self._committed_ms, *numbers, self.last_delivery_offset)
        head += b"".join(_HELD.pack(*held) for held in self._held.items())
        head += b"".join(_LATE.pack(*key) for key in sorted(self._late))
        head += b"".join(
            _OPEN.pack(number, each.companion, *each.entry[:3], each.entry.id_digest or _NO_DIGEST)
            for number, each in kept
        )
        head += b"".join(self._withdrawals.encode())
        last = self.last_delivery
        if last is not None:
            head += _LAST.pack(*last[:3], last.id_digest or _NO_DIGEST)
        yield head + _CRC.pack(zlib.crc32(head))
        yield from self.queue.encode()

    def restore(self, data: bytes) -> None:
        """Take what was kept in the place of what is known.

        Raises:
            ValueError: It is damaged, or of another version; nothing was changed.
        """
        try:
            magic, version, committed_ms, *told, held, late, opened, carried, names, last_offset = _HEAD.unpack_from(
                data
            )
            late_start = _HEAD.size + held * _HELD.size
            opened_start = late_start + late * _LATE.size
            carried_start = opened_start + opened * _OPEN.size
            carried_end = carried_start + carried * _OPEN.size
            names_end = carried_end + names * ENTRY_BYTES
            end = names_end + (_LAST.size if last_offset >= 0 else 0)
            (crc,) = _CRC.unpack_from(data, end)
        except struct.error as error:
            raise ValueError(f"the checkpoint of a delay ledger breaks off: {error}") from error
        if (magic, version) != (_MAGIC, _VERSION) or crc != zlib.crc32(data[:end]):
            raise ValueError("this is no checkpoint of a delay ledger, or of another version, or damaged")
        queue = self._factory.restore(data[end + _CRC.size :])
        self.clear()
        self.queue = queue
        due_ms, origin, self.start_offset, self.withdrawn_below, self._carried_end, latest_due_ms = told
        self._withdrawals = Withdrawals(latest_due_ms)
        self._withdrawals.restore(data[carried_end:names_end])
        self._committed_ms, self._through = committed_ms, (due_ms, origin)
        self._held = dict(_HELD.iter_unpack(data[_HEAD.size : late_start]))
        self._late = {(key[0], key[1]) for key in _LATE.iter_unpack(data[late_start:opened_start])}
        self.last_delivery_offset = last_offset
        if last_offset >= 0:
            self.last_delivery = _entry(*_LAST.unpack_from(data, names_end))
        for producer_id, offset, *entry in _OPEN.iter_unpack(data[opened_start:carried_start]):
            self._add_open(producer_id, OpenEntry(offset, _entry(*entry)))
        for carried_from, offset, *entry in _OPEN.iter_unpack(data[carried_start:carried_end]):
            self._carried.take(carried_from, [CarriedEntry(offset, _entry(*entry))])


def _entry(due_ms: int, origin: int, leader_epoch: int, digest: bytes) -> WaitingEntry:
    return WaitingEntry(due_ms, origin, leader_epoch, None if digest == _NO_DIGEST else digest)
