"""Shell: AlterPartitionReassignments (key 45): begins and cancels moves of partitions.

*Source:* KIP-455, KIP-860 (replication factor).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...contracts.pieces import ListPieces
from ...wire.messages.api_45_alter_partition_reassignments import (
    AlterPartitionReassignmentsResponse,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)
from ..controller_call import message_of
from ..long_requests import left_ms

if TYPE_CHECKING:
    from ...contracts.api_handler import Answer, RequestContext
    from ...errors import ErrorCode
    from ...metadata.controller_calls import ControllerCalls
    from ...wire.messages.api_45_alter_partition_reassignments import AlterPartitionReassignmentsRequest


class AlterPartitionReassignmentsHandler:
    """Answers AlterPartitionReassignments through the controller."""

    api_key = 45
    pieces = ListPieces("topics.partitions", answers=["responses.partitions"])

    def __init__(self, *, calls: ControllerCalls) -> None:
        """Make the handler; `calls` bring what is asked to the controller."""
        self._calls = calls

    async def handle_async(self, request: AlterPartitionReassignmentsRequest, context: RequestContext) -> Answer:
        """Answer once the change is durable. Cancelled: the broker is stopping."""
        timeout_ms = left_ms(request.timeout_ms, context) if request.topics else None
        return await context.wait_aside(lambda: self._calls.ask(request, timeout_ms))

    def error_response(
        self, request: AlterPartitionReassignmentsRequest, context: RequestContext, code: ErrorCode, detail: str
    ) -> Answer:
        """Return the response that gives every partition this error."""
        message = message_of(code, detail)
        return AlterPartitionReassignmentsResponse(
            allow_replication_factor_change=request.allow_replication_factor_change,
            error_code=code,
            error_message=message,
            responses=[
                ReassignableTopicResponse(
                    name=topic.name,
                    partitions=[
                        ReassignablePartitionResponse(
                            partition_index=part.partition_index, error_code=code, error_message=message
                        )
                        for part in topic.partitions
                    ],
                )
                for topic in request.topics
            ],
        )
