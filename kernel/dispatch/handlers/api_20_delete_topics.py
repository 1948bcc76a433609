"""Shell: DeleteTopics (key 20): gone from the metadata when answered; the bytes go in the background.

*Source:* KIP-4, KIP-516 (ids), KIP-599.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ...contracts.pieces import ListPieces
from ...errors import ErrorCode
from ...wire.messages.api_20_delete_topics import DeletableTopicResult, DeleteTopicsResponse
from ..controller_call import message_of
from ..long_requests import left_ms

if TYPE_CHECKING:
    from ...contracts.api_handler import Answer, RequestContext
    from ...metadata.controller_calls import ControllerCalls
    from ...wire.messages.api_20_delete_topics import DeleteTopicsRequest

FIRST_VERSION_WITH_DISABLED: Final = 3
"""Before it, clients do not know TOPIC_DELETION_DISABLED."""


class DeleteTopicsHandler:
    """Answers DeleteTopics through the controller."""

    api_key = 20
    pieces = ListPieces(
        "topics", "topic_names", answers=["responses"], items_max=50, long_frame_bytes=1024, together="name topic_id"
    )

    def __init__(self, *, calls: ControllerCalls) -> None:
        """Make the handler; `calls` bring what is asked to the controller."""
        self._calls = calls

    async def handle_async(self, request: DeleteTopicsRequest, context: RequestContext) -> Answer:
        """Answer once the deletion is durable. Cancelled: the broker is stopping."""
        return await context.wait_aside(lambda: self._calls.ask(request, left_ms(request.timeout_ms, context)))

    def error_response(
        self, request: DeleteTopicsRequest, context: RequestContext, code: ErrorCode, detail: str
    ) -> Answer:
        """Return the response that gives every topic this error."""
        if code is ErrorCode.TOPIC_DELETION_DISABLED and context.api_version < FIRST_VERSION_WITH_DISABLED:
            code = ErrorCode.INVALID_REQUEST
        message = message_of(code, detail)
        results = [
            DeletableTopicResult(name=name, error_code=code, error_message=message) for name in request.topic_names
        ]
        results += [
            DeletableTopicResult(name=topic.name, topic_id=topic.topic_id, error_code=code, error_message=message)
            for topic in request.topics
        ]
        return DeleteTopicsResponse(responses=results)
