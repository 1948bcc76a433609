"""Pure core: a snapshot of a table of producers that is taken step by step while the table goes on.

A partition may know a million producers; to write all of them down takes seconds. What is written is the table as it
was when the snapshot was begun: whoever changes a producer first has its entry kept, if it is not written yet::

    begin: A B C D     steps: A B     D changes: its entry is kept     steps: C, and D as it was
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .producer_snapshot import pack_entry, snapshot_of
from .producer_state import snapshot_entry

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable

    from .producer_snapshot import ProducerSnapshotEntry
    from .producer_state import ProducerState


class SnapshotInSteps:
    """One snapshot under way. Owned by the table; `steps` is run once, by whoever began it."""

    def __init__(self, states: Iterable[ProducerState]) -> None:
        """Begin: it is of these producers, as they are now."""
        self._states = list(states)
        self._kept: dict[ProducerState, ProducerSnapshotEntry] = {}

    def keep(self, state: ProducerState) -> None:
        """Take note of a producer that is about to change; one that came later is not part of it."""
        if state not in self._kept:
            self._kept[state] = snapshot_entry(state)

    def steps(self) -> Generator[None, None, bytes]:
        """Yield after each producer; return the file."""
        data = bytearray()
        for state in self._states:
            kept = self._kept.pop(state, None)
            data += pack_entry(snapshot_entry(state) if kept is None else kept)
            yield
        return snapshot_of(data)
