"""Shell: DescribeProducers (key 61): the producers that a partition knows of, for finding hanging transactions.

A partition may know of very many: they are forgotten after `producer.id.expiration.ms`, a day, and each that a client
makes is one more. So it is they that are counted and answered in slices, not partitions alone.

*Source:* KIP-664; answers compared with Apache Kafka 4.3.1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...contracts.pieces import ListPieces, are_many
from ...errors import ErrorCode, KafkaError
from ...metadata.names import check_topic_name
from ...types import NO_EPOCH, NO_OFFSET
from ...wire.messages.api_61_describe_producers import (
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)
from ..stepped_handler import SteppedHandler

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from ...contracts.api_handler import Answer, RequestContext
    from ...partitions import producer_state
    from ...partitions.replicas import Replicas
    from ...wire.messages.api_61_describe_producers import DescribeProducersRequest


class DescribeProducersHandler(SteppedHandler):
    """Answers DescribeProducers. Owned by the reactor's task."""

    api_key = 61
    pieces = ListPieces("topics.partition_indexes", answers=["topics.partitions"], together="", once=True)

    def __init__(self, *, replicas: Replicas) -> None:
        self._replicas = replicas

    def is_long(self, request: DescribeProducersRequest, context: RequestContext) -> bool:
        """Return whether the partitions that are asked for know of many producers."""
        return are_many(self._sizes(request))

    def _sizes(self, request: DescribeProducersRequest) -> Iterator[int]:
        for topic in request.topics:
            for index in topic.partition_indexes:
                replica = self._replicas.find(topic.name, index)
                yield 0 if replica is None else len(replica.producers)

    def answer_in_steps(
        self, request: DescribeProducersRequest, context: RequestContext
    ) -> Generator[None, None, DescribeProducersResponse]:
        """Describe every partition that is asked for, a producer a step."""
        topics = []
        for topic in request.topics:
            partitions = yield from self._partitions(topic.name, topic.partition_indexes)
            topics.append(TopicResponse(name=topic.name, partitions=partitions))
        return DescribeProducersResponse(topics=topics)

    def _partitions(self, topic: str, indexes: list[int]) -> Generator[None, None, list[PartitionResponse]]:
        try:
            check_topic_name(topic)
        except KafkaError as error:
            return [_failed(index, error.code, error.detail) for index in indexes]
        if topic not in self._replicas.topics:
            unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            return [_failed(index, unknown, unknown.text) for index in indexes]
        described = []
        for index in indexes:
            described.append((yield from self._partition(topic, index)))
            yield
        return described

    def _partition(self, topic: str, index: int) -> Generator[None, None, PartitionResponse]:
        """Describe those that are there now, each as it is when its turn comes."""
        try:
            replica = self._replicas.get(topic, index)
            replica.check_epoch(NO_EPOCH)  # a follower tells it, too
        except KafkaError as error:
            return _failed(index, error.code, None)
        producers = []
        for state in list(replica.producers.states()):
            producers.append(_describe(state))
            yield
        return PartitionResponse(partition_index=index, active_producers=producers)

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
