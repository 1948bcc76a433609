"""Shell: CreateTopics (key 19): the controller decides; durable when answered.

*Source:* KIP-4, KIP-464 (defaults), KIP-525 (configs in the answer).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...contracts.pieces import ListPieces
from ...wire.messages.api_19_create_topics import CreatableTopicResult, CreateTopicsResponse
from ..controller_call import message_of
from ..long_requests import left_ms

if TYPE_CHECKING:
    from ...contracts.api_handler import Answer, RequestContext
    from ...errors import ErrorCode
    from ...metadata.controller_calls import ControllerCalls
    from ...wire.messages.api_19_create_topics import CreateTopicsRequest


class CreateTopicsHandler:
    """Answers CreateTopics through the controller."""

    api_key = 19
    pieces = ListPieces("topics", answers=["topics"], items_max=5, long_frame_bytes=256, together="name")

    def __init__(self, *, calls: ControllerCalls) -> None:
        """Make the handler; `calls` bring what is asked to the controller."""
        self._calls = calls

    async def handle_async(self, request: CreateTopicsRequest, context: RequestContext) -> Answer:
        """Answer once the topics are durable. Cancelled: the broker is stopping."""
        return await context.wait_aside(lambda: self._calls.ask(request, left_ms(request.timeout_ms, context)))

    def error_response(
        self, request: CreateTopicsRequest, context: RequestContext, code: ErrorCode, detail: str
    ) -> Answer:
        """Return the response that gives every topic this error."""
        message = message_of(code, detail)
        return CreateTopicsResponse(
            topics=[
                CreatableTopicResult(name=topic.name, error_code=code, error_message=message, configs=[])
                for topic in request.topics
            ]
        )
