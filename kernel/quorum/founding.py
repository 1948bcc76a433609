"""Pure core: how voters whose directories are empty found a cluster once, and who of them may vote in it.

A founding names the voters with the ids of their directories. It goes through three states, and never back:

    unfounded ──(the lowest id: all are there, empty, and agree)──> held ──(all hold it)──> founded
              ──(the others: the founder holds one)──────────────>

* *Unfounded* nodes ask each other in rounds. The one with the lowest id founds when every one that is configured has
  answered in one round that it is unfounded and means the same voters. The others take a founding from the node with
  the founder's id and from nobody else; that node, its disk replaced meanwhile, takes it from anybody, as it is the
  only one that could found another.
* Who *holds* a founding keeps it, and does not vote yet. It is founded, and votes, as soon as it has heard that the
  node of every voter's id holds the same founding, be it in another directory, or that one of them is founded.
* A node whose directory a founding does not name keeps it too: it never votes, and it knows that there is a cluster.

So records are committed only when every configured node has the founding on its disk, and a cluster is founded anew
only when none of them has: while one of these disks is there, the cluster is not founded a second time beside the
records that it may have committed. What is lost, late or doubled on the way delays this and nothing else.

Who was asked by another directory of a node than the one whose answer it got takes no founding from that answer: the
disk was replaced meanwhile, and what it founded may be gone.

*Source:* KIP-853 has clusters founded by hand (`kafka-storage format --initial-controllers`), as formatting by itself
let two replaced disks of three elect a leader. The protocol here is this project's own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from ..classes import frozen

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from uuid import UUID

UNKNOWN_ID: Final = -1
"""The id of a candidate of which only the address is known."""
ASKERS_MAX: Final = 1000
"""Of so many who asked it is known where they did from; more ids than any cluster has controllers are a stranger's."""


class Candidate(NamedTuple):
    """A node that is to be there: `controller.quorum.voters` tells its id, the bootstrap servers do not."""

    node_id: int
    host: str
    port: int

    @property
    def key(self) -> str:
        """What has to be the same in the configuration of all: the id, or the address where no id is known."""
        return str(self.node_id) if self.node_id != UNKNOWN_ID else f"{self.host}:{self.port}"

    def __str__(self) -> str:
        """Return it for people."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}" if self.node_id == UNKNOWN_ID else f"{self.node_id} ({host}:{self.port})"


class FoundingNode(NamedTuple):
    """A node, and the directory of its metadata log."""

    node_id: int
    directory_id: UUID


class FoundingVoter(NamedTuple):
    """A voter of a founding, and where it listens."""

    node_id: int
    directory_id: UUID
    host: str
    port: int


@frozen
class Founding:
    """What all agree on.

    Attributes:
        cluster_id: The cluster's.
        voters: In the order of their ids.
    """

    cluster_id: str
    voters: tuple[FoundingVoter, ...]

    @property
    def founder_id(self) -> int:
        """The node that founded: the lowest id."""
        return self.voters[0].node_id

    @property
    def ids(self) -> frozenset[int]:
        """The voters' ids."""
        return frozenset(voter.node_id for voter in self.voters)

    def names(self, node: FoundingNode) -> bool:
        """Return whether a node votes with this directory."""
        return any((voter.node_id, voter.directory_id) == node for voter in self.voters)


@frozen
class Unfounded:
    """The answer of a node whose directory is empty.

    Attributes:
        node: Who answers.
        wanted: The keys of its candidates.
    """

    node: FoundingNode
    wanted: frozenset[str]


@frozen
class Holds:
    """The answer of a node that keeps a founding, and does not know yet that all do."""

    node: FoundingNode
    founding: Founding


@frozen
class Founded:
    """The answer of a node that is part of a cluster.

    Attributes:
        cluster_id: Its cluster's.
    """

    cluster_id: str


Told: TypeAlias = Unfounded | Holds | Founded
"""What a node says of itself."""


@frozen
class Keep:
    """Make this founding durable, then call `FoundingSteps.kept`."""

    founding: Founding


@frozen
class Serve:
    """The cluster is founded: serve as what the founding makes of this node."""

    founding: Founding


