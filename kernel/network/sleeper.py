"""Shell: sleeping where trio would, so that a ready socket needs no pass of trio's loop.

trio sleeps in an epoll of its own. A reactor nested in it pays for every wake-up with a pass through trio's loop: two
polls, a registration, a task's step. In a run whose owner calls `take_over_sleep` the nesting is turned round. The
reactor watches trio's epoll in its own, and sleeps there in the hook that trio calls before it would sleep itself
(`trio.abc.Instrument.before_io_wait`). Sockets are served right there, until trio has something to do: a task that
runs, a deadline that has passed, an event in its own epoll.

Only the owner of a run may ask for it, and only where nothing but the broker lives in it: where trio is a guest of
another loop the hook would block the host, a mock clock knows other deadlines, and
`trio.testing.wait_all_tasks_blocked` with a cushion never finds the run idle.

.. versionadded:: 0.1
"""

from __future__ import annotations

import logging
import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

import attrs
import trio

from ..classes import define

if TYPE_CHECKING:
    from collections.abc import Callable

_log = logging.getLogger(__name__)

SLEEP_SECONDS_MAX: Final = 3600.0

_IS_OURS: Final = trio.lowlevel.RunVar("odradek: the run's sleep may be taken over", False)


def take_over_sleep() -> None:
    """Let the next reactor of this trio run sleep in trio's stead; for who called `trio.run` for a broker alone."""
    _IS_OURS.set(True)


def may_take_over_sleep() -> bool:
    """Say whether the caller may sleep for this run: once, as a run has one sleep."""
    is_ours = _IS_OURS.get()
    _IS_OURS.set(False)
    return is_ours


def epoll_that_watches(descriptor: int) -> int | None:
    """Return the one epoll of this process that watches `descriptor`; None if that cannot be told.

    The system says what an epoll watches: `tfd` in `/proc/self/fdinfo`, proc(5).
    """
    wanted = ["tfd:", str(descriptor)]
    found = []
    with suppress(OSError):
        for entry in Path("/proc/self/fd").iterdir():
            with suppress(OSError):  # closed meanwhile, as the listing's own descriptor is
                if str(entry.readlink()) == "anon_inode:[eventpoll]":
                    lines = Path("/proc/self/fdinfo", entry.name).read_text().splitlines()
                    if any(line.split()[:2] == wanted for line in lines):
                        found.append(int(entry.name))
    return found[0] if len(found) == 1 else None


class Nest(Protocol):
    """An epoll of its own, with who serves what it watches."""

    def watch_trio(self, descriptor: int, on_ready: Callable[[], None]) -> None:
        """Call `on_ready` once trio's own epoll, `descriptor`, has events; not again before `watch_trio_again`."""
        ...

    def watch_trio_again(self, descriptor: int) -> None:
        """Call for the next events, too, or for those that are still there."""
        ...

    def unwatch_trio(self, descriptor: int) -> None:
        """Stop calling."""
        ...

    def sleep_and_serve(self, seconds: float) -> bool:
        """Wait for events, for `seconds` at most, serve for a bounded time, and return whether there may be more."""
        ...


@define(eq=False)
class Sleeper(trio.abc.Instrument):
    """Sleeps in one nest for the trio run that it is an instrument of, from `run` until its end.

    Invariant: when trio goes on it does not sleep: the bell, which its epoll watches for the task of `run`, has rung,
    its epoll has other events, or it did not want to.
    """

    nest: Nest
    _bell: int = attrs.field(init=False, default=-1)
    _descriptor: int = attrs.field(init=False, default=-1)
    _is_trio_ready: bool = attrs.field(init=False, default=False)
    _failure: BaseException | None = attrs.field(init=False, default=None)

    async def run(self) -> None:
        """Sleep for the run until cancelled; return at once where trio's epoll cannot be told from others.

        What serving raises is raised here.
        """
        self._bell = os.eventfd(1, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        try:
            await trio.lowlevel.wait_readable(self._bell)  # it is rung, and from now on trio's epoll knows it
            os.eventfd_read(self._bell)
            descriptor = epoll_that_watches(self._bell)
            if descriptor is None:
                _log.info("trio's epoll cannot be found in /proc: sockets wake the broker by way of trio")
                return
            self._descriptor = descriptor
            self.nest.watch_trio(descriptor, self._on_trio_ready)
            trio.lowlevel.add_instrument(self)
            try:
                await self._wait_for_failure()
            finally:
                trio.lowlevel.remove_instrument(self)
                self.nest.unwatch_trio(descriptor)
        finally:
            os.close(self._bell)

    async def _wait_for_failure(self) -> None:
        while self._failure is None:
            await trio.lowlevel.wait_readable(self._bell)
            os.eventfd_read(self._bell)
        raise self._failure

    def _on_trio_ready(self) -> None:
        self._is_trio_ready = True

    def before_io_wait(self, timeout: float) -> None:
        """Sleep, and serve, until trio has something to do; called by trio with the time that it would sleep."""
        try:
            if self._is_trio_ready:
                self._is_trio_ready = False
                self.nest.watch_trio_again(self._descriptor)
            if self._failure is None:
                self._sleep(timeout)
        except BaseException as error:  # not trio's business, which would only log it: it is the task's
            self._failure = error
        if timeout > 0 and not self._is_trio_ready:
            os.eventfd_write(self._bell, 1)

    def _sleep(self, timeout: float) -> None:
        serve = self.nest.sleep_and_serve
        is_busy = serve(min(timeout, SLEEP_SECONDS_MAX))
        while timeout > 0 and not self._is_trio_ready:
            state = trio.lowlevel.current_statistics()
            seconds = state.seconds_to_next_deadline
            if state.tasks_runnable or seconds <= 0:
                return
            is_busy = serve(0 if is_busy else min(seconds, SLEEP_SECONDS_MAX))
