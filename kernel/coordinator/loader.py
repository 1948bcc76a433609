"""Shell: loads shards from their partitions' logs in the background, one after the other, the smallest first.

Bytes are read by a worker thread, as far as they come from files; records are decoded and replayed on the reactor's
task, `SLICE_RECORDS` at a time, so that clients are served in between: a thread of Python code would take as much from
them, and in longer pieces.

What cannot be understood is skipped, counted and logged with its place; it never stops the loading:

=====================================  =======================================================================
a batch whose CRC is wrong             skipped whole; the next sound one is sought in the bytes behind it
a length or a magic that cannot be     likewise
bytes that the log cannot find from    skipped up to the first offset from which it can be read again
a record that `decode` refuses         skipped
a type that `decode` does not know     skipped: a newer version wrote it
a record that `replay` fails on        skipped, with a trace: a bug, or a record of somebody else's making
a log whose disk fails                 the partition goes offline
a log that moves meanwhile             loaded again, from where it is then
=====================================  =======================================================================

Behind damage the log goes on in a new segment, so that what is written now is found whatever becomes of the old one.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import trio

from ..classes import define
from ..contracts.coordinator import NO_PRODUCER, ProducerIdentity
from ..contracts.storage import NO_LIMIT
from ..errors import CorruptionError, StorageError
from ..machine.threads import Workers
from ..records.control import ControlRecordType, EndTransactionMarker, read_control_record
from ..records.reader import read_batch
from .salvage import damage_at, find_sound_batch, first_readable, sound_batch
from .shard_host import ShardState

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ..contracts.coordinator import Coordinator
    from ..contracts.log_values import RecordsData
    from ..contracts.storage import LogRead, PartitionLog
    from ..machine.threads import Threads
    from ..partitions.replica import Replica
    from ..records.batch import BatchHeader
    from ..records.record import Record
    from ..types import Buffer
    from .hosted_shard import HostedShard

log = logging.getLogger(__name__)

SLICE_RECORDS: Final = 64
"""Records replayed before other tasks get their turn: well below a millisecond."""
RECORD_BYTES: Final = 512
"""A record of more bytes counts as several: that of a group with a thousand members takes milliseconds."""
INLINE_BYTES: Final = 1 << 16
"""So much is read without a thread when it lies in the page cache."""
SEARCHED_BYTES: Final = 1 << 16
"""So much of a damaged run is searched before other tasks get their turn."""


@define
class LoadCounters:
    """What the loading of one coordinator's shards came to, since the start."""

    skipped_records: int = 0
    loaded_count: int = 0
    failed_count: int = 0
    load_time_ms_max: int = 0
    load_time_ms_sum: int = 0

    def note_loaded(self, duration_ms: int) -> None:
        """Take note of a shard that was loaded."""
        self.loaded_count += 1
        self.load_time_ms_max = max(self.load_time_ms_max, duration_ms)
        self.load_time_ms_sum += duration_ms


@define(eq=False)
class Load:
    """A shard that is to be loaded.

    Attributes:
        hosted: The shard, empty.
        coordinator: Decodes its records.
        counters: Where skipped records are counted.
        buffer_bytes: How many bytes are read at a time.
        done: Called when the log is replayed.
        failed: Called when it cannot be read.
        is_damaged: Whether batches were found that are none.
    """

    hosted: HostedShard
    coordinator: Coordinator[Any, Any]
    counters: LoadCounters
    buffer_bytes: Callable[[], int]
    done: Callable[[HostedShard], None]
    failed: Callable[[HostedShard], None]
    is_damaged: bool = False

    @property
    def is_wanted(self) -> bool:
        """Whether the shard still waits for it."""
        return self.hosted.state is ShardState.LOADING

    def skip(self, offset: int, reason: object, *, trace: Exception | None = None) -> None:
        """Count and log a record, or a batch, that is left out."""
        self.counters.skipped_records += 1
        log.error("%s: skipped offset %d: %s", self.hosted.replica.partition, offset, reason, exc_info=trace)

    def skip_damage(self, start: int, end: int, reason: object) -> None:
        """Count and log that everything in `[start, end)` is left out, as far as there was something."""
        self.is_damaged = True
        if end <= start + 1:
            self.skip(start, reason)
            return
        self.counters.skipped_records += end - start
        log.error("%s: skipped offsets %d to %d: %s", self.hosted.replica.partition, start, end - 1, reason)


