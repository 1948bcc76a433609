"""Shell: AddRaftVoter (key 80): a controller that observes the metadata quorum gets a vote.

*Source:* KIP-853.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...wire.messages.api_80_add_raft_voter import AddRaftVoterResponse

if TYPE_CHECKING:
    from ...contracts.api_handler import Answer, RequestContext
    from ...errors import ErrorCode
    from ...metadata.controller_calls import ControllerCalls
    from ...wire.messages.api_80_add_raft_voter import AddRaftVoterRequest


class AddRaftVoterHandler:
    """Answers AddRaftVoter through the controller."""

    api_key = 80

    def __init__(self, *, calls: ControllerCalls) -> None:
        """Make the handler; `calls` bring what is asked to the controller."""
        self._calls = calls

    async def handle_async(self, request: AddRaftVoterRequest, context: RequestContext) -> Answer:
        """Answer once the change is committed. Cancelled: the broker is stopping."""
        return await context.wait_aside(lambda: self._calls.ask(request, request.timeout_ms))

    def error_response(
        self, request: AddRaftVoterRequest, context: RequestContext, code: ErrorCode, detail: str
    ) -> Answer:
        """Return the response that fails as a whole."""
        return AddRaftVoterResponse(error_code=code, error_message=detail)
