"""Pure core: a node that keeps the metadata log, leading or not, as who answers other nodes sees it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from uuid import UUID

    from ..contracts.log_values import EpochEnd
    from ..wire.message import Message
    from .image import MetadataImage


class MetadataFeedView(Protocol):
    """What other nodes may ask a controller's node. What changes is news of `wait_changed`."""

    node_id: int

    @property
    def cluster_id(self) -> str:
        """The cluster's id, empty while this node does not know it."""
        ...

    @property
    def image(self) -> MetadataImage:
        """The newest committed metadata."""
        ...

    @property
    def leader_id(self) -> int:
        """Who leads the quorum, -1 while that is not known."""
        ...

    @property
    def leader_epoch(self) -> int:
        """The epoch of the quorum."""
        ...

    @property
    def is_leader(self) -> bool:
        """Whether this node leads the quorum in `leader_epoch`."""
        ...

    @property
    def start_offset(self) -> int:
        """The first offset that the log still has."""
        ...

    @property
    def end_offset(self) -> int:
        """Where the committed records end, as far as this node knows."""
        ...

    @property
    def is_ending(self) -> bool:
        """Whether the node stops: nobody is to wait any more."""
        ...

    @property
    def listeners(self) -> Mapping[int, Sequence[tuple[str, str, int]]]:
        """By id of each voter, as far as they are known: name, host and port of its controller's listeners."""
        ...

    @property
    def has_changing_voters(self) -> bool:
        """Whether the log names its voters, so that they may come and go (`kraft.version` 1)."""
        ...

    def endpoint(self, node_id: int) -> tuple[str, int] | None:
        """Return host and port of a controller, None where they are not known."""
        ...

    def is_member(self, node_id: int) -> bool:
        """Return whether this is the id of a registered broker or of a controller that is known."""
        ...

    async def ask(self, request: Message, broker_id: int = -1) -> Any:
        """Return what the quorum answers to a message of its own, once all that it rests on is durable.

        Vote, BeginQuorumEpoch, EndQuorumEpoch, DescribeQuorum (with times of the wall clock), AddRaftVoter,
        RemoveRaftVoter, UpdateRaftVoter. Cancelled: what was asked for may or may not take place.

        Args:
            request: The message; cluster and addresses in it are checked already.
            broker_id: Whose it is, -1 for a client's.
        """
        ...

    async def kraft_versions(self, host: str, port: int) -> tuple[int, int] | None:
        """Return the levels of `kraft.version` that a controller supports who listens there; None if none answers."""
        ...

    async def wait_changed(self) -> None:
        """Wait until something of this node's log or of the quorum is another, or the node stops. Once."""
        ...

    def readable_end(self, replica_id: int, directory_id: UUID) -> int:
        """Return up to where a replica may read: voters what is appended, all others what is committed."""
        ...

    def needs_snapshot(self, last_fetched_epoch: int, fetch_offset: int) -> bool:
        """Return whether the log no longer has what a replica with this log needs: it begins with a snapshot."""
        ...

    def diverges(self, last_fetched_epoch: int, fetch_offset: int) -> EpochEnd | None:
        """Return the largest epoch at most this one in the log, and where it ends, for a log that is another than ours.

        None for one that ends at `fetch_offset` with a record of `last_fetched_epoch`, and is the same up to there.
        `needs_snapshot` is to be asked before.
        """
        ...

    def follower_fetch(self, replica_id: int, directory_id: UUID, fetch_offset: int, high_watermark: int) -> None:
        """Take note that a replica has everything below `fetch_offset`, as it asks for what comes next.

        Args:
            replica_id: Which.
            directory_id: In which its log lies.
            fetch_offset: Where its log ends.
            high_watermark: What it knows to be committed; beyond all offsets where it does not say it.
        """
        ...

    def batches(self, offset: int, end_offset: int, max_bytes: int) -> bytes:
        """Return whole batches of `[offset, end_offset)`, at least one; none where that is empty."""
        ...

    def newest_snapshot(self) -> tuple[int, int] | None:
        """Return where the newest snapshot ends, and the epoch of its last record; None when there is none."""
        ...

    def snapshot_part(self, end_offset: int, epoch: int, position: int, max_bytes: int) -> tuple[int, bytes] | None:
        """Return the size and a part of a snapshot; None when it is not there."""
        ...
