"""Runs scripts about quorums: each line is a command, and what it says is indented below it.

The commands:

    voters ID ...                 begin: these vote, told apart by directories, with empty logs
    static ID ...                 the same where only `controller.quorum.voters` names them
    observer ID ...               more replicas, which nobody names
    log ID EPOCH ...              what lies in a log before its process begins: one record of each epoch
    kept ID EPOCH [VOTED]         what it knows when its process begins: its epoch, and for whom it voted in it
    start ID ... | crash ID ...   a process begins over what is on the disk, or dies
    crash ID before|after         it dies with its next effects: before or after its hard state is kept
    wipe ID                       its disk is replaced: empty, another directory
    turns MS                      so long those whose leader is silent stand one after the other; else all at once
    time MS [ID ...]              passes, for these or all
    pass [A>B ...]                messages arrive, of these ways or all, and those that they cause, until none is left
    next A>B ...                  the oldest message of each of these ways arrives, one after the other
    hold [A>B ...]                on these ways, and no others, messages wait
    drop [A>B ...]                messages under way are lost
    limit N                       so many records fit into the answer to a fetch
    fetch ID ... [from=ID]        followers fetch from their leader, or somebody
    append ID VALUE ...           the leader appends, and flushes
    refused ID PEER               it sees that a peer's machine refuses connections
    resign ID                     it is to lead no more
    add|remove ID at=LEADER       a change of voters
    show [ID ...]                 what each is, its log with | at its high watermark, its vote
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

from odradek.kernel.api import KRaftVoters, LeadershipGivenUp, PeerMessage, PeerRefused
from odradek.kernel.wire.messages.api_80_add_raft_voter import AddRaftVoterRequest
from odradek.kernel.wire.messages.api_81_remove_raft_voter import RemoveRaftVoterRequest
from odradek.plugins.election_quorum.standing import Standing, encode_standing
from odradek.plugins.election_quorum.voters import ReplicaKey
from tests.plugins.election_quorum.nodes import Entry, Node, Sent, directory_of, told, voters_of

PASSED_MAX = 500


class Even(random.Random):
    """Chance that is none: the shortest time-outs."""

    def randrange(self, start: int, stop: int | None = None, step: int = 1) -> int:
        return 0


class Script:
    """A quorum, and the commands of a script."""

    def __init__(self) -> None:
        self.nodes: dict[int, Node] = {}
        self.under_way: list[Sent] = []
        self.held: set[tuple[int, int]] = set()
        self.dying: dict[int, str] = {}
        self.founding: KRaftVoters | tuple[int, ...] = ()
        self.said: list[str] = []
        self.lives = 0

    def run(self, line: str) -> list[str]:
        """Run one command, and return what it says."""
        name, *words = line.split()
        self.said = []
        getattr(self, name)(
            [word for word in words if "=" not in word], **dict(w.split("=") for w in words if "=" in w)
        )
        return self.said

    def voters(self, words: list[str]) -> None:
        self.founding = voters_of(*map(int, words))
        self.nodes = {int(word): self._node(int(word)) for word in words}

    def static(self, words: list[str]) -> None:
        self.founding = tuple(map(int, words))
        self.nodes = {int(word): self._node(int(word)) for word in words}

    def observer(self, words: list[str]) -> None:
        self.nodes |= {int(word): self._node(int(word), founding=KRaftVoters(voters=[])) for word in words}

    def _node(self, broker_id: int, *, founding: KRaftVoters | None = None) -> Node:
        return Node(
            broker_id,
            self.founding if founding is None else founding,
            self._sent,
            source=Even(),
            directory_id=directory_of(broker_id) if isinstance(self.founding, KRaftVoters) else None,
        )

    def log(self, words: list[str]) -> None:
        node = self.nodes[int(words[0])]
        node.log += [Entry(int(epoch), f"x{epoch}") for epoch in words[1:]]
        node.flushed = len(node.log)

    def kept(self, words: list[str]) -> None:
        voted = ReplicaKey(int(words[2]), self.nodes[int(words[2])].directory_id) if len(words) > 2 else None
        self.nodes[int(words[0])].hard_state = encode_standing(Standing(int(words[1]), voted=voted))

    def limit(self, words: list[str]) -> None:
        for node in self.nodes.values():
            node.fetch_max = int(words[0])

    def turns(self, words: list[str]) -> None:
        for node in self.nodes.values():
            node.silent_step_ms = int(words[0])

    def start(self, words: list[str]) -> None:
        for node in self._named(words):
            node.start()
            self._settle(node)

    def crash(self, words: list[str]) -> None:
        if words[-1] in ("before", "after"):
            self.dying[int(words[0])] = words[-1]
            return
        for node in self._named(words):
            node.crash()

    def wipe(self, words: list[str]) -> None:
        self.lives += 1
        self.nodes[int(words[0])].wipe(self.lives)

    def time(self, words: list[str]) -> None:
        for node in self._named(words[1:]) or list(self.nodes.values()):
            if node.is_alive:
                node.tick(node.clock_ms)
                self._settle(node)
                node.tick(node.clock_ms + int(words[0]))
                self._settle(node)

    def fetch(self, words: list[str], **options: str) -> None:
        for node in self._named(words):
            if "from" in options:
                node.fetch_from(int(options["from"]))
            else:
                node.fetch()

    def append(self, words: list[str]) -> None:
        node = self.nodes[int(words[0])]
        if not node.leads_in(node.election.leader_epoch):
            self.said.append("NOT_LEADER_OR_FOLLOWER")
            return
        for value in words[1:]:
            node.append(value)
        node.flush()
        self._settle(node)

    def refused(self, words: list[str]) -> None:
        node = self.nodes[int(words[0])]
        node.election.step(PeerRefused(int(words[1])))
        self._settle(node)

    def resign(self, words: list[str]) -> None:
        node = self.nodes[int(words[0])]
        node.election.step(LeadershipGivenUp())
        self._settle(node)

    def add(self, words: list[str], at: str) -> None:
        target, leader = self.nodes[int(words[0])], self.nodes[int(at)]
        request = AddRaftVoterRequest(
            voter_id=target.broker_id, voter_directory_id=target.directory_id, timeout_ms=9000
        )
        leader.election.step(PeerMessage(-1, request))
        self._settle(leader)

    def remove(self, words: list[str], at: str) -> None:
        target, leader = self.nodes[int(words[0])], self.nodes[int(at)]
        request = RemoveRaftVoterRequest(voter_id=target.broker_id, voter_directory_id=target.directory_id)
        leader.election.step(PeerMessage(-1, request))
        self._settle(leader)

    # -- messages ------------------------------------------------------------------------------------------------------

    def _sent(self, sent: Sent) -> None:
        if sent.target < 0:
            self.said.append(f"{sent.source} answers: {told(sent.body)}")
        else:
            self.under_way.append(sent)

    def hold(self, words: list[str]) -> None:
        self.held = set(map(_way, words))

    def drop(self, words: list[str]) -> None:
        ways = set(map(_way, words))
        self.under_way = [each for each in self.under_way if ways and (each.source, each.target) not in ways]

    def pass_(self, words: list[str]) -> None:
        ways = set(map(_way, words))
        for _ in range(PASSED_MAX):
            if not self._arrives(ways):
                return
        self.said.append("messages never end")

    def next(self, words: list[str]) -> None:
        for word in words:
            if not self._arrives({_way(word)}):
                self.said.append(f"nothing is under way on {word}")

    def _arrives(self, ways: set[tuple[int, int]]) -> bool:
        """Have the oldest message of these ways arrive, and return whether there was one."""
        sent = next((each for each in self.under_way if self._may_pass(each, ways)), None)
        if sent is None:
            return False
        self.under_way.remove(sent)
        node = self.nodes[sent.target]
        self.said.append(f"{sent.source} > {sent.target} {told(sent.body)}{'' if node.is_alive else ' (dead)'}")
        if node.is_alive:
            node.receive(sent)
            self._settle(node)
        return True

    def _may_pass(self, sent: Sent, ways: set[tuple[int, int]]) -> bool:
        way = (sent.source, sent.target)
        return way in ways if ways else way not in self.held

    # -- what is -------------------------------------------------------------------------------------------------------

    def show(self, words: list[str]) -> None:
        for node in self._named(words) or list(self.nodes.values()):
            self.said.append(_shown(node))

    def _named(self, words: Sequence[str]) -> list[Node]:
        return [self.nodes[int(word)] for word in words]

    def _settle(self, node: Node) -> None:
        node.carry_out(self.dying.pop(node.broker_id, "") if node.election.ready() is not None else "")


def _way(text: str) -> tuple[int, int]:
    source, _, target = text.partition(">")
    return int(source), int(target)


def _shown(node: Node) -> str:
    if not node.is_alive:
        return f"{node.broker_id} (dead) {' '.join(f'{each.value}.{each.epoch}' for each in node.log[: node.flushed])}"
    election = node.election
    values = [f"{entry.value}.{entry.epoch}" for entry in node.log]
    values.insert(election.high_watermark, "|")
    standing = election.standing
    leader = f" of {standing.leader_id}" if standing.leader_id >= 0 else ""
    voted = f" voted {standing.voted.broker_id}" if standing.voted is not None else ""
    return f"{node.broker_id} {election.state.value}{leader} epoch {standing.epoch}{voted}: {' '.join(values)}"


def told_by(lines: Sequence[str], script: Script) -> Iterator[str]:
    """Return a script as it is told when it is run."""
    for line in lines:
        if line.startswith("  "):
            continue
        yield line
        if line and not line.startswith("#"):
            said = script.run("pass_" + line[4:] if line.split()[0] == "pass" else line)
            yield from (f"  {each}".rstrip() for each in said)
