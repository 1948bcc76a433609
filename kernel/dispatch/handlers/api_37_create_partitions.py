"""Shell: CreatePartitions (key 37): the controller decides; durable when answered.

*Source:* KIP-195, KIP-599.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...contracts.pieces import ListPieces
from ...wire.messages.api_37_create_partitions import CreatePartitionsResponse, CreatePartitionsTopicResult
from ..controller_call import Submit, message_of, submit_within

if TYPE_CHECKING:
    from ...contracts.api_handler import Answer, RequestContext
    from ...errors import ErrorCode
    from ...wire.messages.api_37_create_partitions import CreatePartitionsRequest


class CreatePartitionsHandler:
    """Answers CreatePartitions through the controller."""

    api_key = 37
    pieces = ListPieces("topics", answers=["results"], items_max=5, long_frame_bytes=256, together="name")

    def __init__(self, *, submit: Submit) -> None:
        """Make the handler; `submit` is `MetadataLog.submit`."""
        self._submit = submit

    async def handle_async(self, request: CreatePartitionsRequest, context: RequestContext) -> Answer:
        """Answer once the partitions are durable. Cancelled: the broker is stopping."""
        return await submit_within(
            self._submit, lambda controller, _: controller.create_partitions(request), request.timeout_ms
        )

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
