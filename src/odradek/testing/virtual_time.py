"""Shell: the virtual time of a test's broker: it goes on over the broker's lives, each of which has its own run.

Imported where a broker has such a time: it needs trio.
"""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import attrs
import trio

from odradek.kernel.config.durations import parse_duration
from odradek.kernel.machine.clock import SystemClock

from .advanced_clock import AdvancedClock
from .counted_threads import CountedThreads
from .passing_time import STEP_CALM, STEP_ROUNDS_MAX, PassingTime
from .presence import Presence

if TYPE_CHECKING:
    from collections.abc import Collection

    from odradek.kernel.broker.parts import BrokerParts
    from odradek.kernel.machine.machine import Machine

    from .broker_thread import BrokerThread


class VirtualTime:
    """The time of one broker. Owned by the test's thread; what belongs to a life, by that of the broker.

    Attributes:
        clock: Its clock, in all lives; brokers of a cluster share one.
    """

    def __init__(self, machine: Machine, clock: AdvancedClock | None = None) -> None:
        """Begin at the time of a machine, or go by a clock that others have, too."""
        self.clock = clock or AdvancedClock(timer=machine.timer, wall=SystemClock())
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

    def share(self, thread: BrokerThread) -> SharedTime:
        """Return this life's part in a time that passes for several brokers at once."""
        assert self._passing is not None, "a life has begun"
        return SharedTime(thread, self._passing, self._presence)


@attrs.frozen
class SharedTime:
    """One broker's part in the time of several: what `ClusterTime` has it do at each step, on the broker's thread.

    For as long as it is neither stopped nor paused. Called by one thread at a time, any of the test's.
    """

    _thread: BrokerThread
    _passing: PassingTime
    _presence: Presence

    def names(self) -> frozenset[str]:
        """Return who was ever here; see `Presence.names`."""
        names: frozenset[str] = self._thread.call(lambda: self._presence.names)
        return names

    def silence(self, names: Collection[str]) -> None:
        """Hear nothing of those of these names that were ever here, until `hear_all`."""
        self._thread.call(lambda: self._presence.silence(self._presence.names.intersection(names)))

    def hear_all(self) -> None:
        """Hear everybody again."""
        self._thread.call(self._presence.hear_all)

    def hold(self) -> None:
        """Have the broker wait until `go_on`, so that it does not see the clock set forward before `keep`."""
        self._thread.pause()

    def keep(self) -> None:
        """Take it that everybody has just spoken who is connected; see `Presence.keep`."""
        self._thread.call(lambda: self._presence.keep(self._thread.network))

    def go_on(self) -> None:
        """Let it see what time it is."""
        self._thread.resume()

    def settle(self) -> Settled:
        """Wait until the broker is at rest, and return how it stands then."""

        async def rest() -> Settled:
            await self._passing.rest(STEP_CALM, STEP_ROUNDS_MAX)
            statistics = self._thread.network.statistics()
            assert statistics is not None, "it serves"
            due_s = trio.lowlevel.current_statistics().seconds_to_next_deadline
            return Settled(due_s, statistics.bytes_in + statistics.bytes_out)

        settled: Settled = self._thread.carry_out(rest)
        return settled


class Settled(NamedTuple):
    """A broker at rest: in how many seconds something is due, and how many bytes its clients and it have exchanged."""

    due_s: float
    bytes_count: int


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
