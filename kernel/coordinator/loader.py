"""Shell: loads shards from their partitions' logs in the background, one after the other, the smallest first.

Bytes are read by a worker thread, as far as they come from files; records are decoded and replayed on the reactor's
task, `SLICE_RECORDS` at a time, so that clients are served in between: a thread of Python code would take as much from
them, and in longer pieces.

What cannot be understood is skipped, counted and logged with its place; it never stops the loading:

=====================================  =======================================================================
a batch whose CRC is wrong             skipped whole
a record that `decode` refuses         skipped
a type that `decode` does not know     skipped: a newer version wrote it
a record that `replay` fails on        skipped, with a trace: a bug, or a record of somebody else's making
a log that cannot be read on           the shard is not served; loading is tried again after a pause
=====================================  =======================================================================
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final

import attrs
import trio

from ..contracts.coordinator import NO_PRODUCER, ProducerIdentity
from ..errors import CorruptionError, StorageError
from ..records.batch import is_crc_valid, iterate_batches
from ..records.control import ControlRecordType, EndTransactionMarker, read_control_record
from ..records.reader import read_batch
from .hosted_shard import ShardState

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..contracts.coordinator import Coordinator
    from ..contracts.log_values import RecordsData
    from ..partitions.replica import Replica
    from ..records.batch import BatchHeader
    from ..records.record import Record
    from ..types import Buffer
    from .hosted_shard import HostedShard

log = logging.getLogger(__name__)

SLICE_RECORDS: Final = 64
"""Records replayed before other tasks get their turn: well below a millisecond."""
INLINE_BYTES: Final = 1 << 16
"""So much is read without a thread when it lies in the page cache."""


@attrs.define
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


@attrs.define(eq=False)
class Load:
    """A shard that is to be loaded.

    Attributes:
        hosted: The shard, empty.
        coordinator: Decodes its records.
        counters: Where skipped records are counted.
        buffer_bytes: How many bytes are read at a time.
        done: Called when the log is replayed.
        failed: Called when it cannot be read.
    """

    hosted: HostedShard
    coordinator: Coordinator[Any, Any]
    counters: LoadCounters
    buffer_bytes: Callable[[], int]
    done: Callable[[HostedShard], None]
    failed: Callable[[HostedShard], None]

    @property
    def is_wanted(self) -> bool:
        """Whether the shard still waits for it."""
        return self.hosted.state is ShardState.LOADING

    def skip(self, offset: int, reason: object, *, trace: Exception | None = None) -> None:
        """Count and log a record, or a batch, that is left out."""
        self.counters.skipped_records += 1
        log.error("%s: skipped offset %d: %s", self.hosted.replica.partition, offset, reason, exc_info=trace)


class Loader:
    """The service that loads; `load_soon` is called by the reactor's task."""

    def __init__(self, *, write_staged: Callable[[], None], fail: Callable[[Replica, Exception], None]) -> None:
        """Make a loader with nothing to do.

        Args:
            write_staged: Writes what is staged: an earlier shard of the partition may have left something.
            fail: Takes a replica offline whose log failed.
        """
        self._write_staged = write_staged
        self._fail = fail
        self._waiting: list[Load] = []
        self._wanted = trio.Event()
        self._limiter = trio.CapacityLimiter(1)
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
        try:
            is_complete = await self._replay_log(load)
        except CorruptionError as error:
            log.error("%s cannot be loaded: %s", load.hosted.replica.partition, error)
            load.failed(load.hosted)
        except StorageError as error:
            self._fail(load.hosted.replica, error)
        except Exception:
            log.exception("%s cannot be loaded", load.hosted.replica.partition)
            load.failed(load.hosted)
        else:
            if is_complete:
                load.done(load.hosted)

    async def _replay_log(self, load: Load) -> bool:
        """Replay the whole log; return False when nobody wants it any more.

        Raises:
            CorruptionError: What is there are no batches.
            StorageError: The log failed.
        """
        replica = load.hosted.replica
        if replica.is_dirty:
            self._write_staged()
        partition_log = replica.log
        offset, end_offset = partition_log.log_start_offset, partition_log.log_end_offset
        while offset < end_offset and load.is_wanted:
            read = partition_log.read(offset, load.buffer_bytes(), end_offset, at_least_one=True)
            if not read.size_bytes:
                break
            data = await self._read(read.data)
            if not await _replay_run(load, data):
                return False
            offset = read.next_offset
        return load.is_wanted

    async def _read(self, data: RecordsData) -> Buffer:
        """Return the bytes of a read, from a file by a worker thread. If cancelled, the read is dropped."""
        if isinstance(data, (bytes, memoryview)):
            return data
        if data.size_bytes <= INLINE_BYTES and data.is_cached:
            return data.read()
        return await trio.to_thread.run_sync(data.read, limiter=self._limiter, abandon_on_cancel=True)


def _size_bytes(load: Load) -> int:
    return load.hosted.replica.log.size_bytes


async def _replay_run(load: Load, data: Buffer) -> bool:
    """Replay a run of batches; return False when nobody wants it any more.

    Raises:
        CorruptionError: A batch's length or magic is impossible: nothing after it can be found.
    """
    replayed_count = 0
    for position, header in iterate_batches(data):
        if not is_crc_valid(data, position, header):
            load.skip(header.base_offset, "a batch whose CRC is wrong")
            continue
        if header.is_control:
            _replay_control(load, data, position, header)
            continue
        producer = ProducerIdentity(header.producer_id, header.producer_epoch)
        identity = producer if header.is_transactional else NO_PRODUCER
        try:
            for record in read_batch(data, position, header):
                _replay_record(load, record, identity)
                replayed_count += 1
                if replayed_count % SLICE_RECORDS == 0:
                    await trio.lowlevel.checkpoint()
                    if not load.is_wanted:
                        return False
        except CorruptionError as error:
            load.skip(header.base_offset, error)
    await trio.lowlevel.checkpoint()
    return load.is_wanted


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
