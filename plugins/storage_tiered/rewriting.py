"""Shell: compaction across two tiers: cold segments are got, written anew, and swapped in the manifest.

```text
worker process   ColdSource.batches ─> filter ─> StagedSegment, files in the cache's folder
worker thread    ColdReplacement.run: send, read back, manifest n+1 names the new one in the place of the old ones
reactor          finish: the log takes the manifest; the old objects become garbage
```

A crash at any point leaves the old segments or the new one: the manifest decides. No new segment stands for offsets of
both tiers (`SegmentRewrite.border_offset`).
"""

from __future__ import annotations

import errno
import json
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import attrs

from odradek.kernel.api import (
    CREATE,
    READ,
    RemoteStoreError,
    SegmentInfo,
    StorageError,
    id_text,
    read_file,
    read_header,
    write_all,
)

from .cold_batches import iterate_object, iterate_pieces
from .indexes import IndexBuilder, position_of
from .names import INDEX, LOG, SNAPSHOT, TIME_INDEX, TRANSACTION_INDEX, segment_file_name
from .small_files import get_small_file
from .uploads import Upload, send

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from odradek.kernel.api import (
        Buffer,
        Files,
        IdSource,
        ObjectStore,
        RewritePlace,
        SegmentRewrite,
        SegmentWriter,
        TopicIdPartition,
    )

    from .log import TieredPartitionLog
    from .manifest import Manifest, StoredSegment

STAGED: Final = ".staged"
"""What the files of a segment on its way to the store end with."""
_WRITE_BYTES: Final = 1 << 20
_FACTS: Final = "facts"


@attrs.frozen
class ColdSource:
    """A cold segment, to be read by whoever compacts. See `SegmentSource`.

    Attributes:
        open_store: Returns the store; goes with the source into another process.
        partition: Whose.
        stored: The segment.
    """

    open_store: Callable[[], ObjectStore]
    partition: TopicIdPartition
    stored: StoredSegment

    @property
    def base_offset(self) -> int:
        """See `SegmentSource.base_offset`."""
        return self.stored.base_offset

    @property
    def next_offset(self) -> int:
        """See `SegmentSource.next_offset`."""
        return self.stored.next_offset

    @property
    def size_bytes(self) -> int:
        """See `SegmentSource.size_bytes`."""
        return self.stored.size_bytes

    @property
    def index_bytes(self) -> int:
        """See `SegmentSource.index_bytes`."""
        files = self.stored.files
        return max((files[kind].size_bytes for kind in (INDEX, TIME_INDEX) if kind in files), default=0)

    @property
    def paths(self) -> Mapping[str, Path]:
        """See `SegmentSource.paths`: there are none here."""
        return {}

    def batches(self, start_offset: int, buffer_bytes: int) -> Iterator[memoryview]:
        """See `SegmentSource.batches`."""
        stored = self.stored
        try:
            store = self.open_store()
            position = 0
            if start_offset > stored.base_offset:
                index = get_small_file(store, self.partition, stored, INDEX)
                position = position_of(index, stored.base_offset, start_offset)
            for batch in iterate_object(store, self._name(LOG), position, stored.size_bytes, buffer_bytes):
                if read_header(batch).last_offset >= start_offset:
                    yield batch
        except RemoteStoreError as error:
            raise OSError(errno.EIO, str(error)) from error

    def _name(self, kind: str) -> str:
        return segment_file_name(self.partition, self.stored.base_offset, self.stored.uid, kind)


@attrs.frozen
class StagingPlace:
    """Where segments on their way to the store are written.

    Attributes:
        files: The file system.
        folder: The folder.
        prefix: What the names of this log's files begin with.
    """

    files: Files
    folder: Path
    prefix: str

    def path(self, base_offset: int, kind: str) -> Path:
        """Return a file of a segment."""
        return self.folder / f"{self.prefix}-{base_offset:020d}.{kind}{STAGED}"

    def remove(self, base_offset: int | None = None) -> None:
        """Remove the files of one segment, or of all of this log.

        Raises:
            OSError: The disk refuses.
        """
        start = f"{self.prefix}-" if base_offset is None else f"{self.prefix}-{base_offset:020d}."
        for entry in self.files.listdir(self.folder):
            if entry.name.startswith(start) and entry.name.endswith(STAGED):
                self.files.unlink(self.folder / entry.name)


