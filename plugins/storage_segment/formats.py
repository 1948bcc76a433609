"""Pure core: the layout of Kafka's files around a log: names, index entries, checkpoints, small property files.

    log.dirs entry/
      .lock  .kafka_cleanshutdown
      recovery-point-offset-checkpoint  log-start-offset-checkpoint  replication-offset-checkpoint
      cleaner-offset-checkpoint
      <topic>-<partition>/                                        a log
      <topic>-<partition>.<32 hex digits>-delete | -future | -stray
        partition.metadata  leader-epoch-checkpoint
        <20 digits>.log  .index  .timeindex  .txnindex  .snapshot   + .deleted | .cleaned | .swap

    .index       int32 offset - base, int32 position                  ascending in both
    .timeindex   int64 timestamp, int32 offset - base                 "up to this offset no timestamp is larger"

All numbers are big-endian. *Source:* Kafka 4.3: OffsetIndex, TimeIndex, CheckpointFile, PartitionMetadataFile,
PropertiesUtils, LogFileUtils, UnifiedLog.logDeleteDirName.
"""

from __future__ import annotations

import json
import re
import struct
import uuid
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

from odradek.kernel.api import CorruptionError, TopicPartition, id_text, parse_id

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

LOG: Final = ".log"
OFFSET_INDEX: Final = ".index"
TIME_INDEX: Final = ".timeindex"
TXN_INDEX: Final = ".txnindex"
DELETED: Final = ".deleted"
CLEANED: Final = ".cleaned"
SWAP: Final = ".swap"

DELETE_DIRECTORY: Final = "-delete"
FUTURE_DIRECTORY: Final = "-future"
STRAY_DIRECTORY: Final = "-stray"

LOCK: Final = ".lock"
CLEAN_SHUTDOWN: Final = ".kafka_cleanshutdown"
RECOVERY_POINTS: Final = "recovery-point-offset-checkpoint"
LOG_START_OFFSETS: Final = "log-start-offset-checkpoint"
HIGH_WATERMARKS: Final = "replication-offset-checkpoint"
CLEAN_ENDS: Final = "cleaner-offset-checkpoint"
RESERVE: Final = "odradek.reserve"
PARTITION_METADATA: Final = "partition.metadata"
EPOCH_CHECKPOINT: Final = "leader-epoch-checkpoint"

INDEX_ENTRY: Final = struct.Struct(">ii")
TIME_INDEX_ENTRY: Final = struct.Struct(">qi")

_NAME_MAX: Final = 255
_SEGMENT_FILE: Final = re.compile(r"(\d{20})(\.[a-z]+)(\.deleted|\.cleaned|\.swap)?")
_PARTITION_DIRECTORY: Final = re.compile(r"(.+)-(\d+)", re.DOTALL)
_MARKED_DIRECTORY: Final = re.compile(r"(.+)-(\d+)\.([0-9a-f]{32})(-delete|-future|-stray)", re.DOTALL)


class SegmentFile(NamedTuple):
    """A file name taken apart: `00000000000000000042.log.swap` is `(42, ".log", ".swap")`; `mark` may be empty."""

    base_offset: int
    kind: str
    mark: str


def segment_file_name(base_offset: int, kind: str, mark: str = "") -> str:
    """Return the name of a segment's file."""
    return f"{base_offset:020d}{kind}{mark}"


@lru_cache(maxsize=1024)  # the logs of a broker have the same names, most of all at its start
def parse_segment_file(name: str) -> SegmentFile | None:
    """Take a segment's file name apart; None when it is none."""
    match = _SEGMENT_FILE.fullmatch(name)
    return SegmentFile(int(match[1]), match[2], match[3] or "") if match else None


def parse_partition_directory(name: str) -> TopicPartition | None:
    """Return the partition that a directory's name tells, None for a marked one and for any other."""
    match = _PARTITION_DIRECTORY.fullmatch(name)
    return TopicPartition(match[1], int(match[2])) if match else None


def parse_directory_mark(name: str) -> str:
    """Return `-delete`, `-future` or `-stray` when the name of a log's directory ends so, else an empty text."""
    match = _MARKED_DIRECTORY.fullmatch(name)
    return match[4] if match else ""


def parse_marked_directory(name: str, mark: str) -> TopicPartition | None:
    """Return whose directory has this mark, by its name; None for any other, and where the topic may have been cut."""
    match = _MARKED_DIRECTORY.fullmatch(name)
    if match is None or match[4] != mark or len(name) == _NAME_MAX:
        return None
    return TopicPartition(match[1], int(match[2]))


def marked_directory_name(partition: TopicPartition, unique: uuid.UUID, mark: str) -> str:
    """Return the name of a log's directory that waits to be deleted, moved in or looked at.

    A long topic name is cut so that the whole has at most 255 characters, as Kafka does for `-delete`.
    """
    suffix = f"-{partition.partition}.{unique.hex}{mark}"
    return partition.topic[: _NAME_MAX - len(suffix)] + suffix


