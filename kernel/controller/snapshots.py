"""Shell: snapshots of the metadata: one file that says everything up to an offset, beside the log it shortens.

A snapshot is named by the offset behind its last record and that record's leader epoch, as KRaft names them::

    00000000000000001234-0000000005.checkpoint

and holds record batches like a log: a format record, the facts of the image, and an end record that counts them. A file
without a valid end is no snapshot. Two are kept, so that a damaged one costs nothing but time. Where the log names the
voters of its quorum, they stand in a control batch before all that, and a footer is behind it, as KRaft has them. The
snapshot of offset 0 is what the cluster was founded with (`founding_checkpoint.py`), and is not meant here.

*Source:* KIP-630 (names), KIP-853 (voters); the rest of the content is this project's own.
"""

from __future__ import annotations

import logging
import re
from typing import TYPE_CHECKING, Final, NamedTuple

from ..classes import frozen
from ..errors import CorruptionError, StorageError
from ..machine.files import READ, disk_error, read_file, replace_file
from ..metadata.image import MetadataImage
from ..metadata.image_builder import ImageBuilder
from ..metadata.record_makers import image_records
from ..metadata.records import FORMAT_VERSION, FormatRecord, SnapshotEndRecord, decode_record, encode_record, is_newer
from ..records.batch import CorruptRecordsError, is_crc_valid, iterate_batches
from ..records.builder import BatchBuilder
from ..records.control import (
    KRaftVersion,
    KRaftVoters,
    SnapshotFooter,
    SnapshotHeader,
    build_control_batch,
    read_control_records,
)
from ..records.reader import read_batch, read_records
from ..types import NO_EPOCH
from .small_files import telling_disk_errors

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from ..config.broker import BrokerConfig
    from ..machine.files import Files
    from ..records.control import ControlRecord, KRaftControlRecord

log = logging.getLogger(__name__)

BATCH_BYTES: Final = 1 << 20
KEPT_SNAPSHOTS: Final = 2

_NAME: Final = re.compile(r"(\d{20})-(\d{10})\.checkpoint")
_UNFINISHED: Final = ".checkpoint.tmp"


class SnapshotId(NamedTuple):
    """Where a snapshot ends: the first offset that is not in it, and the leader epoch of its last record."""

    end_offset: int
    epoch: int

    @property
    def file_name(self) -> str:
        """The name of its file."""
        return f"{self.end_offset:020d}-{self.epoch:010d}.checkpoint"


FOUNDING_ID: Final = SnapshotId(0, 0)
KRAFT_VERSION_OF_VOTERS: Final = 1
"""From this version of the quorum's protocol on, the log names who votes (KIP-853)."""


@frozen
class SnapshotQuorum:
    """What a snapshot says of the quorum whose log it shortens.

    Attributes:
        voters: Who votes.
        kraft_version: The version of the quorum's protocol.
    """

    voters: KRaftVoters
    kraft_version: int = KRAFT_VERSION_OF_VOTERS


class LoadedSnapshot(NamedTuple):
    """What a snapshot says: the metadata, and the quorum where the log names its voters."""

    image: MetadataImage
    quorum: SnapshotQuorum | None = None


@frozen
class SnapshotSettings:
    """When a snapshot is written: `metadata.log.max.record.bytes.between.snapshots` and `...snapshot.interval.ms`.

    Attributes:
        bytes_between: Record bytes appended since the last one, > 0.
        interval_ms: Time since the last one, if anything was appended; 0 for never.
    """

    bytes_between: int = 20 << 20
    interval_ms: int = 3_600_000

    @classmethod
    def configured(cls, config: BrokerConfig) -> SnapshotSettings:
        """Return those of a node, whether it writes the metadata log or keeps a copy of it."""
        return cls(
            bytes_between=config.get_int("metadata.log.max.record.bytes.between.snapshots"),
            interval_ms=config.get_int("metadata.log.max.snapshot.interval.ms"),
        )

    def is_due(self, bytes_since: int, elapsed_ms: int) -> bool:
        """Return whether a snapshot is to be written so many bytes and milliseconds after the last one."""
        return bytes_since >= self.bytes_between or (0 < self.interval_ms <= elapsed_ms and bytes_since > 0)


def newest_snapshot_end(directory: Path, files: Files) -> int:
    """Return where the newest snapshot in a directory ends, whole or not: its records were flushed; 0 without one.

    Raises:
        StorageError: The directory cannot be read.
    """
    newest = SnapshotStore(directory=directory, files=files).ids()[:1]
    return newest[0].end_offset if newest else 0


def newest_snapshot_epoch(directory: Path, files: Files) -> int:
    """Return the leader epoch of the newest snapshot in a directory, `NO_EPOCH` without one.

    A log that a lowered `metadata.version` has emptied does not know its epochs any more.

    Raises:
        StorageError: The directory cannot be read.
    """
    newest = SnapshotStore(directory=directory, files=files).ids()[:1]
    return newest[0].epoch if newest else NO_EPOCH


