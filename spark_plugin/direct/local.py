"""Shell: what a data directory holds of a partition, while a broker goes on appending, compacting and deleting there.

    names ── indexes, transaction indexes, the growing segment's tail ── names again: the same? else once more

A compaction renames old segments away and the new one in (`.swap` until then), so one list of the names may lack a
segment that is there before and after. Two equal lists around everything that is read, without a `.swap`, are one
state: the second one is begun when the first one is complete.

.. versionadded:: 0.1
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

import attrs

from odradek.kernel.api import META_PROPERTIES, decode_meta_properties
from odradek.kernel.errors import CorruptionError, OdradekError
from odradek.kernel.machine.files import READ, disk_error, read_file
from odradek.kernel.partitions.transaction_index import decode_transaction_index
from odradek.kernel.records.batch import HEADER_SIZE, MAGIC, CorruptRecordsError, read_header
from odradek.kernel.types import ZERO_ID, id_text
from odradek.plugins.storage_segment.formats import (
    INDEX_ENTRY,
    LOG,
    OFFSET_INDEX,
    PARTITION_METADATA,
    SWAP,
    TXN_INDEX,
    decode_partition_metadata,
    parse_segment_file,
    segment_file_name,
)

from .pieces import AbortedRange, Owner, Tail
from .planning import LocalSegment, LocalView, needs_index
from .sparse_index import BEGINNING, SparseIndex

if TYPE_CHECKING:
    import uuid
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from odradek.kernel.machine.files import Files
    from odradek.kernel.records.batch import BatchHeader

    from ..ranges import OffsetRange
    from .planning import PartitionFacts

T = TypeVar("T")

ATTEMPTS: Final = 5
"""How often a directory is looked at that changes meanwhile."""

_HEADERS_CHUNK: Final = 4096
_INDEX_CHUNK: Final = 1 << 20


class CannotReadError(OdradekError):
    """Nothing can be read from a directory or a bucket: `auto` asks brokers instead, `segments` fails with this."""


@attrs.frozen
class _Names:
    """What a log's directory lists.

    Attributes:
        logs: Base offset to size and time of modification, rising by offset; of the last one, which grows, zeros.
        sizes: The same with the last one's size.
        transactions: Base offset to size of the transaction indexes.
        is_swapping: Whether a replacement is under way.
    """

    logs: Mapping[int, tuple[int, int]]
    sizes: Mapping[int, int] = attrs.field(eq=False)
    transactions: Mapping[int, int]
    is_swapping: bool


def find_log(files: Files, data_dirs: Sequence[str], partition: str, facts: PartitionFacts) -> Path:
    """Return the directory of a partition's log.

    Args:
        files: The file system.
        data_dirs: Log directories.
        partition: `topic-number`.
        facts: Whose directory it has to be.

    Raises:
        CannotReadError: None of them has it, or what they have is another cluster's, another topic's of that name, or
            another replica's than the leader's.
    """
    reasons = []
    for data_dir in data_dirs:
        try:
            _check_owner(files, Path(data_dir), facts.owner)
            directory = Path(data_dir) / partition
            check_topic_id(files, directory, facts.topic_id)
        except CannotReadError as exc:
            reasons.append(str(exc))
        else:
            return directory
    raise CannotReadError("; ".join(reasons))


def _decoded(files: Files, path: Path, decode: Callable[[bytes], T], missing: str) -> T:
    """Return what a small file says; raises `CannotReadError`."""
    try:
        return decode(read_file(files, path))
    except FileNotFoundError as exc:
        raise CannotReadError(missing) from exc
    except OSError as exc:
        raise CannotReadError(str(disk_error(exc, "read", path))) from exc
    except CorruptionError as exc:
        raise CannotReadError(f"{path}: {exc}") from exc


def _check_owner(files: Files, data_dir: Path, owner: Owner) -> None:
    missing = f"{data_dir} is no log directory of a broker: there is no {META_PROPERTIES}"
    meta = _decoded(files, data_dir / META_PROPERTIES, decode_meta_properties, missing)
    if owner.cluster_id and meta.cluster_id and meta.cluster_id != owner.cluster_id:
        raise CannotReadError(f"{data_dir} belongs to the cluster {meta.cluster_id}, the brokers to {owner.cluster_id}")
    if owner.leader_id >= 0 and meta.node_id >= 0 and meta.node_id != owner.leader_id:
        # A follower may have records that its leader never had, until it hears so.
        raise CannotReadError(
            f"{data_dir} belongs to node {meta.node_id}, and node {owner.leader_id} leads the partition"
        )


def check_topic_id(files: Files, directory: Path, topic_id: uuid.UUID) -> None:
    """Make sure that a log's directory is that of the topic that is meant.

    Raises:
        CannotReadError: It is not, or not there.
    """
    path = directory / PARTITION_METADATA
    found = _decoded(files, path, decode_partition_metadata, f"there is no {path}")
    if ZERO_ID in (found, topic_id) or found != topic_id:
        raise CannotReadError(
            f"{directory} is the log of the topic with the id {id_text(found)}, and {id_text(topic_id)} is wanted: it "
            "is another topic of that name"
        )


def read_local(
    files: Files,
    directory: Path,
    wanted: Sequence[OffsetRange],
    facts: PartitionFacts,
    *,
    wants_aborted: bool,
    max_bytes: int = 0,
) -> LocalView | None:
    """Return what a log's directory holds of some ranges; None for nothing.

    Args:
        files: The file system.
        directory: The log's.
        wanted: Ranges of its partition.
        facts: What brokers said before.
        wants_aborted: Whether aborted transactions are looked for; then the directory must have all up to the high
            watermark, as a leader's has: a decision may lie anywhere below it.
        max_bytes: How much one piece should have at most, 0 for no bound.

    Raises:
        CannotReadError: It is not the log that is meant, cannot be read, ends too early, or never stands still.
    """
    wanted = [one for one in wanted if one.start < facts.last_stable_offset]
    if not wanted:
        return None
    try:
        for _ in range(ATTEMPTS):
            before = _list(files, directory)
            check_topic_id(files, directory, facts.topic_id)
            if before.is_swapping:
                continue
            try:
                view = _read(files, directory, before, wanted, facts, wants_aborted, max_bytes)
            except FileNotFoundError:
                continue
            if _list(files, directory) == before:
                return view
    except OSError as exc:
        raise CannotReadError(str(disk_error(exc, "read", directory))) from exc
    except CorruptionError as exc:
        raise CannotReadError(f"{directory}: {exc}") from exc
    raise CannotReadError(f"{directory} changes faster than it can be read")


def _list(files: Files, directory: Path) -> _Names:
    logs: dict[int, tuple[int, int]] = {}
    sizes: dict[int, int] = {}
    transactions: dict[int, int] = {}
    is_swapping = False
    for entry in files.listdir(directory):
        file = parse_segment_file(entry.name)
        if file is None:
            continue
        is_swapping |= file.mark == SWAP
        if not file.mark and file.kind == LOG:
            logs[file.base_offset] = entry.size_bytes, entry.modified_ms
            sizes[file.base_offset] = entry.size_bytes
        elif not file.mark and file.kind == TXN_INDEX:
            transactions[file.base_offset] = entry.size_bytes
    logs = dict(sorted(logs.items()))
    if logs:
        logs[next(reversed(logs))] = 0, 0
    return _Names(logs, sizes, transactions, is_swapping)


def _read(
    files: Files,
    directory: Path,
    names: _Names,
    wanted: Sequence[OffsetRange],
    facts: PartitionFacts,
    wants_aborted: bool,
    max_bytes: int,
) -> LocalView | None:
    bases = list(names.logs)
    if not bases:
        return None
    start = min(one.start for one in wanted)
    limit = min(max(one.end for one in wanted), facts.last_stable_offset)
    if limit <= bases[0]:
        return None
    first = max((number for number, base in enumerate(bases) if base <= start), default=0)
    segments = []
    for number in range(first, len(bases) - 1):
        base, end, size_bytes = bases[number], bases[number + 1], names.sizes[bases[number]]
        if base >= limit:
            break
        index = SparseIndex(base, b"")
        if needs_index(base, end, size_bytes, wanted, max_bytes):
            index = read_index(files, directory, base, max(start, base), min(limit, end))
        segments.append(LocalSegment(base, end, size_bytes, index))
    last = _read_last(files, directory, bases[-1], start, limit, facts.high_watermark if wants_aborted else -1)
    if last is not None:
        segments.append(last)
    aborted: list[AbortedRange] = []
    for base, size_bytes in sorted(names.transactions.items()):
        if wants_aborted and size_bytes and base >= bases[first]:
            data = read_file(files, directory / segment_file_name(base, TXN_INDEX))
            aborted += [AbortedRange(*each[:3]) for each in decode_transaction_index(data, is_torn=True)]
    return LocalView(str(directory), tuple(segments), tuple(aborted)) if segments else None


def _read_last(
    files: Files, directory: Path, base_offset: int, start: int, limit: int, high_watermark: int
) -> LocalSegment | None:
    """Return what may be read of the segment that still grows; None for nothing.

    Raises:
        CannotReadError: The log ends before the high watermark (-1: it need not be looked at).
    """
    if max(limit, high_watermark) <= base_offset:
        return None
    fd = files.open(directory / segment_file_name(base_offset, LOG), READ)
    try:
        end_offset = base_offset
        index = read_index(files, directory, base_offset, max(start, base_offset), max(limit, high_watermark))
        if high_watermark > base_offset:
            found = last_batch_below(files, fd, index.find(high_watermark - 1), high_watermark)
            end_offset = base_offset if found is None else found.next_offset
        if end_offset < high_watermark:
            raise CannotReadError(
                f"{directory} ends at offset {end_offset}, and the high watermark is {high_watermark}: a copy, or "
                "not the leader's, and says not of all transactions how they ended"
            )
        if limit <= base_offset:
            return None
        tail = last_batch_below(files, fd, index.find(limit - 1), limit)
    finally:
        files.close(fd)
    if tail is None:
        return None
    return LocalSegment(base_offset, tail.next_offset, tail.end_position, index, tail)


def last_batch_below(files: Files, fd: int, place: tuple[int, int], offset: int) -> Tail | None:
    """Return the last whole batch that begins before an offset; None when there is none.

    What is being written behind it, and allocated space, is not looked at, or is taken for the end.

    Args:
        files: The file system.
        fd: The log.
        place: Where to begin, and the last offset of the batch there, as its index says; -1 at the beginning.
        offset: > 0.
    """
    position, last_offset = place
    size_bytes = files.size(fd)
    found = None
    for at, header in headers(files, fd, position, size_bytes):
        if at == position and last_offset >= 0 and header.last_offset != last_offset:
            break  # the index lies
        if header.base_offset >= offset:
            return found
        found = Tail(at, at + header.length_bytes, header.next_offset)
        if header.next_offset >= offset:
            return found
    if found is None and position:
        return last_batch_below(files, fd, BEGINNING, offset)
    return found


def headers(files: Files, fd: int, position: int, end_position: int) -> Iterator[tuple[int, BatchHeader]]:
    """Yield position and header of each whole batch; ends before the first place where there is none."""
    data, start, following = b"", position, -1
    while position < end_position:
        at = position - start
        if at + HEADER_SIZE > len(data):
            data, start, at = files.pread(fd, min(_HEADERS_CHUNK, end_position - position), position), position, 0
        try:
            header = read_header(data, at)
        except CorruptRecordsError:
            return
        is_batch = header.magic == MAGIC and HEADER_SIZE <= header.length_bytes <= end_position - position
        if not is_batch or header.last_offset_delta < 0 or header.base_offset < following:
            return
        yield position, header
        following = header.next_offset
        position += header.length_bytes


_RELATIVE: Final = struct.Struct(">i")


def read_index(files: Files, directory: Path, base_offset: int, start: int, end: int) -> SparseIndex:
    """Return a segment's index from the entry for `start` on up to some behind `end`; empty when there is no file.

    The index of a segment that grows is large and mostly empty: it is searched, not read.
    """
    try:
        fd = files.open(directory / segment_file_name(base_offset, OFFSET_INDEX), READ)
    except FileNotFoundError:
        return SparseIndex(base_offset, b"")
    try:
        count = files.size(fd) // INDEX_ENTRY.size
        first = max(_search(files, fd, count, start - base_offset) - 1, 0)
        behind = min(_search(files, fd, count, end - base_offset) + 2, count)
        data = b""
        while len(data) < (behind - first) * INDEX_ENTRY.size:
            at = first * INDEX_ENTRY.size + len(data)
            part = files.pread(fd, min(_INDEX_CHUNK, behind * INDEX_ENTRY.size - at), at)
            if not part:
                break
            data += part
    finally:
        files.close(fd)
    return SparseIndex.of(base_offset, data)


def _search(files: Files, fd: int, count: int, relative: int) -> int:
    """Return how many entries have at most an offset; entries of zeros are behind all others."""
    low, high = 0, count
    while low < high:
        middle = (low + high) // 2
        data = files.pread(fd, INDEX_ENTRY.size, middle * INDEX_ENTRY.size)
        is_below = any(data) and _RELATIVE.unpack_from(data)[0] <= relative if len(data) == INDEX_ENTRY.size else False
        low, high = (middle + 1, high) if is_below else (low, middle)
    return low
