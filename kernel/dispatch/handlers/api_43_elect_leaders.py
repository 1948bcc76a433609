"""Shell: ElectLeaders (key 43): preferred and unclean elections, asked for by an operator.

The controller elects, but where replicas vote: there leaders are asked to make way (`replication/hand_overs.py`). The
controller says first of the other partitions what it says without them, for it waits for nobody, and what it takes is
of the caller's time. An unclean election there is none of such: the controller refuses it.

*Source:* KIP-183, KIP-460.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

import trio

from ...contracts.pieces import ListPieces
from ...errors import ErrorCode
from ...metadata.election_answers import elections_failed
from ...wire.messages.api_43_elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
    TopicPartitions,
)
from ..controller_call import message_of
from ..long_requests import left_ms

if TYPE_CHECKING:
    from collections.abc import Mapping, Set

    from ...contracts.api_handler import Answer, RequestContext
    from ...metadata.controller_calls import ControllerCalls
    from ...replication.hand_overs import HandOvers, Outcome

PREFERRED: Final = 0
FIRST_VERSION_WITH_ERROR: Final = 1
"""Before it, errors stand with the partitions alone."""


class ElectLeadersHandler:
    """Answers ElectLeaders through the controller, and through leaders that were voted for."""

    api_key = 43
    pieces = ListPieces("topic_partitions.partitions", answers=["replica_election_results.partition_result"])

    def __init__(self, *, calls: ControllerCalls, hand_overs: HandOvers | None = None) -> None:
        """Make the handler.

        Args:
            calls: Bring what is asked to the controller.
            hand_overs: How leaders that were voted for make way; None: there are none, or others ask them.
        """
        self._calls = calls
        self._hand_overs = hand_overs

    async def handle_async(self, request: ElectLeadersRequest, context: RequestContext) -> Answer:
        """Answer once the elections are durable. Cancelled: the broker is stopping."""
        if self._hand_overs is None or request.election_type != PREFERRED or request.topic_partitions == []:
            return await context.wait_aside(lambda: self._ask(request, left_ms(request.timeout_ms, context)))
        limit_ms = left_ms(request.timeout_ms, context)
        return await context.wait_aside(partial(self._elect, request, self._hand_overs, limit_ms))

    async def _elect(
        self, request: ElectLeadersRequest, hand_overs: HandOvers, timeout_ms: int
    ) -> ElectLeadersResponse:
        """Have the controller elect, then those who vote, in what is left of the time."""
        asked = request.topic_partitions
        wanted = None if asked is None else [(topic.topic, index) for topic in asked for index in topic.partitions]
        begun_s = trio.current_time()
        rest = request if wanted is None else _without(request, hand_overs.voted(wanted))
        answer = ElectLeadersResponse() if rest.topic_partitions == [] else await self._ask(rest, timeout_ms)
        spent_ms = int((trio.current_time() - begun_s) * 1000)
        return _joined(answer, await hand_overs.elect(wanted, timeout_ms - spent_ms))

    async def _ask(self, request: ElectLeadersRequest, timeout_ms: int) -> ElectLeadersResponse:
        limit_ms = None if request.topic_partitions == [] else timeout_ms
        answer: ElectLeadersResponse = await self._calls.ask(request, limit_ms)
        return answer

    def error_response(
        self, request: ElectLeadersRequest, context: RequestContext, code: ErrorCode, detail: str
    ) -> Answer:
        """Return the response that gives every partition this error."""
        response = elections_failed(request, code, message_of(code, detail))
        if context.api_version < FIRST_VERSION_WITH_ERROR:
            response.error_code = ErrorCode.NONE
        return response


def _without(request: ElectLeadersRequest, voted: Set[tuple[str, int]]) -> ElectLeadersRequest:
    """Return what the controller is to be asked for where partitions are named: not those whose replicas vote."""
    if not voted:
        return request
    left = [
        TopicPartitions(topic=topic.topic, partitions=indexes)
        for topic in request.topic_partitions or ()
        if (indexes := [index for index in topic.partitions if (topic.topic, index) not in voted])
    ]
    return ElectLeadersRequest(
        election_type=request.election_type, topic_partitions=left, timeout_ms=request.timeout_ms
    )


def _joined(answer: ElectLeadersResponse, voted: Mapping[tuple[str, int], Outcome]) -> ElectLeadersResponse:
    """Return the controller's answer with what became of the partitions whose replicas vote."""
    results = {result.topic: result for result in answer.replica_election_results}
    for (topic, index), outcome in voted.items():
        result = results.setdefault(topic, ReplicaElectionResult(topic=topic))
        result.partition_result.append(
            PartitionResult(partition_id=index, error_code=outcome.code, error_message=outcome.message)
        )
    answer.replica_election_results = list(results.values())
    return answer
