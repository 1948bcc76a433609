"""Shell: DeleteRecords (key 21): moves the log start of partitions up; -1 stands for the high watermark.

The answer's low watermark is the leader's log start offset. (With followers it will be the smallest of all replicas'.)

*Source:* KIP-107; answers compared with Apache Kafka 4.3.1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ...contracts.pieces import ListPieces
from ...errors import ErrorCode, KafkaError
from ...types import NO_EPOCH, NO_OFFSET
from ...wire.messages.api_21_delete_records import (
    DeleteRecordsPartitionResult,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from ...contracts.api_handler import Answer, RequestContext
    from ...partitions.replica import Replica
    from ...partitions.replicas import Replicas
    from ...wire.messages.api_21_delete_records import DeleteRecordsRequest

TO_HIGH_WATERMARK: Final = -1


class DeleteRecordsHandler:
    """Answers DeleteRecords. Owned by the reactor's task."""

    api_key = 21
    pieces = ListPieces("topics.partitions", answers=["topics.partitions"])

    def __init__(self, *, replicas: Replicas, may_lose_records: Callable[[str], bool]) -> None:
        """Make the handler.

        Args:
            replicas: Whose records are deleted.
            may_lose_records: Whether a topic's `cleanup.policy` contains `delete`, or nothing: a topic that keeps
                everything is trimmed by hand.
        """
        self._replicas = replicas
        self._may_lose_records = may_lose_records

    def handle(self, request: DeleteRecordsRequest, context: RequestContext) -> Answer:
        """Delete what is asked for; of a partition named twice the last counts. A topic without any is left out."""
        topics = []
        for topic in request.topics:
            offsets = {part.partition_index: part.offset for part in topic.partitions}
            if offsets:
                answers = [self._answer(topic.name, index, offset) for index, offset in offsets.items()]
                topics.append(DeleteRecordsTopicResult(name=topic.name, partitions=answers))
        return DeleteRecordsResponse(topics=topics)

    def _answer(self, topic: str, index: int, offset: int) -> DeleteRecordsPartitionResult:
        code, low_watermark = ErrorCode.NONE, NO_OFFSET
        try:
            low_watermark = self._delete(topic, index, offset)
        except KafkaError as error:
            code = error.code
        except Exception as error:  # whatever a storage raises is its partition's matter alone
            self._replicas.note_failure(topic, index, error)
            code = ErrorCode.KAFKA_STORAGE_ERROR
        return DeleteRecordsPartitionResult(partition_index=index, low_watermark=low_watermark, error_code=code)

    def _delete(self, topic: str, index: int, offset: int) -> int:
        """Delete the records of one partition below `offset` and return its log start offset."""
        replica = self._replicas.get(topic, index)
        if topic in self._replicas.internal_topics:
            raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION)
        replica.check_leader(NO_EPOCH)
        if not self._may_lose_records(topic):
            raise KafkaError(ErrorCode.POLICY_VIOLATION)
        target = replica.high_watermark if offset == TO_HIGH_WATERMARK else offset
        if not 0 <= target <= replica.high_watermark:
            raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE)
        if target > replica.log.log_start_offset:
            _advance_log_start(replica, target)
            self._replicas.changed.note((replica,))
        return replica.log.log_start_offset

    def error_response(
        self, request: DeleteRecordsRequest, context: RequestContext, code: ErrorCode, detail: str
    ) -> Answer:
        """Return the response that gives every partition this error."""
        topics = [
            DeleteRecordsTopicResult(
                name=topic.name,
                partitions=[
                    DeleteRecordsPartitionResult(
                        partition_index=part.partition_index, low_watermark=NO_OFFSET, error_code=code
                    )
                    for part in topic.partitions
                ],
            )
            for topic in request.topics
        ]
        return DeleteRecordsResponse(topics=topics)


def _advance_log_start(replica: Replica, offset: int) -> None:
    """Hide the records below `offset`; the segments that hold nothing else go in the background, as in Kafka."""
    replica.log.advance_log_start(offset)
    replica.producers.transactions.advance_log_start(offset)
