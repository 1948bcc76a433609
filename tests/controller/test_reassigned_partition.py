"""One partition that is reassigned again and again while brokers come and go: what was acknowledged stays somewhere."""

from __future__ import annotations

import hypothesis.strategies as st
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from odradek.kernel.contracts.election import PartitionState
from odradek.kernel.metadata.image import NO_LEADER, is_reassigned

from .controller_requests import create_topics, reassign_partitions, topic
from .metadata_helpers import DrivenController, registration

EVERYBODY = frozenset({1, 2, 3, 4})
BROKERS = st.sampled_from(sorted(EVERYBODY))
REPLICAS = st.lists(BROKERS, min_size=1, max_size=3, unique=True)


class ReassignedPartition(RuleBasedStateMachine):
    """The model: which brokers have all that was ever acknowledged; who is no replica any more has deleted its log."""

    def __init__(self) -> None:
        super().__init__()
        self.driven = DrivenController(brokers=len(EVERYBODY))
        self.live = set(EVERYBODY)
        self.plans: list[list[int]] = []
        self.whole: set[int] = set()
        self.least = 1

    @initialize(replicas=REPLICAS, least=st.integers(1, 2))
    def begin(self, replicas: list[int], least: int) -> None:
        self.least = min(least, len(replicas))
        request = create_topics(topic("t", -1, -1, {0: replicas}, min_insync_replicas=str(self.least)))
        self.driven.apply(self.driven.controller.decide(request))
        self.whole, self.plans = set(replicas), [replicas]

    @property
    def state(self) -> PartitionState:
        return self.driven.image.topics_by_name["t"].partitions[0]

    def write(self) -> None:
        """Have a record acknowledged by all that are in sync, if they are enough; they have what the leader has."""
        state = self.state
        if state.leader != NO_LEADER:
            enough = len(state.isr) >= min(self.least, len(state.replicas))
            self.whole = set(state.isr) if enough else self.whole | set(state.isr)

    @rule(wanted=REPLICAS)
    def reassign(self, wanted: list[int]) -> None:
        self.plans.append(wanted)
        self.ask(wanted)

    @rule(data=st.data())
    def send_an_earlier_plan(self, data: st.DataObject) -> None:
        self.ask(data.draw(st.sampled_from(self.plans)))

    @rule()
    def cancel(self) -> None:
        self.ask(None)

    def ask(self, wanted: list[int] | None) -> None:
        before = self.state
        response = self.driven.apply(self.driven.controller.decide(reassign_partitions(("t", 0, wanted))))

        if response.responses[0].partitions[0].error_code:
            assert before == self.state
        elif wanted is None:
            assert not is_reassigned(self.state)
        else:
            assert self.state.replicas == (*wanted, *self.state.removing_replicas)

    @precondition(lambda self: self.state.leader != NO_LEADER)
    @rule(data=st.data())
    def catch_up(self, data: st.DataObject) -> None:
        """One replica more is in sync."""
        self.alter({*self.state.isr, data.draw(st.sampled_from(self.state.replicas))} & self.live)

    @precondition(lambda self: self.state.leader != NO_LEADER)
    @rule()
    def fall_behind(self) -> None:
        """The leader alone is in sync."""
        self.alter({self.state.leader})

    @precondition(lambda self: self.state.leader != NO_LEADER)
    @rule()
    def all_catch_up(self) -> None:
        self.alter({*self.state.replicas} & self.live)

    def alter(self, isr: set[int]) -> None:
        self.whole |= isr
        self.driven.alter_isr("t", 0, sorted(isr))

        assert not is_reassigned(self.state) or isr < {*self.state.replicas}

    @precondition(lambda self: self.state.leader != NO_LEADER)
    @rule()
    def lose_the_leader(self) -> None:
        self.fence(self.state.leader)

    @precondition(lambda self: self.live)
    @rule(data=st.data())
    def lose_one(self, data: st.DataObject) -> None:
        self.fence(data.draw(st.sampled_from(sorted(self.live))))

    def fence(self, number: int) -> None:
        self.driven.apply(self.driven.controller.change_broker(number, self.driven.epoch_of(number), fence=True))
        self.live.discard(number)

    @precondition(lambda self: self.live < EVERYBODY)
    @rule(data=st.data())
    def come_back(self, data: st.DataObject) -> None:
        number = data.draw(st.sampled_from(sorted(EVERYBODY - self.live)))
        self.driven.register(registration(number, seed=8))
        self.live.add(number)

    @invariant()
    def what_was_acknowledged_is_somewhere_and_who_leads_has_it(self) -> None:
        state = self.state
        self.whole &= set(state.replicas)

        assert self.whole, "every replica that had all of it has deleted its log"
        assert state.leader == NO_LEADER or state.leader in self.whole
        self.write()

    @invariant()
    def who_counts_is_a_replica(self) -> None:
        state = self.state
        counting = {*state.isr, *state.eligible_leader_replicas, *state.last_known_elr}

        assert {*counting, *state.adding_replicas, *state.removing_replicas} <= set(state.replicas)
        assert set(state.removing_replicas) < set(state.replicas)
        assert state.leader != NO_LEADER or not self.live & {*state.isr, *state.eligible_leader_replicas}


ReassignedPartition.TestCase.settings = settings(max_examples=100, stateful_step_count=20, deadline=None)
TestReassignedPartition = ReassignedPartition.TestCase
