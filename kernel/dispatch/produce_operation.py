"""Shell: a Produce request between its appends and its answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..errors import ErrorCode
from ..purgatory.delayed_operation import Outcome
from .request_operation import RequestOperation

if TYPE_CHECKING:
    from ..contracts.api_handler import RequestContext
    from ..partitions.replica import Replica
    from ..wire.messages.api_00_produce import PartitionProduceResponse, ProduceResponse
    from .current_leaders import CurrentLeaders


class WaitingPartition:
    """One partition of the request that is not acknowledged yet.

    Attributes:
        replica: Where its batch went.
        required_offset: It is acknowledged when the replica has everything below this.
        answer: Its part of the response, with error 0 until something goes wrong.
    """

    __slots__ = ("answer", "replica", "required_offset")

    def __init__(self, replica: Replica, required_offset: int, answer: PartitionProduceResponse) -> None:
        self.replica = replica
        self.required_offset = required_offset
        self.answer = answer


class ProduceOperation(RequestOperation):
    """Waits until every batch of a request is as safe as its acks ask for.

    acks=1 waits until the batch is written (and flushed, where the topic asks for that), acks=all until the high
    watermark has passed it. With one replica both hold at the end of the turn that brought the request. With acks=0 it
    ends as with acks=1, without a response. Where the in-sync replicas have become too few meanwhile, what is committed
    is told with NOT_ENOUGH_REPLICAS_AFTER_APPEND, as in Kafka.
    """

    __slots__ = ("leaders", "needs_high_watermark", "response", "waiting")

    def __init__(
        self,
        *,
        deadline_ms: int,
        context: RequestContext,
        response: ProduceResponse | None,
        waiting: list[WaitingPartition],
        needs_high_watermark: bool,
        leaders: CurrentLeaders,
    ) -> None:
        super().__init__(deadline_ms, context)
        self.leaders = leaders
        self.response = response
        self.waiting = waiting
        self.needs_high_watermark = needs_high_watermark

    def _error(self, part: WaitingPartition) -> int:
        """Return 0 when the partition is acknowledged, -1 when it is not yet, else why it never will be."""
        replica = part.replica
        if replica.offline_reason is not None:
            return replica.offline_code
        if not replica.is_leader:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        if not self.needs_high_watermark:
            return 0 if part.required_offset <= replica.appended_offset else -1
        if part.required_offset > replica.high_watermark:
            return -1
        return 0 if replica.election.can_acknowledge() else ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND

    def is_ready(self) -> bool:
        """Return whether every partition is acknowledged or has failed."""
        return all(self._error(part) >= 0 for part in self.waiting)

    def finish(self, outcome: Outcome) -> None:
        """Answer with what became of each partition; REQUEST_TIMED_OUT for those that were too slow."""
        if outcome is Outcome.CANCELLED:
            return
        has_failed = False
        for part in self.waiting:
            error = self._error(part)
            if error:
                has_failed = True
                answer = part.answer
                answer.error_code = error if error > 0 else ErrorCode.REQUEST_TIMED_OUT
                answer.base_offset = answer.log_append_time_ms = answer.log_start_offset = -1
        if has_failed and self.response is not None:
            self.leaders.tell_producer(self.response, self.context)
        self.context.reply(self.response)
