"""Shell: waiting for many sockets at once: Linux's epoll, or its simulated twin.

Descriptors are plain ints and events are pairs of a descriptor and a mask, so that a turn costs one call.

.. versionadded:: 0.1
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Awaitable

READABLE: Final = 1
"""Bytes, or clients, to take; the same number as EPOLLIN."""
WRITABLE: Final = 4
"""Room to send; the same number as EPOLLOUT."""
ONE_SHOT: Final = 1 << 30
"""Tell once, until `modify`; the same number as EPOLLONESHOT."""


class Poller(Protocol):
    """Tells which sockets are ready: level-triggered, hang-ups (any other bit) without being asked for them."""

    @property
    def wake_descriptor(self) -> int:
        """The descriptor of the event that `wake` causes; it is registered from the start."""
        ...

    @property
    def closed(self) -> bool:
        """Whether it was closed."""
        ...

    def register(self, descriptor: int, mask: int, /) -> None:
        """Begin to watch."""
        ...

    def modify(self, descriptor: int, mask: int, /) -> None:
        """Watch for something else; 0 is for hang-ups only."""
        ...

    def unregister(self, descriptor: int, /) -> None:
        """Watch no more."""
        ...

    def poll(self, seconds: float, events_max: int, /) -> list[tuple[int, int]]:
        """Return what is ready, waiting for it `seconds` at most; a simulated one is only asked for 0 seconds."""
        ...

    def wait(self) -> Awaitable[None]:
        """Wait, as a task, until something is ready."""
        ...

    def wake(self) -> object:
        """Make `wake_descriptor` readable, until `woken`."""
        ...

    def woken(self) -> object:
        """Take the wake-up back: it was heard."""
        ...

    def close(self) -> None:
        """Give it up."""
        ...
