"""A handler of DeleteRecords whose requests wait for nobody unless they are told to."""

from __future__ import annotations

from collections.abc import Callable

from odradek.kernel.dispatch.handlers.api_21_delete_records import DeleteRecordsHandler
from odradek.kernel.machine.clock import Clock, ManualClock
from odradek.kernel.partitions.replicas import Replicas
from odradek.kernel.partitions.staged_writes import StagedWrites
from odradek.kernel.purgatory.delayed_operation import DelayedOperation
from odradek.kernel.purgatory.purgatory import Purgatory
from odradek.kernel.purgatory.timing_wheel import TimingWheel


def fail(operation: DelayedOperation, error: Exception) -> None:
    raise AssertionError(operation) from error


def deleting_handler(
    replicas: Replicas,
    may_lose_records: Callable[[str], bool],
    *,
    purgatory: Purgatory | None = None,
    clock: Clock | None = None,
    writes: StagedWrites | None = None,
) -> DeleteRecordsHandler:
    return DeleteRecordsHandler(
        replicas=replicas,
        may_lose_records=may_lose_records,
        purgatory=purgatory or Purgatory("DeleteRecords", TimingWheel(now_ms=0), on_error=fail),
        clock=clock or ManualClock(),
        writes=writes or StagedWrites(replicas, on_staged=lambda: None, on_flush_wanted=lambda: None),
    )
