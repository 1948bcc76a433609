"""The ensemble of the election kit: what a careless author might write breaks the promise that it is about."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Sequence

import attrs
import pytest

from odradek.kernel.api import (
    ZERO_ID,
    Election,
    ElectionContext,
    ElectionFactory,
    ElectionReason,
    PartitionState,
    Role,
)
from odradek.plugins.election_isr.factory import IsrElectionFactory
from odradek.plugins.election_isr.machine import IsrElection
from odradek.plugins.election_quorum.factory import QuorumElectionFactory
from odradek.testing.contracts.election_accidents import Crash, Promise, broken_promise

SEEDS = 40
"""Within so many, from the seed that stands with it, each mistake is found by its own promise."""


class Careless:
    """A factory of elections with one mistake; what it says is said by a sound one."""

    def __init__(self, sound: ElectionFactory) -> None:
        self._sound = sound

    def new_election(self, context: ElectionContext) -> Election:
        return self._sound.new_election(context)

    def choose_leader(
        self, state: PartitionState, live_brokers: Collection[int], reason: ElectionReason
    ) -> PartitionState | None:
        return self._sound.choose_leader(state, live_brokers, reason)

    def initial_state(self, replicas: Sequence[int], live_brokers: Collection[int]) -> PartitionState:
        return self._sound.initial_state(replicas, live_brokers)


class LetsAnybodyLead(Careless):
    def choose_leader(
        self, state: PartitionState, live_brokers: Collection[int], reason: ElectionReason
    ) -> PartitionState | None:
        return self._sound.choose_leader(state, live_brokers, ElectionReason.UNCLEAN)


class ForgetsVotes(Careless):
    def new_election(self, context: ElectionContext) -> Election:
        return self._sound.new_election(attrs.evolve(context, hard_state=None))


class ForgetsEverything(Careless):
    def new_election(self, context: ElectionContext) -> Election:
        return self._sound.new_election(attrs.evolve(context, hard_state=None, may_have_lost=False))


class NeverDoubts(Careless):
    def new_election(self, context: ElectionContext) -> Election:
        return self._sound.new_election(attrs.evolve(context, may_have_lost=False))


class CommitsTheFastest(IsrElection):
    def follower_fetch(
        self,
        broker_id: int,
        broker_epoch: int,
        fetch_offset: int,
        log_start_offset: int,
        now_ms: int,
        directory_id: uuid.UUID = ZERO_ID,
    ) -> int:
        super().follower_fetch(broker_id, broker_epoch, fetch_offset, log_start_offset, now_ms)
        if broker_id in self._followers:
            self.high_watermark = max(self.high_watermark, fetch_offset)
        return self.high_watermark


class BelievesItsLeader(IsrElection):
    def leader_high_watermark(self, offset: int) -> int:
        self.high_watermark = max(self.high_watermark, offset)
        return self.high_watermark


class ListensToNoLeader(IsrElection):
    def leader_high_watermark(self, offset: int) -> int:
        return self.high_watermark


class CommitsAlone(IsrElection):
    def local_append(self, log_end_offset: int) -> int:
        super().local_append(log_end_offset)
        if self.role is Role.LEADER:
            self.high_watermark = log_end_offset
        return self.high_watermark


class NeverLeads(IsrElection):
    def _role_in(self, state: PartitionState) -> Role:
        found = super()._role_in(state)
        return Role.FOLLOWER if found is Role.LEADER else found


class WaitsForTheDead(IsrElection):
    def can_acknowledge(self) -> bool:
        return super().can_acknowledge() and len(self.isr) == 3


class Makes(Careless):
    """A factory whose elections are of another class."""

    def __init__(self, kind: type[IsrElection]) -> None:
        super().__init__(IsrElectionFactory())
        self._kind = kind

    def new_election(self, context: ElectionContext) -> Election:
        return self._kind(context)


ISR, QUORUM = IsrElectionFactory(), QuorumElectionFactory()
MISTAKES = [
    (LetsAnybodyLead(ISR), Crash.PROCESS, Promise.COMPLETE_LEADER, 0),
    (ForgetsVotes(QUORUM), Crash.PROCESS, Promise.ONE_LEADER, 100),
    (ForgetsEverything(QUORUM), Crash.POWER, Promise.MATCHING_LOGS, 290),
    (NeverDoubts(QUORUM), Crash.POWER, Promise.COMPLETE_LEADER, 0),
    (Makes(CommitsTheFastest), Crash.PROCESS, Promise.COMPLETE_LEADER, 0),
    (Makes(BelievesItsLeader), Crash.PROCESS, Promise.PREFIX, 0),
    (Makes(CommitsAlone), Crash.PROCESS, Promise.ENOUGH_COPIES, 0),
    (Makes(ListensToNoLeader), Crash.PROCESS, Promise.ALL_HAVE_IT, 0),
    (Makes(NeverLeads), Crash.PROCESS, Promise.LEADS_AGAIN, 0),
    (Makes(WaitsForTheDead), Crash.POWER, Promise.GOES_ON, 0),
]


@pytest.mark.parametrize(("factory", "crash", "promise", "first_seed"), MISTAKES)
def test_a_mistake_breaks_the_promise_that_it_is_about(
    factory: ElectionFactory, crash: Crash, promise: Promise, first_seed: int
) -> None:
    runs = (broken_promise(factory, {}, crash, seed) for seed in range(first_seed, first_seed + SEEDS))
    found = next((each for each in runs if each is not None and each.promise is promise), None)

    assert found is not None


def test_every_promise_is_broken_by_some_mistake() -> None:
    assert {promise for _factory, _crash, promise, _seed in MISTAKES} == set(Promise)


def test_a_broken_promise_tells_its_seed_and_what_had_happened() -> None:
    found = broken_promise(Makes(CommitsAlone), {}, Crash.PROCESS, 0)

    assert found is not None
    assert "seed 0: enough copies: " in str(found)
    assert "append" in str(found)
    assert found == broken_promise(Makes(CommitsAlone), {}, Crash.PROCESS, 0)


def test_a_sound_election_breaks_nothing_where_the_careless_one_does() -> None:
    assert [broken_promise(factory, {}, crash, 1) for factory in (ISR, QUORUM) for crash in Crash] == [None] * 4
