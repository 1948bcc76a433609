"""A delay queue against a model that keeps a dictionary: order, time, checkpoints."""

from __future__ import annotations

import random
from typing import Protocol

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from odradek.kernel.api import DelayQueue
from odradek.kernel.api import WaitingRecord as Waiting

END_OF_TIME = 2**63 - 1
CHUNK_ENTRIES = 8
"""So that a few hundred records are a crowd."""


class PreparedQueue(DelayQueue, Protocol):
    """A queue that is told how much it may do at once."""

    def prepare(self, now_ms: int, entries_max: int = ...) -> bool: ...


def take_all(queue: PreparedQueue, now_ms: int = END_OF_TIME, *, at_once: int = 100) -> list[Waiting]:
    """Deliver what is due until there is nothing."""
    found: list[Waiting] = []
    while True:
        while not queue.prepare(now_ms, CHUNK_ENTRIES):
            pass
        due = queue.due(now_ms, at_once)
        if not due:
            return found
        found += due
        queue.delivered(*due[-1][:2])


class QueueModel(RuleBasedStateMachine):
    """A partition's log is made up; the queue hears of it, and the model knows."""

    def new_queue(self) -> PreparedQueue:
        raise NotImplementedError

    def copy_of(self, queue: PreparedQueue) -> PreparedQueue:
        """Return what the kept queue comes back as."""
        raise NotImplementedError

    @initialize(seed=st.integers(0, 2**32))
    def begin(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.queue = self.new_queue()
        self.model: dict[tuple[int, int], int] = {}  # (due, origin) to companion
        self.end_offset = 0
        self.start_offset = 0
        self.now_ms = 1_000_000

    @rule(
        count=st.integers(1, 12) | st.integers(40, 150),
        span_ms=st.sampled_from([1, 50, 5_000, 10**7, 10**12, END_OF_TIME - 10**7]),
    )
    def records_wait(self, count: int, span_ms: int) -> None:
        companion = self.end_offset
        for number in range(count):
            origin = companion + 1 + number
            due_ms = self.now_ms + self.random.randrange(span_ms)
            self.queue.waits(Waiting(due_ms, origin, companion))
            self.model[due_ms, origin] = companion
        self.end_offset += count + 1

    @rule(late_ms=st.sampled_from([0, 1, 70, 10_000, 10**9]), count=st.integers(1, 50))
    def time_passes_and_some_are_delivered(self, late_ms: int, count: int) -> None:
        self.now_ms += late_ms
        self.deliver(count)

    @rule(count=st.integers(1, 200))
    def all_is_drained(self, count: int) -> None:
        now_ms, self.now_ms = self.now_ms, END_OF_TIME
        self.deliver(count)
        self.now_ms = now_ms

    def deliver(self, count: int) -> None:
        while not self.queue.prepare(self.now_ms, 20):
            pass
        found = self.queue.due(self.now_ms, count)
        expected = sorted(key for key in self.model if key[0] <= self.now_ms)[: len(found)]
        assert [waiting[:2] for waiting in found] == expected
        assert bool(found) == any(due_ms <= self.now_ms for due_ms, _ in self.model)
        for due_ms, origin, companion in found:
            assert self.model.pop((due_ms, origin)) == companion
        if found:
            self.queue.delivered(*found[-1][:2])

    @precondition(lambda self: self.model)
    @rule(share=st.floats(0, 1))
    def its_leader_delivers(self, share: float) -> None:
        """A follower is told, and has prepared nothing."""
        last = sorted(self.model)[int((len(self.model) - 1) * share)]
        self.queue.delivered(*last)
        self.model = {key: companion for key, companion in self.model.items() if key > last}

    @rule(share=st.floats(0, 1))
    def records_are_deleted(self, share: float) -> None:
        self.delete_below(int(self.start_offset + (self.end_offset - self.start_offset) * share))

    def delete_below(self, offset: int) -> None:
        self.start_offset = offset
        self.queue.start_advanced(offset)
        self.model = {key: companion for key, companion in self.model.items() if companion >= self.start_offset}

    @rule()
    def it_is_kept_and_read_again(self) -> None:
        self.queue = self.copy_of(self.queue)

    @invariant()
    def it_never_looks_too_late(self) -> None:
        next_due_ms = self.queue.next_due_ms()
        if self.model:
            assert next_due_ms is not None
            assert next_due_ms <= min(self.model)[0]

    def teardown(self) -> None:
        if not hasattr(self, "queue"):
            return
        self.delete_below(self.start_offset)
        while not self.queue.prepare(0, 1_000):
            pass
        assert self.queue.waiting_count == len(self.model)
        found = take_all(self.queue)
        assert [waiting[:2] for waiting in found] == sorted(self.model)
