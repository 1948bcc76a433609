"""Shell: OffsetForLeaderEpoch (key 23): where the records of a leader epoch end: there a reader truncates.

An epoch that is not known, because it is newer than all or is -1, gets (-1, -1) and no error.

*Source:* KIP-101, KIP-279, KIP-320; answers compared with Apache Kafka 4.3.1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...contracts.log_values import EpochEnd
from ...contracts.pieces import ListPieces
from ...errors import ErrorCode, KafkaError
from ...types import NO_EPOCH, NO_OFFSET
from ...wire.messages.api_23_offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderTopicResult,
)

if TYPE_CHECKING:
    from ...contracts.api_handler import Answer, RequestContext
    from ...partitions.replicas import Replicas
    from ...wire.messages.api_23_offset_for_leader_epoch import OffsetForLeaderEpochRequest, OffsetForLeaderPartition

UNKNOWN_END = EpochEnd(NO_EPOCH, NO_OFFSET)


class OffsetForLeaderEpochHandler:
    """Answers OffsetForLeaderEpoch. Owned by the reactor's task."""

    api_key = 23
    pieces = ListPieces("topics.partitions", answers=["topics.partitions"])

    def __init__(self, *, replicas: Replicas) -> None:
        self._replicas = replicas

    def handle(self, request: OffsetForLeaderEpochRequest, context: RequestContext) -> Answer:
        """Look up every partition."""
        topics = [
            OffsetForLeaderTopicResult(
                topic=topic.topic, partitions=[self._answer(topic.topic, wanted) for wanted in topic.partitions]
            )
            for topic in request.topics
        ]
        return OffsetForLeaderEpochResponse(topics=topics)

    def _answer(self, topic: str, wanted: OffsetForLeaderPartition) -> EpochEndOffset:
        try:
            end = self._find(topic, wanted)
        except KafkaError as error:
            return EpochEndOffset(partition=wanted.partition, error_code=error.code)
        except Exception as error:  # whatever a storage raises is its partition's matter alone
            self._replicas.note_failure(topic, wanted.partition, error)
            return EpochEndOffset(partition=wanted.partition, error_code=ErrorCode.KAFKA_STORAGE_ERROR)
        return EpochEndOffset(partition=wanted.partition, leader_epoch=end.leader_epoch, end_offset=end.end_offset)

    def _find(self, topic: str, wanted: OffsetForLeaderPartition) -> EpochEnd:
        replica = self._replicas.get(topic, wanted.partition)
        replica.check_leader(wanted.current_leader_epoch)
        if wanted.leader_epoch < 0:
            return UNKNOWN_END
        return replica.log.end_offset_for_epoch(wanted.leader_epoch)

    def error_response(
        self, request: OffsetForLeaderEpochRequest, context: RequestContext, code: ErrorCode, detail: str
    ) -> Answer:
        """Return the response that gives every partition this error."""
        topics = [
            OffsetForLeaderTopicResult(
                topic=topic.topic,
                partitions=[EpochEndOffset(partition=part.partition, error_code=code) for part in topic.partitions],
            )
            for topic in request.topics
        ]
        return OffsetForLeaderEpochResponse(topics=topics)
