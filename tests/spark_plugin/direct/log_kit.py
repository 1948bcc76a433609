"""A partition's log with all that a log can hold, as files and as objects, and what a consumer reads of it.

The log is a list of batches that knows its rows by itself: what is read is compared with that, not with another reader.
"""

from __future__ import annotations

import random
import struct
import uuid
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any, Final, NamedTuple

import attrs
from crc32c import crc32c

from odradek.kernel.config.meta_properties import MetaProperties, encode_meta_properties
from odradek.kernel.partitions.producer_snapshot import ProducerSnapshotEntry, encode_snapshot
from odradek.kernel.partitions.transaction_index import AbortedTransaction, encode_transaction_index
from odradek.kernel.records.builder import BatchBuilder
from odradek.kernel.records.columns import ALL_COLUMNS, BinaryColumn, ColumnReader, Columns
from odradek.kernel.records.compression import CompressionType
from odradek.kernel.records.control import ControlRecordType, EndTransactionMarker, build_control_batch
from odradek.kernel.types import TopicIdPartition, TopicPartition
from odradek.plugins.storage_segment.formats import (
    INDEX_ENTRY,
    encode_partition_metadata,
    segment_file_name,
)
from odradek.plugins.storage_tiered.documents import encode_document
from odradek.plugins.storage_tiered.manifest import Manifest, StoredFile, StoredSegment, encode_manifest
from odradek.plugins.storage_tiered.names import BUCKET_FILE, manifest_name
from odradek.plugins.storage_tiered.names import segment_file_name as stored_name
from odradek.spark_plugin.direct import BrokerPiece, DirectSettings, PartitionFacts, Piece, PieceGoneError, Sources
from odradek.spark_plugin.direct.opening import open_piece
from odradek.spark_plugin.direct.pieces import Owner
from odradek.spark_plugin.ranges import OffsetRange
from odradek.testing.object_stores import MemoryObjectStore

CLUSTER_ID: Final = "the-cluster"
TOPIC_ID: Final = uuid.UUID(int=77 << 64)
PARTITION: Final = TopicIdPartition(TOPIC_ID, "orders", 3)
TOPIC_PARTITION: Final = TopicPartition("orders", 3)
NODE_ID: Final = 5
CODECS: Final = tuple(CompressionType)


class Row(NamedTuple):
    """What a consumer gets of a record."""

    offset: int
    key: bytes | None
    value: bytes | None


@attrs.define
class Batch:
    """A batch, and what is known of it.

    Attributes:
        base_offset: Its first offset.
        next_offset: The offset after its last.
        rows: Its records; none of a marker.
        codec: How they are stored.
        producer_id: Whose transaction; -1 for none.
        marker: How a transaction ends here.
        is_aborted: Whether its transaction was aborted.
    """

    base_offset: int
    next_offset: int
    rows: tuple[Row, ...] = ()
    codec: CompressionType = CompressionType.NONE
    producer_id: int = -1
    marker: ControlRecordType | None = None
    is_aborted: bool = False
    _data: bytes = attrs.field(default=b"", init=False, repr=False)

    @property
    def data(self) -> bytes:
        """Its bytes."""
        if not self._data:
            self._data = self._encoded()
        return self._data

    def _encoded(self) -> bytes:
        if self.marker is not None:
            marker = EndTransactionMarker(self.marker, 0)
            return bytes(
                build_control_batch(
                    [marker],
                    timestamp=1000,
                    base_offset=self.base_offset,
                    producer_id=self.producer_id,
                    producer_epoch=0,
                )
            )
        builder = BatchBuilder(
            compression=self.codec,
            base_offset=self.base_offset,
            producer_id=self.producer_id,
            producer_epoch=0 if self.producer_id >= 0 else -1,
            base_sequence=0 if self.producer_id >= 0 else -1,
            is_transactional=self.producer_id >= 0,
        )
        for row in self.rows:
            builder.append(row.key, row.value, timestamp=1000 + row.offset, offset=row.offset)
        return bytes(builder.build(last_offset=self.next_offset - 1))


@attrs.define
class Segment:
    """A segment: batches, and the aborted transactions whose markers are, or were, in it."""

    base_offset: int
    batches: list[Batch]
    aborted: list[AbortedTransaction] = attrs.field(factory=list)

    @property
    def data(self) -> bytes:
        """Its bytes."""
        return b"".join(batch.data for batch in self.batches)

    def index(self, every: int) -> bytes:
        """Return an index with an entry for each so-manieth batch, but not the first."""
        entries, position = [], 0
        for number, batch in enumerate(self.batches):
            if number and number % every == 0:
                entries.append(INDEX_ENTRY.pack(batch.next_offset - 1 - self.base_offset, position))
            position += len(batch.data)
        return b"".join(entries)


