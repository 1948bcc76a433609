"""A partition whose voters a controller changes, under a hostile scheduler: its leader tells, brokers learn late.

The controller is the kernel's own: `announced_state` takes what leaders tell, `voter_steps` makes the steps, and each
state of the partition is one of a list. Brokers learn these in their order, each when it pleases; what leaders tell is
lost, late and doubled as all else is, and processes die at every step, before and after they have kept what they are to
keep. Whoever is no replica any more has nothing left, not even its votes; a disk that was replaced has no vote until
its broker is a new replica.

The oracles are those of `model.py`. After it all heals, the last reassignment is to come to its end, and a record is to
be committed by whoever votes then.

    python -m tests.plugins.election_quorum.changing_replicas 0 1000          these seeds
    python -m tests.plugins.election_quorum.changing_replicas 0 2000 NAME     with a mistake planted (`MISTAKES`)
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any
from unittest.mock import patch

import attrs

from odradek.kernel.api import IsrChange, KafkaError, MetadataChanged, PartitionState
from odradek.kernel.controller import leader_announcements, voter_steps
from odradek.kernel.controller.leader_announcements import announced_state
from odradek.kernel.controller.partition_states import PartitionRules, voters_state, wanted_replicas
from odradek.kernel.wire.messages.api_56_alter_partition import BrokerState, PartitionData
from odradek.plugins.election_quorum.ballots import State
from odradek.plugins.election_quorum.factory import QuorumElectionFactory
from odradek.plugins.election_quorum.machine import QuorumElection
from odradek.plugins.election_quorum.replica import Replica
from tests.plugins.election_quorum import model
from tests.plugins.election_quorum.model import BrokenPromiseError, Model, run_seeds
from tests.plugins.election_quorum.nodes import Entry, Node, Sent, directory_of

CONTROLLER = 0
STEPS = 700
STEPS_TO_HEAL = 1200
BROKERS = (1, 2, 3, 4, 5)


@attrs.frozen
class Known:
    """The partition as the metadata has it, and in which life of its disk each replica was placed."""

    state: PartitionState
    lives: dict[int, int]


class ReplicaNode(Node):
    """A broker, and its replica where it has one: what it knows of the metadata outlives its process."""

    def __init__(
        self, broker_id: int, history: list[Known], send: Callable[[Sent], None], source: random.Random
    ) -> None:
        super().__init__(broker_id, (), send, source=source, directory_id=directory_of(broker_id))
        self.history, self.seen, self.life = history, 0, 0
        self.is_up = False

    @property
    def known(self) -> Known:
        return self.history[self.seen]

    @property
    def is_replaced(self) -> bool:
        """Whether its disk is not the one in which the metadata has its replica."""
        return self.known.lives.get(self.broker_id) != self.life

    def start(self) -> None:
        """Begin a process; without a replica, or with another disk than that of its replica, it serves nothing."""
        self.is_up = True
        if self.broker_id not in self.known.state.replicas:
            self.forget()
        elif not self.is_replaced:
            super().start()

    def crash(self) -> None:
        super().crash()
        self.is_up = False

    def forget(self) -> None:
        """Give up the replica: neither log nor votes are left."""
        self.is_alive = False
        self.log, self.flushed, self.hard_state = [], 0, None

    def replace_disk(self) -> None:
        """Have another disk, which is empty."""
        self.crash()
        self.forget()
        self.life += 1
        self.directory_id = directory_of(self.broker_id, self.life)

    def learn(self, seen: int) -> None:
        """Hear of the partition's newer states, the last of them alone."""
        before, self.seen = self.known, max(self.seen, seen)
        if not self.is_up or before is self.known:
            return
        if self.broker_id not in self.known.state.replicas:
            self.forget()
        elif self.is_alive:
            self._tell_voters()
        else:
            self.start()

    def _tell_voters(self) -> None:
        self.election.step(MetadataChanged(self.known.state, 1))

    def carry_out(self, crash: str = "") -> None:
        if self.is_alive:
            ready = self.election.ready()
            if ready is not None and ready.isr_change is not None:
                self._send(Sent(self.broker_id, CONTROLLER, ready.isr_change))  # type: ignore[arg-type]
            super().carry_out(crash)


