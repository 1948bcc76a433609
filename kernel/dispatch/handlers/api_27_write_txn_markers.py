"""Shell: WriteTxnMarkers (key 27): ends transactions in partitions; what tools send to abort one that hangs.

This broker's own coordinator does not send it: it calls the marker writer.

*Source:* KIP-98; KIP-664 (aborting by hand); KIP-890 (version 2 tells the transaction version).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from ...contracts.api_handler import PENDING
from ...contracts.pieces import ListPieces
from ...contracts.transactions import TransactionMarker
from ...purgatory.gathering import Gathered
from ...types import TopicPartition
from ...wire.messages.api_27_write_txn_markers import (
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersResponse,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import TypeAlias

    from ...contracts.api_handler import Answer, RequestContext
    from ...contracts.transactions import MarkerWriter
    from ...errors import ErrorCode
    from ...wire.messages.api_27_write_txn_markers import WritableTxnMarker, WriteTxnMarkersRequest

    _Codes: TypeAlias = Mapping[TopicPartition, ErrorCode]


class WriteTxnMarkersHandler:
    """Answers WriteTxnMarkers. Owned by the reactor's task."""

    api_key = 27
    pieces = ListPieces("markers.topics.partition_indexes", answers=["markers.topics.partitions"])

    def __init__(self, *, writer: MarkerWriter) -> None:
        self._writer = writer

    def handle(self, request: WriteTxnMarkersRequest, context: RequestContext) -> Answer:
        """Have every marker written, and answer once all are committed or have failed."""
        if not request.markers:
            return WriteTxnMarkersResponse()
        producer_ids = [marker.producer_id for marker in request.markers]
        gathered: Gathered[int, _Codes] = Gathered(
            range(len(producer_ids)),
            lambda codes: context.reply(_response(zip(producer_ids, codes.values(), strict=True))),
        )
        for number, marker in enumerate(request.markers):
            self._write(marker, partial(gathered.note, number))
        return PENDING

    def _write(self, marker: WritableTxnMarker, done: Callable[[_Codes], None]) -> None:
        self._writer.write(
            TransactionMarker(
                producer_id=marker.producer_id,
                producer_epoch=marker.producer_epoch,
                coordinator_epoch=marker.coordinator_epoch,
                transaction_version=marker.transaction_version,
                is_commit=marker.transaction_result,
                partitions=[
                    TopicPartition(topic.name, index) for topic in marker.topics for index in topic.partition_indexes
                ],
            ),
            done,
        )

    def error_response(
        self, request: WriteTxnMarkersRequest, context: RequestContext, code: ErrorCode, detail: str
    ) -> Answer:
        """Return the response that gives every partition this error."""
        return _response(
            (
                marker.producer_id,
                {
                    TopicPartition(topic.name, index): code
                    for topic in marker.topics
                    for index in topic.partition_indexes
                },
            )
            for marker in request.markers
        )


def _response(codes: Iterable[tuple[int, _Codes]]) -> WriteTxnMarkersResponse:
    """Return the answer of markers' codes by producer; markers of one producer are answered together, as by Kafka."""
    by_producer: dict[int, dict[TopicPartition, ErrorCode]] = {}
    for producer_id, of_marker in codes:
        by_producer.setdefault(producer_id, {}).update(of_marker)
    return WriteTxnMarkersResponse(markers=[_result(*each) for each in by_producer.items()])


def _result(producer_id: int, codes: Mapping[TopicPartition, ErrorCode]) -> WritableTxnMarkerResult:
    topics: dict[str, list[WritableTxnMarkerPartitionResult]] = {}
    for partition, code in codes.items():
        result = WritableTxnMarkerPartitionResult(partition_index=partition.partition, error_code=code)
        topics.setdefault(partition.topic, []).append(result)
    return WritableTxnMarkerResult(
        producer_id=producer_id,
        topics=[WritableTxnMarkerTopicResult(name=name, partitions=parts) for name, parts in topics.items()],
    )
