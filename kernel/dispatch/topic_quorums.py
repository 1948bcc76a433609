"""Shell: DescribeQuorum (key 55) of a cluster's broker: about topics whose replicas vote their leaders tell.

Kafka's request has room for any partition, and its brokers know one quorum, that of the metadata. So who asks about a
topic asks the partition's leader, which is in Metadata:

| answered of a partition | means |
| --- | --- |
| NONE | its leader is here: voters with the ends of their logs, epoch, high watermark |
| NOT_LEADER_OR_FOLLOWER | another one leads, as far as it is known here: leader and epoch stand beside it |
| KAFKA_STORAGE_ERROR | the replica here is offline |
| REQUEST_TIMED_OUT | the election here had no time |
| UNKNOWN_TOPIC_OR_PARTITION | there is none, its replicas do not vote, or it is the metadata's, beside others |

Times are the wall clock's. About the metadata log alone another handler tells.

*Source:* KIP-595, KIP-836, KIP-853.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..contracts.pieces import ListPieces
from ..errors import ErrorCode, error_code
from ..types import id_text
from ..wire.messages.api_55_describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    PartitionData,
    ResponsePartitionData,
    TopicData,
)
from .handlers.api_55_describe_quorum import answer_each, as_of, asks_for_metadata, refusal

if TYPE_CHECKING:
    from uuid import UUID

    from ..contracts.api_handler import Answer, ApiHandler, AsyncApiHandler, RequestContext
    from ..machine.clock import Clock
    from ..metadata.image import TopicImage
    from ..partitions.replicas import Replicas
    from ..replication.voted_topics import VotedTopics
    from .partition_votes import Voters


class TopicQuorums:
    """What this broker tells of the quorums of topics. Owned by the broker; any task may call."""

    def __init__(self, *, topics: VotedTopics, replicas: Replicas, voters: Voters, clock: Clock) -> None:
        """Make it.

        Args:
            topics: Whose replicas vote.
            replicas: Those of this broker.
            voters: Their elections.
            clock: Both clocks.
        """
        self._topics = topics
        self._replicas = replicas
        self._voters = voters
        self._clock = clock

    async def describe(self, request: DescribeQuorumRequest) -> DescribeQuorumResponse:
        """Answer about each partition. Cancelled: nothing happens."""
        asked: dict[UUID, TopicData] = {}
        names: dict[str, str] = {}
        told: dict[tuple[str, int], ResponsePartitionData] = {}
        for topic in request.topics:
            known = self._topics.find(topic.topic_name)
            for item in topic.partitions:
                index = item.partition_index
                refused = refusal(index) if known is None else self._refused(known, index)
                if refused is not None:
                    told[topic.topic_name, index] = refused
                elif known is not None:
                    text = id_text(known.topic_id)
                    names[text] = topic.topic_name
                    part = asked.setdefault(known.topic_id, TopicData(topic_name=text))
                    part.partitions.append(PartitionData(partition_index=index))
        if asked:
            answer: Any = await self._voters.answer(DescribeQuorumRequest(topics=list(asked.values())))
            for found in answer.topics:
                for part in found.partitions:
                    told[names[found.topic_name], part.partition_index] = self._shown(part)
        late = ErrorCode.REQUEST_TIMED_OUT
        return answer_each(request, lambda topic, index: told.get((topic, index)) or refusal(index, late, late.text))

    def _refused(self, topic: TopicImage, index: int) -> ResponsePartitionData | None:
        """Return why this broker's elections are not asked, None where one of them is."""
        if not 0 <= index < len(topic.partitions):
            return refusal(index)
        known = self._replicas.topics_by_id.get(topic.topic_id)
        replica = None if known is None else known.partitions.get(index)
        if replica is None:
            code, state = ErrorCode.NOT_LEADER_OR_FOLLOWER, topic.partitions[index]
            return refusal(index, code, code.text, (state.leader, state.leader_epoch))
        if replica.offline_reason is not None:
            return refusal(index, ErrorCode.KAFKA_STORAGE_ERROR, replica.offline_reason)
        return None

    def _shown(self, part: ResponsePartitionData) -> ResponsePartitionData:
        """Return an election's answer as clients read it: a text beside an error, times of the wall clock."""
        part.error_message = error_code(part.error_code).text if part.error_code else ""
        ahead_ms = self._clock.now_ms() - self._clock.monotonic_ms()
        for state in (*part.current_voters, *part.observers):
            if state.last_fetch_timestamp >= 0:
                state.last_fetch_timestamp += ahead_ms
            if state.last_caught_up_timestamp >= 0:
                state.last_caught_up_timestamp += ahead_ms
        return part


class QuorumsHandler:
    """Answers DescribeQuorum: about the metadata log as another handler does, about topics by itself."""

    api_key = 55
    pieces = ListPieces("topics.partitions", answers=["topics.partitions"])

    def __init__(self, *, metadata: ApiHandler | AsyncApiHandler, topics: TopicQuorums) -> None:
        """Make the handler; `metadata` is who tells of the metadata log."""
        self._metadata: Any = metadata
        self._topics = topics

    async def handle_async(self, request: DescribeQuorumRequest, context: RequestContext) -> Answer:
        """Answer. Cancelled: the broker is stopping."""
        if not asks_for_metadata(request):
            return as_of(context.api_version, await context.wait_aside(lambda: self._topics.describe(request)))
        if hasattr(self._metadata, "handle_async"):
            answer: Answer = await self._metadata.handle_async(request, context)
        else:
            answer = self._metadata.handle(request, context)
        return answer

    def error_response(
        self, request: DescribeQuorumRequest, context: RequestContext, code: ErrorCode, detail: str
    ) -> Answer:
        """Return the response that fails as a whole."""
        return DescribeQuorumResponse(error_code=code, error_message=detail)