class ChangingReplicas(Model):
    """One run. Owned by who runs it."""

    def __init__(self, seed: int) -> None:
        self.source = source = random.Random(seed)
        replicas = BROKERS[: source.choice((1, 2, 3, 3, 3, 4))]
        factory = QuorumElectionFactory()
        self.rules = PartitionRules(factory, BROKERS, has_voters=True)
        first = factory.initial_state(replicas, BROKERS)
        self.history = [Known(first, dict.fromkeys(replicas, 0))]
        self.under_way: list[Sent] = []
        self.brokers = {
            each: ReplicaNode(each, self.history, self.under_way.append, random.Random(source.random()))
            for each in BROKERS
        }
        self.nodes = self.brokers  # type: ignore[assignment]
        self.replaced = source.choice((0, 0, 1, 2))
        self.deaf = source.sample(BROKERS, source.choice((0, 1, 1, 2)))
        self.deaths = source.choice((0.0, 0.01, 0.04))
        self.has_records, self.wipes = True, 0
        self.now_ms = 0
        self.cut: set[tuple[int, int]] = set()
        self.leaders: dict[int, int] = {}
        self.committed: list[Entry] = []
        self.written: dict[tuple[int, int], tuple[str, int]] = {}
        self.values = 0
        self.trace: list[str] = []
        fetch_max = source.choice((1, 1, 3))
        for node in self.brokers.values():
            node.fetch_max = fetch_max
            node.start()
            node.carry_out()

    @property
    def state(self) -> PartitionState:
        return self.history[-1].state

    def alive(self) -> list[Node]:
        return [node for node in self.brokers.values() if node.is_alive]

    def run(self) -> None:
        actions: list[tuple[Callable[[], None], int]] = [
            (self.deliver, 40),
            (self.fetch, 30),
            (self.pass_time, 20),
            (self.append, 12),
            (self.learn, 8),
            (self.announce, 6),
            (self.reassign, 3),
            (self.go_on, 25),
            (self.duplicate, 3),
            (self.lose, 3),
            (self.die, 2),
            (self.come_back, 4),
            (self.cut_off, 1),
            (self.split, 1),
            (self.join_up, 3),
            (self.refuse, 2),
            (self.give_up, 1),
            (self.replace, 1),
        ]
        self.do(actions, STEPS, always=8)

    # -- what happens --------------------------------------------------------------------------------------------------

    def hand_over(self, sent: Sent) -> None:
        if sent.target == CONTROLLER:
            if (sent.source, sent.target) not in self.cut:
                told: Any = sent.body
                self.take_told(sent.source, told)
            return
        super().hand_over(sent)

    def take_told(self, broker_id: int, change: IsrChange) -> None:
        """Be the controller: hear what a leader tells."""
        asked = PartitionData(
            leader_epoch=change.leader_epoch,
            partition_epoch=change.partition_epoch,
            new_isr_with_epochs=[BrokerState(broker_id=each) for each in change.isr],
        )
        live = [each for each in BROKERS if self.brokers[each].is_up or self.source.random() < 0.3]
        lives = self.history[-1].lives
        live = [each for each in live if lives.get(each) in {None, self.brokers[each].life}]
        rules = attrs.evolve(self.rules, live=live)
        try:
            self.publish(announced_state(self.state, broker_id, asked, rules))
        except KafkaError as error:
            self.note(f"controller refuses {broker_id}: {error.code.name}")

    def publish(self, state: PartitionState | None) -> None:
        if state is not None:
            before = self.history[-1]
            lives = {each: before.lives.get(each, self.brokers[each].life) for each in state.replicas}
            self.history.append(Known(state, lives))
            self.note(f"metadata: {state}")

    def go_on(self) -> None:
        """Let some time pass in which whoever reaches others does what it does."""
        for _ in range(self.source.randrange(1, 12)):
            self.now_ms += 100
            for node in self.brokers.values():
                if node.is_alive:
                    node.tick(self.now_ms)
                    self.settle(node)
                if node.is_alive:
                    node.fetch()
            self.announce()
            self.learn()
            sent, self.under_way[:] = self.under_way[:], []
            for each in sent:
                self.hand_over(each)
            self.check()

    def learn(self) -> None:
        node = self.source.choice(list(self.brokers.values()))
        newest = len(self.history) - 1
        if node.seen < newest and (node.broker_id not in self.deaf or self.source.random() < 0.02):
            node.learn(self.source.choice((node.seen + 1, newest)))
            self.note(f"{node.broker_id} learns {node.seen} of {newest}")
            if node.is_alive:
                self.settle(node)

    def announce(self) -> None:
        """Have a leader tell that it leads, as its broker does."""
        leaders = [node for node in self.brokers.values() if node.is_alive and node.election.state is State.LEADER]
        if leaders:
            node = self.source.choice(leaders)
            told = IsrChange((), node.election.leader_epoch, node.known.state.partition_epoch)
            self.under_way.append(Sent(node.broker_id, CONTROLLER, told))  # type: ignore[arg-type]

    def reassign(self) -> None:
        state = self.state
        if state.adding_replicas or state.removing_replicas:
            if self.source.random() < 0.5:
                return
            if self.source.random() < 0.5:
                self.publish(voters_state(state, voter_steps.cancelled(state), self.rules))
                return
        target = tuple(self.source.sample(BROKERS, self.source.choice((1, 2, 3, 3, 3, 4))))
        self.publish(voters_state(state, voter_steps.begun(state, target), self.rules))

    def split(self) -> None:
        """Cut some brokers off from the others."""
        some = self.source.sample(BROKERS, 2)
        self.cut = {(one, other) for one in BROKERS for other in BROKERS if (one in some) != (other in some)}
        self.note(f"{some} are alone")

    def replace(self) -> None:
        """Replace a voter's disk, as long as the others are a majority of all voters who may count."""
        state = self.state
        sets = [each for each in (voter_steps.voting(state), state.former_voters) if each]
        node = self.brokers[self.source.choice(state.replicas)]
        broken = {each for each in BROKERS if self.brokers[each].is_replaced} | {node.broker_id}
        if self.replaced and all(2 * len(set(voters) - broken) > len(voters) for voters in sets):
            self.replaced -= 1
            self.note(f"the disk of {node.broker_id} is replaced")
            node.replace_disk()

    def come_back(self) -> None:
        down = [node for node in self.brokers.values() if not node.is_up]
        if down:
            node = self.source.choice(down)
            node.start()
            node.clock_ms = self.now_ms
            if node.is_alive:
                self.settle(node)

    # -- the end -------------------------------------------------------------------------------------------------------

    def heal(self) -> None:
        self.cut.clear()
        self.under_way.clear()
        self._end_reassignment()
        for round_number in range(STEPS_TO_HEAL):
            self.now_ms += 50
            for node in self.brokers.values():
                if not node.is_up:
                    node.start()
                node.learn(len(self.history) - 1)
                if node.is_alive:
                    node.tick(self.now_ms)
                    node.carry_out()
                    node.fetch()
            if round_number % 5 == 0:
                self.announce()
            sent, self.under_way[:] = self.under_way[:], []
            for each in sent:
                if each.target == CONTROLLER:
                    self.hand_over(each)
                elif self.brokers[each.target].is_alive:
                    self.brokers[each.target].receive(each)
                    self.brokers[each.target].carry_out()
            self.check()
            if self._is_healed():
                return
        states = "; ".join(repr(node.election) for node in self.brokers.values() if node.is_alive)
        raise BrokenPromiseError(f"the end is not reached after all is well: {self.state}: {states}")

    def _end_reassignment(self) -> None:
        """Leave out whose disk was replaced: it comes back as a new replica, and not otherwise."""
        state = self.state
        broken = {each for each in state.replicas if self.history[-1].lives[each] != self.brokers[each].life}
        if broken:
            kept = tuple(each for each in wanted_replicas(state) if each not in broken)
            kept = kept or tuple(each for each in voter_steps.voting(state) if each not in broken)
            self.publish(voters_state(state, voter_steps.begun(state, kept), self.rules))

    def _is_healed(self) -> bool:
        state = self.state
        is_done = not (state.adding_replicas or state.removing_replicas or state.former_voters or state.voters)
        leaders = [node for node in self.alive() if node.election.state is State.LEADER]
        if not is_done or len(leaders) != 1 or set(leaders[0].election.isr) != set(state.replicas):
            return False
        if not any(entry.value == "healed" for entry in leaders[0].log):
            leaders[0].append("healed")
            leaders[0].flush()
        return all(
            any(entry.value == "healed" for entry in node.log[: node.election.high_watermark])
            for node in (self.brokers[each] for each in state.replicas)
            if node.is_alive
        )


