"""What Apache Kafka 4.3.1 answered to requests of quorums, and what the stepper makes of the same.

Captured on 2026-11-25 at the controller's listener of one node, 1, the only voter of `controller.quorum.voters`, which
leads in epoch 1 with a log of 24 records; one after the other, as they stand here. The first three columns after the
request are the partition's error, leader and epoch, the last whether a vote was given.

A request of a second leader of the same epoch is left out: Kafka's node ends with it. It is refused here.
"""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from odradek.kernel.api import Election, Message, PeerMessage, Role
from odradek.kernel.wire.messages.api_52_vote import PartitionData, TopicData, VoteRequest
from odradek.kernel.wire.messages.api_55_describe_quorum import DescribeQuorumRequest
from odradek.kernel.wire.messages.api_55_describe_quorum import PartitionData as DescribePartition
from odradek.kernel.wire.messages.api_55_describe_quorum import TopicData as DescribeTopic
from odradek.kernel.wire.messages.api_81_remove_raft_voter import RemoveRaftVoterRequest
from odradek.kernel.wire.messages.api_82_update_raft_voter import UpdateRaftVoterRequest
from odradek.plugins.election_quorum.messages import begin_request, end_request
from odradek.plugins.election_quorum.standing import Standing, decode_standing
from odradek.plugins.election_quorum.voters import ReplicaKey
from odradek.testing.contracts.election import PARTITION
from odradek.testing.contracts.election_base import ALONE
from tests.plugins.election_quorum.test_election_quorum import TestQuorumElection as Kit

KIT = Kit()
ZERO = uuid.UUID(int=0)
NINE = uuid.UUID(int=9)
INVALID_REQUEST, FENCED_LEADER_EPOCH, INVALID_VOTER_KEY = 42, 74, 125


def vote(epoch: int, last: tuple[int, int] = (0, 0), **more: Any) -> VoteRequest:
    part = PartitionData(
        partition_index=PARTITION.partition,
        replica_epoch=epoch,
        replica_id=more.get("replica_id", 9),
        replica_directory_id=uuid.UUID(int=77),
        voter_directory_id=more.get("voter_directory_id", ZERO),
        last_offset_epoch=last[0],
        last_offset=last[1],
        pre_vote=more.get("pre_vote", False),
    )
    topic = TopicData(topic_name=PARTITION.topic, partitions=[part])
    return VoteRequest(voter_id=more.get("voter_id", -1), topics=[topic])


def begins(epoch: int, leader_id: int) -> Message:
    return begin_request(PARTITION, ReplicaKey(-1), Standing(epoch, leader_id))


ANSWERS: list[tuple[str, Message, tuple[int, int, int, bool | None]]] = [
    ("epoch before", vote(0), (INVALID_REQUEST, 1, 1, False)),
    ("same epoch", vote(1, (0, 10**6)), (0, 1, 1, False)),
    ("pre-vote, long log", vote(1, (1, 10**6), pre_vote=True), (0, 1, 1, False)),
    ("pre-vote, log of a later epoch", vote(1, (2, 10**6), pre_vote=True), (INVALID_REQUEST, 1, 1, False)),
    ("log of its own epoch", vote(2, (2, 10**6)), (INVALID_REQUEST, 1, 1, False)),
    ("negative offset", vote(1, (0, -1)), (INVALID_REQUEST, 1, 1, False)),
    ("other voter", vote(1, voter_id=5), (INVALID_VOTER_KEY, 1, 1, False)),
    ("other directory", vote(1, voter_id=1, voter_directory_id=NINE), (INVALID_VOTER_KEY, 1, 1, False)),
    ("nobody", vote(1, replica_id=-1), (INVALID_REQUEST, 1, 1, False)),
    ("begin of an epoch before", begins(0, 9), (FENCED_LEADER_EPOCH, 1, 1, None)),
    ("begin of nobody", begins(1, -1), (INVALID_REQUEST, 1, 1, None)),
    ("begin of itself before", begins(0, 1), (FENCED_LEADER_EPOCH, 1, 1, None)),
    ("end of an epoch before", end_request(PARTITION, Standing(0, 9), ()), (FENCED_LEADER_EPOCH, 1, 1, None)),
    ("next epoch, short log", vote(2, (0, 0)), (0, -1, 2, False)),
    ("next epoch, long log", vote(3, (2, 10**6)), (0, -1, 3, True)),
    ("begin of itself, late", begins(1, 1), (FENCED_LEADER_EPOCH, -1, 3, None)),
]


