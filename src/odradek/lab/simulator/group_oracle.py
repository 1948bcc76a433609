"""Pure core: what must be true of a group's offsets and of what its members read, whatever happened.

| rule | |
| --- | --- |
| owner | commits of two members for one partition are never accepted in the same generation or epoch |
| origin | what somebody is told to be committed, a member asked to be committed |
| back | what somebody is told to be committed is not less than what anybody was told before he asked |
| gap | a member reads a partition without a gap |
| processed | in the end each record was processed, and committed |
| once | of what is consumed, transformed and produced in transactions, each record was processed once |

A member's own commits may overtake each other where the network fails: one whose connection broke arrives behind the
one that was sent over the next connection, and Kafka's OffsetCommit has no sequence. So there a smaller offset is told
if the member asked for it whose offset was acknowledged; an offset of another member never.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from .oracle import PromiseBrokenError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


@attrs.frozen
class Committer:
    """Who commits.

    Attributes:
        member_id: As the coordinator calls it.
        generation: Its generation, or its epoch; -1 where it is not known.
        owner: As whom it owns partitions: a static member as its instance, any other one as itself.
    """

    member_id: str
    generation: int
    owner: str


@attrs.frozen
class Floor:
    """The largest offset of a partition that is known to be committed: somebody was told so.

    Attributes:
        offset: It.
        members: Who asked for it, as far as it is known.
    """

    offset: int = 0
    members: frozenset[str] = frozenset()


class GroupOracle:
    """One group that reads one topic. One owner.

    Attributes:
        told_count: How often somebody was told what is committed.
        overtaken_count: How often it was less than what was acknowledged, as a failing network may bring about.
    """

    def __init__(self, *, may_overtake: bool) -> None:
        """Know nothing yet.

        Args:
            may_overtake: Whether a member's commits may overtake each other.
        """
        self._may_overtake = may_overtake
        self._askers: dict[tuple[int, int], set[str]] = {}
        self._owners: dict[tuple[int, int], str] = {}
        self._floors: dict[int, Floor] = {}
        self._processed: set[tuple[int, int]] = set()
        self._next: dict[tuple[str, int], int] = {}
        self.told_count = 0
        self.overtaken_count = 0

    # -- commits -----------------------------------------------------------------------------------------------------

    def attempted(self, who: Committer, offsets: Mapping[int, int]) -> None:
        """Note that a member asks for offsets, by partition, to be committed."""
        for place in offsets.items():
            self._askers.setdefault(place, set()).add(who.member_id)

    def accepted(self, who: Committer, offsets: Mapping[int, int]) -> None:
        """Note that a member was told that they are."""
        for partition, offset in offsets.items():
            self._check_owner(who, partition)
            self._raise(partition, offset, {who.member_id})

    def _check_owner(self, who: Committer, partition: int) -> None:
        if who.generation < 0:
            return
        owner = self._owners.setdefault((partition, who.generation), who.owner)
        if owner != who.owner:
            what = f"generation {who.generation}: {owner} and {who.owner} both committed partition {partition}"
            raise PromiseBrokenError("owner", what)

    def _raise(self, partition: int, offset: int, members: set[str]) -> None:
        if offset > self.floor(partition).offset:
            self._floors[partition] = Floor(offset, frozenset(members))

    def floor(self, partition: int) -> Floor:
        """Return what is committed at least."""
        return self._floors.get(partition, Floor())

    def told(self, partition: int, offset: int, asked: Floor) -> None:
        """Check what somebody was told to be committed.

        Args:
            partition: Of which partition.
            offset: What; 0 where that is nothing.
            asked: The floor at the moment in which it was asked.
        """
        self.told_count += 1
        askers = self._askers.get((partition, offset), set())
        if offset and not askers:
            raise PromiseBrokenError("origin", f"nobody committed {offset} of partition {partition}")
        if offset >= asked.offset:
            self._raise(partition, offset, askers)
            return
        if not (self._may_overtake and asked.members & askers):
            what = f"partition {partition} was committed up to {asked.offset}, and is to {offset}"
            raise PromiseBrokenError("back", what)
        self.overtaken_count += 1

    # -- records -----------------------------------------------------------------------------------------------------

    def begins(self, reader: str, partition: int) -> None:
        """Note that a member begins to read a partition, somewhere."""
        self._next.pop((reader, partition), None)

    def read(self, reader: str, partition: int, offset: int) -> bool:
        """Check that a member reads on; return whether this is where it begins."""
        expected = self._next.get((reader, partition))
        self._next[reader, partition] = offset + 1
        if expected is not None and expected != offset:
            raise PromiseBrokenError("gap", f"{reader} was given {offset} of partition {partition}, not {expected}")
        return expected is None

    def processed(self, partition: int, offset: int) -> None:
        """Note that a member has done what is to be done with a record."""
        self._processed.add((partition, offset))

    def transformed(self, values: Iterable[str]) -> None:
        """Check what transactions made of the records, each named by `name_of`, and note them as processed."""
        for value in values:
            partition, offset = map(int, value.split("/"))
            if (partition, offset) in self._processed:
                raise PromiseBrokenError("once", f"record {offset} of partition {partition} was processed twice")
            self.processed(partition, offset)

    # -- the end -----------------------------------------------------------------------------------------------------

    def has_committed(self, ends: Mapping[int, int]) -> bool:
        """Say whether everything is committed; given where partitions end."""
        return all(self.floor(partition).offset >= end for partition, end in ends.items())

    def check(self, ends: Mapping[int, int]) -> None:
        """Check that nothing was left out; given where partitions end."""
        for partition, end in ends.items():
            missing = [offset for offset in range(end) if (partition, offset) not in self._processed]
            if missing:
                what = f"partition {partition}: nobody processed {missing[0]}, and {len(missing) - 1} others"
                raise PromiseBrokenError("processed", what)
            if self.floor(partition).offset < end:
                what = f"partition {partition} ends at {end}, and is committed up to {self.floor(partition).offset}"
                raise PromiseBrokenError("processed", what)


def name_of(partition: int, offset: int) -> str:
    """Return how a record is named in what is made of it."""
    return f"{partition}/{offset}"