def broken_promise(seed: int) -> str:
    """Run a seed, and return which promise it breaks, "" for none."""
    return model.broken_promise(seed, ChangingReplicas)


# -- mistakes ----------------------------------------------------------------------------------------------------------


@contextmanager
def votes_for_older_voters() -> Iterator[None]:
    """Vote for a candidate of older voters than those by whom one has voted before."""
    vote = QuorumElection._vote

    def careless(self: QuorumElection, part: Any) -> bool:
        part.voters_epoch = max(part.voters_epoch, self._replica.voters_epoch)
        return vote(self, part)

    with patch.object(QuorumElection, "_vote", careless):
        yield


@contextmanager
def counts_at_once() -> Iterator[None]:
    """Have a leader count by newer voters in its epoch, by what they had said before."""
    change = Replica.change_voters

    def hasty(self: Replica, voters: Any) -> None:
        change(self, voters)
        if self.leadership is not None:
            self.leadership.change_voters(voters)

    with patch.object(Replica, "change_voters", hasty):
        yield


@contextmanager
def steps_without_waiting() -> Iterator[None]:
    """Make the next step whatever leaders tell."""

    def hasty(state: PartitionState, voters_epoch: int, isr: Any, live: Any) -> PartitionState:
        return told(state, state.voters_epoch, isr, live)

    told = voter_steps.told
    with patch.object(leader_announcements, "told", hasty):
        yield


