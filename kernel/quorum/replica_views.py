"""Pure core: the replica of the metadata log (`QuorumLog`) as each of those who work with it needs it.

    ReplicaView ──> VotersView                      who looks for controllers, or asks to be a voter
              └───> OffsetsView ──> FollowedLog     who fetches into it
                              ├───> CommittedLog    who reads what is committed of it; a `StoredLog`
                              └───> LedLog          who leads it; a `ReplicatedLog`

So each says what it uses, and can be tested beside a replica that does nothing else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from ..controller.local_log import ReplicatedLog, StoredLog

if TYPE_CHECKING:
    from collections.abc import Generator

    from ..contracts.election import ElectionInput, Role
    from ..controller.snapshots import SnapshotId
    from ..records.control import KRaftVoters
    from ..types import Buffer
    from ..wire.message import Message


class ReplicaView(Protocol):
    """What it is, and when something of it changes."""

    @property
    def role(self) -> Role:
        """What it is, as carried out."""
        ...

    @property
    def leader_id(self) -> int:
        """Who leads, -1 when unknown; this node, too."""
        ...

    @property
    def leader_epoch(self) -> int:
        """The epoch that goes with it, -1 before the first."""
        ...

    async def wait_changed(self) -> None:
        """Wait for the next change of a role, an offset or the voters."""
        ...


class VotersView(ReplicaView, Protocol):
    """Who votes, too."""

    @property
    def voters(self) -> KRaftVoters | None:
        """The newest voters that the log names, None where the configuration says it."""
        ...


class OffsetsView(ReplicaView, Protocol):
    """How far it goes, too."""

    @property
    def end_offset(self) -> int:
        """The next offset."""
        ...

    @property
    def latest_epoch(self) -> int:
        """The leader epoch of the last record, -1 without one."""
        ...

    @property
    def high_watermark(self) -> int:
        """The first offset that is not known to be committed."""
        ...


class FollowedLog(OffsetsView, Protocol):
    """For whoever fetches into it."""

    def follows(self, leader_epoch: int) -> bool:
        """Return whether it takes what the leader of an epoch has."""
        ...

    def append_fetched_in_steps(self, records: Buffer, leader_epoch: int) -> Generator[None, None, None]:
        """Append batches of an epoch's leader, as long as it follows that."""
        ...

    async def flush(self) -> None:
        """Make everything appended durable, and let the election count it."""
        ...

    def learn_high_watermark(self, offset: int) -> None:
        """Take note of what the leader says is committed."""
        ...

    def diverging_offset(self, leader_epoch: int, end_offset: int) -> int:
        """Return where it is to be truncated, as the leader's last epoch up to its own ends there."""
        ...

    def truncate(self, offset: int) -> None:
        """Give up everything at or above an offset."""
        ...

    def step(self, event: ElectionInput) -> None:
        """Have the election take an input."""
        ...


class CommittedLog(OffsetsView, StoredLog, Protocol):
    """For who reads what is committed of it."""

    def begin_anew(self, identifier: SnapshotId, voters: KRaftVoters | None) -> None:
        """Give up the whole log and go on behind a snapshot of the leader, which is kept already."""
        ...

    def voters_at(self, offset: int) -> KRaftVoters | None:
        """Return who voted by what stands up to an offset, None where nothing says so."""
        ...


class LedLog(OffsetsView, ReplicatedLog, Protocol):
    """For who leads it."""

    @property
    def voters(self) -> KRaftVoters | None:
        """The newest voters that the log names, None where the configuration says it."""
        ...

    async def ask(self, broker_id: int, request: Message) -> Message:
        """Have the election answer a request of its protocol, or name the voters of the configuration."""
        ...

    @property
    def epoch_start(self) -> int | None:
        """Where the first record of this leader's epoch stands, None while it does not lead."""
        ...

    def leads(self, leader_epoch: int) -> bool:
        """Return whether this replica leads in an epoch, and nothing is known that ends it."""
        ...

    async def give_up(self) -> None:
        """Lead no more, and have the others told who is to; return when they are."""
        ...
