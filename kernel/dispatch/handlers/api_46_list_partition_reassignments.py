"""Shell: ListPartitionReassignments (key 46): the moves of partitions that go on.

*Source:* KIP-455.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...contracts.pieces import ListPieces
from ...wire.messages.api_46_list_partition_reassignments import (
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

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


def list_partition_reassignments(
    image: MetadataImage, request: ListPartitionReassignmentsRequest
) -> ListPartitionReassignmentsResponse:
    """Return the reassignments that go on among the partitions asked for, or among all."""
    wanted: dict[str, Iterable[int]]
    if request.topics is None:
        wanted = {name: range(len(topic.partitions)) for name, topic in image.topics_by_name.items()}
    else:
        wanted = {topic.name: topic.partition_indexes for topic in request.topics}
    topics = []
    for name, indexes in wanted.items():
        moving = _moving(image, name, indexes)
        if moving:
            topics.append(OngoingTopicReassignment(name=name, partitions=moving))
    return ListPartitionReassignmentsResponse(error_message=None, topics=topics)


def _moving(image: MetadataImage, name: str, indexes: Iterable[int]) -> list[OngoingPartitionReassignment]:
    topic = image.topics_by_name.get(name)
    found = []
    for index in indexes:
        if topic is None or not 0 <= index < len(topic.partitions):
            continue
        state = topic.partitions[index]
        if state.adding_replicas or state.removing_replicas:
            found.append(
                OngoingPartitionReassignment(
                    partition_index=index,
                    replicas=list(state.replicas),
                    adding_replicas=list(state.adding_replicas),
                    removing_replicas=list(state.removing_replicas),
                )
            )
    return found
