"""Shell: RemoveRaftVoter (key 81): a voter of the metadata quorum has no vote any more, and observes it.

*Source:* KIP-853.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...wire.messages.api_81_remove_raft_voter import RemoveRaftVoterResponse

if TYPE_CHECKING:
    from ...contracts.api_handler import Answer, RequestContext
    from ...errors import ErrorCode
    from ...metadata.controller_calls import ControllerCalls
    from ...wire.messages.api_81_remove_raft_voter import RemoveRaftVoterRequest


class RemoveRaftVoterHandler:
    """Answers RemoveRaftVoter through the controller."""

    api_key = 81

    def __init__(self, *, calls: ControllerCalls) -> None:
        """Make the handler; `calls` bring what is asked to the controller."""
        self._calls = calls

    async def handle_async(self, request: RemoveRaftVoterRequest, context: RequestContext) -> Answer:
        """Answer once the change is committed. Cancelled: the broker is stopping."""
        return await context.wait_aside(lambda: self._calls.ask(request))

    def error_response(
        self, request: RemoveRaftVoterRequest, context: RequestContext, code: ErrorCode, detail: str
    ) -> Answer:
        """Return the response that fails as a whole."""
        return RemoveRaftVoterResponse(error_code=code, error_message=detail)
