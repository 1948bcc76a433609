"""Shell: ListPartitionReassignments (key 46): the moves of partitions that go on.

The controller tells: who has just asked for a move, and asks a broker whose metadata is older, would take it for done.

*Source:* KIP-455.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...contracts.pieces import ListPieces
from ...wire.messages.api_46_list_partition_reassignments import ListPartitionReassignmentsResponse

if TYPE_CHECKING:
    from ...contracts.api_handler import Answer, RequestContext
    from ...errors import ErrorCode
    from ...metadata.controller_calls import ControllerCalls
    from ...wire.messages.api_46_list_partition_reassignments import ListPartitionReassignmentsRequest


class ListPartitionReassignmentsHandler:
    """Answers ListPartitionReassignments through the controller."""

    api_key = 46
    pieces = ListPieces("topics.partition_indexes", answers=["topics.partitions"])

    def __init__(self, *, calls: ControllerCalls) -> None:
        """Make the handler; `calls` bring what is asked to the controller."""
        self._calls = calls

    async def handle_async(self, request: ListPartitionReassignmentsRequest, context: RequestContext) -> Answer:
        """Answer what the controller answers, however long it takes, as Kafka does. Cancelled: nobody waits for it."""
        return await context.wait_aside(lambda: self._calls.ask(request))

    def error_response(
        self, request: ListPartitionReassignmentsRequest, context: RequestContext, code: ErrorCode, detail: str
    ) -> Answer:
        """Return the response that fails as a whole."""
        return ListPartitionReassignmentsResponse(error_code=code, error_message=detail)
