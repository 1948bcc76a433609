"""Pure core: a log that is another log: every question and order goes on to it as it came.

`TieredPartitionLog` (`log.py`) answers for itself where two tiers make a difference; the rest is here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.kernel.api import NO_EPOCH, NO_LIMIT

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from odradek.kernel.api import (
        DiskWork,
        EpochEnd,
        LogConfig,
        LogRead,
        PartitionLog,
        SegmentInfo,
        SegmentRewrite,
        TopicIdPartition,
    )


class WrappedLog:
    """Forwards the whole of `PartitionLog` to `inner`. Owned by the reactor's task."""

    def __init__(self, inner: PartitionLog) -> None:
        self.inner = inner
        # What every append calls goes there without a detour.
        self.append = inner.append
        self.write_pending = inner.write_pending

    @property
    def partition(self) -> TopicIdPartition:
        """See `PartitionLog.partition`."""
        return self.inner.partition

    @property
    def directory(self) -> Path | None:
        """See `PartitionLog.directory`."""
        return self.inner.directory

    @property
    def log_dir(self) -> str:
        """See `PartitionLog.log_dir`."""
        return self.inner.log_dir

    @property
    def log_start_offset(self) -> int:
        """See `PartitionLog.log_start_offset`."""
        return self.inner.log_start_offset

    @property
    def log_end_offset(self) -> int:
        """See `PartitionLog.log_end_offset`."""
        return self.inner.log_end_offset

    @property
    def recovery_point(self) -> int:
        """See `PartitionLog.recovery_point`."""
        return self.inner.recovery_point

    @property
    def size_bytes(self) -> int:
        """See `PartitionLog.size_bytes`."""
        return self.inner.size_bytes

    @property
    def active_base_offset(self) -> int:
        """See `PartitionLog.active_base_offset`."""
        return self.inner.active_base_offset

    @property
    def latest_epoch(self) -> int:
        """See `PartitionLog.latest_epoch`."""
        return self.inner.latest_epoch

    @property
    def was_clean(self) -> bool:
        """See `PartitionLog.was_clean`."""
        return self.inner.was_clean

    @property
    def clean_end(self) -> int:
        """See `PartitionLog.clean_end`."""
        return self.inner.clean_end

    @property
    def rewritable_end(self) -> int:
        """See `PartitionLog.rewritable_end`."""
        return self.inner.rewritable_end

    def note_clean_end(self, offset: int) -> None:
        """See `PartitionLog.note_clean_end`."""
        self.inner.note_clean_end(offset)

    def begin_rewrite(self, end_offset: int) -> SegmentRewrite:
        """See `PartitionLog.begin_rewrite`."""
        return self.inner.begin_rewrite(end_offset)

    def begin_replacement(self, base_offsets: Sequence[int]) -> DiskWork:
        """See `PartitionLog.begin_replacement`."""
        return self.inner.begin_replacement(base_offsets)

    def assign_epoch(self, leader_epoch: int, start_offset: int) -> None:
        """See `PartitionLog.assign_epoch`."""
        self.inner.assign_epoch(leader_epoch, start_offset)

    def end_offset_for_epoch(self, leader_epoch: int) -> EpochEnd:
        """See `PartitionLog.end_offset_for_epoch`."""
        return self.inner.end_offset_for_epoch(leader_epoch)

    def epoch_entries(self) -> Sequence[tuple[int, int]]:
        """See `PartitionLog.epoch_entries`."""
        return self.inner.epoch_entries()

    def read(self, offset: int, max_bytes: int, end_offset: int = NO_LIMIT, *, at_least_one: bool = False) -> LogRead:
        """See `PartitionLog.read`."""
        return self.inner.read(offset, max_bytes, end_offset, at_least_one=at_least_one)

    def batch_for_timestamp(self, timestamp: int, start_offset: int) -> bytes | None:
        """See `PartitionLog.batch_for_timestamp`."""
        return self.inner.batch_for_timestamp(timestamp, start_offset)

    def begin_time_lookup(self, timestamp: int) -> DiskWork | None:
        """See `PartitionLog.begin_time_lookup`."""
        return self.inner.begin_time_lookup(timestamp)

    def max_timestamp(self) -> tuple[int, int]:
        """See `PartitionLog.max_timestamp`."""
        return self.inner.max_timestamp()

    def batches(self, start_offset: int, end_offset: int = NO_LIMIT) -> Iterator[memoryview]:
        """See `PartitionLog.batches`."""
        return self.inner.batches(start_offset, end_offset)

    def truncate_to(self, offset: int) -> None:
        """See `PartitionLog.truncate_to`."""
        self.inner.truncate_to(offset)

    def truncate_fully(self, start_offset: int, leader_epoch: int = NO_EPOCH) -> None:
        """See `PartitionLog.truncate_fully`."""
        self.inner.truncate_fully(start_offset, leader_epoch)

    def advance_log_start(self, offset: int) -> None:
        """See `PartitionLog.advance_log_start`."""
        self.inner.advance_log_start(offset)

    def segments(self) -> Sequence[SegmentInfo]:
        """See `PartitionLog.segments`."""
        return self.inner.segments()

    def roll(self) -> None:
        """See `PartitionLog.roll`."""
        self.inner.roll()

    def delete_segments_below(self, offset: int) -> int:
        """See `PartitionLog.delete_segments_below`."""
        return self.inner.delete_segments_below(offset)

    def write_sidecar(self, offset: int, kind: str, data: bytes) -> None:
        """See `PartitionLog.write_sidecar`."""
        self.inner.write_sidecar(offset, kind, data)

    def begin_sidecar(self, offset: int, kind: str, data: bytes) -> DiskWork:
        """See `PartitionLog.begin_sidecar`."""
        return self.inner.begin_sidecar(offset, kind, data)

    def append_sidecar(self, offset: int, kind: str, data: bytes) -> None:
        """See `PartitionLog.append_sidecar`."""
        self.inner.append_sidecar(offset, kind, data)

    def sidecars(self, kind: str) -> Sequence[int]:
        """See `PartitionLog.sidecars`."""
        return self.inner.sidecars(kind)

    def read_sidecar(self, offset: int, kind: str) -> bytes:
        """See `PartitionLog.read_sidecar`."""
        return self.inner.read_sidecar(offset, kind)

    def delete_sidecar(self, offset: int, kind: str) -> None:
        """See `PartitionLog.delete_sidecar`."""
        self.inner.delete_sidecar(offset, kind)

    def begin_flush(self, *, closed_only: bool = False) -> DiskWork:
        """See `PartitionLog.begin_flush`."""
        return self.inner.begin_flush(closed_only=closed_only)

    def flush(self) -> int:
        """See `PartitionLog.flush`."""
        return self.inner.flush()

    def reconfigure(self, config: LogConfig) -> None:
        """See `PartitionLog.reconfigure`."""
        self.inner.reconfigure(config)

    def begin_close(self) -> DiskWork:
        """See `PartitionLog.begin_close`."""
        return self.inner.begin_close()

    def close(self) -> None:
        """See `PartitionLog.close`."""
        self.inner.close()
