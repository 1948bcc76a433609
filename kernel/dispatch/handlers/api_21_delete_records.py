"""Shell: DeleteRecords (key 21): moves the log start of partitions up; -1 stands for the high watermark.

The answer's low watermark is the smallest log start offset of all live replicas. It waits until that is where it was
asked to be: followers learn of it with their fetches, and tell theirs with the next ones.

*Source:* KIP-107; Kafka's DelayedDeleteRecords; answers compared with Apache Kafka 4.3.1.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Final, NamedTuple

import attrs

from ...classes import define
from ...contracts.api_handler import PENDING
from ...contracts.pieces import ListPieces
from ...errors import ErrorCode, KafkaError
from ...partitions.delay_recovery import start_with_companion
from ...partitions.leading import advance_log_start
from ...purgatory.delayed_operation import Outcome
from ...types import NO_EPOCH, NO_OFFSET
from ...wire.messages.api_21_delete_records import (
    DeleteRecordsPartitionResult,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from ..long_requests import left_ms
from ..request_operation import RequestOperation

if TYPE_CHECKING:
    from collections.abc import Callable

    from ...contracts.api_handler import Answer, RequestContext
    from ...machine.clock import Clock
    from ...partitions.delay_withdrawal import Looks
    from ...partitions.replica import Replica
    from ...partitions.replicas import Replicas
    from ...partitions.staged_writes import StagedWrites
    from ...purgatory.purgatory import Purgatory
    from ...wire.messages.api_21_delete_records import DeleteRecordsRequest

TO_HIGH_WATERMARK: Final = -1


class WaitingDeletion(NamedTuple):
    """A partition of which a live replica still has what was deleted, or does not know that it waits no more."""

    replica: Replica
    target: int
    committed_at: int
    answer: DeleteRecordsPartitionResult

    def error(self) -> ErrorCode | None:
        """Return NONE when no live replica has it any more, None while one has, else why that will not be known."""
        replica = self.replica
        if replica.offline_reason is not None:
            return ErrorCode.KAFKA_STORAGE_ERROR
        if not replica.is_leader:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        is_gone = replica.low_watermark >= self.target and replica.high_watermark >= self.committed_at
        return ErrorCode.NONE if is_gone else None


@define
class _Asked:
    """One request that is being answered, or one piece of it.

    Attributes:
        may_lose_records: Whether a topic may, looked up once for each.
        waiting: Partitions for which it has to wait.
        looks: What queues may be asked for it, None before one was.
    """

    may_lose_records: Callable[[str], bool]
    waiting: list[WaitingDeletion] = attrs.field(factory=list)
    looks: Looks | None = None


class DeleteRecordsOperation(RequestOperation):
    """A DeleteRecords that waits until followers have given up what the leader has."""

    __slots__ = ("_response", "_waiting")

    def __init__(
        self,
        deadline_ms: int,
        context: RequestContext,
        response: DeleteRecordsResponse,
        waiting: list[WaitingDeletion],
    ) -> None:
        super().__init__(deadline_ms, context)
        self._response = response
        self._waiting = waiting

    def is_ready(self) -> bool:
        """Return whether nothing more is to be waited for."""
        return all(each.error() is not None for each in self._waiting)

    def finish(self, outcome: Outcome) -> None:
        """Answer; REQUEST_TIMED_OUT where a follower was too slow."""
        if outcome is Outcome.CANCELLED:
            return
        for each in self._waiting:
            error = each.error()
            code = ErrorCode.REQUEST_TIMED_OUT if error is None else error
            each.answer.error_code = code
            each.answer.low_watermark = each.replica.low_watermark if code is ErrorCode.NONE else NO_OFFSET
        self.context.reply(self._response)


class DeleteRecordsHandler:
    """Answers DeleteRecords. Owned by the reactor's task."""

    api_key = 21
    # As Kafka, which deletes everywhere and then waits: once, for the slowest follower of all.
    pieces = ListPieces("topics.partitions", answers=["topics.partitions"], begins_all=True)

    def __init__(
        self,
        *,
        replicas: Replicas,
        may_lose_records: Callable[[str], bool],
        purgatory: Purgatory,
        clock: Clock,
        writes: StagedWrites,
    ) -> None:
        """Make the handler.

        Args:
            replicas: Whose records are deleted.
            purgatory: Where requests wait for followers.
            clock: The monotonic one.
            writes: The way to the disk of what withdraws delayed records.
            may_lose_records: Whether a topic's `cleanup.policy` contains `delete`, or nothing: a topic that keeps
                everything is trimmed by hand.
        """
        self._replicas = replicas
        self._may_lose_records = may_lose_records
        self._purgatory = purgatory
        self._clock = clock
        self._writes = writes

    def handle(self, request: DeleteRecordsRequest, context: RequestContext) -> Answer:
        """Delete what is asked for; of a partition named twice the last counts. A topic without any is left out."""
        topics = []
        asked = _Asked(functools.cache(self._may_lose_records))
        for topic in request.topics:
            offsets = {part.partition_index: part.offset for part in topic.partitions}
            if offsets:
                answers = [self._answer(topic.name, index, offset, asked) for index, offset in offsets.items()]
                topics.append(DeleteRecordsTopicResult(name=topic.name, partitions=answers))
        response = DeleteRecordsResponse(topics=topics)
        if not asked.waiting:
            return response
        deadline_ms = self._clock.monotonic_ms() + max(left_ms(request.timeout_ms, context), 0)
        operation = DeleteRecordsOperation(deadline_ms, context, response, asked.waiting)
        self._purgatory.watch(operation, list(dict.fromkeys(each.replica for each in asked.waiting)))
        return PENDING

    def _answer(self, topic: str, index: int, offset: int, asked: _Asked) -> DeleteRecordsPartitionResult:
        answer = DeleteRecordsPartitionResult(partition_index=index, low_watermark=NO_OFFSET)
        try:
            replica, target, committed_at = self._delete(topic, index, offset, asked)
            answer.low_watermark = replica.low_watermark
        except KafkaError as error:
            answer.error_code = error.code
        except Exception as error:  # whatever a storage raises is its partition's matter alone
            self._replicas.note_failure(topic, index, error)
            answer.error_code = ErrorCode.KAFKA_STORAGE_ERROR
        else:
            if answer.low_watermark < target or replica.high_watermark < committed_at:
                asked.waiting.append(WaitingDeletion(replica, target, committed_at, answer))
        return answer

    def _delete(self, topic: str, index: int, offset: int, asked: _Asked) -> tuple[Replica, int, int]:
        """Delete the records of one partition below `offset`; return its replica, that offset, what to commit."""
        replica = self._replicas.get(topic, index)
        if topic in self._replicas.internal_topics:
            raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION)
        replica.check_leader(NO_EPOCH)
        if not asked.may_lose_records(topic):
            raise KafkaError(ErrorCode.POLICY_VIOLATION)
        target = replica.high_watermark if offset == TO_HIGH_WATERMARK else offset
        if not 0 <= target <= replica.high_watermark:
            raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE)
        if replica.delays is not None or replica.delay_beginning is not None:
            target = start_with_companion(replica.log, target)
        committed_at = 0
        if replica.delays is not None:
            from ...partitions.delay_withdrawal import Looks, may_withdraw, withdraw_below  # others do not pay for it

            asked.looks = asked.looks or Looks()
            if may_withdraw(replica.delays, target):
                committed_at = withdraw_below(replica, target, asked.looks) or 0
                self._writes.stage(replica)
                self._replicas.changed.note((replica,))
        if target > replica.log.log_start_offset:
            advance_log_start(replica, target)
            self._replicas.changed.note((replica,))
        return replica, target, committed_at

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