class Loader:
    """The service that loads; `load_soon` is called by the reactor's task."""

    def __init__(
        self,
        *,
        write_now: Callable[[Iterable[Replica]], None],
        fail: Callable[[Replica, Exception], None],
        threads: Threads,
    ) -> None:
        """Make a loader with nothing to do.

        Args:
            write_now: Writes what is staged of replicas: an earlier shard of the partition may have left something.
            fail: Takes a replica offline whose log failed.
            threads: Where files are read.
        """
        self._write_now = write_now
        self._fail = fail
        self._waiting: list[Load] = []
        self._wanted = trio.Event()
        self._worker = Workers(threads, 1)
        self._under_way: Load | None = None

    @property
    def is_busy(self) -> bool:
        """Whether something is loaded or waits for it."""
        return bool(self._waiting) or self._under_way is not None

    def load_soon(self, load: Load) -> None:
        """Load a shard when its turn comes."""
        self._waiting.append(load)
        self._wanted.set()

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Load what waits, until cancelled: shards under way stay unloaded."""
        task_status.started()
        while True:
            if not self._waiting:
                self._wanted = trio.Event()
                await self._wanted.wait()
            self._waiting.sort(key=_size_bytes, reverse=True)
            load = self._under_way = self._waiting.pop()
            if load.is_wanted:
                await self._load(load)
            self._under_way = None

    async def _load(self, load: Load) -> None:
        """Load one shard; whatever goes wrong is that shard's trouble."""
        replica = load.hosted.replica
        partition_log = replica.log
        try:
            is_complete = await self._replay_log(load, partition_log)
        except StorageError as error:
            if replica.log is partition_log and not replica.is_paused:
                self._fail(replica, error)
            else:  # it takes another one's place, in another log directory perhaps
                load.failed(load.hosted)
        except Exception:
            log.exception("%s cannot be loaded", load.hosted.replica.partition)
            load.failed(load.hosted)
        else:
            if is_complete:
                load.done(load.hosted)

    async def _replay_log(self, load: Load, partition_log: PartitionLog) -> bool:
        """Replay the whole log; return False when nobody wants it any more.

        Raises:
            StorageError: The log failed.
        """
        replica = load.hosted.replica
        if replica.is_dirty:
            self._write_now((replica,))
        offset, end_offset = partition_log.log_start_offset, partition_log.log_end_offset
        while offset < end_offset and load.is_wanted:
            try:
                read = _read_past_damage(partition_log, offset, load.buffer_bytes(), end_offset)
            except CorruptionError as error:
                following = first_readable(partial(_is_readable, partition_log, end_offset), offset, end_offset)
                load.skip_damage(offset, following, error)
                offset = following
                continue
            if not read.size_bytes:
                break
            data = await self._read(read.data)
            if not await _replay_run(load, data, range(offset, read.next_offset)):
                return False
            offset = read.next_offset
        if load.is_damaged and load.is_wanted:
            partition_log.roll()
        return load.is_wanted

    async def _read(self, data: RecordsData) -> Buffer:
        """Return the bytes of a read, from a file by a worker thread. If cancelled, the read is dropped."""
        if isinstance(data, (bytes, memoryview)):
            return data
        if data.size_bytes <= INLINE_BYTES and data.is_cached:
            return data.read()
        return await self._worker.run_sync(data.read, abandon_on_cancel=True)


