"""Shell: a flush and a small file under way: what a worker thread gets of a log, and nothing else of it.

A flush holds the open files that it syncs, so it needs no name: a segment that is deleted meanwhile is synced in vain,
never made anew. What is not open goes by its path and is passed over when it is gone.
"""

from __future__ import annotations

from itertools import chain, islice
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

from odradek.kernel.api import CREATE, FileHandle, frozen, replace_file, sync_file, write_all

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from odradek.kernel.api import Files, Threads

    from .segment import Segment

FEW: Final = 64
"""So many logs are closed one after the other: threads cost more than they bring."""
THREADS: Final = 32
"""So many wait beside each other: what a file system commits for one of them it commits for all."""
AT_ONCE: Final = 4
"""So many logs a thread takes at once: handing over costs more than a sync that others have done already."""

Syncable: TypeAlias = "FileHandle | Path"


class FlushOwner(Protocol):
    """The log that began a flush."""

    def end_flush(self, flush: LogFlush, error: Exception | None) -> None:
        """See `DiskWork.finish`."""
        ...


@frozen(eq=False)
class LogFlush:
    """What one flush makes durable. Made by the log, which also takes the outcome.

    Attributes:
        syncables: Files, open or by path, in any order.
        epochs: Where the leader epochs are to be written after them, and what, with the sync of their directory; None
            where they stand there.
        directories: Whose entries are synced last.
        end_offset: Everything below is durable when `run` is over.
        cuts_count: How often the log had been truncated when the flush began.
        epochs_version: Which state of the epochs it makes durable.
        entries_version: Which state of the directory's entries it makes durable.
        sealed: The segments whose indexes it makes durable.
        is_closing: Whether the log is closed with it.
    """

    owner: FlushOwner
    files: Files
    syncables: Sequence[Syncable]
    epochs: tuple[Path, bytes] | None
    directories: Sequence[Path]
    end_offset: int
    cuts_count: int
    epochs_version: int
    entries_version: int
    sealed: Sequence[Segment]
    is_closing: bool

    def run(self) -> None:
        """See `DiskWork.run`."""
        for syncable in self.syncables:
            if isinstance(syncable, FileHandle):
                self.files.fsync(syncable.fd)
            else:
                sync_file(self.files, syncable)
        if self.epochs is not None:
            path, data = self.epochs
            replace_file(self.files, path, data, is_durable=True)
        for directory in self.directories:
            self.files.fsync_directory(directory)

    def finish(self, error: Exception | None) -> None:
        """See `DiskWork.finish`."""
        self.owner.end_flush(self, error)


def run_all(works: Iterator[LogFlush], threads: Threads) -> list[Exception | None]:
    """Run works and return what each raised.

    Many run beside each other, which a file system commits together, and while those that follow are still begun.
    """
    first = [*islice(works, FEW + 1)]
    if len(first) <= FEW:
        return _outcomes(first)
    outcomes = threads.map(_outcomes, _pieces(chain(first, works)), count=THREADS)
    return [outcome for each in outcomes for outcome in each]


def _pieces(works: Iterator[LogFlush]) -> Iterator[Sequence[LogFlush]]:
    while piece := [*islice(works, AT_ONCE)]:
        yield piece


def _outcomes(works: Sequence[LogFlush]) -> list[Exception | None]:
    return [_outcome(work) for work in works]


def _outcome(work: LogFlush) -> Exception | None:
    try:
        work.run()
    except Exception as error:  # `finish` tells it, with what it means
        return error
    return None


class SidecarOwner(Protocol):
    """The log that began a small file."""

    def end_sidecar(self, work: SidecarWork, error: Exception | None) -> None:
        """See `DiskWork.finish`."""
        ...


@frozen(eq=False)
class SidecarWork:
    """A small file on its way: `run` writes it under a name of its own, `finish` gives it the one it is to have."""

    owner: SidecarOwner
    files: Files
    temporary: Path
    path: Path
    data: bytes
    cuts_count: int

    def run(self) -> None:
        """See `DiskWork.run`."""
        fd = self.files.open(self.temporary, CREATE)
        try:
            write_all(self.files, fd, [self.data], 0)
            self.files.fsync(fd)
        finally:
            self.files.close(fd)

    def finish(self, error: Exception | None) -> None:
        """See `DiskWork.finish`."""
        self.owner.end_sidecar(self, error)
