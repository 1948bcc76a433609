"""What follows on an election: the epochs that grow, and a partition that nobody can lead."""

from __future__ import annotations

from collections.abc import Collection

import attrs
import pytest

from odradek.kernel.api import ElectionReason, PartitionState
from odradek.kernel.controller.partition_states import elect, with_epochs
from odradek.kernel.errors import ErrorCode
from odradek.kernel.metadata.election_answers import elections_failed
from odradek.kernel.metadata.image import NO_LEADER
from odradek.kernel.wire.messages.api_43_elect_leaders import ElectLeadersRequest, TopicPartitions

STATE = PartitionState(leader=1, leader_epoch=4, partition_epoch=7, replicas=(1, 2), isr=(1, 2))


class Choice:
    """An election that chooses what a test says."""

    def __init__(self, chosen: PartitionState | None) -> None:
        self.chosen = chosen
        self.asked: list[tuple[PartitionState, Collection[int], ElectionReason]] = []

    def choose_leader(
        self, state: PartitionState, live_brokers: Collection[int], reason: ElectionReason
    ) -> PartitionState | None:
        self.asked.append((state, live_brokers, reason))
        return self.chosen


@pytest.mark.parametrize(
    ("new", "bump", "leader_epoch"),
    [
        (attrs.evolve(STATE, leader=2), False, 5),
        (attrs.evolve(STATE, leader=NO_LEADER), False, 5),
        (attrs.evolve(STATE, isr=(1,)), False, 4),
        (STATE, True, 5),
        (attrs.evolve(STATE, leader=2), True, 5),
        (attrs.evolve(STATE, leader_epoch=90, partition_epoch=90), False, 4),
    ],
)
def test_epochs_follow_on_the_old_ones(new: PartitionState, bump: bool, leader_epoch: int) -> None:
    followed = with_epochs(STATE, new, bump=bump)

    assert (followed.leader_epoch, followed.partition_epoch) == (leader_epoch, 8)
    assert (followed.leader, followed.isr) == (new.leader, new.isr)


def test_an_election_is_asked_with_who_lives_and_why() -> None:
    chosen = attrs.evolve(STATE, leader=2)
    election = Choice(chosen)

    assert elect(election, STATE, [2], ElectionReason.CONTROLLED_SHUTDOWN) == chosen  # type: ignore[arg-type]
    assert election.asked == [(STATE, [2], ElectionReason.CONTROLLED_SHUTDOWN)]


def test_a_partition_for_which_nobody_is_chosen_has_no_leader_and_keeps_its_in_sync_set() -> None:
    left = elect(Choice(None), STATE, [], ElectionReason.OFFLINE)  # type: ignore[arg-type]

    assert left == attrs.evolve(STATE, leader=NO_LEADER)


def test_a_request_that_fails_as_a_whole_gives_every_partition_the_error() -> None:
    request = ElectLeadersRequest(
        election_type=9, topic_partitions=[TopicPartitions(topic="a", partitions=[0, 2]), TopicPartitions(topic="b")]
    )
    answer = elections_failed(request, ErrorCode.INVALID_REQUEST, "why")
    told = {
        result.topic: [(each.partition_id, each.error_code, each.error_message) for each in result.partition_result]
        for result in answer.replica_election_results
    }

    assert answer.error_code == ErrorCode.INVALID_REQUEST
    assert told == {"a": [(0, ErrorCode.INVALID_REQUEST, "why"), (2, ErrorCode.INVALID_REQUEST, "why")], "b": []}
