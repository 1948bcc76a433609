"""Pure core: WriteTxnMarkers, API key 27, versions 1-2."""

from __future__ import annotations

from .. import fields as f
from ..message import Message

__all__ = [
    "WriteTxnMarkersRequest",
    "WriteTxnMarkersResponse",
]


class WritableTxnMarkerTopic(Message):
    """An item of `WritableTxnMarker.topics`."""

    name: str = f.string()
    partition_indexes: list[int] = f.int32s()


class WritableTxnMarker(Message):
    """An item of `WriteTxnMarkersRequest.markers`."""

    producer_id: int = f.int64()
    producer_epoch: int = f.int16()
    transaction_result: bool = f.boolean()
    topics: list[WritableTxnMarkerTopic] = f.array(WritableTxnMarkerTopic)
    coordinator_epoch: int = f.int32()
    transaction_version: int = f.int8("2+", ignorable=True)


class WriteTxnMarkersRequest(Message, key=27, versions="1-2", flexible="1+"):
    """The request."""

    markers: list[WritableTxnMarker] = f.array(WritableTxnMarker)


class WritableTxnMarkerPartitionResult(Message):
    """An item of `WritableTxnMarkerTopicResult.partitions`."""

    partition_index: int = f.int32()
    error_code: int = f.int16()


class WritableTxnMarkerTopicResult(Message):
    """An item of `WritableTxnMarkerResult.topics`."""

    name: str = f.string()
    partitions: list[WritableTxnMarkerPartitionResult] = f.array(WritableTxnMarkerPartitionResult)


class WritableTxnMarkerResult(Message):
    """An item of `WriteTxnMarkersResponse.markers`."""

    producer_id: int = f.int64()
    topics: list[WritableTxnMarkerTopicResult] = f.array(WritableTxnMarkerTopicResult)


class WriteTxnMarkersResponse(Message, key=27, versions="1-2", flexible="1+"):
    """The response."""

    markers: list[WritableTxnMarkerResult] = f.array(WritableTxnMarkerResult)
