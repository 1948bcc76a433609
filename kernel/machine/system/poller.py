"""Shell: waiting for many sockets by Linux's epoll."""

from __future__ import annotations

import os
import select
import sys
from functools import partial
from typing import TYPE_CHECKING

import trio

from ..poller import READABLE

if TYPE_CHECKING:
    from ..poller import Poller

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
