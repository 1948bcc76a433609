"""Pure core: who fills the memory that was lent to its frame too slowly, while others wait for it.

A frame that stands still gives its room back within a second. One that creeps, a byte now and then, does so as well:
its progress is measured against what it holds. Looked at once a second, only while memory is short, and over a few
seconds, as clients may have their pauses and large frames are read in large pieces.

.. versionadded:: 0.1
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from .connection import Connection

PACE_WINDOW_MS: Final = 3000
"""Over how long a frame's pace is measured."""
FILL_MS_MAX: Final = 30_000
"""At its pace the rest of the room that a frame was lent has to be filled within this."""


class _Noted(NamedTuple):
    at_ms: int
    missing_bytes: int


class Paces:
    """What was seen of frames that are lent memory, since it became short. Owned by a loop."""

    def __init__(self) -> None:
        """Make it; nothing was seen."""
        self._noted: dict[Connection, _Noted] = {}
        self._seen: dict[Connection, _Noted] = {}

    def begin_look(self) -> None:
        """Begin to look at all connections anew; those that are not looked at are forgotten."""
        self._noted, self._seen = self._seen, {}

    def forget(self) -> None:
        """Forget everything: nobody waits for memory."""
        if self._seen:
            self._seen = {}

    def is_too_slow(self, connection: Connection, now_ms: int) -> bool:
        """Take note of how much of a connection's frame is missing; return whether too little has come since.

        Who stands still is not slow: it is known by when it was last heard of.
        """
        if not (connection.begun_block_bytes and connection.wants_input):
            return False  # it is lent nothing, or is not to send
        now = _Noted(now_ms, connection.missing_bytes)
        before = self._noted.get(connection)
        if before is None or now.missing_bytes > before.missing_bytes:  # another frame
            self._seen[connection] = now
            return False
        passed_ms = now_ms - before.at_ms
        if passed_ms < PACE_WINDOW_MS:
            self._seen[connection] = before
            return False
        self._seen[connection] = now
        came_bytes = before.missing_bytes - now.missing_bytes
        return 0 < came_bytes * FILL_MS_MAX < len(connection.writable()) * passed_ms
