"""Shell: OffsetDelete (key 47): forget committed offsets of topics that the group does not read.

*Source:* KIP-496.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from odradek.kernel.api import ZERO_ID, ErrorCode, ListPieces
from odradek.kernel.wire.messages.api_47_offset_delete import (
    OffsetDeleteRequestPartition,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)

from .common import NO_GROUP_ID, GroupHandler, Reply
from .partitions import SortedTopics

if TYPE_CHECKING:
    from collections.abc import Iterable

    from odradek.kernel.api import Answer, RequestContext
    from odradek.kernel.wire.messages.api_47_offset_delete import OffsetDeleteRequest

    from .partitions import TopicCodes


class OffsetDeleteHandler(GroupHandler):
    """Answers OffsetDelete."""

    api_key = 47
    pieces = ListPieces("topics.partitions", answers=["topics.partitions"])

    def handle(self, request: OffsetDeleteRequest, context: RequestContext) -> Answer:
        """Answer once the tombstones are committed."""
        if request.group_id == NO_GROUP_ID:
            return OffsetDeleteResponse(error_code=ErrorCode.INVALID_GROUP_ID)
        topics: SortedTopics[OffsetDeleteRequestPartition] = SortedTopics()
        for topic in request.topics:
            view = self._broker.cluster.topic(topic.name)
            if view is None:
                topics.add_unknown(topic.name, ZERO_ID, topic.partitions, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            else:
                topics.add(view, topic.partitions)
        wanted = [(topic.name, [item.partition_index for item in topic.partitions]) for topic in topics.known]

        def build(codes: list[ErrorCode]) -> OffsetDeleteResponse:
            by_partition = ([code] * len(numbers) for code, (_, numbers) in zip(codes, wanted, strict=True))
            return _response(topics.merged(by_partition))

        reply = Reply(context, partial(self.error_response, request, context), build)
        return self._submit(
            request.group_id, lambda shard, now_ms: shard.offsets.delete(request.group_id, wanted), reply
        )

    def error_response(
        self, request: OffsetDeleteRequest, context: RequestContext, code: ErrorCode, detail: str
    ) -> Answer:
        """Return the response that fails as a whole."""
        return OffsetDeleteResponse(error_code=code)


def _response(topics: Iterable[TopicCodes]) -> OffsetDeleteResponse:
    return OffsetDeleteResponse(
        topics=[
            OffsetDeleteResponseTopic(
                name=topic.name,
                partitions=[
                    OffsetDeleteResponsePartition(partition_index=number, error_code=code)
                    for number, code in topic.codes
                ],
            )
            for topic in topics
        ]
    )
