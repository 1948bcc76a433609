"""Pure core: a tier without a store, for tests of what lies above tiers.

What "left" the local log stays in the wrapped one, behind a border: whoever reads below it is refused until somebody
asked for it, and `FarTier.arrive` let it come.

.. versionadded:: 0.1
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from odradek.kernel.contracts.storage import NO_LIMIT
from odradek.kernel.contracts.tiering import RecordsAreRemoteError
from odradek.kernel.records.batch import read_header

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from odradek.kernel.contracts.disk_work import DiskWork
    from odradek.kernel.contracts.storage import LogRead, PartitionLog
    from odradek.kernel.contracts.tiering import TieredLog, TierSettings
    from odradek.kernel.errors import KafkaError
    from odradek.kernel.types import TopicIdPartition


class FarLog:
    """A `TieredLog` over any log. What it does not say itself, the wrapped log does.

    Attributes:
        inner: The wrapped log.
        settings: The newest.
        border: Below it records are far.
        near: Offsets that may be read though they lie below the border.
        asked: Reads that were begun: offset, bytes, and what to call.
        failure: What a read of far records raises once they "came", and what a beginning at the store does.
        stored_sidecars: What the store has beside a log that begins behind its part, by kind.
        held_end: Segments that end there or above are not to be sent.
        is_read: Whether a pass of compaction reads it.
        look_up: What a look-up of a time does on its thread; when it raises, nothing was found out.
    """

    def __init__(self, inner: PartitionLog, settings: TierSettings) -> None:
        self.inner = inner
        self.settings = settings
        self.border = 0
        self.near: set[int] = set()
        self.asked: list[tuple[int, int, Callable[[], None]]] = []
        self.failure: KafkaError | None = None
        self.stored_sidecars: dict[str, bytes] = {}
        self.look_up: Callable[[], object] = lambda: None
        self.held_end: int | None = None
        self.is_read = False
        self._known_times: set[int] = set()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def send(self, offset: int) -> None:
        """Have the segments below `offset` be far: they were sent, and left the local log."""
        assert offset in [segment.base_offset for segment in self.inner.segments()], "whole segments are sent"
        self.border = offset

    @property
    def local_log_start_offset(self) -> int:
        """See `TieredLog.local_log_start_offset`."""
        return max(self.border, self.inner.log_start_offset)

    @property
    def tiered_end_offset(self) -> int:
        """See `TieredLog.tiered_end_offset`."""
        return self.border

    @property
    def size_bytes(self) -> int:
        """See `PartitionLog.size_bytes`: what is local."""
        far = sum(segment.size_bytes for segment in self.inner.segments() if segment.base_offset < self.border)
        return self.inner.size_bytes - far

    def read(self, offset: int, max_bytes: int, end_offset: int = NO_LIMIT, *, at_least_one: bool = False) -> LogRead:
        """See `PartitionLog.read`."""
        if offset < self.border:
            if offset not in self.near:
                raise RecordsAreRemoteError
            if self.failure is not None:
                raise self.failure
            end_offset = min(end_offset, self.border)
        return self.inner.read(offset, max_bytes, end_offset, at_least_one=at_least_one)

    def begin_cold_read(self, offset: int, max_bytes: int, done: Callable[[], None]) -> None:
        """See `TieredLog.begin_cold_read`."""
        self.asked.append((offset, max_bytes, done))

    def batches(self, start_offset: int, end_offset: int = NO_LIMIT) -> Iterator[memoryview]:
        """See `PartitionLog.batches`: those of the local log."""
        return self.inner.batches(max(start_offset, self.border), end_offset)

    def begin_time_lookup(self, timestamp: int) -> DiskWork | None:
        """See `PartitionLog.begin_time_lookup`."""
        if timestamp == NO_LIMIT or not self._is_far(self.inner.batch_for_timestamp(timestamp, 0)):
            return self.inner.begin_time_lookup(timestamp)
        return _TimeLookup(self.look_up, lambda: self._known_times.add(timestamp))

    def batch_for_timestamp(self, timestamp: int, start_offset: int) -> bytes | None:
        """See `PartitionLog.batch_for_timestamp`."""
        batch = self.inner.batch_for_timestamp(timestamp, start_offset)
        if self._is_far(batch) and timestamp not in self._known_times:
            raise RecordsAreRemoteError
        return batch

    def _is_far(self, batch: bytes | None) -> bool:
        return batch is not None and read_header(batch).base_offset < self.border

    def max_timestamp(self) -> tuple[int, int]:
        """See `PartitionLog.max_timestamp`: of what is local."""
        headers = [read_header(batch) for batch in self.inner.batches(self.border)]
        newest = max(headers, key=lambda header: header.max_timestamp, default=None)
        return (-1, -1) if newest is None else (newest.max_timestamp, newest.last_offset)

    def begin_at_store(self, offset: int, *, is_exact: bool) -> FarStart:
        """See `TieredLog.begin_at_store`: here the store has everything below the offset."""
        return FarStart(self, offset)

    def hold_uploads(self, end_offset: int | None) -> None:
        """See `TieredLog.hold_uploads`."""
        self.held_end = end_offset

    def hold_segments(self, *, are_read: bool) -> None:
        """See `TieredLog.hold_segments`."""
        self.is_read = are_read

    def reconfigure_tier(self, settings: TierSettings) -> None:
        """See `TieredLog.reconfigure_tier`."""
        self.settings = settings

    def unwrap(self) -> PartitionLog:
        """See `TieredLog.unwrap`."""
        if self.border > self.inner.log_start_offset:
            self.inner.advance_log_start(self.border)
            self.inner.delete_segments_below(self.border)
        return self.inner


class FarStart:
    """See `TierStart`. What the store has of producers, or why it has nothing, a test says in `FarLog`."""

    def __init__(self, log: FarLog, offset: int) -> None:
        self._log = log
        self._offset = offset

    def run(self) -> None:
        """See `TierStart.run`."""
        if self._log.failure is not None:
            raise self._log.failure

    def begin_keeping(self) -> Sequence[DiskWork]:
        """See `TierStart.begin_keeping`."""
        sidecars = self._log.stored_sidecars
        return [self._log.inner.begin_sidecar(self._offset, kind, data) for kind, data in sidecars.items()]

    def apply(self) -> None:
        """See `TierStart.apply`."""
        inner = self._log.inner
        if self._offset < inner.log_end_offset:
            inner.truncate_to(self._offset)  # what is far lies in it
        else:
            inner.truncate_fully(self._offset)
        self._log.border = self._offset


class _TimeLookup:
    def __init__(self, look_up: Callable[[], object], note: Callable[[], None]) -> None:
        self._look_up = look_up
        self._note = note

    def run(self) -> None:
        """See `DiskWork.run`."""
        self._look_up()

    def finish(self, error: Exception | None) -> None:
        """See `DiskWork.finish`."""
        if error is None:
            self._note()


class FarTier:
    """A `Tier`.

    Attributes:
        logs: What it wrapped last, by partition.
        deleted: What it was told to delete.
        switched_off: What it was told to have its leader remove.
    """

    def __init__(self) -> None:
        self.logs: dict[TopicIdPartition, FarLog] = {}
        self.deleted: list[TopicIdPartition] = []
        self.switched_off: list[TopicIdPartition] = []

    def wrap(self, partition_log: PartitionLog, settings: TierSettings, *, is_new: bool = False) -> TieredLog:
        """See `Tier.wrap`."""
        self.logs[partition_log.partition] = FarLog(partition_log, settings)
        return cast("TieredLog", self.logs[partition_log.partition])

    def delete(self, partition: TopicIdPartition) -> None:
        """See `Tier.delete`."""
        self.deleted.append(partition)

    def switch_off(self, partition: TopicIdPartition) -> None:
        """See `Tier.switch_off`."""
        self.switched_off.append(partition)

    def arrive(self) -> None:
        """Let everything come that was asked for."""
        for log in self.logs.values():
            asked, log.asked = log.asked, []
            for offset, _max_bytes, done in asked:
                log.near.add(offset)
                done()
