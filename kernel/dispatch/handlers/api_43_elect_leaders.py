"""Shell: ElectLeaders (key 43): preferred and unclean elections, asked for by an operator.

*Source:* KIP-183, KIP-460.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ...contracts.pieces import ListPieces
from ...controller.partition_changes import elections_failed
from ...errors import ErrorCode
from ..controller_call import Submit, message_of, submit_within

if TYPE_CHECKING:
    from ...contracts.api_handler import Answer, RequestContext
    from ...wire.messages.api_43_elect_leaders import ElectLeadersRequest

FIRST_VERSION_WITH_ERROR: Final = 1
"""Before it, errors stand with the partitions alone."""


class ElectLeadersHandler:
    """Answers ElectLeaders through the controller."""

    api_key = 43
    pieces = ListPieces("topic_partitions.partitions", answers=["replica_election_results.partition_result"])

    def __init__(self, *, submit: Submit) -> None:
        """Make the handler; `submit` is `MetadataLog.submit`."""
        self._submit = submit

    async def handle_async(self, request: ElectLeadersRequest, context: RequestContext) -> Answer:
        """Answer once the elections are durable. Cancelled: the broker is stopping."""
        return await submit_within(
            self._submit,
            lambda controller, _: controller.elect_leaders(request),
            request.timeout_ms,
            is_empty=request.topic_partitions == [],
        )

    def error_response(
        self, request: ElectLeadersRequest, context: RequestContext, code: ErrorCode, detail: str
    ) -> Answer:
        """Return the response that gives every partition this error."""
        response = elections_failed(request, code, message_of(code, detail))
        if context.api_version < FIRST_VERSION_WITH_ERROR:
            response.error_code = ErrorCode.NONE
        return response
