"""Many elections' messages to one broker are one message, and come apart again as they were."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from odradek.kernel.errors import ErrorCode
from odradek.kernel.replication.vote_messages import gathered, parts, response_to
from odradek.kernel.types import TopicIdPartition
from odradek.kernel.wire.message import Message
from odradek.kernel.wire.messages import api_52_vote as vote
from odradek.kernel.wire.messages import api_53_begin_quorum_epoch as begin
from odradek.kernel.wire.messages import api_54_end_quorum_epoch as end
from odradek.plugins.election_quorum.messages import (
    LastRecord,
    answer,
    begin_request,
    end_request,
    refusal,
    vote_request,
)
from odradek.plugins.election_quorum.standing import Standing
from odradek.plugins.election_quorum.voters import ReplicaKey

T_ID, U_ID = uuid.UUID(int=1), uuid.UUID(int=2)
T0, T1, U0 = (
    TopicIdPartition(T_ID, "t", 0),
    TopicIdPartition(T_ID, "t", 1),
    TopicIdPartition(U_ID, "u", 0),
)
PARTITIONS = {(each.topic_id, each.partition): each for each in (T0, T1, U0)}
ME, VOTER = ReplicaKey(1), ReplicaKey(2)


def vote_of(partition: TopicIdPartition) -> Message:
    return vote_request(partition, ME, VOTER, 7, LastRecord(6, 10 + partition.partition), pre_vote=True)


def begin_of(partition: TopicIdPartition) -> Message:
    return begin_request(partition, VOTER, Standing(7, 1))


def end_of(partition: TopicIdPartition) -> Message:
    return end_request(partition, Standing(7, 1), [VOTER])


def answer_of(partition: TopicIdPartition) -> Message:
    return answer(vote_of(partition), partition, Standing(7 + partition.partition, 1), vote_granted=True)


@pytest.mark.parametrize("of", [vote_of, begin_of, end_of, answer_of])
def test_what_is_gathered_comes_apart_as_it_was(of: Any) -> None:
    whole = gathered((each.topic_id, of(each)) for each in (T0, U0, T1))
    found = [part.alone(PARTITIONS[part.topic_id, part.number]) for part in parts(whole) if part.topic_id is not None]

    assert len(whole.topics) == 2  # type: ignore[attr-defined]
    assert found == [of(each) for each in (T0, T1, U0)]


def test_topics_are_named_by_their_ids_on_the_way() -> None:
    whole: Any = gathered([(T_ID, vote_of(T0))])

    assert [topic.topic_name for topic in whole.topics] == ["AAAAAAAAAAAAAAAAAAAAAQ"]


def test_what_one_election_sends_is_not_changed_by_gathering() -> None:
    messages = [vote_of(T0), vote_of(T1)]
    gathered((T_ID, each) for each in messages)

    assert messages == [vote_of(T0), vote_of(T1)]


def test_a_topic_that_is_named_otherwise_is_nobody_s() -> None:
    (part,) = parts(vote_of(T0))

    assert (part.topic_id, part.number) == (None, 0)


@pytest.mark.parametrize(("of", "asking"), [(vote_of, 1), (begin_of, 1), (end_of, 1)])
def test_a_request_says_who_asks(of: Any, asking: int) -> None:
    (part,) = parts(of(T0))

    assert part.asking == asking


@pytest.mark.parametrize(
    ("of", "response"),
    [(vote_of, vote.VoteResponse), (begin_of, begin.BeginQuorumEpochResponse), (end_of, end.EndQuorumEpochResponse)],
)
def test_a_partition_that_is_refused_leads_nowhere(of: Any, response: type[Message]) -> None:
    (asked,) = parts(gathered([(T_ID, of(T1))]))
    (part,) = parts(gathered([(T_ID, asked.refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))]))

    assert isinstance(part.message, response)
    assert (part.topic_id, part.number, part.item.error_code, part.item.leader_id, part.item.leader_epoch) == (
        T_ID,
        1,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        -1,
        -1,
    )


def test_an_answer_that_refuses_as_a_whole_does_not_take_others_with_it() -> None:
    whole: Any = gathered([(T_ID, refusal(vote_of(T0), ErrorCode.INVALID_REQUEST)), (T_ID, answer_of(T1))])

    assert whole.error_code == 0
    assert [part.number for part in parts(whole)] == [1]


def test_a_request_is_refused_as_a_whole() -> None:
    refused: Any = response_to(vote_of(T0), ErrorCode.INCONSISTENT_CLUSTER_ID)

    assert (refused.error_code, refused.topics) == (ErrorCode.INCONSISTENT_CLUSTER_ID, [])
