"""Pure core: who votes: brokers, each by the directory in which it keeps the log.

A voter whose disk was replaced is another replica: it has forgotten its votes, and what it had acknowledged. So voters
are told apart by directory id where it is known (KIP-853); where only `controller.quorum.voters` names them, or a
topic's replicas, the broker's id has to do.

*Source:* KIP-853; VoterSet and ReplicaKey of Kafka 4.3.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from odradek.kernel.api import ZERO_ID, KRaftVoters, frozen, id_text

if TYPE_CHECKING:
    import uuid
    from collections.abc import Iterable

    from odradek.kernel.api import KRaftVoter


class ReplicaKey(NamedTuple):
    """A replica: its broker, and its directory's id, `ZERO_ID` where that is not known."""

    broker_id: int
    directory_id: uuid.UUID = ZERO_ID

    def means(self, replica: ReplicaKey) -> bool:
        """Return whether this names a replica; a name without a directory means any of the broker's."""
        return self.broker_id == replica.broker_id and self.directory_id in (ZERO_ID, replica.directory_id)

    def __str__(self) -> str:
        return f"{self.broker_id}" if self.directory_id == ZERO_ID else f"{self.broker_id}-{id_text(self.directory_id)}"


@frozen
class Voters:
    """The voters of a quorum at one time.

    Attributes:
        keys: The voters: by broker id, or in the order of the metadata's replicas, the preferred leader first.
        record: The record that names them, None for voters that are set from outside the log (`kraft.version` 0).
        offset: Of the record in the log, -1 where it is not in it.
        former: Who voted before that record, or before those of the metadata, as long as these have elected nobody.
        epoch: The partition epoch with which voters began whom the metadata names; 0 for the first, and for a record's.
    """

    keys: tuple[ReplicaKey, ...] = ()
    record: KRaftVoters | None = None
    offset: int = -1
    former: tuple[ReplicaKey, ...] = ()
    epoch: int = 0

    @classmethod
    def of_replicas(cls, broker_ids: Iterable[int], epoch: int = 0, former_ids: Iterable[int] = ()) -> Voters:
        """Return voters that nothing but their brokers' ids is known of, in this order."""
        return cls(_keys_of_brokers(broker_ids), epoch=epoch, former=_keys_of_brokers(former_ids))

    @classmethod
    def of_record(cls, record: KRaftVoters, offset: int, former: KRaftVoters | None = None) -> Voters:
        """Return the voters that a record names."""
        return cls(_keys_of(record), record, offset, () if former is None else _keys_of(former))

    @property
    def majority(self) -> int:
        """How many of them are more than half."""
        return len(self.keys) // 2 + 1

    @property
    def in_doubt(self) -> tuple[ReplicaKey, ...]:
        """Whose votes are needed where a majority is in doubt: all who may have what is committed, former voters too.

        Where a record names the voters, whoever knows it has what was committed before it.
        """
        former = self.former if self.record is None else ()
        return (*self.keys, *(key for key in former if key not in self.keys))

    def find(self, broker_id: int) -> ReplicaKey | None:
        """Return the voter of a broker."""
        return next((key for key in self.keys if key.broker_id == broker_id), None)

    def has(self, replica: ReplicaKey) -> bool:
        """Return whether a replica votes."""
        return any(key.means(replica) for key in self.keys)

    def others(self, replica: ReplicaKey) -> tuple[ReplicaKey, ...]:
        """Return all voters but this replica; another directory of its broker is another voter."""
        return tuple(key for key in self.keys if not key.means(replica))

    def __len__(self) -> int:
        return len(self.keys)

    def __str__(self) -> str:
        return ", ".join(map(str, self.keys)) or "nobody"


def _keys_of_brokers(broker_ids: Iterable[int]) -> tuple[ReplicaKey, ...]:
    return tuple(ReplicaKey(broker_id) for broker_id in dict.fromkeys(broker_ids))


def _keys_of(record: KRaftVoters) -> tuple[ReplicaKey, ...]:
    return tuple(sorted(ReplicaKey(voter.voter_id, voter.voter_directory_id) for voter in record.voters))


NOBODY: Final = Voters()


def with_voter(record: KRaftVoters, voter: KRaftVoter) -> KRaftVoters:
    """Return the record of the same voters with one more, or with news of one."""
    others = [each for each in record.voters if each.voter_id != voter.voter_id]
    return KRaftVoters(version=record.version, voters=sorted([*others, voter], key=lambda each: each.voter_id))


def without_voter(record: KRaftVoters, broker_id: int) -> KRaftVoters:
    """Return the record of the same voters without one."""
    return KRaftVoters(version=record.version, voters=[each for each in record.voters if each.voter_id != broker_id])