@attrs.define
class Log:
    """A partition's log: segments, the last one growing.

    Attributes:
        segments: Rising by offset.
        end_offset: Where it ends: the high watermark.
        last_stable_offset: Where the first open transaction begins, or the end.
        open_since: Producer to first offset, of transactions that are open at its end.
        index_every: How many batches lie between two entries of an index.
    """

    segments: list[Segment]
    end_offset: int
    last_stable_offset: int
    open_since: dict[int, int]
    index_every: int = 2

    @property
    def batches(self) -> list[Batch]:
        """All batches."""
        return [batch for segment in self.segments for batch in segment.batches]

    def end_of(self, number: int) -> int:
        """Return where a segment ends."""
        return self.segments[number + 1].base_offset if number + 1 < len(self.segments) else self.end_offset

    def rows(self, start: int, end: int, *, is_read_committed: bool) -> list[Row]:
        """Return what a consumer reads of some offsets."""
        return [
            row
            for batch in self.batches
            if not (is_read_committed and batch.is_aborted)
            for row in batch.rows
            if start <= row.offset < end
        ]

    def facts(self) -> PartitionFacts:
        """Return what brokers say."""
        return PartitionFacts(TOPIC_ID, self.last_stable_offset, self.end_offset, 0, Owner(CLUSTER_ID, NODE_ID))

    def open_at(self, offset: int) -> dict[int, int]:
        """Return the transactions that are open at an offset: producer to first offset."""
        found: dict[int, int] = {}
        for batch in self.batches:
            if batch.base_offset >= offset:
                break
            if batch.marker is not None:
                found.pop(batch.producer_id, None)
            elif batch.producer_id >= 0:
                found.setdefault(batch.producer_id, batch.base_offset)
        return found


def make_log(
    choose: random.Random,
    batches_count: int = 30,
    *,
    segments_count: int = 4,
    codecs: Sequence[CompressionType] = CODECS,
) -> Log:
    """Return a log with transactions of three producers, gaps of no kind yet, and open transactions at its end."""
    batches: list[Batch] = []
    open_since: dict[int, int] = {}
    aborted: list[AbortedTransaction] = []
    offset = 0
    for _ in range(batches_count):
        producer_id = choose.choice((-1, -1, 1, 2, 3))
        if producer_id in open_since and choose.random() < 0.5:
            is_abort = choose.random() < 0.6
            first = open_since.pop(producer_id)
            if is_abort:
                for batch in batches:
                    batch.is_aborted |= batch.producer_id == producer_id and first <= batch.base_offset
                stable = min([*open_since.values(), offset + 1])
                aborted.append(AbortedTransaction(producer_id, first, offset, stable))
            marker = ControlRecordType.ABORT if is_abort else ControlRecordType.COMMIT
            batches.append(Batch(offset, offset + 1, producer_id=producer_id, marker=marker))
        else:
            count = choose.randint(1, 4)
            rows = tuple(
                Row(
                    offset + number,
                    choose.choice((None, b"", b"key-%d" % choose.randint(0, 9))),
                    choose.choice((None, choose.randbytes(choose.randint(0, 40)))),
                )
                for number in range(count)
            )
            batches.append(Batch(offset, offset + count, rows, choose.choice(codecs), producer_id))
            if producer_id >= 0:
                open_since.setdefault(producer_id, offset)
        offset = batches[-1].next_offset
    places = sorted(choose.sample(range(1, batches_count), min(segments_count, batches_count) - 1))
    segments = []
    for first, last in zip([0, *places], [*places, batches_count], strict=True):
        part = batches[first:last]
        begin, end = part[0].base_offset, part[-1].next_offset
        segments.append(Segment(begin, part, [each for each in aborted if begin <= each.last_offset < end]))
    return Log(segments, offset, min([*open_since.values(), offset]), open_since, choose.randint(1, 4))