def check_format(record: FormatRecord, where: object) -> None:
    """Check that this version reads the format.

    Raises:
        StorageError: It is a newer one.
    """
    if record.format_version > FORMAT_VERSION:
        raise StorageError(
            f"{where}: metadata of format version {record.format_version}; this version of odradek reads up to "
            f"{FORMAT_VERSION}: start the newer version that wrote it, or give this one another data directory"
        )


def encode_snapshot(image: MetadataImage, now_ms: int, quorum: SnapshotQuorum | None = None) -> bytes:
    """Return a snapshot file's bytes, in the versions that the image's `metadata.version` allows.

    Args:
        image: All that it says of the metadata.
        now_ms: When it is written.
        quorum: As the log names it up to the image's offset; None where it does not.
    """
    level, epoch = image.metadata_version, image.epoch
    parts: list[bytes | bytearray] = []
    offset = count = 0
    if quorum is not None:
        version = KRaftVersion(k_raft_version=quorum.kraft_version)
        first: Sequence[KRaftControlRecord] = (
            SnapshotHeader(last_contained_log_timestamp=now_ms),
            version,
            quorum.voters,
        )
        parts.append(build_control_batch(first, timestamp=now_ms, partition_leader_epoch=epoch))
        offset = len(first)
    builder = BatchBuilder(base_offset=offset, partition_leader_epoch=epoch)
    for record in image_records(image):
        builder.append(None, encode_record(record, level), timestamp=now_ms)
        count += 1
        if builder.size_bytes >= BATCH_BYTES:
            parts.append(builder.build())
            builder = BatchBuilder(base_offset=offset + count, partition_leader_epoch=epoch)
    end = SnapshotEndRecord(records_count=count, last_offset=image.offset, last_epoch=epoch, written_ms=now_ms)
    builder.append(None, encode_record(end, level), timestamp=now_ms)
    parts.append(builder.build())
    if quorum is not None:
        parts.append(
            build_control_batch(
                [SnapshotFooter()], timestamp=now_ms, base_offset=offset + count + 1, partition_leader_epoch=epoch
            )
        )
    return b"".join(parts)


class SnapshotReader:
    """Reads what stands in a snapshot file, without asking what it means. Life: made, `values` to its end.

    Attributes:
        quorum: What it says of the quorum, as far as it was read; None where it says nothing.
        is_ended: Whether the last record that was read is a footer.
    """

    def __init__(self, data: bytes) -> None:
        """Take all bytes of a file; reads nothing yet."""
        self.quorum: SnapshotQuorum | None = None
        self.is_ended = False
        self._data = memoryview(data)
        self._kraft_version = 0

    def values(self) -> Iterator[bytes]:
        """Iterate over the values of its records that are no control records.

        Raises:
            CorruptionError: While iterating: a batch or a record of it is damaged.
        """
        for position, header in iterate_batches(self._data):
            if not is_crc_valid(self._data, position, header):
                raise CorruptRecordsError("CRC does not match", position=position)
            self.is_ended = False
            if header.is_control:
                for said in read_control_records(self._data, header, position):
                    self._take(said)
            else:
                for item in read_batch(self._data, position, header):
                    yield bytes(item.value or b"")

    def _take(self, record: ControlRecord) -> None:
        if isinstance(record, KRaftVersion):
            self._kraft_version = record.k_raft_version
        elif isinstance(record, KRaftVoters):
            self.quorum = SnapshotQuorum(record, self._kraft_version)
        self.is_ended = isinstance(record, SnapshotFooter)


def decode_snapshot(data: bytes, where: object, identifier: SnapshotId) -> LoadedSnapshot:
    """Return what a snapshot file says.

    Args:
        data: All its bytes.
        where: The file, for errors.
        identifier: What its name says.

    Raises:
        CorruptionError: It is damaged or unfinished.
        StorageError: It is of a newer format.
    """
    builder = ImageBuilder(MetadataImage())
    count = 0
    end: SnapshotEndRecord | None = None
    reader = SnapshotReader(data)
    for value in reader.values():
        record = decode_record(value)
        if end is not None or (count == 0) != isinstance(record, FormatRecord):
            raise CorruptionError(f"{where}: a snapshot begins with one format record and ends with one end record")
        if isinstance(record, FormatRecord):
            check_format(record, where)
        if isinstance(record, SnapshotEndRecord):
            end = record
            continue
        builder.replay(record)
        count += 1
    if end is None or end.records_count != count or reader.is_ended != (reader.quorum is not None):
        raise CorruptionError(f"{where}: the snapshot breaks off after {count} records")
    if (end.last_offset + 1, end.last_epoch) != identifier:
        raise CorruptionError(f"{where}: the snapshot ends at {end.last_offset + 1}, not where its name says")
    builder.note_position(end.last_offset, end.last_epoch)
    return LoadedSnapshot(builder.build(), reader.quorum)


