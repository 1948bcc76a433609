"""Shell: DescribeProducers (key 61): the producers that a partition knows of, for finding hanging transactions.

*Source:* KIP-664; answers compared with Apache Kafka 4.3.1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...contracts.pieces import ListPieces
from ...errors import ErrorCode, KafkaError
from ...metadata.names import check_topic_name
from ...types import NO_EPOCH, NO_OFFSET
from ...wire.messages.api_61_describe_producers import (
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)

if TYPE_CHECKING:
    from ...contracts.api_handler import Answer, RequestContext
    from ...partitions import producer_state
    from ...partitions.replicas import Replicas
    from ...wire.messages.api_61_describe_producers import DescribeProducersRequest


class DescribeProducersHandler:
    """Answers DescribeProducers. Owned by the reactor's task."""

    api_key = 61
    pieces = ListPieces("topics.partition_indexes", answers=["topics.partitions"], together="", once=True)

    def __init__(self, *, replicas: Replicas) -> None:
        self._replicas = replicas

    def handle(self, request: DescribeProducersRequest, context: RequestContext) -> Answer:
        """Describe every partition that is asked for."""
        topics = [
            TopicResponse(name=topic.name, partitions=self._partitions(topic.name, topic.partition_indexes))
            for topic in request.topics
        ]
        return DescribeProducersResponse(topics=topics)

    def _partitions(self, topic: str, indexes: list[int]) -> list[PartitionResponse]:
        try:
            check_topic_name(topic)
        except KafkaError as error:
            return [_failed(index, error.code, error.detail) for index in indexes]
        if topic not in self._replicas.topics:
            unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            return [_failed(index, unknown, unknown.text) for index in indexes]
        return [self._partition(topic, index) for index in indexes]

    def _partition(self, topic: str, index: int) -> PartitionResponse:
        try:
            replica = self._replicas.get(topic, index)
            replica.check_epoch(NO_EPOCH)  # a follower tells it, too
        except KafkaError as error:
            return _failed(index, error.code, None)
        return PartitionResponse(
            partition_index=index, active_producers=[_describe(state) for state in replica.producers.states()]
        )

    def error_response(
        self, request: DescribeProducersRequest, context: RequestContext, code: ErrorCode, detail: str
    ) -> Answer:
        """Return the response that gives every partition this error."""
        topics = [
            TopicResponse(
                name=topic.name, partitions=[_failed(index, code, detail) for index in topic.partition_indexes]
            )
            for topic in request.topics
        ]
        return DescribeProducersResponse(topics=topics)


def _failed(index: int, code: ErrorCode, detail: str | None) -> PartitionResponse:
    return PartitionResponse(partition_index=index, error_code=code, error_message=detail)


def _describe(state: producer_state.ProducerState) -> ProducerState:
    return ProducerState(
        producer_id=state.producer_id,
        producer_epoch=state.producer_epoch,
        last_sequence=state.last_sequence,
        last_timestamp=state.last_timestamp,
        coordinator_epoch=state.coordinator_epoch,
        current_txn_start_offset=state.transaction.first_offset if state.transaction is not None else NO_OFFSET,
    )