@attrs.frozen
class TieredPlace:
    """Where a compaction writes: cold segments are staged, the others go where the local log has them.

    Attributes:
        staging: For the cold ones.
        local: The local log's.
        border_offset: What begins below it is cold.
    """

    staging: StagingPlace
    local: RewritePlace
    border_offset: int

    def clear(self) -> None:
        """See `RewritePlace.clear`."""
        self.staging.remove()
        self.local.clear()

    def new_segment(self, base_offset: int) -> SegmentWriter:
        """See `RewritePlace.new_segment`."""
        if base_offset < self.border_offset:
            return StagedSegment(self.staging, base_offset)
        return self.local.new_segment(base_offset)


class StagedSegment:
    """A segment on its way. See `SegmentWriter`; gathers batches so that a write is large."""

    def __init__(self, place: StagingPlace, base_offset: int) -> None:
        self._place = place
        self._base_offset = base_offset
        self._builder = IndexBuilder(base_offset)
        self._fd = place.files.open(place.path(base_offset, LOG), CREATE)
        self._written = self._pending_bytes = 0
        self._pending: list[bytes] = []
        self._max_timestamp = -1

    def append(self, batch: Buffer, last_offset: int, max_timestamp: int) -> None:
        """See `SegmentWriter.append`."""
        self._builder.add(self._written + self._pending_bytes, last_offset, max_timestamp)
        self._max_timestamp = max(self._max_timestamp, max_timestamp)
        self._pending.append(bytes(batch))
        self._pending_bytes += len(batch)
        if self._pending_bytes >= _WRITE_BYTES:
            self._write()

    def _write(self) -> None:
        write_all(self._place.files, self._fd, [b"".join(self._pending)], self._written)
        self._written += self._pending_bytes
        self._pending, self._pending_bytes = [], 0

    def finish(self, sidecars: Mapping[str, bytes]) -> None:
        """See `SegmentWriter.finish`: durable is what arrived in the store, so nothing is synced here."""
        if self._pending:
            self._write()
        self._place.files.close(self._fd)
        index, time_index = self._builder.finish()
        facts = json.dumps({"max_timestamp": self._max_timestamp, "size_bytes": self._written}).encode()
        for kind, data in {INDEX: index, TIME_INDEX: time_index, **sidecars, _FACTS: facts}.items():
            fd = self._place.files.open(self._place.path(self._base_offset, kind), CREATE)
            try:
                write_all(self._place.files, fd, [data], 0)
            finally:
                self._place.files.close(fd)


@attrs.frozen
class _StagedSource:
    """The staged files as a source: what `send` asks of one."""

    files: Files
    base_offset: int
    next_offset: int
    size_bytes: int
    paths: Mapping[str, Path]
    index_bytes: int = 0

    def batches(self, start_offset: int, buffer_bytes: int) -> Iterator[memoryview]:
        assert start_offset == self.base_offset, "staged segments are read as a whole"
        path = self.paths[LOG]
        fd = self.files.open(path, READ)
        try:
            yield from iterate_pieces(
                str(path), lambda at, size: self.files.pread(fd, size, at), 0, self.size_bytes, buffer_bytes
            )
        finally:
            self.files.close(fd)


