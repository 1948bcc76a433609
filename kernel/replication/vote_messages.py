"""Pure core: what elections of many partitions have to tell one broker goes in one message; each reads its own part.

    election of t-0: VoteRequest(t-0) ─┐                                   ┌─> VoteRequest(t-0): election of t-0
    election of t-1: VoteRequest(t-1) ─┴─> `gathered` ═════════> `parts` ──┴─> VoteRequest(t-1): election of t-1

Vote, BeginQuorumEpoch and EndQuorumEpoch have room for many topics and partitions, as has a client's DescribeQuorum; an
election knows those of its own partition. On the way topics are named by their ids: one of the same name may be another
topic by now.

*Source:* KIP-595, for the messages; Kafka's own quorums have one partition.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ..errors import ErrorCode
from ..types import id_text, parse_id
from ..wire.messages import api_52_vote as vote
from ..wire.messages import api_53_begin_quorum_epoch as begin
from ..wire.messages import api_54_end_quorum_epoch as end
from ..wire.messages import api_55_describe_quorum as describe

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from uuid import UUID

    from ..types import TopicIdPartition
    from ..wire.message import Message


class _Api(NamedTuple):
    """The classes of an answer, and which field of a request's item says whose it is; none does of a client's."""

    response: type[Any]
    topic: type[Any]
    item: type[Any]
    asking: str = ""


APIS: Final = {
    52: _Api(vote.VoteResponse, vote.ResponseTopicData, vote.ResponsePartitionData, "replica_id"),
    53: _Api(begin.BeginQuorumEpochResponse, begin.ResponseTopicData, begin.ResponsePartitionData, "leader_id"),
    54: _Api(end.EndQuorumEpochResponse, end.ResponseTopicData, end.ResponsePartitionData, "leader_id"),
    55: _Api(describe.DescribeQuorumResponse, describe.ResponseTopicData, describe.ResponsePartitionData),
}
NOBODY: Final = -1


class Part(NamedTuple):
    """What a message says of one partition.

    Attributes:
        topic_id: Its topic's id, None where the message names a topic by something else.
        number: Which of its partitions.
        message: The message as a whole, of which only this part counts.
        item: The part.
    """

    topic_id: UUID | None
    number: int
    message: Any
    item: Any

    def alone(self, partition: TopicIdPartition) -> Message:
        """Return the message as the partition's own election sends and takes it."""
        return _with_item(self.message, partition.topic, self.item)

    @property
    def asking(self) -> int:
        """The broker that a request is of, -1 for a client's."""
        asking: int = getattr(self.item, APIS[self.message.__api_key__].asking, NOBODY)
        return asking

    def refused(self, error: ErrorCode) -> Message:
        """Return the answer that this broker's replica does not take part, or that there is none."""
        api = APIS[self.message.__api_key__]
        item = api.item(partition_index=self.number, error_code=error, leader_id=NOBODY, leader_epoch=NOBODY)
        made: Message = api.response(topics=[api.topic(topic_name="", partitions=[item])])
        return made


def parts(message: Any) -> Iterator[Part]:
    """Iterate over what a message says, partition by partition."""
    for topic in message.topics:
        topic_id = _id_of(topic.topic_name)
        for item in topic.partitions:
            yield Part(topic_id, item.partition_index, message, item)


def gathered(messages: Iterable[tuple[UUID | None, Any]]) -> Message:
    """Return one message of what elections have to tell one broker.

    Args:
        messages: At least one, each of one partition, all of one kind, with its topic's id. Answers that refuse a
            request as a whole have no part, and are left out: who asked hears nothing, as if it was lost.
    """
    whole: Any = None
    topics: dict[UUID | None, Any] = {}
    for topic_id, message in messages:
        if whole is None:
            whole = copy.copy(message)
        for topic in message.topics:
            known = topics.get(topic_id)
            if known is None:
                known = topics[topic_id] = copy.copy(topic)
                known.topic_name = "" if topic_id is None else id_text(topic_id)
                known.partitions = []
            known.partitions += topic.partitions
    assert whole is not None, "there is something to tell"
    if hasattr(whole, "error_code"):
        whole.error_code = ErrorCode.NONE
    whole.topics = list(topics.values())
    made: Message = whole
    return made


def response_to(request: Message, error: ErrorCode) -> Message:
    """Return the response that refuses a request as a whole."""
    made: Message = APIS[request.__api_key__].response(error_code=error)
    return made


def _with_item(message: Any, topic_name: str, item: Any) -> Message:
    topic = copy.copy(message.topics[0])
    topic.topic_name, topic.partitions = topic_name, [item]
    alone = copy.copy(message)
    alone.topics = [topic]
    made: Message = alone
    return made


def _id_of(topic_name: str) -> UUID | None:
    try:
        return parse_id(topic_name)
    except ValueError:
        return None