def compact(log: Log, first: int, last: int, choose: random.Random, *, drops_aborted: bool) -> Segment:
    """Return what compaction makes of `segments[first:last]`: records, whole batches, and maybe aborted ones, are gone.

    A transaction of which no record is left is told of no more.
    """
    old = log.segments[first:last]
    kept: list[Batch] = []
    for batch in [batch for segment in old for batch in segment.batches]:
        if batch.marker is not None:
            if choose.random() < 0.6:
                kept.append(attrs.evolve(batch))
            continue
        if drops_aborted and batch.is_aborted:
            continue
        rows = tuple(row for row in batch.rows if choose.random() < 0.6)
        if rows:
            kept.append(attrs.evolve(batch, rows=rows, next_offset=rows[-1].offset + 1, codec=choose.choice(CODECS)))
    aborted = [each for segment in old for each in segment.aborted]
    if drops_aborted:
        end = log.end_of(last - 1)
        outside = [batch for segment in log.segments[:first] for batch in segment.batches]
        aborted = [
            each
            for each in aborted
            if any(
                b.is_aborted and b.producer_id == each.producer_id and each.first_offset <= b.base_offset
                for b in outside
            )
            and each.last_offset < end
        ]
    return Segment(old[0].base_offset, kept, aborted)


# -- on a disk ---------------------------------------------------------------------------------------------------------


def write_data_dir(
    data_dir: Path, log: Log, *, first: int = 0, topic_id: uuid.UUID = TOPIC_ID, node_id: int = NODE_ID
) -> Path:
    """Write a data directory with the log's segments from `first` on; return the log's directory."""
    data_dir.mkdir(exist_ok=True)
    meta = encode_meta_properties(MetaProperties(CLUSTER_ID, node_id, uuid.UUID(int=3)))
    (data_dir / "meta.properties").write_bytes(meta)
    directory = data_dir / f"{PARTITION.topic}-{PARTITION.partition}"
    directory.mkdir()
    (directory / "partition.metadata").write_bytes(encode_partition_metadata(topic_id))
    for number in range(first, len(log.segments)):
        write_segment(directory, log, log.segments[number], is_active=number + 1 == len(log.segments))
    return directory


def write_segment(directory: Path, log: Log, segment: Segment, *, is_active: bool = False, mark: str = "") -> None:
    """Write a segment's files; a growing one has allocated space, and half a batch behind its end."""
    index, data = segment.index(log.index_every), segment.data
    if is_active:
        index += bytes(80)
        data += struct.pack(">qi", log.end_offset, 500) + b"\0" * 300
    (directory / segment_file_name(segment.base_offset, ".log", mark)).write_bytes(data)
    (directory / segment_file_name(segment.base_offset, ".index", mark)).write_bytes(index)
    if segment.aborted:
        path = directory / segment_file_name(segment.base_offset, ".txnindex", mark)
        path.write_bytes(encode_transaction_index(segment.aborted))


def replacement_steps(directory: Path, old: Sequence[Segment]) -> Iterator[str]:
    """Do what a broker does to swap a compacted segment in whose files lie there as `.swap`; yield before each step."""
    for segment in old:
        for kind in (".log", ".index", ".txnindex"):
            path = directory / segment_file_name(segment.base_offset, kind)
            if path.exists():
                yield f"delete {path.name}"
                path.rename(path.with_name(path.name + ".deleted"))
    for kind in (".txnindex", ".index", ".log"):
        path = directory / segment_file_name(old[0].base_offset, kind, ".swap")
        if path.exists():
            yield f"swap {path.name}"
            path.rename(path.with_name(path.name.removesuffix(".swap")))


# -- in a store --------------------------------------------------------------------------------------------------------


class Tier:
    """The tier of the partition in a store in memory.

    Attributes:
        store: The store.
        version: Of the newest manifest.
        stored: Its segments.
    """

    def __init__(self, log: Log) -> None:
        self.store = MemoryObjectStore()
        self.store.put(BUCKET_FILE, encode_document({"cluster_id": CLUSTER_ID}))
        self.version = 0
        self.stored: list[StoredSegment] = []
        self._log = log
        self._uploads = 0

    def send(self, numbers: Sequence[int]) -> None:
        """Send segments, and put a manifest that names them too."""
        for number in numbers:
            segment = self._log.segments[number]
            self.stored.append(self.upload(segment, self._log.end_of(number)))
        self.put_manifest()

    def upload(self, segment: Segment, next_offset: int) -> StoredSegment:
        """Put the objects of a segment."""
        self._uploads += 1
        uid = f"uid-{self._uploads}"
        contents = {"log": segment.data, "index": segment.index(self._log.index_every), "timeindex": b""}
        if segment.aborted:
            contents["txnindex"] = encode_transaction_index(segment.aborted)
        contents["snapshot"] = encode_snapshot(
            ProducerSnapshotEntry(producer_id, 0, 0, first, 0, 0, 0, first)
            for producer_id, first in self._log.open_at(next_offset).items()
        )
        files = {}
        for kind, data in contents.items():
            self.store.put(stored_name(PARTITION, segment.base_offset, uid, kind), data)
            files[kind] = StoredFile(len(data), crc32c(data))
        return StoredSegment(uid, segment.base_offset, next_offset, 1000, (), files)

    def put_manifest(self) -> None:
        """Put the next manifest."""
        self.version += 1
        manifest = Manifest(
            self.version, CLUSTER_ID, PARTITION.topic, TOPIC_ID, PARTITION.partition, 1, 0, tuple(self.stored)
        )
        self.store.put(manifest_name(PARTITION, self.version), encode_manifest(manifest))

    def name_of(self, number: int, kind: str = "log") -> str:
        """Return an object's name."""
        stored = self.stored[number]
        return stored_name(PARTITION, stored.base_offset, stored.uid, kind)


