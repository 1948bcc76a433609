"""Shell: checks a closed segment, sends it to the store, and reads back what arrived. Blocks; for worker threads.

What a manifest names may leave the local disk: so every batch's checksum is looked at before, and what was looked at is
what has to arrive.

Nothing names the objects yet: the manifest comes after, and what is left of an upload that failed is garbage.
"""

from __future__ import annotations

from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final, NamedTuple

import attrs
from crc32c import crc32c

from odradek.kernel.api import (
    CREATE,
    READ,
    CorruptRecordsError,
    StoreUnavailableError,
    is_crc_valid,
    read_header,
    write_all,
)

from .indexes import IndexBuilder
from .manifest import StoredFile, StoredSegment
from .names import INDEX, LOG, TIME_INDEX, segment_file_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from odradek.kernel.api import Files, ObjectStore, SegmentInfo, SegmentSource, TopicIdPartition

CHUNK_BYTES: Final = 4 << 20
"""How much is read, or got back, at a time."""


@attrs.frozen
class Upload:
    """A segment to be sent.

    Attributes:
        partition: Whose.
        uid: Nobody else's.
        segment: As it is now.
        source: Its bytes.
        leader_epochs: Each with its first offset in the segment.
        sidecars: Small files that go with it, by kind.
        start_offset: What of the segment lies below it is in the store; the segment's begin where nothing is.
    """

    partition: TopicIdPartition
    uid: str
    segment: SegmentInfo
    source: SegmentSource
    leader_epochs: tuple[tuple[int, int], ...]
    sidecars: Mapping[str, bytes]
    start_offset: int = attrs.field(default=attrs.Factory(lambda upload: upload.segment.base_offset, takes_self=True))


class CheckedRecords(NamedTuple):
    """What of a segment is to be sent, whose batches were looked at: as an object, and its largest timestamp."""

    file: StoredFile
    max_timestamp: int


def send(store: ObjectStore, upload: Upload, files: Files, staging: Path) -> StoredSegment:
    """Send all files of a segment, and confirm each by its size and checksum, got back from the store.

    Args:
        store: Where to.
        upload: What.
        files: The file system.
        staging: A folder for files of storages that have none.

    Raises:
        RemoteStoreError: The store failed, or gave back something else.
        OSError: The segment is gone, or the disk fails.
        CorruptRecordsError: The segment is damaged, or was rewritten meanwhile; nothing was sent.
    """
    base_offset = upload.start_offset
    stored: dict[str, StoredFile] = {}
    records = check_records(upload)
    with _as_files(upload, files, staging) as paths:
        contents: dict[str, bytes | Path] = {**upload.sidecars, **paths}
        # The records last: objects without them are plainly left over.
        for kind in sorted(contents, key=lambda each: each == LOG):
            name = segment_file_name(upload.partition, base_offset, upload.uid, kind)
            content = contents[kind]
            stored[kind] = _send_one(store, name, content, records.file if kind == LOG else _sum(files, content))
    segment = upload.segment
    return StoredSegment(
        uid=upload.uid,
        base_offset=base_offset,
        next_offset=segment.next_offset,
        max_timestamp=records.max_timestamp,
        leader_epochs=upload.leader_epochs,
        files=stored,
    )


def check_records(upload: Upload) -> CheckedRecords:
    """Walk over a segment's batches, and return what is to be sent of them.

    Raises:
        OSError: The segment is gone, or the disk fails.
        CorruptRecordsError: A batch is damaged, missing, or out of place.
    """
    segment = upload.segment
    size_bytes = sent_bytes = crc = 0
    max_timestamp = -1
    next_offset = segment.base_offset
    for batch in upload.source.batches(segment.base_offset, CHUNK_BYTES):
        header = read_header(batch)
        is_in_order = next_offset <= header.base_offset <= header.last_offset < segment.next_offset
        is_whole = not header.base_offset < upload.start_offset <= header.last_offset
        if not is_in_order or not is_whole or not is_crc_valid(batch, 0, header):
            raise CorruptRecordsError(f"the batch behind offset {next_offset} is damaged", position=size_bytes)
        next_offset = header.next_offset
        size_bytes += len(batch)
        if header.base_offset >= upload.start_offset:
            crc = crc32c(batch, crc)
            sent_bytes += len(batch)
            max_timestamp = max(max_timestamp, header.max_timestamp)
    if size_bytes != segment.size_bytes:
        raise CorruptRecordsError(f"{segment.size_bytes} bytes of batches should be there", position=size_bytes)
    is_part = upload.start_offset > segment.base_offset
    return CheckedRecords(StoredFile(sent_bytes, crc), max_timestamp if is_part else segment.max_timestamp)


def _send_one(store: ObjectStore, name: str, content: bytes | Path, expected: StoredFile) -> StoredFile:
    store.put(name, content)
    arrived = sum_object(store, name)
    if arrived != expected:
        raise StoreUnavailableError(
            f"{store.url}: {name} was put with {expected.size_bytes} bytes and checksum {expected.crc32c:08x}, and "
            f"{arrived.size_bytes} bytes with {arrived.crc32c:08x} came back: it is sent again; if this goes on, look "
            "at the store's own health"
        )
    return expected


def sum_object(store: ObjectStore, name: str) -> StoredFile:
    """Get an object piece by piece and return its size and checksum.

    Raises:
        RemoteStoreError: It cannot be had.
    """
    size_bytes, crc = store.size(name), 0
    position = 0
    while position < size_bytes:
        piece = store.get(name, position, min(CHUNK_BYTES, size_bytes - position))
        if not piece:
            break
        crc = crc32c(piece, crc)
        position += len(piece)
    return StoredFile(position, crc)


def _sum(files: Files, content: bytes | Path) -> StoredFile:
    if isinstance(content, bytes):
        return StoredFile(len(content), crc32c(content))
    fd = files.open(content, READ)
    try:
        position = crc = 0
        while piece := files.pread(fd, CHUNK_BYTES, position):
            crc = crc32c(piece, crc)
            position += len(piece)
        return StoredFile(position, crc)
    finally:
        files.close(fd)


@contextmanager
def _as_files(upload: Upload, files: Files, staging: Path) -> Iterator[Mapping[str, bytes | Path]]:
    """Give the segment's own files, or make some of its batches, or of a part of them, that are gone afterwards."""
    if upload.source.paths and upload.start_offset == upload.segment.base_offset:
        yield upload.source.paths
        return
    path = staging / f"{upload.uid}.staged"
    try:
        yield _stage(upload, files, path)
    finally:
        with suppress(OSError):
            files.unlink(path)


def _stage(upload: Upload, files: Files, path: Path) -> Mapping[str, bytes | Path]:
    builder = IndexBuilder(upload.start_offset)
    pending: list[bytes] = []
    written = pending_bytes = 0
    fd = files.open(path, CREATE)
    try:
        for batch in upload.source.batches(upload.start_offset, CHUNK_BYTES):
            header = read_header(batch)
            builder.add(written + pending_bytes, header.last_offset, header.max_timestamp)
            pending.append(bytes(batch))
            pending_bytes += len(batch)
            if pending_bytes >= CHUNK_BYTES:
                write_all(files, fd, [b"".join(pending)], written)
                written, pending, pending_bytes = written + pending_bytes, [], 0
        write_all(files, fd, [b"".join(pending)], written)
    finally:
        files.close(fd)
    index, time_index = builder.finish()
    return {LOG: path, INDEX: index, TIME_INDEX: time_index}
