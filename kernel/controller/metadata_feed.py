"""Shell: what other brokers read of the metadata log: its committed records, and its snapshots.

Observers ask again and again, each from its own end; who asks at the end waits here until more is committed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs
import trio

from .snapshots import SnapshotId

if TYPE_CHECKING:
    from uuid import UUID

    from ..machine.clock import Clock
    from ..metadata.image import MetadataDelta, MetadataImage
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
    """What is committed of a metadata log, for who follows it. Owned by the reactor's task.

    Attributes:
        observers: By broker id, those that asked since the controller began.
    """

    def __init__(self, metadata: MetadataLog, *, node_id: int, sessions: BrokerSessions, clock: Clock) -> None:
        """Give out what is committed of this log.

        Args:
            metadata: The log, loaded.
            node_id: The controller's.
            sessions: Told how far each broker is.
            clock: Says when.
        """
        self.node_id = node_id
        self.observers: dict[int, Observer] = {}
        self._metadata = metadata
        self._sessions = sessions
        self._clock = clock
        self._grown = trio.Event()
        self._is_ending = False
        metadata.add_listener(self._published)

    def __repr__(self) -> str:
        return f"MetadataFeed([{self.start_offset}, {self.end_offset}), {len(self.observers)} observers)"

    @property
    def image(self) -> MetadataImage:
        """The newest committed metadata."""
        return self._metadata.image

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
        self._is_ending = True
        self._grown.set()

    async def wait_beyond(self, offset: int) -> None:
        """Wait until a record at `offset` is committed, or the node stops. Cancelled: nothing happens."""
        while self.end_offset <= offset and not self._is_ending:
            await self._grown.wait()

    def batches(self, offset: int, max_bytes: int) -> bytes:
        """Return committed batches from `offset` on, at least one; none at the end.

        Raises:
            StorageError: The disk is failing.
        """
        if offset >= self.end_offset:
            return b""
        return self._metadata.replicated.batches(offset, self.end_offset, max_bytes)

    def end_of_epoch(self, epoch: int) -> tuple[int, int]:
        """Return the largest epoch at most `epoch` that the log knows, and where its records end."""
        return self._metadata.replicated.end_of_epoch(epoch)

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

    def note_fetch(self, replica_id: int, directory_id: UUID, fetch_offset: int) -> None:
        """Take note of an observer's fetch: it has all that stands before `fetch_offset`. Others are nobody's."""
        if replica_id not in self.image.brokers:
            return
        now_ms = self._clock.now_ms()
        known = self.observers.get(replica_id)
        observer = self.observers[replica_id] = Observer(directory_id, fetch_offset, now_ms)
        observer.caught_up_ms = now_ms if fetch_offset >= self.end_offset else known.caught_up_ms if known else -1
        self._sessions.note_offset(replica_id, fetch_offset - 1)