@frozen
class Observe:
    """There is a cluster already, of which this directory is no voter: serve as an observer of it."""

    cluster_id: str


Step: TypeAlias = Keep | Serve | Observe


class FoundingSteps:
    """One node on its way into a cluster. Owned by one task, which asks all candidates, and calls `decide`, in rounds.

    Answers of a round are those to requests that were sent after it began. `told` is what the node answers itself; it
    is None while a founding is being written, as nobody knows then whether a crash leaves it.

    Attributes:
        own: This node.
        held: The founding that it keeps.
        waits_for: Why the last round decided nothing, for people.
    """

    def __init__(
        self,
        own: FoundingNode,
        candidates: Sequence[Candidate],
        *,
        held: Founding | None = None,
        new_cluster_id: Callable[[], str],
    ) -> None:
        """Begin with what is on the disk.

        Args:
            own: This node, and its directory.
            candidates: All that are configured, itself among them unless it is no voter.
            held: What it kept before it was started.
            new_cluster_id: Returns the id of a cluster that it founds.
        """
        self.own, self.held = own, held
        self.waits_for = ""
        self._candidates = tuple(candidates)
        self._wanted = frozenset(each.key for each in candidates)
        self._ids = frozenset(each.node_id for each in candidates if each.node_id != UNKNOWN_ID)
        self._new_cluster_id = new_cluster_id
        self._is_keeping = False
        self._asked_by: dict[int, UUID] = {}

    def __repr__(self) -> str:
        return f"FoundingSteps({self.own.node_id}, {'holds one' if self.held else 'unfounded'}, {self.waits_for})"

    def told(self) -> Unfounded | Holds | None:
        """Return what this node says of itself; None while that is not certain."""
        if self._is_keeping:
            return None
        return Unfounded(self.own, self._wanted) if self.held is None else Holds(self.own, self.held)

    def asked_by(self, node: FoundingNode) -> bool:
        """Take note of who asks, before it is answered; return whether that is news.

        It is where the node may be a founder: any, where the ids of candidates are not known.
        """
        if self._ids and node.node_id not in self._ids:
            return False
        former = self._asked_by.pop(node.node_id, None)
        self._asked_by[node.node_id] = node.directory_id
        if len(self._asked_by) > ASKERS_MAX:
            del self._asked_by[next(iter(self._asked_by))]
        return former != node.directory_id

    def kept(self, founding: Founding) -> None:
        """Take note that a founding is durable."""
        self.held, self._is_keeping = founding, False

    def decide(self, answers: Iterable[tuple[Candidate, Told]]) -> Step | None:
        """Return what follows from the answers of one round; None: nothing, `waits_for` tells why.

        Args:
            answers: With who was asked; who did not answer is not there, this node neither.
        """
        told = dict(answers)
        step = self._of_the_founded(told) or self._decide_held(told) or self._decide_unfounded(told)
        if isinstance(step, Keep):
            self._is_keeping = True
        if step is not None:
            self.waits_for = ""
        return step

    def _of_the_founded(self, told: dict[Candidate, Told]) -> Step | None:
        """Follow whoever is part of a cluster."""
        clusters = {answer.cluster_id for answer in told.values() if isinstance(answer, Founded)}
        if not clusters:
            return None
        if self.held is None:
            return Observe(min(clusters)) if len(clusters) == 1 else None
        return Serve(self.held) if clusters == {self.held.cluster_id} else None

    def _decide_held(self, told: dict[Candidate, Told]) -> Step | None:
        if self.held is None:
            return None
        holders = {self.own.node_id}
        for answer in told.values():
            if isinstance(answer, Holds) and answer.founding == self.held:
                holders.add(answer.node.node_id)
        if holders >= self.held.ids:
            return Serve(self.held)
        self.waits_for = self._missing_holders(told, holders)
        return None

    def _missing_holders(self, told: dict[Candidate, Told], holders: set[int]) -> str:
        assert self.held is not None, "asked of who holds one"
        for candidate, answer in told.items():
            other = answer.founding.cluster_id if isinstance(answer, Holds) else self._cluster_of(answer)
            if other is not None and other != self.held.cluster_id:
                return f"voter {candidate} is of another founding, cluster {other}, and this is {self.held.cluster_id}"
        missing = [
            str(Candidate(voter.node_id, voter.host, voter.port))
            for voter in self.held.voters
            if voter.node_id not in holders
        ]
        return f"waiting for {_voters(missing)} to keep the founding of cluster {self.held.cluster_id}"

    @staticmethod
    def _cluster_of(answer: Told) -> str | None:
        return answer.cluster_id if isinstance(answer, Founded) else None

    def _decide_unfounded(self, told: dict[Candidate, Told]) -> Step | None:
        if self.held is not None:
            return None
        clusters = sorted({answer.cluster_id for answer in told.values() if isinstance(answer, Founded)})
        if clusters:
            self.waits_for = f"the voters are of several clusters, {' and '.join(clusters)}"
            return None
        holders = [(candidate, answer) for candidate, answer in told.items() if isinstance(answer, Holds)]
        if holders:
            return self._take(holders)
        return self._found(told)

    def _take(self, holders: list[tuple[Candidate, Holds]]) -> Step | None:
        """Take the founding of who alone could found another one."""
        for candidate, answer in holders:
            founding, node = answer.founding, answer.node
            self.waits_for = f"waiting for voter {founding.founder_id}, which founded cluster {founding.cluster_id}"
            if not self._is_of_the_wanted(founding):
                self.waits_for = (
                    f"voter {candidate} holds a founding of voters {_ids(founding.ids)}, and "
                    f"{_ids(map(str, self._wanted))} are configured here"
                )
                continue
            if founding.founder_id == self.own.node_id:
                return Keep(founding)
            if founding.founder_id == node.node_id and self._asked_by.get(node.node_id, node.directory_id) == (
                node.directory_id
            ):
                return Keep(founding)
        return None

    def _is_of_the_wanted(self, founding: Founding) -> bool:
        return not self._ids or founding.ids == self._ids

    def _found(self, told: dict[Candidate, Told]) -> Step | None:
        """Found when all are there, agree, and this is the lowest id."""
        there = {each: answer for each, answer in told.items() if isinstance(answer, Unfounded)}
        mine = Unfounded(self.own, self._wanted)
        there.update((each, mine) for each in self._candidates if each.node_id == self.own.node_id)
        missing = [str(each) for each in self._candidates if each not in there]
        if missing:
            self.waits_for = f"waiting for {_voters(missing)} to found the cluster"
            return None
        self.waits_for = self._disagreement(there)
        if self.waits_for:
            return None
        voters = sorted(
            FoundingVoter(*answer.node, candidate.host, candidate.port) for candidate, answer in there.items()
        )
        if voters[0].node_id != self.own.node_id:
            founder = Candidate(voters[0].node_id, voters[0].host, voters[0].port)
            self.waits_for = f"waiting for voter {founder}, which founds the cluster"
            return None
        return Keep(Founding(self._new_cluster_id(), tuple(voters)))

    def _disagreement(self, there: dict[Candidate, Unfounded]) -> str:
        """Return what keeps those that are there from founding a cluster together, for people; empty for nothing."""
        seen: dict[int, Candidate] = {}
        for candidate, answer in there.items():
            if candidate.node_id not in (UNKNOWN_ID, answer.node.node_id):
                return f"at the address of voter {candidate} node {answer.node.node_id} answers"
            if answer.wanted != self._wanted:
                others = f"{_ids(answer.wanted)}, and here {_ids(self._wanted)}"
                return f"voter {candidate} is configured with other voters: {others}"
            if (other := seen.setdefault(answer.node.node_id, candidate)) != candidate:
                return f"node {answer.node.node_id} answers at {other} and at {candidate}"
        if len({answer.node.directory_id for answer in there.values()}) < len(there):
            return "two voters have the same directory.id: one directory is a copy of the other"
        return ""


def _voters(names: Sequence[str]) -> str:
    return f"voter{'s' if len(names) > 1 else ''} {', '.join(names)}"


def _ids(names: Iterable[object]) -> str:
    return ", ".join(sorted(map(str, names)))
