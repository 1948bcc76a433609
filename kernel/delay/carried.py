"""Pure core: what was carried forward and still waits in an older companion, too: it counts once, whatever goes first.

    log      | c0: a b | ...  | c1: carried from c0: b | ... | c2: carried from c1: b |
    start    ^ c0 counts, c1 and c2 are kept here            a was delivered before c1 was written
                       ^ c1 counts, c2 is kept here
                                                       ^ c2 counts

A leader carries a record only from the companion that it waits in last, so these are chains, and the first that the log
still has is the one that counts. Which of its records were delivered meanwhile is known when it comes to count.

.. versionadded:: 0.1
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .companion import WaitingEntry


class CarriedEntry(NamedTuple):
    """A record that waits in two companions: the one at `companion` is the later one."""

    companion: int
    entry: WaitingEntry


class CarriedRecords:
    """What waits in an older companion as well, by that one. Owned by a ledger."""

    __slots__ = ("_ends", "_kept", "_throughs")

    def __init__(self) -> None:
        """Begin with nothing."""
        self._kept: dict[int, list[CarriedEntry]] = {}
        # Deliveries of which none later went further: where each ended, and up to which (due time, origin) it went.
        self._ends: list[int] = []
        self._throughs: list[tuple[int, int]] = []

    def take(self, carried_from: int, entries: list[CarriedEntry]) -> None:
        """Take note of records that wait in the companion at `carried_from`, too."""
        self._kept.setdefault(carried_from, []).extend(entries)

    def delivered(self, end: int, due_ms: int, origin: int) -> None:
        """Take note of a delivery that ends at an offset: nothing that was carried before, up to there, waits."""
        if not self._kept:
            return
        through = due_ms, origin
        while self._throughs and self._throughs[-1] <= through:
            self._throughs.pop()
            self._ends.pop()
        self._throughs.append(through)
        self._ends.append(end)

    def of(self, companion: int) -> set[tuple[int, int]]:
        """Return the due times and origins of what waits in a companion and was carried on from there."""
        return {each.entry[:2] for each in self._kept.get(companion, ())}

    def start_advanced(self, offset: int) -> list[CarriedEntry]:
        """Return what comes to count, or counted in vain, as the log starts at an offset: some may lie below that."""
        gone = sorted(carried_from for carried_from in self._kept if carried_from < offset)
        found = [each for carried_from in gone for each in self._kept.pop(carried_from) if self._waits(each)]
        if not self._kept:
            self._ends.clear()
            self._throughs.clear()
        return found

    def waiting(self) -> Iterator[tuple[int, CarriedEntry]]:
        """Iterate over what is kept and was not delivered, with the companion that it was carried from."""
        for carried_from, entries in self._kept.items():
            for each in entries:
                if self._waits(each):
                    yield carried_from, each

    def _waits(self, carried: CarriedEntry) -> bool:
        at = bisect_right(self._ends, carried.companion)
        return at == len(self._ends) or self._throughs[at] < carried.entry[:2]