@attrs.define(eq=False)
class ColdReplacement:
    """A staged segment about to take the place of cold ones. See `DiskWork`.

    Attributes:
        log: Whose.
        open_store: Returns the store.
        place: Where it is staged.
        old: The segments that it replaces, oldest first.
        uid: Of the new one.
        sidecars: Small files of the new one that came with it, once it has been sent.
        newest: The manifest that names the new one.
    """

    log: TieredPartitionLog
    open_store: Callable[[], ObjectStore]
    place: StagingPlace
    old: Sequence[StoredSegment]
    uid: str
    sidecars: dict[str, bytes] = attrs.field(factory=dict)
    newest: Manifest | None = None

    def run(self) -> None:
        """See `DiskWork.run`."""
        try:
            store = self.open_store()
            stored = self._send(store)
            self.newest = self.log.line.put(store, lambda newest: self._replaced(newest, stored))
        except (RemoteStoreError, ValueError) as error:
            raise StorageError(f"{self.log.partition}: cold segments are not replaced: {error}") from error
        finally:
            with suppress(OSError):
                self.place.remove(self.old[0].base_offset)

    def _replaced(self, newest: Manifest | None, stored: StoredSegment | None) -> Manifest:
        if newest is None:
            raise ValueError("the manifest is gone")
        return newest.with_replacement([each.uid for each in self.old], [stored] if stored is not None else [])

    @property
    def _is_first(self) -> bool:
        """Whether the log begins here: somebody has to stand for its first offsets."""
        newest = self.log.line.newest
        return newest is not None and newest.segments[:1] == tuple(self.old[:1])

    def _send(self, store: ObjectStore) -> StoredSegment | None:
        """Send the staged segment; None when nothing is left of it, and another one can stand for its offsets."""
        base_offset, next_offset = self.old[0].base_offset, self.old[-1].next_offset
        facts = json.loads(read_file(self.place.files, self.place.path(base_offset, _FACTS)))
        if not facts["size_bytes"] and not self._is_first:
            return None
        paths = {kind: self.place.path(base_offset, kind) for kind in (LOG, INDEX, TIME_INDEX)}
        with suppress(FileNotFoundError):
            data = read_file(self.place.files, self.place.path(base_offset, TRANSACTION_INDEX))
            self.sidecars[TRANSACTION_INDEX] = data
        sidecars = dict(self.sidecars)
        last = self.old[-1]
        if SNAPSHOT in last.files:
            sidecars[SNAPSHOT] = get_small_file(store, self.log.partition, last, SNAPSHOT)
        epochs: list[tuple[int, int]] = []
        for segment in self.old:
            epochs += [entry for entry in segment.leader_epochs if not epochs or entry[0] > epochs[-1][0]]
        size_bytes = facts["size_bytes"]
        upload = Upload(
            partition=self.log.partition,
            uid=self.uid,
            segment=SegmentInfo(base_offset, next_offset, size_bytes, facts["max_timestamp"], 0, is_active=False),
            source=_StagedSource(self.place.files, base_offset, next_offset, size_bytes, paths),
            leader_epochs=tuple(epochs),
            sidecars=sidecars,
        )
        return send(store, upload, self.place.files, self.place.folder)

    def finish(self, error: Exception | None) -> None:
        """See `DiskWork.finish`."""
        if error is not None:
            raise error if isinstance(error, StorageError) else StorageError(str(error))
        assert self.newest is not None
        self.log.end_cold_replacement(self.newest, self.old, self.sidecars)


class ColdRewrites:
    """Begins rewrites of cold segments, for all logs of a tier. Owned by the reactor's task."""

    def __init__(
        self, *, open_store: Callable[[], ObjectStore], files: Files, folder: Path, ids: IdSource, is_portable: bool
    ) -> None:
        """Make it.

        Args:
            open_store: Returns the store.
            files: The file system.
            folder: For segments on their way.
            ids: Names segments.
            is_portable: Whether `open_store` can be sent to another process, and finds the same store there.
        """
        self._open_store = open_store
        self._files = files
        self._folder = folder
        self._ids = ids
        self._is_portable = is_portable

    def _staging(self, partition: TopicIdPartition) -> StagingPlace:
        return StagingPlace(self._files, self._folder, f"{id_text(partition.topic_id)}-{partition.partition}")

    def rewrite(
        self, partition: TopicIdPartition, local: SegmentRewrite, cold: Sequence[StoredSegment], border_offset: int
    ) -> SegmentRewrite:
        """Return a rewrite of cold segments and the local ones behind them."""
        sources = [ColdSource(self._open_store, partition, segment) for segment in cold]
        return attrs.evolve(
            local,
            sources=[*sources, *local.sources],
            place=TieredPlace(self._staging(partition), local.place, border_offset),
            is_portable=local.is_portable and self._is_portable,
            border_offset=border_offset,
        )

    def replacement(self, tiered: TieredPartitionLog, old: Sequence[StoredSegment]) -> ColdReplacement:
        """Return the work that puts the staged segment in the place of cold ones."""
        staging = self._staging(tiered.partition)
        return ColdReplacement(tiered, self._open_store, staging, old, id_text(self._ids.new_id()))
