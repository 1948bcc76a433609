"""Pure core: a purgatory, where operations wait under the keys of what could complete them.

    watch(fetch, [p1, p2])           p1 -> fetch           the wheel -> fetch, at its deadline
                                     p2 -> fetch
    an append to p2: check([p2])     fetch.is_ready_for(p2)? then it is taken out everywhere, finish(READY)
    the deadline                     fetch is taken out everywhere, then finish(EXPIRED)
    the connection ends              cancel_for(connection): taken out everywhere, then finish(CANCELLED)

An operation is taken out of every list at the moment it ends, so memory is bounded by what really waits. Kafka leaves
ended operations in the lists and purges them now and then, because its lists are shared by threads; here they are dicts
of one task, and taking one out costs what putting it in did.

For the same reason the caller tries the condition once, before `watch`, and not again after it as Kafka must: nothing
can happen in between.

*Source:* Kafka's DelayedOperationPurgatory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..classes import frozen
from .delayed_operation import DelayedOperation, Outcome

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Hashable

    from .timing_wheel import TimingWheel


@frozen
class PurgatoryStatistics:
    """A picture of a purgatory.

    Attributes:
        delayed_count: Operations that wait (Kafka's `NumDelayedOperations`).
        watched_count: Operations times the keys they wait under (Kafka's `PurgatorySize`).
        keys_count: Keys that something waits under.
        completed_count: Ended by their condition after they were parked, since the start.
        expired_count: Ended by time, since the start.
        cancelled_count: Ended because their owner went, since the start.
        errors_count: Exceptions of operations, since the start.
    """

    delayed_count: int
    watched_count: int
    keys_count: int
    completed_count: int
    expired_count: int
    cancelled_count: int
    errors_count: int


class Purgatory:
    """Operations of one kind (`Fetch`, `Produce`, ...) that wait. Owned by one task, which advances the wheel too.

    Attributes:
        watchers: What waits, by key: who calls `check` for each append may look first whether there is anything.
    """

    def __init__(
        self, name: str, wheel: TimingWheel, *, on_error: Callable[[DelayedOperation, Exception], None]
    ) -> None:
        """Make an empty purgatory.

        Args:
            name: For metrics and logs, Kafka's: `Fetch`, `Produce`.
            wheel: Holds the deadlines; may be shared.
            on_error: Told of an operation that raised. One whose condition raises goes on waiting for its deadline.
        """
        self.name = name
        self._wheel = wheel
        self._on_error = on_error
        self.watchers: dict[Hashable, dict[DelayedOperation, None]] = {}
        self._owned: dict[Hashable, dict[DelayedOperation, None]] = {}
        self._parked_count = 0
        self._ended_counts = dict.fromkeys(Outcome, 0)
        self._errors_count = 0

    def __repr__(self) -> str:
        return f"<Purgatory {self.name}: {self.delayed_count} wait under {len(self.watchers)} keys>"

    @property
    def delayed_count(self) -> int:
        """Operations that wait."""
        return self._parked_count - sum(self._ended_counts.values())

    def watch(self, operation: DelayedOperation, keys: Collection[Hashable]) -> None:
        """Let an operation wait whose condition the caller has just found not to hold.

        Args:
            operation: Not parked before, not ended.
            keys: Under which of them a `check` asks again; kept, not copied: must not change, holds no key twice.
        """
        assert operation.purgatory is None, "an operation is parked once"
        operation.purgatory = self
        operation.keys = keys
        self._parked_count += 1
        watchers = self.watchers
        for key in keys:
            watching = watchers.get(key)
            if watching is None:
                watchers[key] = {operation: None}
            else:
                watching[operation] = None
        owner = operation.owner
        if owner is not None:
            owned = self._owned.get(owner)
            if owned is None:
                self._owned[owner] = {operation: None}
            else:
                owned[operation] = None
        self._wheel.add(operation)

    def check(self, keys: Collection[Hashable]) -> int:
        """Complete the operations under any of `keys` whose condition holds now; return how many. Hot.

        All are asked, for every key that they wait under, before the first is ended: so what changed together is seen
        together.
        Operations that are parked while it runs are not asked again: they were just tried.
        """
        watchers = self.watchers
        ready: dict[DelayedOperation, None] = {}
        for key in keys:
            watching = watchers.get(key)
            if watching is not None:
                for operation in tuple(watching):
                    if self._is_ready(operation, key):
                        ready[operation] = None
        return sum(operation.end(Outcome.READY) for operation in ready)

    def check_one(self, operation: DelayedOperation, key: Hashable) -> bool:
        """Complete one operation if its condition holds now, `key` having changed; return whether it did."""
        return self._is_ready(operation, key) and operation.end(Outcome.READY)

    def _is_ready(self, operation: DelayedOperation, key: Hashable) -> bool:
        if operation.outcome is not None:
            return False  # ended by what another one did
        try:
            return operation.is_ready_for(key)
        except Exception as error:  # the caller is somebody's append: it must not suffer from another's fetch
            self.report_error(operation, error)
            return False

    def cancel_for(self, owner: Hashable) -> int:
        """End everything that waits for `owner`, unanswered; return how many."""
        owned = self._owned.get(owner)
        if owned is None:
            return 0
        return sum(operation.end(Outcome.CANCELLED) for operation in tuple(owned))

    def expire_all(self) -> None:
        """End everything that waits as if its time were over: the broker stops, nothing more will come."""
        for operation in {each: None for watching in self.watchers.values() for each in watching}:
            operation.end(Outcome.EXPIRED)

    def release(self, operation: DelayedOperation) -> None:
        """Take an operation that has ended out of every list; `DelayedOperation.end` calls it."""
        assert operation.outcome is not None
        self._ended_counts[operation.outcome] += 1
        watchers = self.watchers
        for key in operation.keys:
            watching = watchers[key]
            if len(watching) == 1:
                del watchers[key]
            else:
                del watching[operation]
        operation.keys = ()
        owner = operation.owner
        if owner is not None:
            owned = self._owned[owner]
            if len(owned) == 1:
                del self._owned[owner]
            else:
                del owned[operation]

    def report_error(self, operation: DelayedOperation, error: Exception) -> None:
        """Count an exception of an operation and pass it on."""
        self._errors_count += 1
        self._on_error(operation, error)

    def statistics(self) -> PurgatoryStatistics:
        """Return a picture of the purgatory; walks over its keys."""
        return PurgatoryStatistics(
            delayed_count=self.delayed_count,
            watched_count=sum(map(len, self.watchers.values())),
            keys_count=len(self.watchers),
            completed_count=self._ended_counts[Outcome.READY],
            expired_count=self._ended_counts[Outcome.EXPIRED],
            cancelled_count=self._ended_counts[Outcome.CANCELLED],
            errors_count=self._errors_count,
        )