class SnapshotStore:
    """The snapshots in one directory. `write` may run on a worker thread; everything else blocks for short reads."""

    def __init__(self, *, directory: Path, files: Files) -> None:
        """Look at a directory that exists."""
        self._directory = directory
        self._files = files

    def ids(self) -> list[SnapshotId]:
        """Return all snapshots that are there, newest first; not what the cluster was founded with."""
        with telling_disk_errors("list", self._directory):
            names = [entry.name for entry in self._files.listdir(self._directory)]
        found = [SnapshotId(int(match[1]), int(match[2])) for name in names if (match := _NAME.fullmatch(name))]
        return sorted((identifier for identifier in found if identifier != FOUNDING_ID), reverse=True)

    def load_newest(self) -> tuple[LoadedSnapshot | None, str]:
        """Return the newest snapshot that can be read, None when there is none, and why newer ones cannot be used.

        Raises:
            StorageError: The newest is of a newer format, or the directory cannot be read.
        """
        problem = ""
        for identifier in self.ids():
            path = self._directory / identifier.file_name
            try:
                loaded = decode_snapshot(read_file(self._files, path), path, identifier)
            except CorruptionError as error:
                problem = problem or str(error)
                log.warning("metadata snapshot cannot be used, an older one or the log itself serves: %s", error)
            except OSError as error:
                raise disk_error(error, "read", path) from error
            else:
                return loaded, problem
        return None, problem

    def read_part(self, identifier: SnapshotId, position: int, max_bytes: int) -> tuple[int, bytes] | None:
        """Return a snapshot's size and a part of its bytes; None when it is not there. Blocks for that part.

        Raises:
            StorageError: It cannot be read.
        """
        path = self._directory / identifier.file_name
        try:
            fd = self._files.open(path, READ)
            try:
                size_bytes = self._files.size(fd)
                is_within = 0 <= position < size_bytes
                return size_bytes, self._files.pread(fd, max_bytes, position) if is_within else b""
            finally:
                self._files.close(fd)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise disk_error(error, "read", path) from error

    def keep(self, identifier: SnapshotId, data: bytes) -> LoadedSnapshot:
        """Keep a snapshot that came from the controller, and return what it says; durable on return. Blocks.

        Raises:
            CorruptionError: It is damaged; nothing was kept.
            StorageError: It is of a newer format, or the disk is full or failing.
        """
        path = self._directory / identifier.file_name
        loaded = decode_snapshot(data, path, identifier)
        with telling_disk_errors("write", path):
            replace_file(self._files, path, data, is_durable=True)
        return loaded

    def write(self, image: MetadataImage, now_ms: int, quorum: SnapshotQuorum | None = None) -> SnapshotId:
        """Write a snapshot, whole or not at all; durable on return. Blocks. For its arguments see `encode_snapshot`.

        Raises:
            StorageError: The disk is full or failing; older snapshots are as they were.
        """
        identifier = SnapshotId(image.offset + 1, image.epoch)
        path = self._directory / identifier.file_name
        with telling_disk_errors("write", path):
            replace_file(self._files, path, encode_snapshot(image, now_ms, quorum), is_durable=True)
        return identifier

    def holds_newer(self, metadata_version: int) -> bool:
        """Return whether a snapshot has records of versions that are not written at a level, or is damaged. Blocks.

        Raises:
            StorageError: One cannot be read.
        """
        for identifier in self.ids():
            path = self._directory / identifier.file_name
            try:
                values = [item.value or b"" for item in read_records(read_file(self._files, path))]
            except CorruptionError:
                return True
            except OSError as error:
                raise disk_error(error, "read", path) from error
            if any(is_newer(value, metadata_version) for value in values):
                return True
        return False

    def drop_old(self, kept_count: int = KEPT_SNAPSHOTS) -> int:
        """Remove all but the newest snapshots, and what unfinished writes left.

        Args:
            kept_count: How many are kept: one alone when what is older is in versions that not every broker reads.

        Returns:
            The offset from which on the log is needed: where the oldest kept snapshot ends; 0 while there are fewer.
        """
        kept = self.ids()
        try:
            for identifier in kept[kept_count:]:
                self._files.unlink(self._directory / identifier.file_name)
            for entry in self._files.listdir(self._directory):
                if entry.name.endswith(_UNFINISHED):
                    self._files.unlink(self._directory / entry.name)
        except OSError as error:
            raise disk_error(error, "clean up snapshots in", self._directory) from error
        return kept[kept_count - 1].end_offset if len(kept) >= kept_count > 0 else 0