@contextmanager
def takes_any_step_back() -> Iterator[None]:
    """Go to the wanted voters at once where a reassignment is changed in the middle of a step."""

    def hasty(state: PartitionState, target: tuple[int, ...]) -> PartitionState:
        changed = begun(state, target)
        return attrs.evolve(changed, former_voters=())

    begun = voter_steps.begun
    with patch.object(voter_steps, "begun", hasty):
        yield


@contextmanager
def forgets_the_voters() -> Iterator[None]:
    """Forget over a restart by which voters one has voted."""
    init = Replica.__init__

    def forgetful(self: Replica, context: Any) -> None:
        init(self, context)
        self.voters_epoch = 0

    with patch.object(Replica, "__init__", forgetful):
        yield


@contextmanager
def begins_without_a_number() -> Iterator[None]:
    """Let who is a replica again, and has forgotten its votes, vote by any voters."""
    change = Replica.change_voters

    def careless(self: Replica, voters: Any) -> None:
        self._is_new = False
        change(self, voters)

    with patch.object(Replica, "change_voters", careless):
        yield


@contextmanager
def removes_many() -> Iterator[None]:
    """Make all of a reassignment one step."""

    def at_once(state: PartitionState, _isr: Any, _live: Any) -> Any:
        target = wanted_replicas(state)
        return None if set(target) == set(voter_steps.voting(state)) else target

    with patch.object(voter_steps, "_next_voters", at_once):
        yield


@contextmanager
def comes_back_empty() -> Iterator[None]:
    """Let a disk vote that was put in the place of a voter's."""
    with patch.object(ReplicaNode, "is_replaced", property(lambda _self: False)):
        yield


MISTAKES: dict[str, Callable[[], AbstractContextManager[None]]] = {
    "a vote goes to a candidate of older voters": votes_for_older_voters,
    "a leader counts by newer voters in its epoch": counts_at_once,
    "the next step does not wait": steps_without_waiting,
    "a step that is given up counts as safe": takes_any_step_back,
    "by whom one has voted is forgotten": forgets_the_voters,
    "a replica begins without a number": begins_without_a_number,
    "all voters change at once": removes_many,
    "a disk that was replaced votes": comes_back_empty,
}


if __name__ == "__main__":
    sys.exit(run_seeds(sys.argv[1:], MISTAKES, ChangingReplicas))
