"""Pure core: the files of a log directory as rows for people and scripts: `odradek log dump`.

One function for every kind of file, chosen by the name; bytes in, rows out. A row is a kind and its fields, in the
order in which to show them. What is wrong with a file is a row of kind `problem`, so that the rest is still shown.

*Source:* what Kafka's DumpLogSegments shows.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final, NamedTuple

from odradek.kernel.api import (
    HEADER_SIZE,
    MAGIC,
    META_PROPERTIES,
    CorruptionError,
    CorruptRecordsError,
    decode_meta_properties,
    id_text,
    is_crc_valid,
    read_batch,
    read_header,
)

from .formats import (
    CLEAN_ENDS,
    CLEAN_SHUTDOWN,
    EPOCH_CHECKPOINT,
    HIGH_WATERMARKS,
    INDEX_ENTRY,
    LOG,
    LOG_START_OFFSETS,
    OFFSET_INDEX,
    PARTITION_METADATA,
    RECOVERY_POINTS,
    TIME_INDEX,
    TIME_INDEX_ENTRY,
    TXN_INDEX,
    decode_epochs,
    decode_offsets,
    decode_partition_metadata,
    index_entries,
    parse_segment_file,
    time_index_entries,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from odradek.kernel.api import BatchHeader

_CODECS: Final = ("none", "gzip", "snappy", "lz4", "zstd", "unknown", "unknown", "unknown")
_TXN_ENTRY: Final = struct.Struct(">hqqqq")
_SNAPSHOT_HEADER: Final = struct.Struct(">hIi")
_SNAPSHOT_ENTRY: Final = struct.Struct(">qhiqiqiq")


class DumpRow(NamedTuple):
    """One line of a dump."""

    kind: str
    fields: Mapping[str, object]

    def __str__(self) -> str:
        return f"{self.kind}: " + " ".join(f"{name}={value}" for name, value in self.fields.items())


def dump_file(name: str, data: bytes | memoryview, *, with_records: bool = False) -> Iterator[DumpRow]:
    """Yield the rows of one file.

    Args:
        name: Its name without a folder: tells what it is.
        data: Its bytes, which may be a mapping.
        with_records: Whether a log's records are wanted, and not only its batches.
    """
    parsed = parse_segment_file(name)
    try:
        if parsed is not None and parsed.kind == LOG:
            yield from _dump_log(data, parsed.base_offset, with_records=with_records)
        elif parsed is not None and parsed.kind in _BY_KIND:
            yield from _BY_KIND[parsed.kind](data, parsed.base_offset)
        elif name in _BY_NAME:
            yield from _BY_NAME[name](bytes(data))
        else:
            yield _problem("no file of a log directory", 0)
    except CorruptionError as exc:
        yield _problem(str(exc), 0)


def is_dumpable(name: str) -> bool:
    """Say whether `dump_file` knows files of this name."""
    parsed = parse_segment_file(name)
    return name in _BY_NAME or (parsed is not None and (parsed.kind == LOG or parsed.kind in _BY_KIND))


def _problem(text: str, position: int) -> DumpRow:
    return DumpRow("problem", {"position": position, "text": text})


def _dump_log(data: bytes | memoryview, base_offset: int, *, with_records: bool) -> Iterator[DumpRow]:
    position, expected = 0, base_offset
    while position < len(data):
        if len(data) - position < HEADER_SIZE:
            yield _problem(f"{len(data) - position} bytes at the end are no batch", position)
            return
        header = read_header(data, position)
        if header.magic != MAGIC or not HEADER_SIZE <= header.length_bytes <= len(data) - position:
            rest = memoryview(data)[position:]
            what = "allocated and not yet used" if not any(rest[:HEADER_SIZE]) else "no batch"
            yield _problem(f"{len(rest)} bytes at the end are {what}", position)
            return
        is_valid = is_crc_valid(data, position, header)
        yield _batch_row(header, position, is_valid=is_valid)
        if header.base_offset < expected:
            yield _problem(f"offset {header.base_offset} after {expected - 1}", position)
        if not is_valid:
            yield _problem("the CRC does not match", position)
        elif with_records:
            yield from _records(data, position, header)
        expected = header.next_offset
        position += header.length_bytes


def _batch_row(header: BatchHeader, position: int, *, is_valid: bool) -> DumpRow:
    return DumpRow(
        "batch",
        {
            "base_offset": header.base_offset,
            "last_offset": header.last_offset,
            "count": header.records_count,
            "position": position,
            "size": header.length_bytes,
            "leader_epoch": header.partition_leader_epoch,
            "codec": _CODECS[header.compression_id],
            "timestamp_type": header.timestamp_type.name,
            "max_timestamp": header.max_timestamp,
            "producer_id": header.producer_id,
            "producer_epoch": header.producer_epoch,
            "base_sequence": header.base_sequence,
            "transactional": header.is_transactional,
            "control": header.is_control,
            "delete_horizon_ms": header.delete_horizon_ms,
            "crc": header.crc,
            "valid": is_valid,
        },
    )


def _records(data: bytes | memoryview, position: int, header: BatchHeader) -> Iterator[DumpRow]:
    try:
        for record in read_batch(data, position, header):
            yield DumpRow(
                "record",
                {
                    "offset": record.offset,
                    "timestamp": record.timestamp,
                    "key": record.key,
                    "value": record.value,
                    "headers": list(record.headers),
                },
            )
    except CorruptRecordsError as exc:
        yield _problem(str(exc), position)


def _dump_index(data: bytes | memoryview, base_offset: int) -> Iterator[DumpRow]:
    before = (-1, -1)
    for offset, position in index_entries(data, base_offset):
        yield DumpRow("index", {"offset": offset, "position": position})
        if offset <= before[0] or position <= before[1]:
            yield _problem(f"entry ({offset}, {position}) after {before}", position)
        before = (offset, position)
    yield from _left_over(len(data), INDEX_ENTRY.size)


def _dump_time_index(data: bytes | memoryview, base_offset: int) -> Iterator[DumpRow]:
    before = (-1, -1)
    for timestamp, offset in time_index_entries(data, base_offset):
        yield DumpRow("timeindex", {"timestamp": timestamp, "offset": offset})
        if timestamp <= before[0] or offset < before[1]:
            yield _problem(f"entry ({timestamp}, {offset}) after {before}", offset)
        before = (timestamp, offset)
    yield from _left_over(len(data), TIME_INDEX_ENTRY.size)


def _dump_txn_index(data: bytes | memoryview, _: int) -> Iterator[DumpRow]:
    names = ("version", "producer_id", "first_offset", "last_offset", "last_stable_offset")
    for at in range(0, len(data) - len(data) % _TXN_ENTRY.size, _TXN_ENTRY.size):
        yield DumpRow("txnindex", dict(zip(names, _TXN_ENTRY.unpack_from(data, at), strict=True)))
    yield from _left_over(len(data), _TXN_ENTRY.size)


def _dump_snapshot(data: bytes | memoryview, _: int) -> Iterator[DumpRow]:
    if len(data) < _SNAPSHOT_HEADER.size:
        yield _problem("the file ends within its header", 0)
        return
    version, crc, count = _SNAPSHOT_HEADER.unpack_from(data)
    yield DumpRow("snapshot", {"version": version, "crc": crc, "count": count})
    names = (
        "producer_id",
        "producer_epoch",
        "last_sequence",
        "last_offset",
        "offset_delta",
        "timestamp",
        "coordinator_epoch",
        "first_offset_of_transaction",
    )
    for number in range(count):
        at = _SNAPSHOT_HEADER.size + number * _SNAPSHOT_ENTRY.size
        if at + _SNAPSHOT_ENTRY.size > len(data):
            yield _problem(f"the file ends before producer {number} of {count}", at)
            return
        yield DumpRow("producer", dict(zip(names, _SNAPSHOT_ENTRY.unpack_from(data, at), strict=True)))


def _left_over(size: int, entry_size: int) -> Iterator[DumpRow]:
    if size % entry_size:
        yield _problem(f"{size % entry_size} bytes at the end are no entry", size - size % entry_size)


def _dump_offsets(data: bytes) -> Iterator[DumpRow]:
    for partition, offset in (decode_offsets(data) if data else {}).items():
        yield DumpRow("offset", {"topic": partition.topic, "partition": partition.partition, "offset": offset})


def _dump_epochs(data: bytes) -> Iterator[DumpRow]:
    for epoch, start_offset in decode_epochs(data):
        yield DumpRow("epoch", {"leader_epoch": epoch, "start_offset": start_offset})


def _dump_partition_metadata(data: bytes) -> Iterator[DumpRow]:
    yield DumpRow("partition", {"topic_id": id_text(decode_partition_metadata(data))})


def _dump_meta_properties(data: bytes) -> Iterator[DumpRow]:
    meta = decode_meta_properties(data)
    yield DumpRow(
        "directory",
        {"cluster_id": meta.cluster_id, "node_id": meta.node_id, "directory_id": id_text(meta.directory_id)},
    )


def _dump_text(data: bytes) -> Iterator[DumpRow]:
    yield DumpRow("text", {"text": data.decode(errors="replace")})


_BY_KIND: Final[Mapping[str, Callable[[bytes | memoryview, int], Iterator[DumpRow]]]] = {
    OFFSET_INDEX: _dump_index,
    TIME_INDEX: _dump_time_index,
    TXN_INDEX: _dump_txn_index,
    ".snapshot": _dump_snapshot,
}
_BY_NAME: Final[Mapping[str, Callable[[bytes], Iterator[DumpRow]]]] = {
    RECOVERY_POINTS: _dump_offsets,
    LOG_START_OFFSETS: _dump_offsets,
    HIGH_WATERMARKS: _dump_offsets,
    CLEAN_ENDS: _dump_offsets,
    EPOCH_CHECKPOINT: _dump_epochs,
    PARTITION_METADATA: _dump_partition_metadata,
    META_PROPERTIES: _dump_meta_properties,
    CLEAN_SHUTDOWN: _dump_text,
}
