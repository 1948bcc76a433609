"""Pure core: answers that wait until the records before them are committed.

One queue for each shard, in the order in which operations ran; the offset that an entry waits for never goes back, so
looking at the front is enough::

    submit add    records 10..11  -> waits for 12
    submit read   no records      -> waits for 12 too: what it saw is not committed yet
    submit add    record 12       -> waits for 13
    high watermark 12             -> the first two are answered, in their order

An operation may answer thousands, as all members of a group: they are told some at a time, so that nobody else is held
up by it, and keep their place in the queue until they are.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from ..purgatory.gathering import Gathered

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from ..contracts.coordinator import Waiter
    from ..errors import ErrorCode, KafkaError


class Settlement(NamedTuple):
    """What a waiter will be told: the error, or the response when that is None."""

    waiter: Waiter
    response: Any
    error: KafkaError | None = None

    def settle(self) -> None:
        """Tell it."""
        if self.error is None:
            self.waiter.answer(self.response)
        else:
            self.waiter.fail(self.error)


class _Entry(NamedTuple):
    required_offset: int
    deadline_ms: int
    settlements: deque[Settlement]


class AnswerQueue:
    """The answers of one shard that wait. Owned by the reactor's task."""

    __slots__ = ("_entries",)

    def __init__(self) -> None:
        self._entries: deque[_Entry] = deque()

    def __len__(self) -> int:
        return sum(len(entry.settlements) for entry in self._entries)

    def __bool__(self) -> bool:
        return bool(self._entries)

    @property
    def next_deadline_ms(self) -> int | None:
        """When the first entry has waited too long; None when nothing waits."""
        return self._entries[0].deadline_ms if self._entries else None

    def put(self, required_offset: int, deadline_ms: int, settlements: Sequence[Settlement]) -> None:
        """Let answers wait until the high watermark reaches `required_offset`; neither number goes back."""
        if settlements:
            self._entries.append(_Entry(required_offset, deadline_ms, deque(settlements)))

    def has_committed(self, high_watermark: int) -> bool:
        """Return whether something waits that may be told now."""
        return bool(self._entries) and self._entries[0].required_offset <= high_watermark

    def pop_committed(self, high_watermark: int, limit: int) -> Iterator[Settlement]:
        """Yield what may be told now, at most `limit`, taking it out one by one: telling may empty the queue."""
        while limit > 0 and self.has_committed(high_watermark):
            limit -= 1
            yield self._pop()

    def pop_expired(self, now_ms: int, limit: int) -> Iterator[Settlement]:
        """Yield what has waited too long, as `pop_committed` does."""
        entries = self._entries
        while limit > 0 and entries and entries[0].deadline_ms <= now_ms:
            limit -= 1
            yield self._pop()

    def _pop(self) -> Settlement:
        settlements = self._entries[0].settlements
        settlement = settlements.popleft()
        if not settlements:
            self._entries.popleft()
        return settlement

    def pop_all(self) -> list[Settlement]:
        """Take out and return everything."""
        everything = [settlement for entry in self._entries for settlement in entry.settlements]
        self._entries.clear()
        return everything


def gathered_for(
    waiter: Waiter, partitions: Iterable[int], left_out: frozenset[ErrorCode]
) -> Gathered[int, tuple[Any, KafkaError | None]]:
    """Return what gathers response and error of several shards for one waiter; see `CoordinatorRuntime.submit_all`.

    Args:
        waiter: Told the list of responses, or the first error.
        partitions: Which shards are asked; their order is that of the responses.
        left_out: Errors of shards that are no longer asked: they take no part.
    """

    def tell(told: Mapping[int, tuple[Any, KafkaError | None]]) -> None:
        errors = [error for _, error in told.values() if error is not None and error.code not in left_out]
        if errors:
            waiter.fail(errors[0])
        else:
            waiter.answer([response for response, error in told.values() if error is None])

    return Gathered(partitions, tell)


class CallbackWaiter:
    """A waiter that hands what it is told to a function of response and error."""

    __slots__ = ("_tell",)

    def __init__(self, tell: Callable[[Any, KafkaError | None], None]) -> None:
        self._tell = tell

    def answer(self, response: Any) -> None:
        """Take the response."""
        self._tell(response, None)

    def fail(self, error: KafkaError) -> None:
        """Take an error instead."""
        self._tell(None, error)
