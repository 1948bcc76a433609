"""A toy cluster around the steps of a founding: disks that are replaced, processes that end, messages that get lost.

A round asks every candidate; requests and answers travel by themselves. An answer reaches the process that asked, in
the round that asked, or nobody, as over a connection; a request may arrive twice, and long after who asked is gone.
What follows a founding is the toy of a quorum: a majority of the voters that a founding names, each founded and with
the directory that is named, may lead, and commits on all disks of that majority.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import TypeAlias
from uuid import UUID

import attrs

from odradek.kernel.quorum.founding import (
    Candidate,
    Founded,
    Founding,
    FoundingNode,
    FoundingSteps,
    Keep,
    Observe,
    Serve,
    Told,
)

IDS = (1, 2, 3)
CANDIDATES = tuple(Candidate(each, f"host{each}", 9093) for each in IDS)
Steps: TypeAlias = Callable[..., FoundingSteps]


@attrs.define
class Disk:
    """What outlives a process."""

    directory_id: UUID
    held: Founding | None = None
    cluster_id: str = ""
    votes: bool = False
    committed: int = 0


@attrs.define
class Life:
    """One process of a node."""

    node_id: int
    disk: Disk
    steps: FoundingSteps
    round: int = 0
    answers: dict[Candidate, Told] = attrs.field(factory=dict)
    writing: Keep | None = None


@attrs.frozen
class Asked:
    """A request under way."""

    asker: Life
    round: int
    node: FoundingNode
    target: int


@attrs.frozen
class Answered:
    """An answer under way."""

    asker: Life
    round: int
    source: int
    told: Told


class FoundedTwiceError(AssertionError):
    """Two clusters, where the disks of the first were still there."""


class RecordsMissingError(AssertionError):
    """A leader lacks what its cluster has committed."""


class Model:
    """Three nodes, all that is under way between them, and what must never be."""

    def __init__(self, source: random.Random, steps: Steps = FoundingSteps) -> None:
        self._source, self._steps = source, steps
        self._disks_count = self._clusters_count = 0
        self.under_way: list[Asked | Answered] = []
        self.lives: dict[int, Life | None] = dict.fromkeys(IDS)
        self.disks = {each: self._new_disk(each) for each in IDS}
        self.committed: dict[Founding, int] = {}
        self.founded: list[tuple[Founding, tuple[Disk, ...]]] = []

    def _new_disk(self, node_id: int) -> Disk:
        self._disks_count += 1
        return Disk(UUID(int=100 * self._disks_count + node_id))

    def _new_cluster_id(self) -> str:
        self._clusters_count += 1
        return f"cluster-{self._clusters_count}"

    # -- life ----------------------------------------------------------------------------------------------------------

    def start(self, node_id: int) -> None:
        """Begin a process over what is on the disk."""
        disk = self.disks[node_id]
        own = FoundingNode(node_id, disk.directory_id)
        steps = self._steps(own, CANDIDATES, held=disk.held, new_cluster_id=self._new_cluster_id)
        self.lives[node_id] = Life(node_id, disk, steps)

    def crash(self, node_id: int) -> None:
        """End it; what it was writing may have been written, or not."""
        life = self.lives[node_id]
        if life is not None and life.writing is not None and self._source.random() < 0.5:
            life.disk.held = life.writing.founding
        self.lives[node_id] = None

    def wipe(self, node_id: int) -> None:
        """Replace its disk, and start it again."""
        self.crash(node_id)
        self.disks[node_id] = self._new_disk(node_id)
        self.start(node_id)

    # -- messages ------------------------------------------------------------------------------------------------------

    def begin_round(self, node_id: int) -> None:
        """Ask all others, and forget the answers of the round before."""
        life = self.lives[node_id]
        if life is None or life.writing is not None or life.disk.cluster_id:
            return
        life.round += 1
        life.answers = {}
        node = FoundingNode(node_id, life.disk.directory_id)
        self.under_way += [Asked(life, life.round, node, each) for each in IDS if each != node_id]

    def deliver(self, message: Asked | Answered) -> None:
        """Let something arrive."""
        if isinstance(message, Asked):
            told = self._told(message)
            if told is not None:
                self.under_way.append(Answered(message.asker, message.round, message.target, told))
            return
        life = message.asker
        if self.lives[life.node_id] is life and life.round == message.round:
            life.answers[CANDIDATES[message.source - 1]] = message.told

    def deliver_all(self) -> None:
        """Let all that is under way arrive, with what is answered."""
        while self.under_way:
            self.deliver(self.under_way.pop(0))

    def _told(self, message: Asked) -> Told | None:
        life = self.lives[message.target]
        if life is None:
            return None
        life.steps.asked_by(message.node)
        return Founded(life.disk.cluster_id) if life.disk.cluster_id else life.steps.told()

    def end_round(self, node_id: int) -> None:
        """Let a node decide by the answers that it has."""
        life = self.lives[node_id]
        if life is None or life.writing is not None or life.disk.cluster_id or not life.round:
            return
        step = life.steps.decide(life.answers.items())
        life.answers = {}
        life.round += 1
        if isinstance(step, Keep):
            life.writing = step
        elif isinstance(step, Serve):
            assert step.founding == life.disk.held, "who serves has the founding on its disk"
            life.disk.cluster_id = step.founding.cluster_id
            life.disk.votes = step.founding.names(FoundingNode(node_id, life.disk.directory_id))
            self._note_founded(step.founding)
        elif isinstance(step, Observe):
            life.disk.cluster_id = step.cluster_id

    def end_writing(self, node_id: int) -> None:
        """Let the disk have what is written to it."""
        life = self.lives[node_id]
        if life is not None and life.writing is not None:
            life.disk.held = life.writing.founding
            life.steps.kept(life.writing.founding)
            life.writing = None

    # -- the quorum that follows ---------------------------------------------------------------------------------------

    def majorities(self) -> Iterator[tuple[Founding, list[Disk]]]:
        """Iterate over the foundings of which a majority of voters is up, with their disks."""
        up = [life for life in self.lives.values() if life is not None and life.disk.votes]
        for founding in {life.disk.held for life in up if life.disk.held is not None}:
            disks = [life.disk for life in up if life.disk.held == founding]
            if 2 * len(disks) > len(founding.voters):
                yield founding, disks

    def lead(self) -> None:
        """Have whoever has a majority lead, and commit something on a part of it that is a majority."""
        for founding, disks in self.majorities():
            self._source.shuffle(disks)
            majority = disks[: len(founding.voters) // 2 + 1]
            end = max(disk.committed for disk in majority)
            if end < self.committed.get(founding, 0):
                raise RecordsMissingError(f"{founding.cluster_id}: {self.committed[founding] - end} records")
            self.committed[founding] = end + 1
            for disk in majority:
                disk.committed = end + 1

    def _note_founded(self, founding: Founding) -> None:
        """See that no disk is left of those that knew of another cluster when that was founded."""
        now = tuple(self.disks.values())
        for other, disks in self.founded:
            left = [disk for disk in disks if any(disk is each for each in now)]
            if other != founding and left:
                raise FoundedTwiceError(f"{other.cluster_id} and {founding.cluster_id}")
        self.founded.append((founding, now))

    # -- chance --------------------------------------------------------------------------------------------------------

    def act(self, loss: float, crashes: float) -> None:
        """Do something by chance."""
        if self.under_way and self._source.random() < 0.6:
            place = self._source.randrange(len(self.under_way))
            message = self.under_way[place]
            is_kept = isinstance(message, Asked) and self._source.random() < 0.1  # it arrives again, who knows when
            if not is_kept:
                del self.under_way[place]
            if self._source.random() >= loss:
                self.deliver(message)
            return
        node_id = self._source.choice(IDS)
        if self._source.random() < crashes:
            self.crash(node_id)
        if self.lives[node_id] is None:
            self.start(node_id)
            return
        self._source.choice((self.begin_round, self.end_round, self.end_writing))(node_id)
        if self._source.random() < 0.1:
            self.lead()

    def settle(self, rounds: int = 12) -> None:
        """Let all be up, and nothing be lost, for some rounds."""
        self.under_way.clear()
        for node_id in IDS:
            if self.lives[node_id] is None:
                self.start(node_id)
        for _ in range(rounds):
            for node_id in IDS:
                self.begin_round(node_id)
            self.deliver_all()
            for node_id in IDS:
                self.end_round(node_id)
            for node_id in IDS:
                self.end_writing(node_id)
        self.lead()