_is_number: Final = re.compile(r"-?[0-9]+").fullmatch


def encode_offsets(offsets: Mapping[TopicPartition, int]) -> bytes:
    """Return a checkpoint file of one offset a partition."""
    lines = [f"{p.topic} {p.partition} {offset}\n" for p, offset in offsets.items()]
    return f"0\n{len(lines)}\n{''.join(lines)}".encode()


def decode_offsets(data: bytes) -> dict[TopicPartition, int]:
    """Read what `encode_offsets` wrote.

    Raises:
        CorruptionError: It is no such file.
    """
    return {TopicPartition(topic, int(number)): int(offset) for topic, number, offset in _rows(data, 3, texts=1)}


def encode_epochs(entries: Iterable[tuple[int, int]]) -> bytes:
    """Return a `leader-epoch-checkpoint` of (epoch, start offset)."""
    lines = [f"{epoch} {start}\n" for epoch, start in entries]
    return f"0\n{len(lines)}\n{''.join(lines)}".encode()


def decode_epochs(data: bytes) -> list[tuple[int, int]]:
    """Read what `encode_epochs` wrote.

    Raises:
        CorruptionError: It is no such file.
    """
    return [(int(epoch), int(start)) for epoch, start in _rows(data, 2, texts=0)]


def _rows(data: bytes, columns: int, *, texts: int) -> Iterator[list[str]]:
    """Yield the lines; all columns but the first `texts` are whole numbers."""
    if not data.endswith(b"\n"):
        # A loss of power may cut a number in two: `4 14` without its end is `4 1`.
        raise CorruptionError("the checkpoint ends within a line")
    try:
        version, count, *lines = data.decode().splitlines()
        if version != "0":
            raise CorruptionError(f"checkpoint version {version!r} is not known")
        if int(count) != len(lines):
            raise CorruptionError(f"checkpoint says {count} lines and has {len(lines)}")
        for line in lines:
            row = line.rsplit(" ", columns - 1)
            if len(row) != columns or not all(map(_is_number, row[texts:])):
                raise CorruptionError(f"checkpoint line {line!r} has not {columns} columns")
            yield row
    except ValueError as exc:
        raise CorruptionError(f"not a checkpoint file: {exc}") from exc


def encode_partition_metadata(topic_id: uuid.UUID) -> bytes:
    """Return a `partition.metadata`."""
    return f"version: 0\ntopic_id: {id_text(topic_id)}".encode()


def decode_partition_metadata(data: bytes) -> uuid.UUID:
    """Return the topic's id; `ZERO_ID` when the file holds none.

    Raises:
        CorruptionError: It is no such file.
    """
    try:
        fields = dict(line.split(": ", 1) for line in data.decode().splitlines() if line)
        if fields["version"] != "0":
            raise CorruptionError(f"partition.metadata version {fields['version']!r} is not known")
        return parse_id(fields["topic_id"])
    except (ValueError, KeyError) as exc:
        raise CorruptionError(f"not a partition.metadata: {exc!r}") from exc


def encode_clean_shutdown(broker_epoch: int) -> bytes:
    """Return a `.kafka_cleanshutdown`."""
    return json.dumps({"version": 0, "brokerEpoch": broker_epoch}, separators=(",", ":")).encode()


def decode_clean_shutdown(data: bytes) -> int:
    """Return the broker epoch of a `.kafka_cleanshutdown`, -1 when it has none that can be read."""
    try:
        epoch = json.loads(data)["brokerEpoch"]
    except (ValueError, KeyError, TypeError):
        return -1
    return epoch if isinstance(epoch, int) else -1


def index_entries(data: bytes | memoryview, base_offset: int) -> Iterator[tuple[int, int]]:
    """Yield (offset, position) of an `.index`; what is left of an allocated file after the last entry is skipped."""
    for relative, position in INDEX_ENTRY.iter_unpack(_whole(data, INDEX_ENTRY.size)):
        if relative == 0 and position == 0:
            return
        yield base_offset + relative, position


def time_index_entries(data: bytes | memoryview, base_offset: int) -> Iterator[tuple[int, int]]:
    """Yield (timestamp, offset) of a `.timeindex`; what is left of an allocated file is skipped."""
    for timestamp, relative in TIME_INDEX_ENTRY.iter_unpack(_whole(data, TIME_INDEX_ENTRY.size)):
        if timestamp == 0 and relative == 0:
            return
        yield timestamp, base_offset + relative


def _whole(data: bytes | memoryview, size: int) -> memoryview:
    return memoryview(data)[: len(data) - len(data) % size]
