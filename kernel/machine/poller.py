"""Shell: waiting for many sockets at once: Linux's epoll, or its simulated twin.

Descriptors are plain ints and events are pairs of a descriptor and a mask, so that a turn costs one call.

.. versionadded:: 0.1
"""

from __future__ import annotations

import os
import select
import sys
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol

import trio

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


if sys.platform == "linux":

    class EpollPoller:
        """epoll and an eventfd. Its methods are those of the system's objects: who calls them pays no other call."""

        __slots__ = ("_epoll", "modify", "poll", "register", "unregister", "wait", "wake", "wake_descriptor", "woken")

        def __init__(self) -> None:
            """Open both descriptors."""
            self._epoll = epoll = select.epoll()
            self.register = epoll.register
            self.modify = epoll.modify
            self.unregister = epoll.unregister
            self.poll = epoll.poll
            self.wait = partial(trio.lowlevel.wait_readable, epoll.fileno())
            self.wake_descriptor = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
            self.wake = partial(os.eventfd_write, self.wake_descriptor, 1)
            self.woken = partial(os.eventfd_read, self.wake_descriptor)
            epoll.register(self.wake_descriptor, READABLE)

        @property
        def closed(self) -> bool:
            """See `Poller.closed`."""
            return self._epoll.closed

        def close(self) -> None:
            """See `Poller.close`."""
            self._epoll.close()
            os.close(self.wake_descriptor)


def system_poller() -> Poller | None:
    """Return a poller of this system; None where it has no epoll."""
    return EpollPoller() if sys.platform == "linux" and hasattr(os, "eventfd") else None
