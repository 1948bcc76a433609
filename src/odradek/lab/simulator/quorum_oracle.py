"""Pure core: what must be true of those who keep a cluster's metadata, at any moment: told what is seen of each.

| rule | |
| --- | --- |
| one leader | nobody else leads in an epoch in which somebody leads |
| may lead | whoever begins to lead is a voter by its own log, or was one by what it knows to be committed |
| vote | nobody gives its vote to two in one epoch |
| remembered | who starts anew has its epoch on its disk, and its vote in it; nobody goes back to an earlier epoch |
| own epoch | what nobody had committed before, a leader commits with a record of its own epoch (Raft's figure 8) |
| complete | whoever begins to lead has what was committed before its epoch |
| committed | what is committed at an offset is what was committed there before, whoever tells of it |
| one change | of the voters that are committed one comes or goes at a time |

A node is known by its id and its directory's: on a disk that was replaced it remembers nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

from .oracle import PromiseBrokenError

if TYPE_CHECKING:
    from collections.abc import Iterable

Batch = tuple[int, bytes]
"""A batch of the metadata log, and its base offset."""


class Voter(NamedTuple):
    """Who votes.

    Attributes:
        node_id: Its id.
        directory_id: Of the directory that it remembers its votes in.
    """

    node_id: int
    directory_id: UUID

    def __str__(self) -> str:
        return f"node {self.node_id}"


class QuorumOracle:
    """All that was seen of a run's quorum. One owner.

    Attributes:
        committed_end: Up to where something is known to be committed.
    """

    def __init__(self) -> None:
        """Know nothing yet."""
        self._leaders: dict[int, Voter] = {}
        self._votes: dict[tuple[Voter, int], Voter] = {}
        self._epochs: dict[Voter, int] = {}
        self._batches: dict[int, bytes] = {}
        self._ends: dict[int, int] = {}
        self._voters: dict[int, frozenset[Voter]] = {}
        self._newest_epoch = -1
        self.committed_end = 0

    @property
    def epochs_count(self) -> int:
        """In how many epochs somebody led."""
        return len(self._leaders)

    @property
    def votes_count(self) -> int:
        """How many votes others were given."""
        return len(self._votes)

    @property
    def voters(self) -> frozenset[Voter] | None:
        """Who votes, by the last that is committed; None as long as no record named them."""
        return self._voters[max(self._voters)] if self._voters else None

    def is_in(self, node: Voter, epoch: int) -> None:
        """Check that a node, which has carried out what an epoch asks of it, has not been in a later one."""
        known = self._epochs.get(node, -1)
        if epoch < known:
            raise PromiseBrokenError("remembered", f"{node} is in epoch {epoch}, and was in epoch {known}")
        self._epochs[node] = epoch

    def starts(self, node: Voter, epoch: int, voted: Voter | None) -> None:
        """Check what a node that starts anew finds on its disk: its epoch, and whom it has given its vote in it."""
        known, candidate = self._epochs.get(node, -1), self._votes.get((node, epoch))
        if epoch < known:
            raise PromiseBrokenError("remembered", f"{node} starts in epoch {epoch}, and was in epoch {known}")
        if candidate not in (None, voted):
            what = f"{node} starts in epoch {epoch} with its vote for {voted or 'nobody'}"
            raise PromiseBrokenError("remembered", f"{what}, and had given it to {candidate}")

    def voted(self, node: Voter, epoch: int, candidate: Voter) -> None:
        """Check a vote that was given and told."""
        first = self._votes.setdefault((node, epoch), candidate)
        if first != candidate:
            raise PromiseBrokenError("vote", f"{node} votes in epoch {epoch} for {first} and for {candidate}")
        self._epochs[node] = max(epoch, self._epochs.get(node, epoch))

    def leads(self, node: Voter, epoch: int) -> bool:
        """Check that nobody else leads in an epoch in which a node leads, and return whether that is new."""
        is_new = epoch not in self._leaders
        known = self._leaders.setdefault(epoch, node)
        if known != node:
            raise PromiseBrokenError("one leader", f"{known} and {node} lead in epoch {epoch}")
        self._newest_epoch = max(self._newest_epoch, epoch)
        return is_new

    def begins(self, node: Voter, epoch: int, log: Iterable[Batch], end: int, *, is_voter: bool) -> None:
        """Check a node that begins to lead.

        Args:
            node: Which.
            epoch: In which epoch.
            log: What it has, its own first record left out.
            end: Where that ends.
            is_voter: Whether its own log says so, or what it knows to be committed.
        """
        if not is_voter:
            raise PromiseBrokenError("may lead", f"{node} leads in epoch {epoch}, and is no voter by its own log")
        # What was committed in a later epoch than a late winner's need not be in its log.
        committed_end = max((known for earlier, known in self._ends.items() if earlier < epoch), default=0)
        if end < committed_end:
            what = f"{node} begins epoch {epoch} with a log that ends at {end}"
            raise PromiseBrokenError("complete", f"{what}, and all below {committed_end} was committed before")
        self._check_known("complete", node, (each for each in log if each[0] < committed_end))

    def commits(self, node: Voter, batches: Iterable[Batch], end: int, *, led_from: int | None = None) -> None:
        """Check what a node holds to be committed.

        Args:
            node: Which.
            batches: What of it was not looked at before.
            end: Up to where it is.
            led_from: Where the first record of its own epoch stands, if it leads.
        """
        if led_from is not None and self.committed_end < end <= led_from:
            what = f"{node} commits what ends at {end}, and its own epoch begins at {led_from}"
            raise PromiseBrokenError("own epoch", what)
        new = list(batches)
        self._check_known("committed", node, new)
        for base, batch in new:
            self._batches.setdefault(base, batch)
        self.committed_end = max(self.committed_end, end)
        self._ends[self._newest_epoch] = self.committed_end

    def names(self, offset: int, voters: frozenset[Voter]) -> None:
        """Check voters that the log names at an offset, committed."""
        before = max((known for known in self._voters if known < offset), default=None)
        self._voters[offset] = voters
        if before is not None and len(changed := voters ^ self._voters[before]) > 1:
            what = " and ".join(sorted(map(str, changed)))
            raise PromiseBrokenError("one change", f"at offset {offset} of the metadata log {what} come or go at once")

    def _check_known(self, rule: str, node: Voter, batches: Iterable[Batch]) -> None:
        for base, batch in batches:
            known = self._batches.get(base, batch)
            if known != batch:
                what = f"{node} has at offset {base} of the metadata log {batch!r}"
                raise PromiseBrokenError(rule, f"{what}, and {known!r} was committed there")
