"""Shell: DescribeTopicPartitions (key 75): topics page by page, for admin clients.

Topics are in the order of their names; a page ends after so many partitions, and its cursor says where the next begins.

*Source:* KIP-966; answers compared with Apache Kafka 4.3.1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...contracts.pieces import ITEMS_AT_ONCE, are_many
from ...errors import ErrorCode, KafkaError
from ...metadata.names import is_valid_topic_name
from ...wire.messages.api_75_describe_topic_partitions import (
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
    ResponseCursor,
)
from ..broker_nodes import BrokerNodes
from ..stepped_handler import SteppedHandler
from .api_03_metadata import TOPIC_OPERATIONS

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Set

    from ...contracts.api_handler import Answer, RequestContext
    from ...contracts.election import PartitionState
    from ...metadata.image import MetadataImage, TopicImage
    from ...wire.messages.api_75_describe_topic_partitions import Cursor, DescribeTopicPartitionsRequest


class DescribeTopicPartitionsHandler(SteppedHandler):
    """Answers DescribeTopicPartitions from the current image."""

    api_key = 75

    def __init__(
        self,
        *,
        image: Callable[[], MetadataImage],
        partitions_max: Callable[[], int],
        internal_topics: Set[str],
    ) -> None:
        """Make the handler.

        Args:
            image: Returns the current image.
            partitions_max: `max.request.partition.size.limit`.
            internal_topics: To which no client writes.
        """
        self._image = image
        self._partitions_max = partitions_max
        self._internal_topics = internal_topics

    def is_long(self, request: DescribeTopicPartitionsRequest, context: RequestContext) -> bool:
        """Return whether the page is large."""
        topics = self._image().topics_by_name
        if not request.topics:
            has_many = are_many(len(topic.partitions) for topic in topics.values())
            return has_many and self._limit(request) > ITEMS_AT_ONCE
        found = (topics.get(wanted.name) for wanted in request.topics)
        return are_many(0 if each is None else len(each.partitions) for each in found)

    def _limit(self, request: DescribeTopicPartitionsRequest) -> int:
        return max(min(request.response_partition_limit, self._partitions_max()), 1)

    def answer_in_steps(
        self, request: DescribeTopicPartitionsRequest, context: RequestContext
    ) -> Generator[None, None, DescribeTopicPartitionsResponse]:
        """Answer with one page."""
        image = self._image()
        nodes = BrokerNodes(image, context.connection.listener_name)
        names = sorted({topic.name for topic in request.topics}) or sorted(image.topics_by_name)
        first = 0
        if request.cursor is not None:
            _check_cursor(request.cursor, names, asked_for_all=not request.topics)
            names = [name for name in names if name >= request.cursor.topic_name]
            first = request.cursor.partition_index if names[:1] == [request.cursor.topic_name] else 0
        elif "" in names:
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)  # as Kafka, which then looks for a cursor
        return (yield from _page(image, nodes, names, first, self._limit(request), self._internal_topics))

    def error_response(
        self, request: DescribeTopicPartitionsRequest, context: RequestContext, code: ErrorCode, detail: str
    ) -> Answer:
        """Return the response that gives every topic this error."""
        return DescribeTopicPartitionsResponse(
            topics=[DescribeTopicPartitionsResponseTopic(error_code=code, name=topic.name) for topic in request.topics]
        )


def _check_cursor(cursor: Cursor, names: list[str], *, asked_for_all: bool) -> None:
    if cursor.partition_index < 0:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "The cursor's partition is negative.")
    if not asked_for_all and cursor.topic_name not in names:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "The cursor's topic is none of those asked for.")


def _page(
    image: MetadataImage, nodes: BrokerNodes, names: list[str], first: int, limit: int, internal_topics: Set[str]
) -> Generator[None, None, DescribeTopicPartitionsResponse]:
    topics: list[DescribeTopicPartitionsResponseTopic] = []
    for name in names:
        yield
        if limit == 0:
            return DescribeTopicPartitionsResponse(
                topics=topics, next_cursor=ResponseCursor(topic_name=name, partition_index=0)
            )
        topic = image.topics_by_name.get(name)
        if topic is None:
            topics.append(_missing(name, internal_topics))
        else:
            end = min(len(topic.partitions), first + limit)
            topics.append((yield from _topic(topic, range(first, end), nodes, internal_topics)))
            if end < len(topic.partitions):
                return DescribeTopicPartitionsResponse(
                    topics=topics, next_cursor=ResponseCursor(topic_name=name, partition_index=end)
                )
            limit -= max(end - first, 0)
        first = 0
    return DescribeTopicPartitionsResponse(topics=topics)


def _missing(name: str, internal_topics: Set[str]) -> DescribeTopicPartitionsResponseTopic:
    is_valid = is_valid_topic_name(name)
    return DescribeTopicPartitionsResponseTopic(
        error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if is_valid else ErrorCode.INVALID_TOPIC_EXCEPTION,
        name=name,
        is_internal=name in internal_topics,
        topic_authorized_operations=TOPIC_OPERATIONS,
    )


def _topic(
    topic: TopicImage, indexes: range, nodes: BrokerNodes, internal_topics: Set[str]
) -> Generator[None, None, DescribeTopicPartitionsResponseTopic]:
    partitions = []
    for index in indexes:
        partitions.append(_partition(index, topic.partitions[index], nodes))
        yield
    return DescribeTopicPartitionsResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.name in internal_topics,
        partitions=partitions,
        topic_authorized_operations=TOPIC_OPERATIONS,
    )


def _partition(index: int, state: PartitionState, nodes: BrokerNodes) -> DescribeTopicPartitionsResponsePartition:
    return DescribeTopicPartitionsResponsePartition(
        partition_index=index,
        leader_id=nodes.leader(state.leader),
        leader_epoch=state.leader_epoch,
        replica_nodes=list(state.replicas),
        isr_nodes=list(state.isr),
        eligible_leader_replicas=list(state.eligible_leader_replicas),
        last_known_elr=list(state.last_known_elr),
        offline_replicas=nodes.offline(state.replicas),
    )
