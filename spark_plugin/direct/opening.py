"""Shell: the bytes of a piece, and where they are when they have moved. What a task runs.

    open_piece ── yields runs of batches ──> ColumnReader
        │ the file or the object is gone, or the store fails
        └── looked for anew: the directory, then the manifest ──> goes on there, or PieceGoneError

.. versionadded:: 0.1
"""

from __future__ import annotations

import mmap
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryFile, gettempdir
from typing import IO, TYPE_CHECKING, Final

import attrs

from odradek.kernel.contracts.remote_store import RemoteStoreError
from odradek.kernel.machine.files import READ, OsFiles, disk_error
from odradek.kernel.records.batch import HEADER_SIZE, LOG_OVERHEAD, CorruptRecordsError, iterate_batches, read_header
from odradek.kernel.types import TopicIdPartition
from odradek.plugins.storage_segment.formats import LOG, segment_file_name
from odradek.plugins.storage_tiered.names import LOG as STORED_LOG
from odradek.plugins.storage_tiered.names import segment_file_name as stored_name

from .batches import BatchChain, Visibility, visible_runs
from .checked_object import KEPT_BYTES_MAX, CheckedObject
from .gets import iterate_gets
from .local import CannotReadError, check_topic_id, find_log, read_index, read_local
from .pieces import BrokerPiece, PieceGoneError, SegmentPiece, TierPiece
from .planning import PartitionFacts, overlapping, plan_range

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from odradek.kernel.contracts.remote_store import ObjectStore
    from odradek.kernel.machine.files import Files
    from odradek.kernel.types import Buffer

    from .pieces import DirectPiece, Piece
    from .settings import DirectSettings

MOVES_MAX: Final = 4
"""How often a piece is looked for anew."""

_OFFSET_MAX: Final = (1 << 63) - 1
_NOTHING_ABORTED: Final[Sequence[tuple[int, int]]] = ()
_stores: dict[tuple[str, tuple[tuple[str, str], ...]], ObjectStore] = {}


def _store_of(settings: DirectSettings) -> ObjectStore:
    """Open a store once in a process."""
    key = settings.store_url, settings.store_options
    if key not in _stores:
        from .tier import store_of

        _stores[key] = store_of(settings)
    return _stores[key]


class _MovedError(Exception):
    """What a piece speaks of is not there.

    Attributes:
        position: The first offset that was not given out.
    """

    def __init__(self, reason: str, position: int) -> None:
        super().__init__(reason)
        self.position = position


def open_piece(
    piece: DirectPiece,
    *,
    checks_crcs: bool = True,
    files: Files | None = None,
    open_store: Callable[[DirectSettings], ObjectStore] = _store_of,
    open_file: Callable[[], IO[bytes]] = TemporaryFile,
) -> Iterator[tuple[Buffer, Sequence[tuple[int, int]]]]:
    """Yield runs of whole batches for `ColumnReader.feed`, in order; when it ends, the piece is complete.

    The first run may begin, and the last one end, with batches outside of the piece. What is given out has to be used
    up before the next is asked for, and may be kept no longer than the iterator.

    Args:
        piece: What to read.
        checks_crcs: Whether who uses the runs compares the checksum of each batch.
        files: The file system; None for the machine's.
        open_store: Opens the store that settings name.
        open_file: Opens an empty file that is gone once it is closed; for objects that have to be compared with their
            checksum first and are too large for memory.

    Raises:
        PieceGoneError: The rest, from the reader's position on, is nowhere past the brokers, or has no room.
        CorruptRecordsError: What is there is damaged; what was given out is not.
    """
    used = files or OsFiles()
    try:
        if isinstance(piece, SegmentPiece):
            yield from _open_segment(piece, used)
        else:
            yield from _open_object(piece, open_store, open_file, checks_crcs=checks_crcs)
    except _MovedError as moved:
        reason, position = str(moved), moved.position
    else:
        return
    for following in _find_again(piece, position, used, open_store):
        if isinstance(following, BrokerPiece):
            raise PieceGoneError(f"{following.range}: {reason}")
        yield from open_piece(
            following, checks_crcs=checks_crcs, files=used, open_store=open_store, open_file=open_file
        )


# -- files -------------------------------------------------------------------------------------------------------------


