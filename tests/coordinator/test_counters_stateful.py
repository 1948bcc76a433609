"""The toy coordinator beside a plain dict: whatever happens around it, what was answered holds."""

from __future__ import annotations

from collections import Counter
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from odradek.kernel.contracts.coordinator import ProducerIdentity
from odradek.kernel.errors import ErrorCode
from odradek.testing.shard_harness import RecordingWaiter

from .hosting import World

NAMES = st.sampled_from(["a", "b", "c"])
PRODUCERS = st.sampled_from([7, 8])


class CountersBesideAModel(RuleBasedStateMachine):
    """Two replicas, of which this broker leads one most of the time; the other one follows as the test says.

    The model holds what the log must give back: additions in the order they ran. An addition that was answered is
    never lost; one that failed may or may not count, so an unload takes the model back to what the log has.
    """

    def __init__(self) -> None:
        super().__init__()
        self.world = World()
        self.epoch = 0
        self.partition_epoch = 0
        self.counters: Counter[str] = Counter()
        self.pending: dict[int, Counter[str]] = {}
        self.waiting: list[tuple[RecordingWaiter, int]] = []
        self.parked: list[tuple[RecordingWaiter, str, int]] = []
        self._set_leader(1)
        self.world.follower_has(0)

    def _set_leader(self, leader: int) -> None:
        self.world.open(
            leader=leader, epoch=self.epoch, isr=(1, 2), replicas=(1, 2), partition_epoch=self.partition_epoch
        )
        self.partition_epoch += 1

    @property
    def is_active(self) -> bool:
        return bool(dict(self.world.runtime.shards()))

    def _check_failed(self) -> None:
        """Whoever waited was told; a parked one too."""
        for waiter, _expected in self.waiting:
            assert waiter.is_done
        for parked, _name, _least in self.parked:
            assert parked.is_done
        self.waiting.clear()
        self.parked.clear()

    @precondition(lambda self: self.is_active)
    @rule(name=NAMES, amount=st.integers(0, 9), times=st.integers(1, 40), is_atomic=st.booleans())
    def add(self, name: str, amount: int, times: int, is_atomic: bool) -> None:
        waiter = self.world.add(name, amount, times=times, is_atomic=is_atomic)
        self.counters[name] += amount * times
        self.waiting.append((waiter, self.counters[name]))

    @precondition(lambda self: self.is_active)
    @rule(name=NAMES, amount=st.integers(1, 9), producer_id=PRODUCERS)
    def add_in_transaction(self, name: str, amount: int, producer_id: int) -> None:
        waiter = self.world.add(name, amount, producer=ProducerIdentity(producer_id, 0))
        self.pending.setdefault(producer_id, Counter())[name] += amount
        self.waiting.append((waiter, self.counters[name] + amount))

    @precondition(lambda self: self.is_active)
    @rule(producer_id=PRODUCERS, is_commit=st.booleans())
    def end_transaction(self, producer_id: int, is_commit: bool) -> None:
        self.world.end_transaction(producer_id, 0, is_commit=is_commit)
        added = self.pending.pop(producer_id, Counter())
        if is_commit:
            self.counters.update(added)

    @precondition(lambda self: self.is_active)
    @rule(name=NAMES)
    def read(self, name: str) -> None:
        self.waiting.append((self.world.read(name), self.counters[name]))

    @precondition(lambda self: self.is_active)
    @rule(name=NAMES, more=st.integers(1, 30))
    def park(self, name: str, more: int) -> None:
        least = self.counters[name] + more
        self.parked.append((self.world.wait(name, least), name, least))

    @rule()
    def turn(self) -> None:
        self.world.turn()

    @rule()
    def follow(self) -> None:
        self.world.turn()
        self.world.follower_has(self.world.replica().log.log_end_offset)
        if self.is_active:
            for waiter, expected in self.waiting:
                assert waiter.response == expected
            self.waiting.clear()

    @rule()
    def reload(self) -> None:
        """Lose the leadership and win it again; the follower has everything."""
        self.world.turn()
        snapshot: Any = dict(self.world.runtime.shards())[0].snapshot() if self.is_active else None
        self.epoch += 1
        self._set_leader(2)
        assert self.world.add("a", 1).error_code == ErrorCode.NOT_COORDINATOR
        self._check_failed()
        self.epoch += 1
        self._set_leader(1)
        self.world.load()
        self.world.follower_has(self.world.replica().log.log_end_offset)
        if snapshot is not None:
            assert self.world.shard().snapshot() == snapshot

    @rule()
    def lose_a_turn(self) -> None:
        """Lose the leadership in the middle of a turn: what was gathered is gone, and nobody was told otherwise."""
        for waiter, _expected in self.waiting:
            assert not waiter.is_done or waiter.error is None
        self.epoch += 1
        self._set_leader(2)
        self._check_failed()
        self.epoch += 1
        self._set_leader(1)
        self.world.load()
        self.world.follower_has(self.world.replica().log.log_end_offset)
        shard = self.world.shard()
        self.counters = Counter(shard.counters)
        self.pending = {
            producer_id: sum((Counter({record.name: record.amount}) for record in records), Counter())
            for producer_id, records in shard.pending.items()
        }

    @invariant()
    def the_shard_is_the_model(self) -> None:
        for _partition, shard in self.world.runtime.shards():
            assert +Counter(shard.counters) == +self.counters
            pending: dict[int, Counter[str]] = {producer_id: Counter() for producer_id in shard.pending}
            for producer_id, records in shard.pending.items():
                for record in records:
                    pending[producer_id][record.name] += record.amount
            assert pending == self.pending

    @invariant()
    def parked_requests_are_answered_only_by_what_they_wait_for(self) -> None:
        for waiter, name, least in self.parked:
            if waiter.is_done:
                assert waiter.response >= least
            elif not self.waiting and self.is_active:
                assert self.counters[name] < least or self.pending


TestCountersBesideAModel = CountersBesideAModel.TestCase
TestCountersBesideAModel.settings = settings(max_examples=20, stateful_step_count=25, deadline=None)
