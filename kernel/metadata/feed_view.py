"""Pure core: the committed metadata log, as who answers its followers sees it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from uuid import UUID

    from .image import MetadataImage


class MetadataFeedView(Protocol):
    """What other brokers may read of the metadata log."""

    node_id: int

    @property
    def image(self) -> MetadataImage:
        """The newest committed metadata."""
        ...

    @property
    def leader_epoch(self) -> int:
        """The controller's epoch."""
        ...

    @property
    def start_offset(self) -> int:
        """The first offset that the log still has."""
        ...

    @property
    def end_offset(self) -> int:
        """Where the committed records end."""
        ...

    async def wait_beyond(self, offset: int) -> None:
        """Wait until a record at `offset` is committed. Cancelled: nothing happens."""
        ...

    def batches(self, offset: int, max_bytes: int) -> bytes:
        """Return committed batches from `offset` on, at least one; none at the end."""
        ...

    def end_of_epoch(self, epoch: int) -> tuple[int, int]:
        """Return the largest epoch at most `epoch` that the log knows, and where its records end."""
        ...

    def newest_snapshot(self) -> tuple[int, int] | None:
        """Return where the newest snapshot ends, and the epoch of its last record; None when there is none."""
        ...

    def snapshot_part(self, end_offset: int, epoch: int, position: int, max_bytes: int) -> tuple[int, bytes] | None:
        """Return the size and a part of a snapshot; None when it is not there."""
        ...

    def note_fetch(self, replica_id: int, directory_id: UUID, fetch_offset: int) -> None:
        """Take note of an observer's fetch."""
        ...
