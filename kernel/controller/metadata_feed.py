"""Shell: what other brokers read of the metadata log: its committed records, and its snapshots.

Observers ask again and again, each from its own end; who asks at the end waits here until more is committed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs
import trio

from ..contracts.log_values import EpochEnd
from .lone_voter import answer_alone
from .snapshots import SnapshotId

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any
    from uuid import UUID

    from ..machine.clock import Clock
    from ..metadata.image import MetadataDelta, MetadataImage
    from ..wire.message import Message
    from .broker_sessions import BrokerSessions
    from .metadata_log import MetadataLog


@attrs.define
class Observer:
    """A broker that follows the metadata log.

    Attributes:
        directory_id: Where it keeps its copy.
        log_end_offset: Where it asked last.
        fetched_ms: When, by the wall clock.
        caught_up_ms: When it asked from the end last, -1 for never.
    """

    directory_id: UUID
    log_end_offset: int
    fetched_ms: int
    caught_up_ms: int = -1


class MetadataFeed:
    """What is committed of the metadata log of a quorum of one, for who follows it. Owned by the reactor's task.

    It always leads: nobody else ever does. As its records count only when they are committed, all read the same.

    Attributes:
        observers: By broker id, those that asked since the controller began.
        is_ending: Whether the node stops.
    """

    is_leader = True
    has_changing_voters = False

    def __init__(
        self,
        metadata: MetadataLog,
        *,
        node_id: int,
        sessions: BrokerSessions,
        clock: Clock,
        listeners: Sequence[tuple[str, str, int]] = (),
    ) -> None:
        """Give out what is committed of this log.

        Args:
            metadata: The log, loaded.
            node_id: The controller's.
            sessions: Told how far each broker is.
            clock: Says when.
            listeners: Name, host and port of the controller's listeners.
        """
        self.node_id = self.leader_id = node_id
        self.listeners: Mapping[int, Sequence[tuple[str, str, int]]] = {node_id: listeners}
        self.observers: dict[int, Observer] = {}
        self._metadata = metadata
        self._sessions = sessions
        self._clock = clock
        self._grown = trio.Event()
        self.is_ending = False
        metadata.add_listener(self._published)

    def __repr__(self) -> str:
        return f"MetadataFeed([{self.start_offset}, {self.end_offset}), {len(self.observers)} observers)"

    @property
    def image(self) -> MetadataImage:
        """The newest committed metadata."""
        return self._metadata.image

    @property
    def cluster_id(self) -> str:
        """The cluster's id."""
        return self._metadata.image.cluster_id

    @property
    def leader_epoch(self) -> int:
        """The controller's epoch."""
        return self._metadata.leader_epoch

    @property
    def start_offset(self) -> int:
        """The first offset that the log still has."""
        return self._metadata.replicated.start_offset

    @property
    def end_offset(self) -> int:
        """Where the committed records end."""
        return self._metadata.image.offset + 1

    def _published(self, _delta: MetadataDelta, _image: MetadataImage) -> None:
        self._grown.set()
        self._grown = trio.Event()

    def end_waits(self) -> None:
        """Let nobody wait any more: the node stops."""
        self.is_ending = True
        self._grown.set()

    async def wait_changed(self) -> None:
        """Wait until more is committed, or the node stops. Cancelled: nothing happens."""
        await self._grown.wait()

    def endpoint(self, node_id: int) -> tuple[str, int] | None:
        """Return where the controller listens, None for any other node."""
        return next(((host, port) for _name, host, port in self.listeners.get(node_id, ())), None)

    def is_member(self, node_id: int) -> bool:
        """Return whether this is the id of a registered broker."""
        return node_id in self.image.brokers

    async def ask(self, request: Message, broker_id: int = -1) -> Any:
        """Return that this node leads and that its voters are fixed, whatever is asked."""
        del broker_id
        return answer_alone(request, self.node_id, self.leader_epoch)

    async def kraft_versions(self, host: str, port: int) -> tuple[int, int] | None:
        """Return None: nobody can be made a voter, so nobody is asked."""
        del host, port
        return None

    def readable_end(self, replica_id: int, directory_id: UUID) -> int:
        """Return where the committed records end: nobody but this node has a vote."""
        del replica_id, directory_id
        return self.end_offset

    def needs_snapshot(self, last_fetched_epoch: int, fetch_offset: int) -> bool:
        """Return whether somebody asks for what stood before the log."""
        del last_fetched_epoch
        return fetch_offset < self.start_offset

    def diverges(self, last_fetched_epoch: int, fetch_offset: int) -> EpochEnd | None:
        """See `MetadataFeedView.diverges`; whoever has nothing may begin anywhere."""
        epoch, end_offset = self._metadata.replicated.end_of_epoch(last_fetched_epoch)
        end = min(end_offset, self.end_offset)
        is_ours = fetch_offset in {0, self.start_offset} or epoch == last_fetched_epoch
        if not is_ours or fetch_offset > end > 0:
            return EpochEnd(epoch, max(end, 0))
        return None

    def batches(self, offset: int, end_offset: int, max_bytes: int) -> bytes:
        """Return whole batches of `[offset, end_offset)`, at least one; none where that is empty.

        Raises:
            StorageError: The disk is failing.
        """
        end_offset = min(end_offset, self.end_offset)
        return self._metadata.replicated.batches(offset, end_offset, max_bytes) if offset < end_offset else b""

    def newest_snapshot(self) -> tuple[int, int] | None:
        """Return where the newest snapshot ends, and the epoch of its last record; None when there is none.

        Raises:
            StorageError: The disk is failing.
        """
        found = self._metadata.snapshots.ids()[:1] if self._metadata.snapshots is not None else []
        return found[0] if found else None

    def snapshot_part(self, end_offset: int, epoch: int, position: int, max_bytes: int) -> tuple[int, bytes] | None:
        """Return the size and a part of a snapshot; None when it is not there.

        Raises:
            StorageError: The disk is failing.
        """
        store = self._metadata.snapshots
        return None if store is None else store.read_part(SnapshotId(end_offset, epoch), position, max_bytes)

    def follower_fetch(self, replica_id: int, directory_id: UUID, fetch_offset: int, high_watermark: int) -> None:
        """Take note of an observer's fetch: it has all that stands before `fetch_offset`. Others are nobody's."""
        del high_watermark  # all that is read here is committed
        if replica_id not in self.image.brokers:
            return
        now_ms = self._clock.now_ms()
        known = self.observers.get(replica_id)
        observer = self.observers[replica_id] = Observer(directory_id, fetch_offset, now_ms)
        observer.caught_up_ms = now_ms if fetch_offset >= self.end_offset else known.caught_up_ms if known else -1
        self._sessions.note_offset(replica_id, fetch_offset - 1)
