"""Pure core: what the shell adds to the election's messages, and what it answers for voters that are too old for one.

*Source:* KIP-853 (endpoints of the leader), KIP-996 (pre-votes); Kafka 4.3's `RaftUtil`.

.. versionadded:: 0.1
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ..wire.messages.api_52_vote import ResponsePartitionData, ResponseTopicData, VoteRequest, VoteResponse
from ..wire.messages.api_53_begin_quorum_epoch import BeginQuorumEpochRequest
from ..wire.messages.api_53_begin_quorum_epoch import LeaderEndpoint as BeginEndpoint
from ..wire.messages.api_54_end_quorum_epoch import EndQuorumEpochRequest
from ..wire.messages.api_54_end_quorum_epoch import LeaderEndpoint as EndEndpoint

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..wire.message import Message

PRE_VOTE_VERSION: Final = 2
"""From which version of Vote on a voter knows pre-votes."""
_ENDPOINTS: Final[dict[type[Message], type[Any]]] = {
    BeginQuorumEpochRequest: BeginEndpoint,
    EndQuorumEpochRequest: EndEndpoint,
}


def addressed(message: Any, cluster_id: str, endpoints: Iterable[tuple[str, str, int]]) -> Message:
    """Write into a request of the election what only its node knows, and return it.

    Args:
        message: The request.
        cluster_id: Of the cluster.
        endpoints: Name, host and port of this controller's listeners, which a leader tells.
    """
    message.cluster_id = cluster_id
    kind = _ENDPOINTS.get(type(message))
    if kind is not None:
        message.leader_endpoints = [kind(name=name, host=host, port=port) for name, host, port in endpoints]
    made: Message = message
    return made


def answer_of_older(request: Message, version: int) -> VoteResponse | None:
    """Return what is taken for the answer of a voter that knows a request up to a version only; None to ask it.

    Who knows no pre-votes has no say in whether somebody stands: it is taken to agree, and asked for its vote.
    """
    if not isinstance(request, VoteRequest) or version >= PRE_VOTE_VERSION:
        return None
    asked = [(topic.topic_name, item) for topic in request.topics for item in topic.partitions]
    if not any(item.pre_vote for _, item in asked):
        return None
    topics = [
        ResponseTopicData(
            topic_name=name,
            partitions=[
                ResponsePartitionData(
                    partition_index=item.partition_index,
                    leader_id=-1,
                    leader_epoch=item.replica_epoch,
                    vote_granted=True,
                )
            ],
        )
        for name, item in asked
    ]
    return VoteResponse(topics=topics)


def leader_in(response: Any) -> tuple[int, int]:
    """Return who leads according to an answer of the election's protocol, and in which epoch; -1 where it is silent."""
    items = [item for topic in response.topics for item in topic.partitions]
    return (items[0].leader_id, items[0].leader_epoch) if items else (-1, -1)
