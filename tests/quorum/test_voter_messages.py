"""What the shell adds to the election's messages, and what it answers for voters that know no pre-votes."""

from __future__ import annotations

from uuid import UUID

import pytest

from odradek.kernel.quorum.voter_messages import addressed, answer_of_older, leader_in
from odradek.kernel.types import METADATA_TOPIC
from odradek.kernel.wire.messages.api_52_vote import PartitionData, TopicData, VoteRequest, VoteResponse
from odradek.kernel.wire.messages.api_53_begin_quorum_epoch import BeginQuorumEpochRequest
from odradek.kernel.wire.messages.api_54_end_quorum_epoch import EndQuorumEpochRequest

CLUSTER_ID = "Odradek-cluster-000001"
ENDPOINTS = [("CONTROLLER", "controller-1", 9093), ("INSIDE", "controller-1", 9094)]


def vote(*, pre_vote: bool, epoch: int = 7) -> VoteRequest:
    part = PartitionData(
        partition_index=0,
        replica_epoch=epoch,
        replica_id=1,
        replica_directory_id=UUID(int=1),
        voter_directory_id=UUID(int=2),
        last_offset_epoch=6,
        last_offset=50,
        pre_vote=pre_vote,
    )
    return VoteRequest(voter_id=2, topics=[TopicData(topic_name=METADATA_TOPIC, partitions=[part])])


@pytest.mark.parametrize("message", [BeginQuorumEpochRequest(), EndQuorumEpochRequest()])
def test_a_leader_says_where_it_is(message: BeginQuorumEpochRequest | EndQuorumEpochRequest) -> None:
    addressed(message, CLUSTER_ID, ENDPOINTS)

    assert message.cluster_id == CLUSTER_ID
    assert [(each.name, each.host, each.port) for each in message.leader_endpoints] == ENDPOINTS


def test_who_asks_for_votes_says_the_cluster() -> None:
    message = vote(pre_vote=False)
    addressed(message, CLUSTER_ID, ENDPOINTS)

    assert message.cluster_id == CLUSTER_ID


def test_a_voter_that_knows_no_pre_votes_is_taken_to_agree() -> None:
    answer = answer_of_older(vote(pre_vote=True), 1)

    assert answer is not None
    part = answer.topics[0].partitions[0]
    assert (part.vote_granted, part.leader_id, part.leader_epoch) == (True, -1, 7)


@pytest.mark.parametrize(
    ("message", "version"),
    [(vote(pre_vote=True), 2), (vote(pre_vote=False), 1), (BeginQuorumEpochRequest(), 0)],
)
def test_everybody_else_is_asked(message: VoteRequest | BeginQuorumEpochRequest, version: int) -> None:
    assert answer_of_older(message, version) is None


def test_an_answer_that_refuses_as_a_whole_says_nothing_of_leaders() -> None:
    assert leader_in(VoteResponse(error_code=31)) == (-1, -1)
