"""What the purgatory and its timing wheel cost, beside a heap of timers; run by hand: `python benchmarks/purgatory.py`.

Prints the best of five rounds, in microseconds for each operation.
"""

from __future__ import annotations

import heapq
import time
from typing import TYPE_CHECKING

import attrs

from odradek.kernel.purgatory.delayed_operation import DelayedOperation, Outcome
from odradek.kernel.purgatory.purgatory import Purgatory
from odradek.kernel.purgatory.timing_wheel import TimerEntry, TimingWheel

if TYPE_CHECKING:
    from collections.abc import Callable

COUNT = 20_000
ROUNDS = 5


@attrs.define(eq=False)
class Parked(DelayedOperation):
    """The smallest operation there is."""

    ready: bool = False

    def is_ready(self) -> bool:
        """Look at the switch."""
        return self.ready

    def finish(self, outcome: Outcome) -> None:
        """Do nothing."""


def add_and_cancel() -> None:
    """Start and cancel a 500 ms timer."""
    wheel = TimingWheel(now_ms=0)
    for number in range(COUNT):
        entry = TimerEntry(500 + number // 50)
        wheel.add(entry)
        entry.cancel_timer()


def heap_and_cancel() -> None:
    """The same with heapq, cancelling by a mark, a thousand others waiting."""
    heap = [(number, -number, TimerEntry(number)) for number in range(1000)]
    for number in range(COUNT):
        entry = TimerEntry(500 + number // 50)
        heapq.heappush(heap, (entry.deadline_ms, number, entry))
        heapq.heappop(heap)


def add_and_expire() -> None:
    """Let timers spread over ten minutes expire, with what it takes to come down from the overflow wheel."""
    wheel = TimingWheel(now_ms=0)
    for number in range(COUNT):
        wheel.add(TimerEntry(number * 30))
    while (next_ms := wheel.next_expiry_ms()) is not None:
        wheel.advance(next_ms)


def park_and_complete(keys_count: int) -> Callable[[], None]:
    """Return a round: park a fetch under so many partitions, complete it by a check of one."""
    keys = [object() for _ in range(keys_count)]

    def turn() -> None:
        wheel = TimingWheel(now_ms=0)
        purgatory = Purgatory("Fetch", wheel, on_error=lambda operation, error: None)
        connection = object()
        for number in range(COUNT // keys_count):
            operation = Parked(500 + number // 50, connection)
            purgatory.watch(operation, keys)
            operation.ready = True
            purgatory.check(keys[:1])

    return turn


def check_in_vain() -> None:
    """Check a key under which nothing waits: what every append pays."""
    purgatory = Purgatory("Fetch", TimingWheel(now_ms=0), on_error=lambda operation, error: None)
    keys = (object(),)
    for _ in range(COUNT):
        purgatory.check(keys)


def best_us(turn: Callable[[], None], count: int) -> float:
    """Return the microseconds an operation takes in the best round."""
    best_ns = 1 << 62
    for _ in range(ROUNDS):
        start_ns = time.perf_counter_ns()
        turn()
        best_ns = min(best_ns, time.perf_counter_ns() - start_ns)
    return best_ns / count / 1000


def main() -> None:
    """Print the table."""
    cases: list[tuple[str, Callable[[], None], int]] = [
        ("wheel: add and cancel", add_and_cancel, COUNT),
        ("heapq: push and pop, 1,000 waiting", heap_and_cancel, COUNT),
        ("wheel: add and expire", add_and_expire, COUNT),
        ("purgatory: park and complete, 1 key", park_and_complete(1), COUNT),
        ("purgatory: park and complete, 10 keys", park_and_complete(10), COUNT // 10),
        ("purgatory: park and complete, 1,000 keys", park_and_complete(1000), COUNT // 1000),
        ("purgatory: check in vain", check_in_vain, COUNT),
    ]
    for name, turn, count in cases:
        print(f"{name:<45} {best_us(turn, count):8.2f} us")


if __name__ == "__main__":
    main()