def only_voter() -> Election:
    """Return the leader that Kafka's node was; the epoch of its records does not matter to any of these."""
    election = KIT.new_election(log_end_offset=24, latest_epoch=0, directory_id=uuid.UUID(int=1))
    KIT.lead(election, ALONE)
    election.local_append(24)
    assert (election.role, election.leader_epoch) == (Role.LEADER, 1)
    return election


def answer_of(election: Election, request: Message) -> Any:
    """Return what is answered to a request."""
    election.step(PeerMessage(9, request))
    (response,) = [message.message for ready in KIT.drain(election) for message in ready.messages]
    return response


def test_votes_and_epochs_are_answered_as_kafka_answers_them() -> None:
    election = only_voter()
    told = []
    for name, request, _ in ANSWERS:
        part = answer_of(election, request).topics[0].partitions[0]
        found = (part.error_code, part.leader_id, part.leader_epoch, getattr(part, "vote_granted", None))
        told.append((name, found))

    assert told == [(name, expected) for name, _, expected in ANSWERS]


def test_another_topic_is_refused_as_a_whole_and_described_as_unknown() -> None:
    other = VoteRequest(topics=[TopicData(topic_name="x", partitions=[PartitionData()])])
    asked = DescribeQuorumRequest(topics=[DescribeTopic(topic_name="x", partitions=[DescribePartition()])])
    election = only_voter()
    (topic,) = answer_of(election, asked).topics
    (part,) = topic.partitions

    assert answer_of(election, other).error_code == INVALID_REQUEST
    assert (topic.topic_name, part.error_code, part.leader_id, part.leader_epoch) == ("x", 3, 0, 0)
    assert part.error_message == "This server does not host this topic-partition."


@pytest.mark.parametrize(
    ("request_", "code", "message"),
    [
        (
            RemoveRaftVoterRequest(voter_id=9, voter_directory_id=NINE),
            35,
            "Cluster doesn't support removing voter because the kraft.version feature is 0",
        ),
        (RemoveRaftVoterRequest(voter_id=1), INVALID_REQUEST, "Remove voter request didn't include a valid voter"),
        (
            UpdateRaftVoterRequest(current_leader_epoch=0, voter_id=9, voter_directory_id=NINE),
            FENCED_LEADER_EPOCH,
            None,
        ),
        (UpdateRaftVoterRequest(current_leader_epoch=2, voter_id=9, voter_directory_id=NINE), 75, None),
        (UpdateRaftVoterRequest(current_leader_epoch=1, voter_id=9, voter_directory_id=NINE), 127, None),
    ],
    ids=["fixed", "no directory", "epoch before", "epoch to come", "no voter"],
)
def test_changes_of_voters_are_refused_in_kafkas_words(request_: Message, code: int, message: str | None) -> None:
    response = answer_of(only_voter(), request_)

    assert (response.error_code, getattr(response, "error_message", None)) == (code, message)


def test_kafkas_own_files_are_read() -> None:
    """Written by the same node: when it led, and when it had voted for 9 in epoch 3."""
    led = (
        b'{"clusterId":"","leaderId":1,"leaderEpoch":1,"votedId":-1,"appliedOffset":0,'
        b'"currentVoters":[{"voterId":1}],"data_version":0}'
    )
    voted = led.replace(b'"leaderId":1,"leaderEpoch":1,"votedId":-1', b'"leaderId":-1,"leaderEpoch":3,"votedId":9')

    assert [decode_standing(led), decode_standing(voted)] == [Standing(1, 1), Standing(3, -1, ReplicaKey(9))]
