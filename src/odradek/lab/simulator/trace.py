"""Pure core: what happened in a run: a hash of all of it, and the last events as text.

Two runs of one seed are the same run if their hashes are the same. What is noted must therefore not depend on where
objects lie in memory, or on the order of a set.
"""

from __future__ import annotations

import hashlib
from collections import deque
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

LAST_EVENTS: Final = 64
"""How many events are kept to be shown when something goes wrong."""


class Trace:
    """The events of one run, oldest first.

    Attributes:
        events_count: How many were noted.
        counts: How many of each kind, by its name.
    """

    def __init__(self, on_event: Callable[[str], None] | None = None) -> None:
        """Begin with nothing.

        Args:
            on_event: Given each event as a line of text, as it happens.
        """
        self._hash = hashlib.blake2b(digest_size=16)
        self._last: deque[tuple[int, str, tuple[object, ...]]] = deque(maxlen=LAST_EVENTS)
        self._on_event = on_event
        self.events_count = 0
        self.counts: dict[str, int] = {}

    def note(self, now_ns: int, kind: str, *facts: object) -> None:
        """Note an event.

        Args:
            now_ns: When.
            kind: What, in a word or two; counted by it.
            facts: What else there is to say: numbers and texts.
        """
        self._hash.update(f"{now_ns} {kind} {facts!r}\n".encode())
        self.events_count += 1
        self.counts[kind] = self.counts.get(kind, 0) + 1
        self._last.append((now_ns, kind, facts))
        if self._on_event is not None:
            self._on_event(line_of(now_ns, kind, facts))

    @property
    def digest(self) -> str:
        """The hash of everything noted so far, in hexadecimal digits."""
        return self._hash.copy().hexdigest()

    def last_lines(self) -> list[str]:
        """Return the last events as lines of text, oldest first."""
        return [line_of(*event) for event in self._last]


def line_of(now_ns: int, kind: str, facts: tuple[object, ...]) -> str:
    """Return an event as a line of text."""
    told = " ".join(map(str, facts))
    return f"{now_ns / 1e9:14.6f}s  {kind:<12} {told}".rstrip()
