"""Pure core: ReadShareGroupStateSummary, API key 87, versions 0-1."""

from __future__ import annotations

from uuid import UUID

from .. import fields as f
from ..message import Message

__all__ = [
    "ReadShareGroupStateSummaryRequest",
    "ReadShareGroupStateSummaryResponse",
]


class PartitionData(Message):
    """An item of `ReadStateSummaryData.partitions`."""

    partition: int = f.int32()
    leader_epoch: int = f.int32()


class ReadStateSummaryData(Message):
    """An item of `ReadShareGroupStateSummaryRequest.topics`."""

    topic_id: UUID = f.uuid()
    partitions: list[PartitionData] = f.array(PartitionData)


class ReadShareGroupStateSummaryRequest(Message, key=87, versions="0-1", flexible="0+"):
    """The request."""

    group_id: str = f.string()
    topics: list[ReadStateSummaryData] = f.array(ReadStateSummaryData)


class PartitionResult(Message):
    """An item of `ReadStateSummaryResult.partitions`."""

    partition: int = f.int32()
    error_code: int = f.int16()
    error_message: str | None = f.string(nullable="0+", default=None)
    state_epoch: int = f.int32()
    leader_epoch: int = f.int32()
    start_offset: int = f.int64()
    delivery_complete_count: int = f.int32("1+", default=-1, ignorable=True)


class ReadStateSummaryResult(Message):
    """An item of `ReadShareGroupStateSummaryResponse.results`."""

    topic_id: UUID = f.uuid()
    partitions: list[PartitionResult] = f.array(PartitionResult)


class ReadShareGroupStateSummaryResponse(Message, key=87, versions="0-1", flexible="0+"):
    """The response."""

    results: list[ReadStateSummaryResult] = f.array(ReadStateSummaryResult)
