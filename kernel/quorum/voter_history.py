"""Pure core: who votes, as the newest snapshot and the log behind it name them, record by record (KIP-853).

    snapshot [0, 700)        log [700, ...)
    voters 1, 2, 3           702: voters 1, 2, 3, 4      950: voters 1, 2, 4
                                                         the newest: they count from its append on
                             the former ones: until the newest is committed, one of them may be needed

A record counts as soon as it is appended, committed or not; one that is truncated counts no more. What the founding of
a cluster left beside the log is the snapshot that ends at offset 0.

*Source:* KRaftControlRecordStateMachine and VoterSetHistory of Kafka 4.3.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ..contracts.election import VotersChanged

if TYPE_CHECKING:
    from ..records.control import KRaftVoters


class NamedVoters(NamedTuple):
    """Voters, and where they are named: -1 for what the founding left beside the log."""

    offset: int
    record: KRaftVoters


class VoterHistory:
    """Life: made, `begin_anew` where there is a snapshot, then `add` and `truncate_to` as the log changes.

    Invariant: offsets only grow. Owned by the log's task.
    """

    def __init__(self) -> None:
        """Know of no voters."""
        self._named: list[NamedVoters] = []

    def __repr__(self) -> str:
        return f"VoterHistory({[(named.offset, len(named.record.voters)) for named in self._named]})"

    @property
    def newest(self) -> KRaftVoters | None:
        """The voters as they are now, None where nothing names any."""
        return self._named[-1].record if self._named else None

    @property
    def offset(self) -> int:
        """Where the newest are named; -1 for the founding's, and for none."""
        return self._named[-1].offset if self._named else -1

    @property
    def former(self) -> KRaftVoters | None:
        """The voters before the newest, None where they are not known: then they are committed for long."""
        return self._named[-2].record if len(self._named) > 1 else None

    def at(self, offset: int) -> KRaftVoters | None:
        """Return the voters that everything up to an offset names, the record there included; None for none."""
        return next((named.record for named in reversed(self._named) if named.offset <= offset), None)

    def event(self) -> VotersChanged | None:
        """Return what an election is told of the newest, None where there are none."""
        newest = self.newest
        return None if newest is None else VotersChanged(newest, self.offset, self.former)

    def begin_anew(self, end_offset: int, record: KRaftVoters | None) -> None:
        """Forget all, and begin with what a snapshot names that ends at `end_offset`, 0 for the founding's."""
        self._named = [] if record is None else [NamedVoters(end_offset - 1, record)]

    def add(self, offset: int, record: KRaftVoters) -> None:
        """Take note of voters that the log names at an offset."""
        assert not self._named or offset > self.offset, "a log grows"
        self._named.append(NamedVoters(offset, record))

    def truncate_to(self, end_offset: int) -> bool:
        """Forget what was named at or above an offset; return whether something was. No snapshot goes beyond it."""
        left = [named for named in self._named if named.offset < end_offset]
        has_changed, self._named = len(left) != len(self._named), left
        return has_changed

    def forget_below(self, offset: int) -> None:
        """Forget what was named before the newest that are named below an offset: they are nobody's any more."""
        below = sum(named.offset < offset for named in self._named)
        del self._named[: max(below - 1, 0)]
