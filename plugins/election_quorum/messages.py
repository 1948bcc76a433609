"""Pure core: the messages of the quorum: what is asked, and what of a message is about this partition.

Kafka's form allows for many topics and partitions, and its quorums send one of each: whatever asks about several, or
about another, is refused. Cluster ids and addresses are the shell's.

*Source:* KIP-595, KIP-853, KIP-996; RaftUtil of Kafka 4.3.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from odradek.kernel.api import ErrorCode
from odradek.kernel.wire.messages.api_52_vote import PartitionData as VotePartition
from odradek.kernel.wire.messages.api_52_vote import ResponsePartitionData as VotedPartition
from odradek.kernel.wire.messages.api_52_vote import ResponseTopicData as VotedTopic
from odradek.kernel.wire.messages.api_52_vote import TopicData as VoteTopic
from odradek.kernel.wire.messages.api_52_vote import VoteRequest, VoteResponse
from odradek.kernel.wire.messages.api_53_begin_quorum_epoch import BeginQuorumEpochRequest, BeginQuorumEpochResponse
from odradek.kernel.wire.messages.api_53_begin_quorum_epoch import PartitionData as BeginPartition
from odradek.kernel.wire.messages.api_53_begin_quorum_epoch import ResponsePartitionData as BegunPartition
from odradek.kernel.wire.messages.api_53_begin_quorum_epoch import ResponseTopicData as BegunTopic
from odradek.kernel.wire.messages.api_53_begin_quorum_epoch import TopicData as BeginTopic
from odradek.kernel.wire.messages.api_54_end_quorum_epoch import (
    EndQuorumEpochRequest,
    EndQuorumEpochResponse,
    ReplicaInfo,
)
from odradek.kernel.wire.messages.api_54_end_quorum_epoch import PartitionData as EndPartition
from odradek.kernel.wire.messages.api_54_end_quorum_epoch import ResponsePartitionData as EndedPartition
from odradek.kernel.wire.messages.api_54_end_quorum_epoch import ResponseTopicData as EndedTopic
from odradek.kernel.wire.messages.api_54_end_quorum_epoch import TopicData as EndTopic
from odradek.kernel.wire.messages.api_55_describe_quorum import DescribeQuorumResponse, ReplicaState
from odradek.kernel.wire.messages.api_55_describe_quorum import ResponsePartitionData as DescribedPartition
from odradek.kernel.wire.messages.api_55_describe_quorum import ResponseTopicData as DescribedTopic

from .standing import NOBODY
from .voters import ReplicaKey

if TYPE_CHECKING:
    from collections.abc import Iterable

    from odradek.kernel.api import Message, TopicIdPartition

    from .leadership import Leadership, Progress
    from .standing import Standing


NOT_HERE: Final = "This server does not host this topic-partition."


class _Api(NamedTuple):
    """The classes of an answer."""

    response: type[Any]
    topic: type[Any]
    partition: type[Any]


ANSWERS: Final = {
    52: _Api(VoteResponse, VotedTopic, VotedPartition),
    53: _Api(BeginQuorumEpochResponse, BegunTopic, BegunPartition),
    54: _Api(EndQuorumEpochResponse, EndedTopic, EndedPartition),
    55: _Api(DescribeQuorumResponse, DescribedTopic, DescribedPartition),
}


def part_of(message: Any, partition: TopicIdPartition) -> Any:
    """Return the one item of a request or a response that is about this partition, None where there is another."""
    items = [(topic.topic_name, item) for topic in message.topics for item in topic.partitions]
    if len(items) != 1 or items[0][0] != partition.topic or items[0][1].partition_index != partition.partition:
        return None
    return items[0][1]


def answer(
    request: Message, partition: TopicIdPartition, standing: Standing, error: ErrorCode = ErrorCode.NONE, **more: object
) -> Message:
    """Return a response that tells the epoch and its leader.

    Args:
        request: What it answers.
        partition: Of this quorum.
        standing: Of this replica.
        error: Of the partition.
        more: Other fields of the partition's item.
    """
    api = ANSWERS[type(request).__api_key__]
    item = api.partition(
        partition_index=partition.partition,
        error_code=error,
        leader_id=standing.leader_id,
        leader_epoch=standing.epoch,
        **more,
    )
    topic = api.topic(topic_name=partition.topic, partitions=[item])
    made: Message = api.response(topics=[topic])
    return made


def refusal(request: Message, error: ErrorCode) -> Message:
    """Return a response that fails as a whole."""
    made: Message = ANSWERS[type(request).__api_key__].response(error_code=error)
    return made


class LastRecord(NamedTuple):
    """Where a log ends: what votes are compared by, the epoch first."""

    epoch: int
    end_offset: int


def vote_request(
    partition: TopicIdPartition,
    me: ReplicaKey,
    voter: ReplicaKey,
    epoch: int,
    last: LastRecord,
    *,
    pre_vote: bool,
    voters_epoch: int = 0,
) -> VoteRequest:
    """Return what asks a voter for its vote, or whether it would give it; `voters_epoch` says who counts."""
    item = VotePartition(
        partition_index=partition.partition,
        replica_epoch=epoch,
        replica_id=me.broker_id,
        replica_directory_id=me.directory_id,
        voter_directory_id=voter.directory_id,
        last_offset_epoch=last.epoch,
        last_offset=last.end_offset,
        pre_vote=pre_vote,
        voters_epoch=voters_epoch,
    )
    topic = VoteTopic(topic_name=partition.topic, partitions=[item])
    return VoteRequest(voter_id=voter.broker_id, topics=[topic])


def begin_request(partition: TopicIdPartition, voter: ReplicaKey, standing: Standing) -> BeginQuorumEpochRequest:
    """Return what tells a voter that this replica leads."""
    item = BeginPartition(
        partition_index=partition.partition,
        voter_directory_id=voter.directory_id,
        leader_id=standing.leader_id,
        leader_epoch=standing.epoch,
    )
    topic = BeginTopic(topic_name=partition.topic, partitions=[item])
    return BeginQuorumEpochRequest(voter_id=voter.broker_id, topics=[topic])


def end_request(
    partition: TopicIdPartition, standing: Standing, successors: Iterable[ReplicaKey]
) -> EndQuorumEpochRequest:
    """Return what tells a voter that this replica leads no more, and who should, the best first."""
    candidates = [
        ReplicaInfo(candidate_id=key.broker_id, candidate_directory_id=key.directory_id) for key in successors
    ]
    item = EndPartition(
        partition_index=partition.partition,
        leader_id=standing.leader_id,
        leader_epoch=standing.epoch,
        preferred_successors=[each.candidate_id for each in candidates],
        preferred_candidates=candidates,
    )
    return EndQuorumEpochRequest(topics=[EndTopic(topic_name=partition.topic, partitions=[item])])


def unknown_partitions(request: Any) -> Message:
    """Return the answer to a DescribeQuorum about what is no quorum here."""
    topics = [
        DescribedTopic(
            topic_name=topic.topic_name,
            partitions=[
                DescribedPartition(
                    partition_index=item.partition_index,
                    error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                    error_message=NOT_HERE,
                )
                for item in topic.partitions
            ],
        )
        for topic in request.topics
    ]
    return DescribeQuorumResponse(topics=topics)


def described(leadership: Leadership, me: ReplicaKey, own_end: int, now_ms: int, *, is_voter: bool) -> dict[str, Any]:
    """Return the fields of a DescribeQuorum answer about replicas; times are of the monotonic clock."""
    own = ReplicaState(
        replica_id=me.broker_id,
        replica_directory_id=me.directory_id,
        log_end_offset=own_end,
        last_fetch_timestamp=now_ms,
        last_caught_up_timestamp=now_ms,
    )
    voters = [_described(key, known) for key, known in leadership.followers.items()]
    observers = [
        _described(key, known) for key, known in sorted(leadership.observers.items(), key=lambda each: each[0])
    ]
    (voters if is_voter else observers).append(own)
    voters.sort(key=lambda state: state.replica_id)
    return {"current_voters": voters, "observers": observers}


def _described(key: ReplicaKey, known: Progress) -> ReplicaState:
    return ReplicaState(
        replica_id=key.broker_id,
        replica_directory_id=key.directory_id,
        log_end_offset=known.end,
        last_fetch_timestamp=known.fetched_ms,
        last_caught_up_timestamp=known.caught_up_ms,
    )


def first_successor(request: EndPartition) -> ReplicaKey | None:
    """Return who is to stand first, None where nobody is named."""
    named = [ReplicaKey(each.candidate_id, each.candidate_directory_id) for each in request.preferred_candidates]
    named += [ReplicaKey(broker_id) for broker_id in request.preferred_successors]
    return named[0] if named else None


def successor_place(request: EndPartition, me: ReplicaKey) -> tuple[int, int]:
    """Return this replica's place among the successors that a leader names, and how many there are."""
    if request.preferred_candidates:
        named = [ReplicaKey(each.candidate_id, each.candidate_directory_id) for each in request.preferred_candidates]
    else:
        named = [ReplicaKey(broker_id) for broker_id in request.preferred_successors]
    return next((place for place, key in enumerate(named) if key.means(me)), len(named)), len(named)


def is_from_nobody(replica_id: int) -> bool:
    """Return whether a request does not say whose it is."""
    return replica_id <= NOBODY
