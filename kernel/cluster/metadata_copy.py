"""Shell: a broker's copy of the metadata log: batches appended as they came, and the image that follows from them.

The controller has all of it, durable, before a broker hears of it. So the copy is flushed only before a snapshot, and
one that is damaged, has a hole, or was written by a newer version and never given up is begun anew: nothing is lost but
time.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from ..controller.local_log import logged_records
from ..controller.snapshots import KEPT_SNAPSHOTS, SnapshotId, SnapshotQuorum, SnapshotStore, check_format
from ..errors import CorruptionError
from ..metadata.image import MetadataImage
from ..metadata.image_builder import ImageBuilder
from ..metadata.image_difference import difference
from ..metadata.records import FormatRecord, UnknownRecordError, decode_record
from ..records.batch import is_crc_valid, iterate_batches, read_header
from ..records.control import KRaftVoters, read_control_records
from ..records.reader import read_batch

if TYPE_CHECKING:
    from collections.abc import Generator

    from ..contracts.storage import PartitionLog
    from ..machine.files import Files
    from ..machine.threads import Workers
    from ..metadata.image import MetadataDelta
    from ..records.batch import BatchHeader
    from ..types import Buffer

log = logging.getLogger(__name__)


class MetadataCopy:
    """Life: made, `load`, then `append_in_steps` and `take` in turns. Owned by the observer's task.

    Attributes:
        bytes_since_snapshot: What was appended, or read at the start, since the newest snapshot.
        last_epoch: The leader epoch of the last batch that is here, taken or not; -1 without one.
        voters: Who keeps the metadata, as the log names them newest; None where it does not.
    """

    def __init__(self, partition_log: PartitionLog, files: Files, worker: Workers) -> None:
        """Take the log of `__cluster_metadata-0`; reads nothing yet.

        Args:
            partition_log: Open.
            files: Where snapshots are written.
            worker: The thread that flushes and writes snapshots.
        """
        self._log = partition_log
        self._worker = worker
        directory = partition_log.directory
        self._store = None if directory is None else SnapshotStore(directory=directory, files=files)
        self._builder = ImageBuilder(MetadataImage())
        self.bytes_since_snapshot = 0
        self.last_epoch = -1
        self.voters: KRaftVoters | None = None

    def __repr__(self) -> str:
        return f"MetadataCopy({self.end_offset}, {self._builder.build()!r})"

    @property
    def end_offset(self) -> int:
        """The next offset that is to come."""
        return self._log.log_end_offset

    @property
    def log_dir(self) -> str:
        """The log directory in which it lies."""
        return self._log.log_dir

    def load(self) -> MetadataImage:
        """Read the newest snapshot and what the copy has after it. Blocks; once.

        Raises:
            StorageError: It is of a newer format, or the disk is failing.
        """
        snapshot: MetadataImage | None = None
        try:
            loaded, _problem = (None, "") if self._store is None else self._store.load_newest()
            snapshot = None if loaded is None else loaded.image
            self._take_quorum(None if loaded is None else loaded.quorum)
            self._replay(snapshot)
        except CorruptionError as error:
            log.warning("the copy of the metadata log is begun anew: %s", error)
            self._begin_anew(snapshot)
        except UnknownRecordError as error:
            log.warning("the copy of the metadata log is begun anew, as a newer version left it: %s", error)
            self._begin_anew(None)
            if self._store is not None:
                self._store.drop_old(0)
        self._builder.take_delta()
        return self._builder.build()

    def _replay(self, snapshot: MetadataImage | None) -> None:
        start = 0 if snapshot is None else snapshot.offset + 1
        if not self._log.log_start_offset <= start <= self._log.log_end_offset:
            self._begin_anew(snapshot)
            return
        self._begin_with(snapshot)
        for offset, epoch, value in logged_records(self._log, start):
            self._replay_one(value, offset, epoch)
        self.last_epoch = max(self.last_epoch, self._log.latest_epoch)  # that of a control batch, which is no record
        for batch in self._log.batches(start):
            header = read_header(batch)
            if header.is_control:
                self._take_control(batch, header)

    def _begin_anew(self, snapshot: MetadataImage | None) -> None:
        self._begin_with(snapshot)
        self._log.truncate_fully(0 if snapshot is None else snapshot.offset + 1)

    def _begin_with(self, snapshot: MetadataImage | None) -> None:
        image = snapshot or MetadataImage()
        self._builder = ImageBuilder(image)
        self.last_epoch = image.epoch

    def _replay_one(self, value: bytes, offset: int, epoch: int) -> None:
        self.last_epoch = epoch
        record = decode_record(value)
        if isinstance(record, FormatRecord):
            check_format(record, self._log.directory)
        self._builder.replay(record)
        self._builder.note_position(offset, epoch)
        self.bytes_since_snapshot += len(value)

    def append_in_steps(self, records: memoryview) -> Generator[None, None, None]:
        """Append batches of the controller as they are, and replay those that say something of the metadata.

        Raises:
            CorruptionError: A batch is damaged, or does not follow on what is here.
            StorageError: The disk is full or failing, or a record is of a newer format.
        """
        for position, header in iterate_batches(records):
            if header.base_offset != self.end_offset or not is_crc_valid(records, position, header):
                raise CorruptionError(f"the controller sent a batch at {header.base_offset}, not {self.end_offset}")
            batch = bytes(records[position : position + header.length_bytes])
            self._log.assign_epoch(header.partition_leader_epoch, header.base_offset)
            self._log.append(batch, header.base_offset, header.last_offset, header.max_timestamp)
            self._log.write_pending()
            self.last_epoch = header.partition_leader_epoch
            if header.is_control:
                self._take_control(batch, header)
                continue
            for record in read_batch(batch, 0, header):
                self._replay_one(bytes(record.value or b""), record.offset, header.partition_leader_epoch)
                yield
        yield from self._builder.settle_in_steps()

    def _take_control(self, batch: Buffer, header: BatchHeader) -> None:
        """Read what a quorum says of itself."""
        for record in read_control_records(batch, header):
            if isinstance(record, KRaftVoters):
                self.voters = record

    def _take_quorum(self, quorum: SnapshotQuorum | None) -> None:
        self.voters = None if quorum is None else quorum.voters

    def take(self) -> tuple[MetadataDelta, MetadataImage]:
        """Return what is new since the last call, and the image that has it."""
        image = self._builder.build()
        return self._builder.take_delta(), image

    async def take_snapshot(self, identifier: SnapshotId, data: bytes) -> tuple[MetadataDelta, MetadataImage]:
        """Begin anew with a snapshot of the controller; what it changes is returned as by `take`.

        Raises:
            CorruptionError: It is damaged; nothing changed.
            StorageError: It is of a newer format, or the disk is full or failing.
        """
        assert self._store is not None, "only a copy on a disk takes snapshots"
        (image, quorum), store = await self._worker.run_sync(self._store.keep, identifier, data), self._store
        await self._worker.run_sync(lambda: store.drop_old(1))  # the log has nothing of what is between them
        delta = await self._worker.run_sync(difference, self._builder.build(), image)  # long where partitions are many
        self._take_quorum(quorum)
        self._begin_anew(image)
        self.bytes_since_snapshot = 0
        return delta, self._builder.build()

    async def write_snapshot(self, now_ms: int, kept_count: int = KEPT_SNAPSHOTS) -> None:
        """Write a snapshot of the image, and of who votes, and give up what it makes unnecessary.

        Args:
            now_ms: When.
            kept_count: How many snapshots are kept; 1 when an older version is to read nothing of before.

        Raises:
            StorageError: The disk is full or failing.
        """
        if self._store is None:
            return
        self.bytes_since_snapshot = 0
        image, store, voters = self._builder.build(), self._store, self.voters
        quorum = None if voters is None else SnapshotQuorum(voters)

        def write() -> int:
            store.write(image, now_ms, quorum)
            return store.drop_old(kept_count)

        await self._worker.do(self._log.begin_flush())
        needed_from = await self._worker.run_sync(write)
        if needed_from > self._log.log_start_offset:
            self._log.roll()
            self._log.advance_log_start(needed_from)
            self._log.delete_segments_below(needed_from)
