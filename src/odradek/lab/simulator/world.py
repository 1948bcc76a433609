"""Pure core: virtual time: the queue of what is going to happen, and what happened.

Time is a number of nanoseconds that only `World.advance` changes, to the moment of the next event: whatever the code
under test computes takes no time. Events of one moment happen in the order in which they were asked for.
"""

from __future__ import annotations

import heapq
import math
from typing import TYPE_CHECKING, Any, Final

from .trace import Trace

if TYPE_CHECKING:
    from collections.abc import Callable

    from .seeds import Seeds

MICROSECOND: Final = 1_000
MILLISECOND: Final = 1_000_000
SECOND: Final = 1_000_000_000

WALL_START_MS: Final = 1_700_000_000_000
"""What the wall clock shows as a run begins."""
MONOTONIC_START_NS: Final = 5_000 * SECOND
"""What the monotonic clock shows as a run begins: not 0, so that nobody takes one clock for the other."""


class SimulationError(Exception):
    """A run cannot go on, or found that something is wrong."""


class Event:
    """Something that is going to happen, unless it is cancelled before."""

    __slots__ = ("_arguments", "_call", "time_ns")

    def __init__(self, time_ns: int, call: Callable[..., object], arguments: tuple[object, ...]) -> None:
        """Make one; `World.at` puts it into the queue."""
        self.time_ns = time_ns
        self._call: Callable[..., object] | None = call
        self._arguments = arguments

    @property
    def is_pending(self) -> bool:
        """Whether it is still to happen."""
        return self._call is not None

    def cancel(self) -> None:
        """Let it not happen; nothing is wrong if it has."""
        self._call = None
        self._arguments = ()

    def happen(self) -> None:
        """Do it, once."""
        call, arguments = self._call, self._arguments
        self.cancel()
        if call is not None:
            call(*arguments)


class World:
    """One run's time, its random sources and its trace.

    Attributes:
        seeds: Where every random number comes from.
        trace: What happened.
        now_ns: The monotonic clock, in nanoseconds.
        happened_count: How many events have happened.
        killed_ns: When a process was killed last; -1 if none was.
        before_event: Called before an event happens: where faults come in.
        before_time: Called when no task can go on, before the next thing happens: where what is true is looked at. Who
            raises is not called again.
    """

    def __init__(self, seeds: Seeds, trace: Trace | None = None) -> None:
        """Begin a run at which nothing is to happen yet."""
        self.seeds = seeds
        self.trace = Trace() if trace is None else trace
        self.now_ns = MONOTONIC_START_NS
        self.happened_count = 0
        self.killed_ns = -1
        self.before_event: Callable[[], None] = lambda: None
        self.before_time: Callable[[], None] = lambda: None
        self._queue: list[tuple[int, int, Event]] = []
        self._asked_count = 0

    # -- what is going to happen ------------------------------------------------------------------------------------

    def at(self, time_ns: int, call: Callable[..., object], *arguments: Any) -> Event:
        """Have something happen at a time, not before now."""
        event = Event(max(time_ns, self.now_ns), call, arguments)
        self._asked_count += 1
        heapq.heappush(self._queue, (event.time_ns, self._asked_count, event))
        return event

    def after(self, delay_ns: int, call: Callable[..., object], *arguments: Any) -> Event:
        """Have something happen `delay_ns` >= 0 from now."""
        return self.at(self.now_ns + delay_ns, call, *arguments)

    @property
    def next_ns(self) -> int | None:
        """When the next event happens; None if there is none."""
        queue = self._queue
        while queue and not queue[0][2].is_pending:
            heapq.heappop(queue)
        return queue[0][0] if queue else None

    def advance(self, deadline_ns: int | None) -> bool:
        """Let time pass until the next event, and let all events of that moment happen.

        Args:
            deadline_ns: How far at most: then no event happens if all are later. None for no limit.

        Returns:
            Whether time passed or something happened: False when there is nothing to wait for.
        """
        look, self.before_time = self.before_time, lambda: None
        look()
        self.before_time = look
        next_ns = self.next_ns
        if next_ns is None or (deadline_ns is not None and deadline_ns < next_ns):
            if deadline_ns is None:
                return False
            self.now_ns = max(self.now_ns, deadline_ns)
            return True
        self.now_ns = next_ns
        queue = self._queue
        while queue and queue[0][0] == next_ns:
            event = heapq.heappop(queue)[2]
            if event.is_pending:
                self.happened_count += 1
                self.before_event()
                event.happen()
        return True

    # -- clocks ------------------------------------------------------------------------------------------------------

    @property
    def elapsed_ns(self) -> int:
        """How long the run has lasted, in virtual time."""
        return self.now_ns - MONOTONIC_START_NS

    @property
    def seconds(self) -> float:
        """The monotonic clock in seconds, as trio counts."""
        return self.now_ns / SECOND

    def wall_ms(self) -> int:
        """Return the wall clock, in milliseconds since the Unix epoch."""
        return WALL_START_MS + self.elapsed_ns // MILLISECOND

    def note(self, kind: str, *facts: object) -> None:
        """Note in the trace what happens now."""
        self.trace.note(self.elapsed_ns, kind, *facts)


def nanoseconds_at(seconds: float) -> int | None:
    """Return the first moment in nanoseconds that is not before `seconds`; None for infinity.

    As a float the moment is not before `seconds` either, so that a deadline has passed when it is reached.
    """
    if math.isinf(seconds):
        return None
    time_ns = math.ceil(seconds * SECOND)
    while time_ns / SECOND < seconds:
        time_ns += 1
    return time_ns
