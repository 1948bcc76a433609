"""Shell: ElectLeaders (key 43): preferred and unclean elections, asked for by an operator.

*Source:* KIP-183, KIP-460.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ...contracts.pieces import ListPieces
from ...errors import ErrorCode
from ...metadata.election_answers import elections_failed
from ..controller_call import message_of

if TYPE_CHECKING:
    from ...contracts.api_handler import Answer, RequestContext
    from ...metadata.controller_calls import ControllerCalls
    from ...wire.messages.api_43_elect_leaders import ElectLeadersRequest

FIRST_VERSION_WITH_ERROR: Final = 1
"""Before it, errors stand with the partitions alone."""


class ElectLeadersHandler:
    """Answers ElectLeaders through the controller."""

    api_key = 43
    pieces = ListPieces("topic_partitions.partitions", answers=["replica_election_results.partition_result"])

    def __init__(self, *, calls: ControllerCalls) -> None:
        """Make the handler; `calls` bring what is asked to the controller."""
        self._calls = calls

    async def handle_async(self, request: ElectLeadersRequest, context: RequestContext) -> Answer:
        """Answer once the elections are durable. Cancelled: the broker is stopping."""
        return await self._calls.ask(request, None if request.topic_partitions == [] else request.timeout_ms)

    def error_response(
        self, request: ElectLeadersRequest, context: RequestContext, code: ErrorCode, detail: str
    ) -> Answer:
        """Return the response that gives every partition this error."""
        response = elections_failed(request, code, message_of(code, detail))
        if context.api_version < FIRST_VERSION_WITH_ERROR:
            response.error_code = ErrorCode.NONE
        return response