def _open_segment(piece: SegmentPiece, files: Files) -> Iterator[tuple[Buffer, Sequence[tuple[int, int]]]]:
    mapped = _map_segment(piece, files)
    if mapped is None:
        return
    view, size_bytes = mapped
    visibility = Visibility(piece.aborted)
    runs = iter([view]) if visibility.is_everything else visible_runs(view, visibility)
    try:
        for run in runs:
            yield run, _NOTHING_ABORTED
    except CorruptRecordsError as exc:
        raise exc.found_in(str(_path(piece))) from exc
    if piece.tail is None:
        _check_end(piece, files, view, size_bytes)


def _path(piece: SegmentPiece) -> Path:
    return Path(piece.directory) / segment_file_name(piece.base_offset, LOG)


def _map_segment(piece: SegmentPiece, files: Files) -> tuple[memoryview, int] | None:
    """Return the bytes of a piece, up to the file's end where it is a closed segment, and where that is; None for none.

    Raises:
        _MovedError: The file is gone, or another one.
    """
    path, start = _path(piece), piece.range.start
    try:
        fd = files.open(path, READ)
        try:
            # Only now: whoever makes a topic anew gives its directory an id before it has a file.
            check_topic_id(files, path.parent, piece.topic_id)
            size_bytes = files.size(fd)
            position = _begin(piece, files, fd, size_bytes)
            end_position = size_bytes if piece.tail is None else piece.tail.end_position
            if position >= end_position:
                return None
            mapped = files.mmap(fd, end_position, is_writable=False)
        finally:
            files.close(fd)
    except OSError as exc:
        raise _MovedError(str(disk_error(exc, "read", path)), start) from exc
    except (CannotReadError, ValueError) as exc:  # a map of more than there is by now is a `ValueError`
        raise _MovedError(str(exc), start) from exc
    sequential = getattr(mmap, "MADV_SEQUENTIAL", None)
    if sequential is not None:
        mapped.madvise(sequential)
    return memoryview(mapped)[position:], end_position


def _begin(piece: SegmentPiece, files: Files, fd: int, size_bytes: int) -> int:
    """Return where to begin in the file.

    A file of this name holds all that is left of the offsets of this segment, also when compaction wrote it a moment
    ago: so its beginning is always right, and what the index said is right when the batch there ends as it said.

    Raises:
        _MovedError: The segment is not the one that grew.
    """
    tail = piece.tail
    if tail is not None:
        header = read_header(files.pread(fd, HEADER_SIZE, tail.position)) if tail.end_position <= size_bytes else None
        if header is None or (header.length_bytes, header.next_offset) != (
            tail.end_position - tail.position,
            tail.next_offset,
        ):
            raise _MovedError(f"{_path(piece)} was rewritten", piece.range.start)
    if not piece.position:
        return 0
    data = files.pread(fd, HEADER_SIZE, piece.position)
    if len(data) < HEADER_SIZE or read_header(data).last_offset != piece.anchor_offset:
        return 0
    return piece.position


def _check_end(piece: SegmentPiece, files: Files, view: memoryview, size_bytes: int) -> None:
    """Make sure that a closed segment ends with a whole batch: one that was cut off would be a gap that nobody sees."""
    index = read_index(files, Path(piece.directory), piece.base_offset, piece.range.end, _OFFSET_MAX)
    near = index.find(_OFFSET_MAX).position - (size_bytes - len(view))
    if not (0 < near < len(view) and _is_whole(view, near)) and not _is_whole(view, 0):
        raise CorruptRecordsError(f"{_path(piece)} ends within a batch")


def _is_whole(view: memoryview, position: int) -> bool:
    """Say whether batches follow each other from a position up to the end."""
    try:
        for at, header in iterate_batches(view, position):
            position = at + header.length_bytes
    except CorruptRecordsError:
        return False
    return position == len(view)


# -- objects -----------------------------------------------------------------------------------------------------------


def _open_object(
    piece: TierPiece,
    open_store: Callable[[DirectSettings], ObjectStore],
    open_file: Callable[[], IO[bytes]],
    *,
    checks_crcs: bool,
) -> Iterator[tuple[Buffer, Sequence[tuple[int, int]]]]:
    partition = TopicIdPartition(piece.topic_id, piece.range.topic, piece.range.partition)
    name = stored_name(partition, piece.base_offset, piece.uid, STORED_LOG)
    visibility = Visibility(piece.aborted)
    position = piece.range.start
    try:
        store = open_store(piece.settings)
        place = f"{store.url}: {name}"
        chain = BatchChain(piece.base_offset, piece.next_offset, place)
        likely_end = piece.position + piece.size_bytes
        gets = iterate_gets(store, name, piece.position, likely_end, piece.object_bytes, piece.settings.get_bytes)
        with CheckedObject(piece, place, gets, open_file) as content:
            if not checks_crcs or piece.object_bytes <= KEPT_BYTES_MAX:
                content.settle()
            for view in _whole_batches(piece, chain, content):
                for run in (view,) if visibility.is_everything else visible_runs(view, visibility):
                    yield run, _NOTHING_ABORTED
                position = max(position, chain.next_offset)
                if position >= piece.range.end and not piece.is_whole:
                    return
    except (RemoteStoreError, CannotReadError) as exc:
        raise _MovedError(str(exc), position) from exc
    except OSError as exc:
        message = f"no room in {gettempdir()} for an object until its checksum was compared: {exc.strerror or exc}"
        raise PieceGoneError(f"{piece.range}: {message}") from exc


