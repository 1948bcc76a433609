"""Shell: snapshots of the metadata: one file that says everything up to an offset, beside the log it shortens.

A snapshot is named by the offset behind its last record and that record's leader epoch, as KRaft names them::

    00000000000000001234-0000000005.checkpoint

and holds record batches like a log: a format record, the facts of the image, and an end record that counts them. A file
without a valid end is no snapshot. Two are kept, so that a damaged one costs nothing but time.

*Source:* KIP-630 (names); the content is this project's own.
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
from ..records.builder import BatchBuilder
from ..records.reader import read_records
from ..types import NO_EPOCH

if TYPE_CHECKING:
    from pathlib import Path

    from ..config.broker import BrokerConfig
    from ..machine.files import Files

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


def encode_snapshot(image: MetadataImage, now_ms: int) -> bytes:
    """Return a snapshot file's bytes, in the versions that the image's `metadata.version` allows."""
    level = image.metadata_version
    parts: list[bytes | bytearray] = []
    offset = 0
    builder = BatchBuilder(base_offset=0, partition_leader_epoch=image.epoch)
    for record in image_records(image):
        builder.append(None, encode_record(record, level), timestamp=now_ms)
        offset += 1
        if builder.size_bytes >= BATCH_BYTES:
            parts.append(builder.build())
            builder = BatchBuilder(base_offset=offset, partition_leader_epoch=image.epoch)
    end = SnapshotEndRecord(records_count=offset, last_offset=image.offset, last_epoch=image.epoch, written_ms=now_ms)
    builder.append(None, encode_record(end, level), timestamp=now_ms)
    parts.append(builder.build())
    return b"".join(parts)


def decode_snapshot(data: bytes, where: object, identifier: SnapshotId) -> MetadataImage:
    """Return the image that a snapshot file holds.

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
    for item in read_records(data):
        record = decode_record(item.value or b"")
        if end is not None or (count == 0) != isinstance(record, FormatRecord):
            raise CorruptionError(f"{where}: a snapshot begins with one format record and ends with one end record")
        if isinstance(record, FormatRecord):
            check_format(record, where)
        if isinstance(record, SnapshotEndRecord):
            end = record
            continue
        builder.replay(record)
        count += 1
    if end is None or end.records_count != count:
        raise CorruptionError(f"{where}: the snapshot breaks off after {count} records")
    if (end.last_offset + 1, end.last_epoch) != identifier:
        raise CorruptionError(f"{where}: the snapshot ends at {end.last_offset + 1}, not where its name says")
    builder.note_position(end.last_offset, end.last_epoch)
    return builder.build()


class SnapshotStore:
    """The snapshots in one directory. `write` may run on a worker thread; everything else blocks for short reads."""

    def __init__(self, *, directory: Path, files: Files) -> None:
        """Look at a directory that exists."""
        self._directory = directory
        self._files = files

    def ids(self) -> list[SnapshotId]:
        """Return all snapshots that are there, newest first."""
        try:
            names = [entry.name for entry in self._files.listdir(self._directory)]
        except OSError as error:
            raise disk_error(error, "list", self._directory) from error
        found = [SnapshotId(int(match[1]), int(match[2])) for name in names if (match := _NAME.fullmatch(name))]
        return sorted(found, reverse=True)

    def load_newest(self) -> tuple[MetadataImage | None, str]:
        """Return the newest image that can be read, None when there is none, and why newer ones cannot be used.

        Raises:
            StorageError: The newest is of a newer format, or the directory cannot be read.
        """
        problem = ""
        for identifier in self.ids():
            path = self._directory / identifier.file_name
            try:
                image = decode_snapshot(read_file(self._files, path), path, identifier)
            except CorruptionError as error:
                problem = problem or str(error)
                log.warning("metadata snapshot cannot be used, an older one or the log itself serves: %s", error)
            except OSError as error:
                raise disk_error(error, "read", path) from error
            else:
                return image, problem
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

    def keep(self, identifier: SnapshotId, data: bytes) -> MetadataImage:
        """Keep a snapshot that came from the controller, and return what it says; durable on return. Blocks.

        Raises:
            CorruptionError: It is damaged; nothing was kept.
            StorageError: It is of a newer format, or the disk is full or failing.
        """
        path = self._directory / identifier.file_name
        image = decode_snapshot(data, path, identifier)
        try:
            replace_file(self._files, path, data, is_durable=True)
        except OSError as error:
            raise disk_error(error, "write", path) from error
        return image

    def write(self, image: MetadataImage, now_ms: int) -> SnapshotId:
        """Write a snapshot, whole or not at all; durable on return. Blocks.

        Raises:
            StorageError: The disk is full or failing; older snapshots are as they were.
        """
        identifier = SnapshotId(image.offset + 1, image.epoch)
        path = self._directory / identifier.file_name
        try:
            replace_file(self._files, path, encode_snapshot(image, now_ms), is_durable=True)
        except OSError as error:
            raise disk_error(error, "write", path) from error
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
