"""Shell: writes the snapshots of a metadata log when they are due, and has the log give up what they stand for.

One is due when the log has grown enough or the interval is over; and when `metadata.version` was lowered: then it is
the only one that is kept, so that an older version of the broker begins with it and finds no record of before. What a
crash left undone of that is done at the next start.

*Source:* Kafka's `SnapshotGenerator`.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Protocol

from ..errors import CorruptionError, StorageError
from ..metadata.records import NEWEST_WRITTEN_LEVEL, is_newer
from .snapshots import KEPT_SNAPSHOTS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ..machine.clock import Clock
    from ..machine.threads import Workers
    from ..metadata.image import MetadataImage
    from .snapshots import SnapshotQuorum, SnapshotSettings, SnapshotStore

log = logging.getLogger(__name__)


class ShortenedLog(Protocol):
    """The log whose beginning snapshots stand for."""

    @property
    def start_offset(self) -> int:
        """The first offset that is still there."""
        ...

    def drop_below(self, offset: int) -> None:
        """Give up whole segments below `offset`."""
        ...


def nobodys(_offset: int) -> None:
    """Return the quorum of a log that names none."""


class SnapshotUpkeep:
    """Life: made with the log, `note` what is appended, `write_if_due` from time to time. Owned by one task.

    Attributes:
        store: Where they are; None without a disk.
    """

    def __init__(
        self,
        store: SnapshotStore | None,
        log: ShortenedLog,
        settings: SnapshotSettings,
        *,
        worker: Workers,
        clock: Clock,
        quorum_at: Callable[[int], SnapshotQuorum | None] = nobodys,
    ) -> None:
        """Write nothing yet.

        Args:
            store: Where snapshots are; None for a log without a disk, which has none.
            log: Which they shorten.
            settings: When they are due.
            worker: The thread that writes them.
            clock: The wall clock stamps them, the other one measures the interval.
            quorum_at: Returns what the log says of its quorum up to an offset, the record there included.
        """
        self.store = store
        self._log = log
        self._settings = settings
        self._worker = worker
        self._clock = clock
        self._quorum_at = quorum_at
        self._bytes_since = 0
        self._written_ms = clock.monotonic_ms()

    def note(self, size_bytes: int) -> None:
        """Take note that records of so many bytes stand in the log behind the newest snapshot."""
        self._bytes_since += size_bytes

    def is_due(self) -> bool:
        """Return whether it is time for one."""
        elapsed_ms = self._clock.monotonic_ms() - self._written_ms
        return self.store is not None and self._settings.is_due(self._bytes_since, elapsed_ms)

    async def write_if_due(self, image: MetadataImage) -> None:
        """Write a snapshot of the newest committed image when it is time.

        One that cannot be written is logged and tried again later: the log itself has everything.
        """
        if self.is_due():
            await self.write_or_tell(image)

    async def write_or_tell(self, image: MetadataImage) -> None:
        """Write a snapshot; tell the log file when that fails."""
        try:
            await self.write(image)
        except StorageError as error:
            log.error("the metadata snapshot could not be written: %s", error)

    async def write(self, image: MetadataImage, kept_count: int = KEPT_SNAPSHOTS) -> None:
        """Write a snapshot of a committed image and give up what it makes unnecessary. Without a disk: nothing.

        Args:
            image: What it says.
            kept_count: How many are kept; 1 when an older version is to read nothing of before.

        Raises:
            StorageError: The disk is full or failing.
        """
        if self.store is None:
            return
        self._bytes_since = 0
        self._written_ms = self._clock.monotonic_ms()
        store, now_ms, quorum = self.store, self._clock.now_ms(), self._quorum_at(image.offset)

        def write() -> int:
            store.write(image, now_ms, quorum)
            return store.drop_old(kept_count)

        needed_from = await self._worker.run_sync(write)
        if needed_from > self._log.start_offset:
            self._log.drop_below(needed_from)

    def holds_newer(self, image: MetadataImage, values: Iterable[bytes]) -> bool:
        """Return whether records above the level of `metadata.version` are left: a crash or the disk came in between.

        Args:
            image: Says the level.
            values: Those of the log, lazily; looked at only where they may be newer. Blocks for reading all.

        Raises:
            StorageError: The disk is failing.
        """
        level = image.metadata_version
        if self.store is None or not image.format_version or level >= NEWEST_WRITTEN_LEVEL:
            return False
        try:
            return self.store.holds_newer(level) or any(is_newer(value, level) for value in values)
        except CorruptionError:
            return True  # it stands before the snapshot: what is given up need not be whole
