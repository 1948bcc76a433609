"""Pure core: what waits in one partition, by levels: first in, first out, nothing sorted.

    due within two hours   a lane for each level: what comes in is due after all that came before, and goes behind it
                           what is due next is the first of one of the lanes
    later                  one more, whose first is looked at when it has been there for two hours:
                           it goes into its lane, or behind the others once more

Which lane that is follows from what they end with: the latest end that is before. As delays are rounded to a dozen
levels there are about a dozen lanes. Where they are not (a retry policy that scatters, a queue that was another one
before, delays far above a longest level that is short) there are more, each in its order all the same, so that no
delivery is early, late, or out of the order; and where there are very many, some become one.

Whoever reads the log tells what it says, as `DelayQueue` has it; what is given out depends on nothing else. Which lane
a record is in may differ from one replica to the next.

Of each lane only the first entries are unpacked, and of so many together: what is not waits until these are delivered.
"""

from __future__ import annotations

import struct
import zlib
from bisect import bisect_right, insort
from heapq import merge
from typing import TYPE_CHECKING, Final

from .fifo import CHUNK_ENTRIES, Fifo

if TYPE_CHECKING:
    from collections.abc import Iterator

    from odradek.kernel.api import WaitingRecord

    from .fifo import Key

FAR_MS: Final = 2 * 3_600_000
"""What is due later is not in a lane yet, and is looked at as often: the longest level, if nobody says otherwise."""
LANES_MAX: Final = 256
"""Above so many some become one: each is looked at whenever something is due."""
MERGED_ENTRIES_MAX: Final = 8 * CHUNK_ENTRIES
"""So many records the one has at most: they are sorted in one go."""
PREPARED_AT_ONCE: Final = 2 * CHUNK_ENTRIES
READ_MAX: Final = 64 * CHUNK_ENTRIES
"""So many entries may be unpacked before the reading of further lanes pauses."""
_BEFORE_ALL: Final = (-1, -1)
_MAGIC: Final = b"odrv"
_VERSION: Final = 2
_HEAD: Final = struct.Struct(">4sbqqqqi")
_CRC: Final = struct.Struct(">I")


