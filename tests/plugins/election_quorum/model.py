"""A quorum of pure steppers under a hostile scheduler: messages are lost, late, twice; processes die at every step.

All chance comes from one seed. Oracles, asked after every step:

* one leader an epoch;
* what is committed anywhere never changes, and every later leader has it;
* two logs with the same epoch at an offset are the same up to there (log matching).

After that everything heals, and a record is to be committed by all voters within a bound of steps.

    python -m tests.plugins.election_quorum.model 0 1000          these seeds
    python -m tests.plugins.election_quorum.model 0 2000 NAME     with a mistake of `sabotage.py` planted
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from itertools import pairwise
from typing import Any

from odradek.kernel.api import KRaftVoters, LeadershipGivenUp, PeerMessage, PeerRefused
from odradek.kernel.wire.messages.api_80_add_raft_voter import AddRaftVoterRequest
from odradek.kernel.wire.messages.api_81_remove_raft_voter import RemoveRaftVoterRequest
from odradek.plugins.election_quorum.ballots import State
from tests.plugins.election_quorum.nodes import Entry, Node, Sent, told, voters_of
from tests.plugins.election_quorum.sabotage import SABOTAGES

STEPS = 500
STEPS_TO_HEAL = 600
UNDER_WAY_MAX = 60
MINUTE_MS = 60_000


class BrokenPromiseError(AssertionError):
    """What a quorum promises did not hold."""


class Model:
    """One run. Owned by who runs it."""

    def __init__(self, seed: int) -> None:
        self.source = random.Random(seed)
        self.has_records = self.source.random() < 0.7
        count = self.source.choice((2, 3, 3, 3, 4, 5))
        voters = tuple(range(1, count + 1))
        everybody = (*voters, *range(count + 1, count + 1 + self.source.randrange(3) * self.has_records))
        self.founding = voters_of(*voters)
        founding = self.founding if self.has_records else voters
        self.under_way: list[Sent] = []
        self.nodes = {
            each: Node(
                each,
                founding if each in voters else KRaftVoters(voters=[]),
                self.under_way.append,
                source=random.Random(self.source.random()),
            )
            for each in everybody
        }
        self.wipes = 1 if self.has_records and count > 2 and self.source.random() < 0.25 else 0
        self.deaths = self.source.choice((0.0, 0.01, 0.04))
        self.now_ms = 0
        self.cut: set[tuple[int, int]] = set()
        self.leaders: dict[int, int] = {}
        self.committed: list[Entry] = []
        self.written: dict[tuple[int, int], tuple[str, int]] = {}
        self.values = 0
        self.trace: list[str] = []
        fetch_max = self.source.choice((1, 1, 3))
        for node in self.nodes.values():
            node.fetch_max = fetch_max
            node.start()
            node.carry_out()

    # -- what happens --------------------------------------------------------------------------------------------------

    def run(self) -> None:
        """Run to the end.

        Raises:
            BrokenPromiseError: Something that was promised did not hold.
        """
        actions: list[tuple[Callable[[], None], int]] = [
            (self.deliver, 40),
            (self.fetch, 25),
            (self.pass_time, 16),
            (self.append, 12),
            (self.duplicate, 3),
            (self.lose, 3),
            (self.die, 2),
            (self.come_back, 3),
            (self.cut_off, 1),
            (self.join_up, 2),
            (self.refuse, 2),
            (self.give_up, 1),
            (self.wipe if self.wipes else self.change_voters if self.has_records else self.lose_power, 6),
        ]
        self.do(actions, STEPS, always=4)

    def do(self, actions: Sequence[tuple[Callable[[], None], int]], steps: int, *, always: int) -> None:
        """Do so many of these, drawn by their weights, and let it all heal; of a seed some but the first never come.

        Raises:
            BrokenPromiseError: Something that was promised did not hold.
        """
        does = [action for action, _ in actions]
        weights = [weight * self.source.choice((0, 1, 1, 3)) for _, weight in actions[always:]]
        weights = [weight for _, weight in actions[:always]] + weights
        for action in self.source.choices(does, weights, k=steps):
            self.note(action.__name__)
            action()
            self.check()
        self.heal()

    def note(self, text: str) -> None:
        """Keep the last of what happened, to be told when a promise breaks."""
        self.trace.append(text)
        del self.trace[:-40]

    def alive(self) -> list[Node]:
        return [node for node in self.nodes.values() if node.is_alive]

    def one_alive(self) -> Node | None:
        alive = self.alive()
        return self.source.choice(alive) if alive else None

    def settle(self, node: Node) -> None:
        """Have effects carried out; now and then the process dies on the way."""
        crash = self.source.choice(("before", "after")) if self.source.random() < self.deaths else ""
        if crash and node.election.ready() is not None:
            self.note(f"{node.broker_id} dies {crash} its hard state is kept")
        node.carry_out(crash)
        if node.is_alive and node.election.state is State.LEADER and self.source.random() < 0.7:
            node.flush()
            node.carry_out()

    def deliver(self) -> None:
        """Hand over some of what is under way: mostly the oldest, now and then any."""
        for _ in range(self.source.randrange(1, 6)):
            if self.under_way:
                place = 0 if self.source.random() < 0.8 else self.source.randrange(len(self.under_way))
                self.hand_over(self.under_way.pop(place))
        del self.under_way[:-UNDER_WAY_MAX]

    def hand_over(self, sent: Sent) -> None:
        node = self.nodes.get(sent.target)
        if node is not None and node.is_alive and (sent.source, sent.target) not in self.cut:
            self.note(f"{sent.source} > {sent.target} {told(sent.body)}")
            node.receive(sent)
            self.settle(node)

    def duplicate(self) -> None:
        if self.under_way:
            self.under_way.append(self.source.choice(self.under_way))

    def lose(self) -> None:
        if self.under_way:
            self.under_way.pop(self.source.randrange(len(self.under_way)))

    def fetch(self) -> None:
        node = self.one_alive()
        if node is not None and node.leader_id >= 0:
            node.fetch()
        elif node is not None:
            node.fetch_from(self.source.choice([each for each in self.nodes if each != node.broker_id]))

    def pass_time(self) -> None:
        """Let time pass for all, or for one alone: clocks are not the same."""
        self.now_ms += self.source.choice((1, 50, 300, 900))
        one = self.one_alive() if self.source.random() < 0.3 else None
        for node in self.alive() if one is None else [one]:
            node.tick(self.now_ms)
            self.settle(node)

    def append(self) -> None:
        leaders = [
            node for node in self.alive() if node.election.state is State.LEADER and node.leader_id == node.broker_id
        ]
        if leaders:
            self.values += 1
            self.source.choice(leaders).append(f"v{self.values}")

    def die(self) -> None:
        node = self.one_alive()
        if node is not None:
            node.crash()

    def come_back(self) -> None:
        dead = [node for node in self.nodes.values() if not node.is_alive]
        if dead:
            node = self.source.choice(dead)
            node.start()
            node.clock_ms = self.now_ms
            self.settle(node)

    def cut_off(self) -> None:
        one, other = self.source.sample(sorted(self.nodes), 2)
        self.cut |= {(one, other)} | ({(other, one)} if self.source.random() < 0.7 else set())

    def join_up(self) -> None:
        self.cut.clear()

    def refuse(self) -> None:
        """Have somebody see that a peer's machine refuses it: a dead one's, or one that it takes for dead."""
        node = self.one_alive()
        if node is not None and node.leader_id >= 0:
            node.election.step(PeerRefused(node.leader_id))
            self.settle(node)

    def give_up(self) -> None:
        node = self.one_alive()
        if node is not None:
            node.election.step(LeadershipGivenUp())
            self.settle(node)

    def change_voters(self) -> None:
        leaders = [node for node in self.alive() if node.election.state is State.LEADER]
        if leaders and self.has_records:
            leader, other = self.source.choice(leaders), self.source.choice(list(self.nodes.values()))
            who: dict[str, Any] = {"voter_id": other.broker_id, "voter_directory_id": other.directory_id}
            if other.broker_id in leader.election.isr:
                leader.election.step(PeerMessage(-1, RemoveRaftVoterRequest(**who)))
            else:
                leader.election.step(PeerMessage(-1, AddRaftVoterRequest(timeout_ms=MINUTE_MS, **who)))
            self.settle(leader)

    def wipe(self) -> None:
        """Replace a voter's disk, once in a run, and begin its process anew."""
        if self.wipes and self.committed:
            self.wipes -= 1
            node = self.nodes[self.source.choice([voter.voter_id for voter in self.founding.voters])]
            node.wipe(life=1)
            node.start()
            node.clock_ms = self.now_ms
            self.settle(node)

    def lose_power(self) -> None:
        """Take power from a voter, and with it the end of its log; never from a majority that has not caught up."""
        doubtful = [node for node in self.nodes.values() if node.is_doubtful]
        if len(doubtful) < (len(self.nodes) - 1) // 2:
            node = self.source.choice([node for node in self.nodes.values() if not node.is_doubtful])
            node.lose_power(self.source.randint(0, len(node.log)))

    # -- oracles -------------------------------------------------------------------------------------------------------

    def check(self) -> None:
        """Look at everything that was promised."""
        for node in self.alive():
            self._check_leader(node)
            self._check_log(node)
            self._check_committed(node)

    def _check_leader(self, node: Node) -> None:
        if node.election.state is State.LEADER:
            epoch = node.election.leader_epoch
            is_new = epoch not in self.leaders
            if self.leaders.setdefault(epoch, node.broker_id) != node.broker_id:
                raise BrokenPromiseError(f"{self.leaders[epoch]} and {node.broker_id} lead in epoch {epoch}")
            if is_new and node.log[: len(self.committed)] != self.committed:
                raise BrokenPromiseError(f"leader {node.broker_id} of epoch {epoch} lacks what is committed")

    def _check_log(self, node: Node) -> None:
        before = [Entry(-1, "")]
        for offset, (previous, entry) in enumerate(pairwise(before + node.log)):
            known = self.written.setdefault((offset, entry.epoch), (entry.value, previous.epoch))
            if known != (entry.value, previous.epoch):
                raise BrokenPromiseError(f"{node.broker_id} has {entry} after {previous} at {offset}, others {known}")

    def _check_committed(self, node: Node) -> None:
        high_watermark = node.election.high_watermark
        common = min(high_watermark, len(self.committed))
        if node.log[:common] != self.committed[:common]:
            raise BrokenPromiseError(f"what {node.broker_id} has committed below {common} is not what others have")
        self.committed += node.log[common:high_watermark]

    def heal(self) -> None:
        """Let everything work, and see that a record is committed everywhere.

        Raises:
            BrokenPromiseError: It is not, or not in time.
        """
        self.cut.clear()
        self.under_way.clear()
        for node in self.nodes.values():
            if not node.is_alive:
                node.start()
                node.carry_out()
        for _ in range(STEPS_TO_HEAL):
            self.now_ms += 50
            for node in self.nodes.values():
                node.tick(self.now_ms)
                node.carry_out()
                if node.leader_id >= 0:
                    node.fetch()
                elif node.broker_id not in node.election.isr:
                    node.fetch_from(self.source.choice([each for each in self.nodes if each != node.broker_id]))
            sent, self.under_way[:] = self.under_way[:], []
            for each in sent:
                if each.target in self.nodes:
                    self.nodes[each.target].receive(each)
                    self.nodes[each.target].carry_out()
            self.check()
            if self._is_healed():
                return
        states = "; ".join(repr(node.election) for node in self.nodes.values())
        raise BrokenPromiseError(f"nothing new is committed after all is well: {states}")

    def _is_healed(self) -> bool:
        leaders = [n for n in self.nodes.values() if n.election.state is State.LEADER and n.leader_id == n.broker_id]
        if len(leaders) == 1 and not any(entry.value == "healed" for entry in leaders[0].log):
            leaders[0].append("healed")
            leaders[0].flush()
        voters = [self.nodes[each] for each in leaders[0].election.isr] if leaders else []
        return bool(voters) and all(
            any(entry.value == "healed" for entry in node.log[: node.election.high_watermark]) for node in voters
        )


def broken_promise(seed: int, make: Callable[[int], Model] = Model) -> str:
    """Run a seed of a model, and return which promise it breaks, "" for none."""
    model = make(seed)
    try:
        model.run()
    except BrokenPromiseError as error:
        return f"seed {seed}: {error}\n  " + "\n  ".join(model.trace)
    return ""


def run_seeds(
    arguments: Sequence[str],
    mistakes: Mapping[str, Callable[[], AbstractContextManager[object]]],
    make: Callable[[int], Model] = Model,
) -> int:
    """Run seeds from the command line: the first, how many, and the name of a mistake to be planted, if any."""
    first, count = int(arguments[0]), int(arguments[1])
    with mistakes[arguments[2]]() if len(arguments) > 2 else nullcontext():
        for seed in range(first, first + count):
            found = broken_promise(seed, make)
            if found:
                sys.stdout.write(f"{found}\n")
                return 1
    sys.stdout.write(f"{count} seeds from {first}: all promises held\n")
    return 0


if __name__ == "__main__":
    sys.exit(run_seeds(sys.argv[1:], SABOTAGES))