# -- reading -----------------------------------------------------------------------------------------------------------


def settings_for(data_dir: Path | None = None, *, has_store: bool = False, **changes: Any) -> DirectSettings:
    """Return settings with a directory and a store, as far as they are given."""
    made = DirectSettings(
        data_dirs=(str(data_dir),) if data_dir else (), store_url="memory://test" if has_store else "", get_bytes=300
    )
    return attrs.evolve(made, **changes)


class NoThreads:
    """Does one after the other what threads would do at once."""

    def map(self, call: Any, arguments: Any) -> Any:
        """See `concurrent.futures.Executor.map`."""
        return map(call, arguments)


def sources_for(settings: DirectSettings, store: Any = None, **changes: Any) -> tuple[Sources, list[str]]:
    """Return sources, and the list of what they warn of."""
    warnings: list[str] = []
    made = Sources(
        settings,
        open_store=lambda _: store,
        warn=warnings.append,
        monotonic=lambda: 0.0,
        threads=lambda: nullcontext(NoThreads()),
        **changes,
    )
    return made, warnings


def plan(
    sources: Sources, log: Log, start: int, end: int, *, is_read_committed: bool = True, max_bytes: int = 0
) -> list[Piece]:
    """Return the pieces of a range."""
    wanted = OffsetRange(*TOPIC_PARTITION, start, end)
    facts = {TOPIC_PARTITION: log.facts()}
    [pieces] = sources.plan_pieces([wanted], facts, is_read_committed=is_read_committed, max_bytes=max_bytes)
    position = start
    for piece in pieces:
        assert (piece.range.start, piece.range.topic_partition) == (position, TOPIC_PARTITION), "no gap, no overlap"
        assert piece.range.size > 0
        position = piece.range.end
    assert position == end
    return pieces


def read_pieces(
    pieces: Sequence[Piece],
    log: Log,
    store: Any = None,
    *,
    files: Any = None,
    is_read_committed: bool = True,
    fallen_back: tuple[type[Exception], ...] = (PieceGoneError,),
) -> Iterator[Row]:
    """Yield the rows of pieces as a task does: what is gone, and what is a broker's, from the log as it is then."""
    for piece in pieces:
        wanted = piece.range
        reader = ColumnReader(wanted.start, wanted.end, ALL_COLUMNS, is_read_committed=is_read_committed, rows_max=3)
        position = wanted.start
        if not isinstance(piece, BrokerPiece):
            try:
                for data, aborted in open_piece(piece, files=files, open_store=lambda _: store):
                    for columns in reader.feed(data, aborted):
                        yield from rows_of(columns)
                    if reader.is_done:
                        break
            except fallen_back:
                position = reader.position
            else:
                continue
        yield from log.rows(position, wanted.end, is_read_committed=is_read_committed)


def rows_of(columns: Columns) -> Iterator[Row]:
    """Yield the rows of columns."""
    assert columns.keys is not None
    assert columns.values is not None
    assert columns.offsets is not None
    keys, values = _texts(columns.keys, columns.rows), _texts(columns.values, columns.rows)
    yield from map(Row, memoryview(columns.offsets).cast("B").cast("q"), keys, values)


def _texts(column: BinaryColumn, rows: int) -> Iterator[bytes | None]:
    offsets = memoryview(column.offsets).cast("B").cast("i")
    validity = None if column.validity is None else memoryview(column.validity).cast("B")
    data = memoryview(column.data).cast("B")
    for row in range(column.first, column.first + rows):
        is_null = validity is not None and not validity[row // 8] >> row % 8 & 1
        yield None if is_null else bytes(data[offsets[row] : offsets[row + 1]])
