"""A storage that fails under a question: its partition says so, the others are answered."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from odradek.kernel.contracts.api_handler import RequestContext
from odradek.kernel.dispatch.handlers.api_02_list_offsets import ListOffsetsHandler
from odradek.kernel.dispatch.handlers.api_23_offset_for_leader_epoch import OffsetForLeaderEpochHandler
from odradek.kernel.errors import ErrorCode, StorageError
from odradek.kernel.machine.system.threads import SystemThreads
from odradek.kernel.wire.messages import api_02_list_offsets as list_offsets
from odradek.kernel.wire.messages import api_21_delete_records as delete_records
from odradek.kernel.wire.messages import api_23_offset_for_leader_epoch as leader_epoch
from odradek.plugins.storage_segment.log import SegmentLog
from tests.partitions.hosted import Hosted

from .deleting import deleting_handler

CONTEXT = cast("RequestContext", SimpleNamespace(api_version=5))


def list_both(hosted: Hosted) -> Any:
    parts = [list_offsets.ListOffsetsPartition(partition_index=n, timestamp=5, current_leader_epoch=-1) for n in (0, 1)]
    request = list_offsets.ListOffsetsRequest(topics=[list_offsets.ListOffsetsTopic(name="t", partitions=parts)])
    handler = ListOffsetsHandler(replicas=hosted.replicas, cold_timeout_ms=lambda: 30_000, threads=SystemThreads())
    return handler.handle(request, CONTEXT).topics[0].partitions


def delete_both(hosted: Hosted) -> Any:
    parts = [delete_records.DeleteRecordsPartition(partition_index=n, offset=-1) for n in (0, 1)]
    request = delete_records.DeleteRecordsRequest(
        topics=[delete_records.DeleteRecordsTopic(name="t", partitions=parts)]
    )
    handler = deleting_handler(hosted.replicas, lambda _: True)
    return handler.handle(request, CONTEXT).topics[0].partitions


def epochs_of_both(hosted: Hosted) -> Any:
    parts = [
        leader_epoch.OffsetForLeaderPartition(partition=n, leader_epoch=0, current_leader_epoch=-1) for n in (0, 1)
    ]
    request = leader_epoch.OffsetForLeaderEpochRequest(
        topics=[leader_epoch.OffsetForLeaderTopic(topic="t", partitions=parts)]
    )
    return OffsetForLeaderEpochHandler(replicas=hosted.replicas).handle(request, CONTEXT).topics[0].partitions


@pytest.mark.parametrize(
    ("ask", "method"),
    [
        (list_both, "batch_for_timestamp"),
        (delete_both, "advance_log_start"),
        (epochs_of_both, "end_offset_for_epoch"),
    ],
)
def test_a_log_that_cannot_be_read_is_a_storage_error_of_its_own(
    hosted: Hosted, monkeypatch: pytest.MonkeyPatch, ask: Callable[[Hosted], Any], method: str
) -> None:
    hosted.open("t", 2)
    failing = hosted.produce("t", 0, 4).log
    sound = getattr(SegmentLog, method)

    def fail(self: SegmentLog, *arguments: Any) -> Any:
        if self is failing:
            raise StorageError("the device is gone")
        return sound(self, *arguments)

    monkeypatch.setattr(SegmentLog, method, fail)

    assert [part.error_code for part in ask(hosted)] == [ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NONE]
