"""Pure core: the aborted transactions of a partition, found by the range of offsets that they reach into.

They stand in the order of their markers. Those that reach into `[start, end)` are those whose marker is at or above
`start` and that began below `end`. The former are found by bisection; for the latter, the lowest of the first offsets
is kept of every 16 transactions, of every 16 such minima, and so on, so that whole stretches are passed over::

    minima[1]             3                         61             ...
    minima[0]     40           3           90            61        ...
    entries    40 44 47 .. | 3 51 60 .. | 90 99 .. | 95 61 93 ..   ...

So however long a transaction stays open and however many are aborted behind it, a Fetch looks at some dozens of
numbers, and at as many again for each transaction that it is told.
"""

from __future__ import annotations

from bisect import bisect_left
from operator import attrgetter
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .transaction_index import AbortedTransaction

_BITS: Final = 4
_GROUP: Final = 1 << _BITS
_LAST_OFFSET: Final = attrgetter("last_offset")


class AbortedTransactions:
    """Aborted transactions in the order of their last offsets. Owned by a partition's producer state."""

    __slots__ = ("_entries", "_minima", "_start")

    def __init__(self, aborted: Iterable[AbortedTransaction] = ()) -> None:
        """Make it of what is known, in any order."""
        self._start = 0
        self._entries: list[AbortedTransaction] = []
        self._minima: list[list[int]] = [[]]
        self._fill(sorted(aborted, key=_LAST_OFFSET))

    def _fill(self, aborted: Iterable[AbortedTransaction]) -> None:
        self._start, self._entries, self._minima = 0, [], [[]]
        for transaction in aborted:
            self.append(transaction)

    def __len__(self) -> int:
        return len(self._entries) - self._start

    def append(self, transaction: AbortedTransaction) -> None:
        """Add one whose marker lies behind all others."""
        at = len(self._entries)
        self._entries.append(transaction)
        first_offset = transaction.first_offset
        for row in self._minima:
            at >>= _BITS
            if at == len(row):
                row.append(first_offset)
            elif first_offset < row[at]:
                row[at] = first_offset
            else:
                return  # nor is it the lowest of a larger group
        top = self._minima[-1]
        if len(top) > _GROUP:
            self._minima.append([min(top[:_GROUP]), top[_GROUP]])

    def all(self) -> tuple[AbortedTransaction, ...]:
        """Return all of them, in order."""
        return tuple(self._entries[self._start :])

    def reaching_into(self, start_offset: int, end_offset: int) -> list[AbortedTransaction]:
        """Return those that reach into `[start_offset, end_offset)`, in order. Hot where there are any."""
        entries = self._entries
        found: list[AbortedTransaction] = []
        if not entries or entries[-1].last_offset < start_offset:
            return found
        at = bisect_left(entries, start_offset, self._start, key=_LAST_OFFSET)
        while at < len(entries):
            group_end = (at | _GROUP - 1) + 1
            for transaction in entries[at:group_end]:
                if transaction.first_offset < end_offset:
                    found.append(transaction)
                if transaction.last_stable_offset >= end_offset:
                    return found  # whatever was aborted later began at or above this offset
            at = self._next_group(group_end, end_offset)
        return found

    def _next_group(self, at: int, end_offset: int) -> int:
        """Return where the next group begins, from the one at `at` on, of which one began below `end_offset`."""
        level = 0
        while True:
            at >>= _BITS
            row = self._minima[level]
            group_end = min((at | _GROUP - 1) + 1, len(row))
            while at < group_end and row[at] >= end_offset:
                at += 1
            if at < group_end:
                break
            if at >= len(row):
                return len(self._entries)
            level += 1
        for row in reversed(self._minima[:level]):
            at <<= _BITS
            while row[at] >= end_offset:
                at += 1
        return at << _BITS

    def forget_below(self, offset: int) -> None:
        """Forget those whose marker lies below; they are taken out once they are as many as the others."""
        self._start = bisect_left(self._entries, offset, self._start, key=_LAST_OFFSET)
        if self._start >= len(self):
            self._fill(self.all())