class LevelQueue:
    """What waits in one partition. Owned by the task that reads its log."""

    def __init__(
        self, chunk_entries: int = CHUNK_ENTRIES, read_max: int = READ_MAX, lanes_max: int = LANES_MAX
    ) -> None:
        """Begin with nothing: before the log's first offset.

        Args:
            chunk_entries: How many entries are packed together.
            read_max: How many may be unpacked.
            lanes_max: Above so many lanes some become one.
        """
        self._chunk_entries = chunk_entries
        self._read_max = read_max
        self._far = Fifo(chunk_entries)
        self._lanes: list[Fifo] = []
        self._ends: list[Key] = []  # of each lane, and rising
        self._lanes_max = self._merged_above = lanes_max
        self._start_offset = 0
        self._to_filter: list[Fifo] = []
        self._now_ms = 0
        self._through: Key = _BEFORE_ALL

    def __repr__(self) -> str:
        return f"<LevelQueue: {self.waiting_count} wait in {len(self._lanes)} lanes, {self._far.count} not in one yet>"

    @property
    def waiting_count(self) -> int:
        """How many records wait, withdrawn ones that are not due yet included.

        Exact when `prepare` returned True.
        """
        return self._far.count + sum(lane.count for lane in self._lanes)

    @property
    def lanes_count(self) -> int:
        """How many lanes there are."""
        return len(self._lanes)

    @property
    def read_count(self) -> int:
        """How many entries are unpacked."""
        return sum(lane.read_count for lane in self._lanes)

    # ----------------------------------------------------------------------------------------------- what the log says

    def waits(self, waiting: WaitingRecord) -> None:
        """Take note of a record that waits."""
        if waiting.due_ms - self._now_ms > FAR_MS:
            self._far.append(waiting, self._now_ms + FAR_MS)
        else:
            self._put_in_lane(waiting)

    def delivered(self, due_ms: int, origin: int) -> None:
        """Take note that a record was delivered: whatever is in the order before it does not wait any more.

        What is not in a lane yet is taken out when it is looked at: what comes from now on, and is due before, is.
        """
        self._through = max(self._through, (due_ms, origin))
        self._now_ms = max(self._now_ms, due_ms)
        self._drop_through((due_ms, origin))

    def start_advanced(self, offset: int) -> None:
        """Take note that the log starts at an offset: what is held by companions below it does not wait any more."""
        if offset > self._start_offset:
            self._start_offset = offset
            self._to_filter = [self._far, *self._lanes]

    def _put_in_lane(self, waiting: WaitingRecord) -> None:
        key = waiting[:2]
        number = bisect_right(self._ends, key) - 1
        if number < 0:
            if len(self._lanes) >= self._merged_above:
                self._merge_lanes()
            number = 0
            self._ends.insert(0, key)
            self._lanes.insert(0, Fifo(self._chunk_entries))
        self._ends[number] = key
        self._lanes[number].append(waiting)

    def _merge_lanes(self) -> None:
        """Have half of the lanes become one, those with few records: else each of these would keep its own."""
        merged: set[Fifo] = set()
        entries: list[WaitingRecord] = []
        for lane in sorted(self._lanes, key=_count)[: max(2, len(self._lanes) // 2)]:
            if len(merged) > 1 and len(entries) + lane.count > MERGED_ENTRIES_MAX:
                break
            merged.add(lane)
            while lane.count:
                entries += lane.take()
        left = [(end, lane) for end, lane in zip(self._ends, self._lanes, strict=True) if lane not in merged]
        fifo = Fifo(self._chunk_entries)
        for waiting in sorted(entries):
            if waiting.companion >= self._start_offset:
                fifo.append(waiting)
        if fifo.count:
            insort(left, (fifo.last, fifo), key=_end)
        self._ends, self._lanes = [end for end, _ in left], [lane for _, lane in left]
        self._merged_above = max(self._lanes_max, len(left) * 3 // 2)

    def _drop_through(self, key: Key) -> None:
        for lane in self._lanes:
            lane.drop_through(key)
        self._forget_empty()

    def _forget_empty(self) -> None:
        if not all(lane.count for lane in self._lanes):
            self._ends = [end for end, lane in zip(self._ends, self._lanes, strict=True) if lane.count]
            self._lanes = [lane for lane in self._lanes if lane.count]

    # ---------------------------------------------------------------------------------------------------- what is due

    def prepare(self, now_ms: int, entries_max: int = PREPARED_AT_ONCE) -> bool:
        """Work towards what is due; return False when there is more to do.

        Args:
            now_ms: The wall clock, or some time after it, to be ready by then.
            entries_max: About how many entries may be looked at.
        """
        self._now_ms = max(self._now_ms, now_ms)
        looked_count = 0
        while self._to_filter:
            if looked_count >= entries_max:
                return False
            count, is_all = self._to_filter[-1].filter(self._start_offset, entries_max - looked_count)
            looked_count += count
            self._forget_empty()
            if not is_all:
                return False
            self._to_filter.pop()
        while self._is_far_due(self._now_ms):
            if looked_count >= entries_max:
                return False
            looked_count += self._look_at_far()
        return True

    def _is_far_due(self, now_ms: int) -> bool:
        return self._far.count > 0 and self._far.look_ms <= now_ms

    def _look_at_far(self) -> int:
        """Look at the first of what is not in a lane yet; return at how many entries that was."""
        near_ms, look_ms = self._now_ms + FAR_MS, self._now_ms + FAR_MS
        if self._far.put_back_unread(near_ms + 1, look_ms):
            return 1
        found = self._far.take()
        for waiting in found:
            if waiting[:2] <= self._through or waiting.companion < self._start_offset:
                continue
            if waiting.due_ms > near_ms:
                self._far.append(waiting, look_ms)
            else:
                self._put_in_lane(waiting)
        return len(found)

    def due(self, now_ms: int, count_max: int) -> list[WaitingRecord]:
        """Return the first records that are due, in order, as far as they are prepared; they wait until `delivered`."""
        if self._to_filter or self._is_far_due(now_ms):
            return []
        runs: list[list[WaitingRecord]] = []
        bound: Key | None = None  # what lies behind this has others before it that were not read
        lanes = sorted((lane for lane in self._lanes if lane.first[0] <= now_ms), key=_first)
        while lanes and not lanes[0].read_count and self.read_count >= self._read_max:
            max((lane for lane in self._lanes if lane.read_count), key=_first).put_back()
        read_count = self.read_count
        for lane in lanes:
            if not lane.read_count and runs and read_count >= self._read_max:
                due_ms, origin = lane.first
                bound = (due_ms, origin - 1) if bound is None else min(bound, (due_ms, origin - 1))
                break
            read_count -= lane.read_count
            lane.read()
            read_count += lane.read_count
            run, is_cut = lane.due(now_ms, count_max)
            runs.append(run)
            if is_cut and len(run) < count_max:
                bound = run[-1][:2] if bound is None else min(bound, run[-1][:2])
        found: list[WaitingRecord] = []
        for waiting in merge(*runs) if len(runs) > 1 else iter(runs[0] if runs else ()):
            if len(found) == count_max or (bound is not None and waiting[:2] > bound):
                break
            found.append(waiting)
        return found

    def next_due_ms(self) -> int | None:
        """Return when to look again, perhaps too early; None when nothing waits."""
        looks_ms = [lane.first[0] for lane in self._lanes if lane.count]
        return min([*looks_ms, self._far.look_ms] if self._far.count else looks_ms, default=None)

    # ---------------------------------------------------------------------------------------------------- checkpoints

    def encode(self) -> Iterator[bytes]:
        """Write all of it, in pieces; nothing may be changed meanwhile."""
        crc = 0
        for piece in self._pieces():
            crc = zlib.crc32(piece, crc)
            yield piece
        yield _CRC.pack(crc)

    def _pieces(self) -> Iterator[bytes]:
        lanes = [(end, lane) for end, lane in zip(self._ends, self._lanes, strict=True) if lane.count]
        yield _HEAD.pack(_MAGIC, _VERSION, self._start_offset, self._now_ms, *self._through, len(lanes))
        yield from self._far.encode()
        for _, lane in lanes:
            yield from lane.encode()

    @classmethod
    def decode(
        cls,
        data: bytes,
        chunk_entries: int = CHUNK_ENTRIES,
        read_max: int = READ_MAX,
        lanes_max: int = LANES_MAX,
    ) -> LevelQueue:
        """Return the queue that was written, its entries packed as they were.

        Raises:
            ValueError: It is damaged, or of another version.
        """
        if len(data) < _CRC.size or zlib.crc32(data[: -_CRC.size]) != _CRC.unpack_from(data, len(data) - _CRC.size)[0]:
            raise ValueError("the checkpoint of a queue of levels does not carry its own CRC")
        magic, version, start_offset, now_ms, *through, lanes_count = _HEAD.unpack_from(data)
        if (magic, version) != (_MAGIC, _VERSION):
            raise ValueError(f"a checkpoint of a queue of levels has version {version}, {_VERSION} is known")
        queue = cls(chunk_entries, read_max, lanes_max)
        queue._start_offset, queue._now_ms, queue._through = start_offset, now_ms, (through[0], through[1])
        queue._far, position = Fifo.decode(data, _HEAD.size, chunk_entries)
        for _ in range(lanes_count):
            lane, position = Fifo.decode(data, position, chunk_entries)
            queue._lanes.append(lane)
            queue._ends.append(lane.last)
        queue._to_filter = [queue._far, *queue._lanes] if start_offset else []  # perhaps that was under way
        return queue


def _first(lane: Fifo) -> Key:
    return lane.first


def _count(lane: Fifo) -> int:
    return lane.count


def _end(placed: tuple[Key, Fifo]) -> Key:
    return placed[0]
