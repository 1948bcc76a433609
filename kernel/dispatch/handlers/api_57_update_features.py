"""Shell: UpdateFeatures (key 57): finalizes features at other levels.

*Source:* KIP-584, KIP-1022.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ...wire.messages.api_57_update_features import UpdatableFeatureResult, UpdateFeaturesResponse
from ..controller_call import message_of

if TYPE_CHECKING:
    from ...contracts.api_handler import Answer, RequestContext
    from ...errors import ErrorCode
    from ...metadata.controller_calls import ControllerCalls
    from ...wire.messages.api_57_update_features import UpdateFeaturesRequest

FIRST_VERSION_WITHOUT_RESULTS: Final = 2
"""Before it, a request that succeeds is answered with one result for each feature."""


class UpdateFeaturesHandler:
    """Answers UpdateFeatures through the controller."""

    api_key = 57

    def __init__(self, *, calls: ControllerCalls) -> None:
        """Make the handler; `calls` bring what is asked to the controller."""
        self._calls = calls

    async def handle_async(self, request: UpdateFeaturesRequest, context: RequestContext) -> Answer:
        """Answer once the change is durable. Cancelled: the broker is stopping."""
        response = await context.wait_aside(lambda: self._calls.ask(request, request.timeout_ms))
        if context.api_version < FIRST_VERSION_WITHOUT_RESULTS and response.error_code == 0:
            response.results = [
                UpdatableFeatureResult(feature=update.feature, error_message="NONE")
                for update in request.feature_updates
            ]
        return response

    def error_response(
        self, request: UpdateFeaturesRequest, context: RequestContext, code: ErrorCode, detail: str
    ) -> Answer:
        """Return the response that fails as a whole."""
        return UpdateFeaturesResponse(error_code=code, error_message=message_of(code, detail))
