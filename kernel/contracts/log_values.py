"""Pure core: the small values that a log gives: bytes of a file, where an epoch ends, a segment; where logs lie.

.. versionadded:: 0.1
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias

if TYPE_CHECKING:
    import uuid

    from ..types import TopicIdPartition


class FileSlice(Protocol):
    """Bytes of an open file, to be sent without passing through this process.

    The object keeps the file open: holding it is enough, dropping it is the release.
    """

    @property
    def size_bytes(self) -> int:
        """How many bytes, > 0."""
        ...

    @property
    def position(self) -> int:
        """Where they begin in the file."""
        ...

    def fileno(self) -> int:
        """Return the descriptor for `os.sendfile`; not to be closed by the caller."""
        ...

    def read(self) -> bytes:
        """Return the bytes. May block on a cold page."""
        ...

    def read_part(self, position: int, size_bytes: int) -> bytes:
        """Return what lies at a position of the file, of `size_bytes` as much as there is; may block on a cold page.

        For TLS, for systems without sendfile, and to have cold bytes read ahead.
        """
        ...

    @property
    def is_cached(self) -> bool:
        """Whether the bytes can be read without waiting for a disk; True where the system cannot tell."""
        ...


RecordsData: TypeAlias = "bytes | memoryview | FileSlice"
"""What a read gives: whole record batches, in memory or as part of a file."""


class EpochEnd(NamedTuple):
    """Up to where the log holds an epoch's records: `end_offset` is the first offset of the next one."""

    leader_epoch: int
    end_offset: int


class SegmentInfo(NamedTuple):
    """One segment, as cleanup, tiering and `odradek log dump` want to know it.

    `next_offset` is the base offset of the segment after it, or the log end offset. `max_timestamp` is -1 when the
    segment is empty. `modified_ms` is the file's modification time, in milliseconds since the epoch.
    """

    base_offset: int
    next_offset: int
    size_bytes: int
    max_timestamp: int
    modified_ms: int
    is_active: bool


class LogDirInfo(NamedTuple):
    """One log directory, as DescribeLogDirs shows it. `error` is empty while it works; sizes are -1 when unknown."""

    path: str
    directory_id: uuid.UUID
    error: str
    total_bytes: int
    usable_bytes: int


class FoundLog(NamedTuple):
    """A log that was on disk at start.

    Attributes:
        partition: Whose.
        log_dir: Where it lies.
        moves_to: The log directory that a move was to take it to when the broker ended; empty for none.
    """

    partition: TopicIdPartition
    log_dir: str
    moves_to: str = ""
