"""Shell: the virtual time of one test's broker: it goes on over the broker's lives, each of which has its own run.

Imported where a broker has such a time: it needs trio.
"""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING

import attrs

from odradek.kernel.config.durations import parse_duration
from odradek.kernel.machine.clock import SystemClock

from .advanced_clock import AdvancedClock
from .counted_threads import CountedThreads
from .passing_time import PassingTime
from .presence import Presence

if TYPE_CHECKING:
    from collections.abc import Collection

    from odradek.kernel.broker.parts import BrokerParts
    from odradek.kernel.machine.machine import Machine

    from .broker_thread import BrokerThread


class VirtualTime:
    """The time of one broker. Owned by the test's thread; what belongs to a life, by that of the broker.

    Attributes:
        clock: Its clock, in all lives.
    """

    def __init__(self, machine: Machine) -> None:
        """Begin at the time of a machine."""
        self.clock = AdvancedClock(timer=machine.timer, wall=SystemClock())
        self._presence = Presence()
        self._passing: PassingTime | None = None

    def __repr__(self) -> str:
        return f"<VirtualTime, {self.clock!r}>"

    def begin_life(self, machine: Machine) -> Machine:
        """Return the machine as a broker is to have it that starts now; `attach` has to follow.

        It has no processes: what a thread does is waited for.
        """
        threads = CountedThreads(machine.threads)
        self._presence = Presence()
        self._passing = PassingTime(self.clock, threads, self._presence)
        return attrs.evolve(machine, clock=self.clock, threads=threads, processes=None)

    def attach(self, parts: BrokerParts) -> None:
        """Take the broker, which has not begun to serve."""
        self._presence.attach(parts)

    def advance(self, thread: BrokerThread, duration_ms: int, silent: Collection[str]) -> None:
        """Let time pass for the broker that runs on a thread; see `PassingTime.advance`."""
        assert self._passing is not None, "a life has begun"
        thread.carry_out(partial(self._passing.advance, duration_ms, silent, thread.network))


def duration_ms(duration: str | timedelta | int) -> int:
    """Return a duration in milliseconds.

    Args:
        duration: A text such as `30m`, a `timedelta`, or milliseconds.

    Raises:
        ConfigError: The text is no duration.
        ValueError: It is negative.
    """
    if isinstance(duration, str):
        return parse_duration(duration)
    milliseconds = duration // timedelta(milliseconds=1) if isinstance(duration, timedelta) else duration
    if milliseconds < 0:
        raise ValueError(f"advance: time does not go back by {-milliseconds} ms")
    return milliseconds
