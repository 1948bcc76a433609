"""Shell: OffsetCommit (key 8): how far a group has got.

*Source:* KIP-211 (versions 2 to 4 bring their own retention), KIP-345, KIP-848 (member epochs), KIP-848's topic ids.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from odradek.kernel.api import ErrorCode, ListPieces
from odradek.kernel.wire.messages.api_08_offset_commit import (
    OffsetCommitRequestPartition,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)

from ..offsets import Committer, TopicCommit
from .common import GroupHandler, Reply
from .partitions import SortedTopics

if TYPE_CHECKING:
    from collections.abc import Iterable

    from odradek.kernel.api import Answer, RequestContext
    from odradek.kernel.wire.messages.api_08_offset_commit import OffsetCommitRequest

    from .partitions import TopicCodes

_IDS_FROM: Final = 10


class OffsetCommitHandler(GroupHandler):
    """Answers OffsetCommit."""

    api_key = 8
    pieces = ListPieces("topics.partitions", answers=["topics.partitions"], begins_all=True)

    def handle(self, request: OffsetCommitRequest, context: RequestContext) -> Answer:
        """Answer once the offsets are committed; at once if there is none that could be."""
        topics = self._sorted(request, uses_ids=context.api_version >= _IDS_FROM)
        if not topics.known:
            return _response(topics.refused)
        committer = Committer(
            group_id=request.group_id,
            member_id=request.member_id,
            instance_id=request.group_instance_id,
            generation=request.generation_id_or_member_epoch,
            api_version=context.api_version,
            retention_ms=request.retention_time_ms,
        )
        commits = [TopicCommit(topic.name, topic.topic_id, topic.partitions) for topic in topics.known]
        reply = Reply(
            context,
            lambda code, detail: _response(topics.refused_all(code)),
            lambda codes: _response(topics.merged(codes)),
        )
        return self._submit(
            request.group_id, lambda shard, now_ms: shard.offsets.commit(committer, commits, now_ms), reply
        )

    def _sorted(self, request: OffsetCommitRequest, *, uses_ids: bool) -> SortedTopics[OffsetCommitRequestPartition]:
        cluster = self._broker.cluster
        topics: SortedTopics[OffsetCommitRequestPartition] = SortedTopics()
        for topic in request.topics:
            view = cluster.topic_by_id(topic.topic_id) if uses_ids else cluster.topic(topic.name)
            if view is None:
                code = ErrorCode.UNKNOWN_TOPIC_ID if uses_ids else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                topics.add_unknown(topic.name, topic.topic_id, topic.partitions, code)
            else:
                topics.add(view, topic.partitions)
        return topics

    def error_response(
        self, request: OffsetCommitRequest, context: RequestContext, code: ErrorCode, detail: str
    ) -> Answer:
        """Return the response that gives every partition this error."""
        topics: SortedTopics[OffsetCommitRequestPartition] = SortedTopics()
        for topic in request.topics:
            topics.add_unknown(topic.name, topic.topic_id, topic.partitions, code)
        return _response(topics.refused)


def _response(topics: Iterable[TopicCodes]) -> OffsetCommitResponse:
    return OffsetCommitResponse(
        topics=[
            OffsetCommitResponseTopic(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=[
                    OffsetCommitResponsePartition(partition_index=number, error_code=code)
                    for number, code in topic.codes
                ],
            )
            for topic in topics
        ]
    )
