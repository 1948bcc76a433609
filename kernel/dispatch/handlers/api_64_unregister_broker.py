"""Shell: UnregisterBroker (key 64): forgets a broker that will not come back.

*Source:* KIP-631.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...wire.messages.api_64_unregister_broker import UnregisterBrokerResponse

if TYPE_CHECKING:
    from ...contracts.api_handler import Answer, RequestContext
    from ...errors import ErrorCode
    from ...metadata.controller_calls import ControllerCalls
    from ...wire.messages.api_64_unregister_broker import UnregisterBrokerRequest


class UnregisterBrokerHandler:
    """Answers UnregisterBroker through the controller."""

    api_key = 64

    def __init__(self, *, calls: ControllerCalls) -> None:
        """Make the handler; `calls` bring what is asked to the controller."""
        self._calls = calls

    async def handle_async(self, request: UnregisterBrokerRequest, context: RequestContext) -> Answer:
        """Answer once the change is durable. Cancelled: the broker is stopping."""
        return await context.wait_aside(lambda: self._calls.ask(request))

    def error_response(
        self, request: UnregisterBrokerRequest, context: RequestContext, code: ErrorCode, detail: str
    ) -> Answer:
        """Return the response that fails as a whole."""
        return UnregisterBrokerResponse(error_code=code, error_message=detail)
