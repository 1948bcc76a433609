"""Pure core: which leader epoch begins at which offset of a log, for every storage plugin.

Entries (epoch, start offset) grow strictly in both columns. *Source:* KIP-101, KIP-279; LeaderEpochFileCache.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING

from odradek.kernel.contracts.log_values import EpochEnd

if TYPE_CHECKING:
    from collections.abc import Iterable

_NONE = EpochEnd(-1, -1)


class EpochCache:
    """The epochs of one log. Owned by the log; the methods that change it say whether they did."""

    __slots__ = ("_epochs", "_starts")

    def __init__(self, entries: Iterable[tuple[int, int]] = ()) -> None:
        self._epochs: list[int] = []
        self._starts: list[int] = []
        for epoch, start in entries:
            self.assign(epoch, start)

    @property
    def latest_epoch(self) -> int:
        """The newest epoch, -1 when there is none."""
        return self._epochs[-1] if self._epochs else -1

    def entries(self) -> list[tuple[int, int]]:
        """Return (epoch, start offset), oldest first."""
        return list(zip(self._epochs, self._starts, strict=True))

    def assign(self, epoch: int, start_offset: int) -> bool:
        """Begin `epoch` at `start_offset` if it is newer than all; those that begin there or later had no records."""
        if epoch < 0 or (self._epochs and epoch <= self._epochs[-1]):
            return False
        self.truncate_from_end(start_offset)
        self._epochs.append(epoch)
        self._starts.append(start_offset)
        return True

    def end_offset_for(self, epoch: int, log_end_offset: int) -> EpochEnd:
        """See `PartitionLog.end_offset_for_epoch`."""
        if not self._epochs or epoch < 0 or epoch > self._epochs[-1]:
            return _NONE
        following = bisect_right(self._epochs, epoch)
        if following == 0:
            return EpochEnd(epoch, self._starts[0])
        end = self._starts[following] if following < len(self._starts) else log_end_offset
        return EpochEnd(self._epochs[following - 1], end)

    def truncate_from_end(self, end_offset: int) -> bool:
        """Forget epochs that begin at or after `end_offset`."""
        keep = len(self._starts)
        while keep and self._starts[keep - 1] >= end_offset:
            keep -= 1
        changed = keep < len(self._starts)
        del self._epochs[keep:], self._starts[keep:]
        return changed

    def fit(self, start_offset: int, end_offset: int) -> None:
        """Forget epochs that lie outside of a log, as it is opened, and those that got no record.

        Of a log whose records are all deleted the newest stays: it tells how new the last of them was, which whoever
        compares logs asks, and nothing else does any more.
        """
        self.truncate_from_start(start_offset)
        self.truncate_from_end(end_offset + (0 < start_offset == end_offset))

    def truncate_from_start(self, start_offset: int) -> bool:
        """Forget epochs that end before `start_offset`; the one it falls in now begins there."""
        first = bisect_right(self._starts, start_offset) - 1
        if first < 0 or (self._starts[first] == start_offset and first == 0):
            return False
        del self._epochs[:first], self._starts[:first]
        self._starts[0] = start_offset
        return True

    def begin_anew(self, epoch: int, start_offset: int) -> bool:
        """Forget all, and begin `epoch` at `start_offset` unless that is negative."""
        changed = bool(self._epochs)
        self._epochs.clear()
        self._starts.clear()
        return self.assign(epoch, start_offset) or changed
