"""Shell: WriteTxnMarkers (key 27): ends transactions in partitions; what tools send to abort one that hangs.

This broker's own coordinator does not send it: it calls the marker writer.

*Source:* KIP-98; KIP-664 (aborting by hand); KIP-890 (version 2 tells the transaction version).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...contracts.api_handler import PENDING
from ...contracts.transactions import TransactionMarker
from ...types import TopicPartition
from ...wire.messages.api_27_write_txn_markers import (
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersResponse,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ...contracts.api_handler import Answer, RequestContext
    from ...contracts.transactions import MarkerWriter
    from ...errors import ErrorCode
    from ...wire.messages.api_27_write_txn_markers import WritableTxnMarker, WriteTxnMarkersRequest


class _Answering:
    """A request whose markers are being written: answered with the last of them."""

    __slots__ = ("_codes", "_context", "_missing_count")

    def __init__(self, context: RequestContext, markers_count: int) -> None:
        self._context = context
        self._missing_count = markers_count
        self._codes: dict[int, dict[TopicPartition, ErrorCode]] = {}

    def note(self, producer_id: int, codes: Mapping[TopicPartition, ErrorCode]) -> None:
        """Take note of what became of one marker; markers of one producer are answered together, as by Kafka."""
        self._codes.setdefault(producer_id, {}).update(codes)
        self._missing_count -= 1
        if not self._missing_count:
            self._context.reply(WriteTxnMarkersResponse(markers=[_result(*each) for each in self._codes.items()]))


class WriteTxnMarkersHandler:
    """Answers WriteTxnMarkers. Owned by the reactor's task."""

    api_key = 27

    def __init__(self, *, writer: MarkerWriter) -> None:
        self._writer = writer

    def handle(self, request: WriteTxnMarkersRequest, context: RequestContext) -> Answer:
        """Have every marker written, and answer once all are committed or have failed."""
        if not request.markers:
            return WriteTxnMarkersResponse()
        answering = _Answering(context, len(request.markers))
        for marker in request.markers:
            self._write(marker, answering)
        return PENDING

    def _write(self, marker: WritableTxnMarker, answering: _Answering) -> None:
        producer_id = marker.producer_id
        self._writer.write(
            TransactionMarker(
                producer_id=producer_id,
                producer_epoch=marker.producer_epoch,
                coordinator_epoch=marker.coordinator_epoch,
                transaction_version=marker.transaction_version,
                is_commit=marker.transaction_result,
                partitions=[
                    TopicPartition(topic.name, index) for topic in marker.topics for index in topic.partition_indexes
                ],
            ),
            lambda codes: answering.note(producer_id, codes),
        )

    def error_response(
        self, request: WriteTxnMarkersRequest, context: RequestContext, code: ErrorCode, detail: str
    ) -> Answer:
        """Return the response that gives every partition this error."""
        codes: dict[int, dict[TopicPartition, ErrorCode]] = {}
        for marker in request.markers:
            for topic in marker.topics:
                of_producer = codes.setdefault(marker.producer_id, {})
                of_producer.update((TopicPartition(topic.name, index), code) for index in topic.partition_indexes)
        return WriteTxnMarkersResponse(markers=[_result(*each) for each in codes.items()])


def _result(producer_id: int, codes: Mapping[TopicPartition, ErrorCode]) -> WritableTxnMarkerResult:
    topics: dict[str, list[WritableTxnMarkerPartitionResult]] = {}
    for partition, code in codes.items():
        result = WritableTxnMarkerPartitionResult(partition_index=partition.partition, error_code=code)
        topics.setdefault(partition.topic, []).append(result)
    return WritableTxnMarkerResult(
        producer_id=producer_id,
        topics=[WritableTxnMarkerTopicResult(name=name, partitions=parts) for name, parts in topics.items()],
    )
