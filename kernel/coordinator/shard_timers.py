"""Pure core: the timers of one shard, on the broker's timing wheel, and what is computed for it beside."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from ..classes import define
from ..purgatory.timing_wheel import TimerEntry

if TYPE_CHECKING:
    from ..contracts.coordinator import Decided, TimerKey
    from ..purgatory.timing_wheel import TimingWheel
    from .shard_queue import ShardQueue

RETRY_PAUSE_MS: Final = 500
"""After an operation that failed."""

TimerOperation = Callable[[int], "Decided"]


@define(eq=False)
class _ShardTimer(TimerEntry):
    timers: ShardTimers
    key: TimerKey
    operation: TimerOperation

    def expire(self) -> None:
        """Run what is due."""
        self.timers.fire(self)


@define(eq=False)
class Computation:
    """What is computed on a thread, and whose outcome its shard waits for: the first half of a `DiskWork`.

    Attributes:
        key: Under which it is armed.
        work: Computes.
        operation: Takes the outcome.
        asked: A plugin's object that is asked, if any.
    """

    key: TimerKey
    work: Callable[[], Any]
    operation: Callable[[Any, int], Decided]
    asked: object
    _timers: ShardTimers
    _outcome: Any = None

    def run(self) -> None:
        """Compute, on a thread."""
        self._outcome = self.work()

    def end(self, *, is_computed: bool) -> None:
        """Have the outcome taken, or the key disarmed when there is none."""
        self._timers.computed(self, self._outcome, is_computed=is_computed)

    def cancel_timer(self) -> None:
        """Do nothing: it goes on, and its outcome finds nobody."""


class ShardTimers:
    """A `CoordinatorTimers`. Owned by the reactor's task; after `close` nothing fires and nothing can be armed.

    Attributes:
        monotonic_ms: The wheel's clock.
    """

    def __init__(
        self,
        wheel: TimingWheel,
        monotonic_ms: Callable[[], int],
        run: Callable[[TimerKey, TimerOperation], None],
        begin: Callable[[Computation], None],
        queue: ShardQueue,
    ) -> None:
        """Make timers, none armed.

        Args:
            wheel: Where they wait.
            monotonic_ms: The wheel's clock.
            run: Runs a due operation of a key; calls `try_again` when it has to run again.
            begin: Has something computed on a thread, and then ended.
            queue: Where what is due waits while the shard is busy.
        """
        self._wheel = wheel
        self.monotonic_ms = monotonic_ms
        self._run = run
        self._begin = begin
        self._queue = queue
        self._armed: dict[TimerKey, _ShardTimer | Computation] = {}
        self._is_closed = False

    def __len__(self) -> int:
        return len(self._armed)

    def schedule(self, key: TimerKey, delay_ms: int, operation: TimerOperation) -> None:
        """Arm a key; see `CoordinatorTimers.schedule`."""
        if self._is_closed:
            return
        self.cancel(key)
        timer = self._armed[key] = _ShardTimer(self.monotonic_ms() + max(delay_ms, 0), self, key, operation)
        self._wheel.add(timer)

    def compute(
        self, key: TimerKey, work: Callable[[], Any], operation: Callable[[Any, int], Any], *, asked: object = None
    ) -> None:
        """Arm a key with what is computed beside; see `CoordinatorTimers.compute`."""
        if self._is_closed:
            return
        self.cancel(key)
        computation = self._armed[key] = Computation(key, work, operation, asked, self)
        self._begin(computation)

    def computed(self, computation: Computation, outcome: Any, *, is_computed: bool) -> None:
        """Take what was computed, unless nobody waits for it any more."""
        key = computation.key
        if self._armed.get(key) is not computation:
            return
        del self._armed[key]
        if is_computed:
            self.schedule(key, 0, partial(computation.operation, outcome))

    def cancel(self, key: TimerKey) -> None:
        """Disarm a key; see `CoordinatorTimers.cancel`."""
        timer = self._armed.pop(key, None)
        if timer is not None:
            timer.cancel_timer()

    def is_scheduled(self, key: TimerKey) -> bool:
        """Return whether the key is armed."""
        return key in self._armed

    def fire(self, timer: _ShardTimer) -> None:
        """Run an operation whose time has come. As long as it waits for its turn it is armed, and may be disarmed."""
        if self._queue.is_busy:
            self._queue.put(partial(self._fire, timer))
        else:
            self._fire(timer)

    def _fire(self, timer: _ShardTimer) -> None:
        key = timer.key
        if self._armed.get(key) is not timer:
            return  # disarmed by a timer that was due in the same moment
        del self._armed[key]
        self._run(key, timer.operation)

    def try_again(self, key: TimerKey, operation: TimerOperation, pause_ms: int = RETRY_PAUSE_MS) -> None:
        """Have an operation that could not run, or failed, run again after a pause if it did not arm its key itself."""
        if key not in self._armed:
            self.schedule(key, pause_ms, operation)

    def close(self) -> None:
        """Disarm everything for good."""
        self._is_closed = True
        for timer in self._armed.values():
            timer.cancel_timer()
        self._armed.clear()
