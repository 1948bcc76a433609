"""Shell: CreatePartitions (key 37): the controller decides; durable when answered.

*Source:* KIP-195, KIP-599.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...contracts.pieces import ListPieces
from ...wire.messages.api_37_create_partitions import CreatePartitionsResponse, CreatePartitionsTopicResult
from ..controller_call import message_of
from ..long_requests import left_ms

if TYPE_CHECKING:
    from ...contracts.api_handler import Answer, RequestContext
    from ...errors import ErrorCode
    from ...metadata.controller_calls import ControllerCalls
    from ...wire.messages.api_37_create_partitions import CreatePartitionsRequest


class CreatePartitionsHandler:
    """Answers CreatePartitions through the controller."""

    api_key = 37
    pieces = ListPieces("topics", answers=["results"], items_max=5, long_frame_bytes=256, together="name")

    def __init__(self, *, calls: ControllerCalls) -> None:
        """Make the handler; `calls` bring what is asked to the controller."""
        self._calls = calls

    async def handle_async(self, request: CreatePartitionsRequest, context: RequestContext) -> Answer:
        """Answer once the partitions are durable. Cancelled: the broker is stopping."""
        return await context.wait_aside(lambda: self._calls.ask(request, left_ms(request.timeout_ms, context)))

    def error_response(
        self, request: CreatePartitionsRequest, context: RequestContext, code: ErrorCode, detail: str
    ) -> Answer:
        """Return the response that gives every topic this error."""
        message = message_of(code, detail)
        return CreatePartitionsResponse(
            results=[
                CreatePartitionsTopicResult(name=topic.name, error_code=code, error_message=message)
                for topic in request.topics
            ]
        )
