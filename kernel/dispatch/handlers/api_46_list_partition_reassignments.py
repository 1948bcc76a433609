"""Shell: ListPartitionReassignments (key 46): the moves of partitions that go on.

*Source:* KIP-455.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...contracts.pieces import ListPieces
from ...controller.reassignments import list_partition_reassignments
from ...wire.messages.api_46_list_partition_reassignments import ListPartitionReassignmentsResponse

if TYPE_CHECKING:
    from collections.abc import Callable

    from ...contracts.api_handler import Answer, RequestContext
    from ...errors import ErrorCode
    from ...metadata.image import MetadataImage
    from ...wire.messages.api_46_list_partition_reassignments import ListPartitionReassignmentsRequest


class ListPartitionReassignmentsHandler:
    """Answers ListPartitionReassignments from the current image."""

    api_key = 46
    pieces = ListPieces("topics.partition_indexes", answers=["topics.partitions"])

    def __init__(self, *, image: Callable[[], MetadataImage]) -> None:
        """Make the handler; `image` returns the current image."""
        self._image = image

    def handle(self, request: ListPartitionReassignmentsRequest, context: RequestContext) -> Answer:
        """Answer at once."""
        return list_partition_reassignments(self._image(), request)

    def error_response(
        self, request: ListPartitionReassignmentsRequest, context: RequestContext, code: ErrorCode, detail: str
    ) -> Answer:
        """Return the response that fails as a whole."""
        return ListPartitionReassignmentsResponse(error_code=code, error_message=detail)