def _whole_batches(piece: TierPiece, chain: BatchChain, content: CheckedObject) -> Iterator[memoryview]:
    """Yield the whole batches of an object; a batch on a border is put together by itself.

    A batch's own checksum does not cover its offset. Where none is missing each can have but one; from the first gap
    on the object's checksum has to be right.

    Raises:
        CorruptRecordsError: They do not follow each other, the object ends within one, or it is not what was put.
    """

    def take(view: memoryview) -> int:
        size = chain.take(view)
        if chain.has_gaps:
            content.settle()
        return size

    rest = b""
    got = piece.position
    is_first = True
    for chunk in content:
        got += len(chunk)
        data = memoryview(chunk)
        if rest:
            missing = _missing(rest, data)
            if missing > len(data):
                rest += chunk
                continue
            joined = memoryview(rest + data[:missing])
            take(joined)
            yield joined
            data = data[missing:]
        if is_first:
            _check_anchor(piece, data)
            is_first = False
        size = take(data)
        if size:
            yield data[:size]
        rest = bytes(data[size:])
    if rest or got < piece.object_bytes:
        raise CorruptRecordsError(f"{piece.range}: the object {piece.uid} ends within a batch", position=got)


def _missing(rest: bytes, data: memoryview) -> int:
    """Return how many bytes of `data` belong to the batch that `rest` begins with; more than there are for unknown."""
    header = rest + data[: max(LOG_OVERHEAD - len(rest), 0)]
    if len(header) < LOG_OVERHEAD:
        return len(data) + 1
    length = int.from_bytes(header[8:LOG_OVERHEAD], "big", signed=True) + LOG_OVERHEAD
    if length < HEADER_SIZE:
        raise CorruptRecordsError(f"a batch of {length} bytes")
    return length - len(rest)


def _check_anchor(piece: TierPiece, data: memoryview) -> None:
    if piece.position and (len(data) < HEADER_SIZE or read_header(data).last_offset != piece.anchor_offset):
        raise CorruptRecordsError(f"{piece.range}: the index of the object {piece.uid} does not fit it")


# -- what moved --------------------------------------------------------------------------------------------------------


def _find_again(
    piece: DirectPiece, position: int, files: Files, open_store: Callable[[DirectSettings], ObjectStore]
) -> list[Piece]:
    """Return the pieces of what is left of a piece, by what the directory and the bucket hold now.

    What was planned is below the last stable offset, and which of its transactions were aborted is known: so no broker
    is needed to plan it anew. Whose copy it may be is known too. Not any: one that led and died may have records there
    that nobody else ever had.
    """
    rest = attrs.evolve(piece.range, start=min(max(position, piece.range.start), piece.range.end))
    if piece.moves >= MOVES_MAX:
        return [BrokerPiece(rest)]
    facts = PartitionFacts(
        piece.topic_id,
        last_stable_offset=rest.end,
        high_watermark=_OFFSET_MAX,
        owner=piece.owner,
    )
    settings = piece.settings
    local = tier = None
    with suppress(CannotReadError):
        if settings.data_dirs:
            name = f"{rest.topic}-{rest.partition}"
            directory = find_log(files, settings.data_dirs, name, facts)
            local = read_local(files, directory, [rest], facts, wants_aborted=False)
    with suppress(CannotReadError):
        if settings.store_url:
            from .tier import TierReader

            partition = TopicIdPartition(piece.topic_id, rest.topic, rest.partition)
            reader = TierReader(open_store(settings), monotonic=lambda: 0.0)
            tier = reader.read(partition, [rest], facts, wants_aborted=False)
    found = plan_range(rest, facts, settings, local=local, tier=tier)
    return [
        each
        if isinstance(each, BrokerPiece)
        else attrs.evolve(
            each, moves=piece.moves + 1, aborted=overlapping(piece.aborted, each.range.start, each.range.end)
        )
        for each in found
    ]
