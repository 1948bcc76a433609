"""Pure core: what a connection asks of who takes its frames and who moves its bytes: types alone.

.. versionadded:: 0.1
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from .connection import Connection


class FrameReceiver(Protocol):
    """Who takes the frames: the dispatcher. All methods are called by the loop's task and must not block."""

    def connection_opened(self, connection: Connection) -> None:
        """Meet a new connection, before its first frame."""
        ...

    def frame_received(self, connection: Connection, frame: memoryview) -> None:
        """Take one request, without its size; open a reply slot for it if it gets an answer.

        The view, writable, may be kept: the memory under it is not used again while a view on it exists. Kept longer
        than the turn it ties up a large piece of memory, so whoever waits copies the few bytes needed.

        Raises:
            MalformedRequestError: The client broke the protocol: its connection is closed.
        """
        ...

    def turn_ended(self) -> None:
        """Finish what the frames of this turn began: called once a turn, before answers are sent."""
        ...

    def connection_closed(self, connection: Connection) -> None:
        """Forget a connection; answers completed later go nowhere."""
        ...


class Driver(Protocol):
    """Who moves a connection's bytes."""

    def flush(self) -> None:
        """Look after what got dirty; takes the connection's mark away."""
        ...