def _size_bytes(load: Load) -> int:
    return load.hosted.replica.log.size_bytes


def _read_past_damage(partition_log: PartitionLog, offset: int, max_bytes: int, end_offset: int) -> LogRead:
    """Read batches; all that are left of the segment where a damaged one stands in the way of finding a limit.

    Raises:
        CorruptionError: The first of them is damaged.
        StorageError: The log failed.
    """
    try:
        return partition_log.read(offset, max_bytes, end_offset, at_least_one=True)
    except CorruptionError:
        return partition_log.read(offset, NO_LIMIT, end_offset)


def _is_readable(partition_log: PartitionLog, end_offset: int, offset: int) -> bool:
    try:
        partition_log.read(offset, 1, end_offset, at_least_one=True)
    except CorruptionError:
        return False
    return True


async def _replay_run(load: Load, data: Buffer, offsets: range) -> bool:
    """Replay a run of batches that holds these offsets; return False when nobody wants it any more."""
    position, expected, slice_left = 0, offsets.start, SLICE_RECORDS
    while position < len(data):
        header = sound_batch(data, position, offsets)
        if header is None:
            reason = damage_at(data, position, offsets)
            position = await _next_sound(data, position + 1, offsets)
            found = sound_batch(data, position, offsets)
            load.skip_damage(expected, found.base_offset if found is not None else offsets.stop, reason)
            continue
        batch_position, position, expected = position, position + header.length_bytes, header.next_offset
        if header.is_control:
            _replay_control(load, data, batch_position, header)
            continue
        producer = ProducerIdentity(header.producer_id, header.producer_epoch)
        identity = producer if header.is_transactional else NO_PRODUCER
        try:
            for record in read_batch(data, batch_position, header):
                _replay_record(load, record, identity)
                slice_left -= 1 + len(record.value or b"") // RECORD_BYTES
                if slice_left <= 0:
                    slice_left = SLICE_RECORDS
                    await trio.lowlevel.checkpoint()
                    if not load.is_wanted:
                        return False
        except CorruptionError as error:
            load.skip(header.base_offset, error)
    await trio.lowlevel.checkpoint()
    return load.is_wanted


async def _next_sound(data: Buffer, position: int, offsets: range) -> int:
    """Return where the next sound batch begins, the end of the data if there is none; others have their turns."""
    while position < len(data):
        found = find_sound_batch(data, position, position + SEARCHED_BYTES, offsets)
        if found is not None:
            return found
        position += SEARCHED_BYTES
        await trio.lowlevel.checkpoint()
    return len(data)


def _replay_record(load: Load, record: Record, producer: ProducerIdentity) -> None:
    try:
        decoded = load.coordinator.decode(record.key or b"", record.value)
    except CorruptionError as error:
        load.skip(record.offset, error)
        return
    except Exception as error:
        load.skip(record.offset, "it cannot be decoded", trace=error)
        return
    if decoded is None:
        load.skip(record.offset, "a record of a type that is not known here")
        return
    try:
        load.hosted.shard.replay(decoded, record.offset, producer)
    except Exception as error:
        load.skip(record.offset, "it cannot be replayed", trace=error)


def _replay_control(load: Load, data: Buffer, position: int, header: BatchHeader) -> None:
    """Replay the end of a transaction; other control batches are nothing to a coordinator."""
    if not header.records_count:
        return  # compaction left it of a transaction that is gone
    try:
        control = read_control_record(data, header, position)
    except CorruptionError as error:
        load.skip(header.base_offset, error)
        return
    if not isinstance(control, EndTransactionMarker):
        return
    producer = ProducerIdentity(header.producer_id, header.producer_epoch)
    try:
        load.hosted.shard.replay_marker(producer, is_commit=control.type is ControlRecordType.COMMIT)
    except Exception as error:
        load.skip(header.base_offset, "a marker that cannot be replayed", trace=error)
