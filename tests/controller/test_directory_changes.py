"""The directories of replicas, as their brokers tell them to the controller."""

from __future__ import annotations

import random
from collections import Counter
from uuid import UUID

import attrs
import pytest

from odradek.kernel.contracts.election import PartitionState
from odradek.kernel.controller.directory_changes import directory_of
from odradek.kernel.controller.partition_states import directory_works
from odradek.kernel.controller.rules import replica_directories
from odradek.kernel.errors import ErrorCode, KafkaError
from odradek.kernel.machine.ids import RandomIds
from odradek.kernel.metadata.controller_calls import directories_request
from odradek.kernel.metadata.image import NO_LEADER, UNASSIGNED_DIRECTORY
from odradek.kernel.metadata.record_makers import broker_record, changed_partition_record
from odradek.kernel.types import LOST_DIRECTORY
from odradek.plugins.election_isr.factory import IsrElectionFactory
from odradek.plugins.election_quorum.factory import QuorumElectionFactory

from .controller_requests import create_topics, topic
from .metadata_helpers import DrivenController, registration

NEW_ID = RandomIds(random.Random(3)).new_id


def two_brokers(*more: UUID) -> DrivenController:
    """Two brokers with one log directory each; the first one has `more`."""
    driven = DrivenController(brokers=2)
    first = registration(1)
    driven.register(attrs.evolve(first, log_dirs=[*first.log_dirs, *more]))
    driven.apply(driven.controller.decide(create_topics(topic("t", -1, -1, {0: [1, 2]}), topic("u", -1, -1, {0: [2]}))))
    return driven


def test_a_brokers_replica_moves_and_nothing_else_changes() -> None:
    here = NEW_ID()
    driven = two_brokers(here)
    before = driven.image.topics_by_name["t"]
    other = directory_of(driven.image, before.topic_id, 0, 2)
    driven.apply(driven.controller.decide(directories_request(1, driven.epoch_of(1), {(before.topic_id, 0): here})))
    after = driven.image.topics_by_name["t"]

    assert after.directories[0] == (here, other)
    assert after.partitions[0].partition_epoch == before.partitions[0].partition_epoch + 1
    assert after.partitions[0].leader_epoch == before.partitions[0].leader_epoch
    assert directory_of(driven.image, after.topic_id, 0, 1) == here


@pytest.mark.parametrize("more", [(), (NEW_ID(),)], ids=["it is in the only one", "nobody knows in which it is"])
def test_where_all_directories_failed_nothing_is_led_or_put(more: tuple[UUID, ...]) -> None:
    driven = two_brokers(*more)
    broker, others = driven.image.brokers[1], driven.image.brokers[2].log_dirs
    assert driven.image.topics_by_name["t"].partitions[0].leader == 1
    for directory in broker.log_dirs:
        driven.apply(driven.controller.own_directories_failed(1, broker.broker_epoch, [directory]))
    moved = driven.image.topics_by_name["t"].partitions[0]
    driven.apply(driven.controller.change_broker(2, driven.epoch_of(2), fence=True))
    alone = driven.image.topics_by_name["t"].partitions[0]

    assert (moved.leader, moved.isr) == (2, (2,))
    assert alone.leader == NO_LEADER
    assert not any(directory_works(driven.image.brokers[1], each) for each in (*broker.log_dirs, UNASSIGNED_DIRECTORY))
    assert replica_directories(driven.image, driven.rules, IsrElectionFactory(), [1, 2]) == [
        UNASSIGNED_DIRECTORY,
        *others,
    ]
    driven.register(registration(1, seed=9))
    assert LOST_DIRECTORY not in driven.image.brokers[1].log_dirs


def test_where_all_directories_failed_no_voter_is_put() -> None:
    driven = two_brokers()
    broker = driven.image.brokers[1]
    driven.apply(driven.controller.own_directories_failed(1, broker.broker_epoch, broker.log_dirs))

    with pytest.raises(KafkaError, match="no log directory"):
        replica_directories(driven.image, driven.rules, QuorumElectionFactory(), [1])


def test_what_is_known_already_or_gone_or_anothers_makes_no_record() -> None:
    driven = two_brokers()
    topic_id, others = driven.image.topics_by_name["t"].topic_id, driven.image.topics_by_name["u"].topic_id
    known = directory_of(driven.image, topic_id, 0, 1)
    told = {(topic_id, 0): known, (others, 0): NEW_ID(), (topic_id, 7): NEW_ID(), (NEW_ID(), 0): NEW_ID()}

    count = len(driven.records)
    answer = driven.apply(driven.controller.decide(directories_request(1, driven.epoch_of(1), told)))

    assert len(driven.records) == count
    assert Counter(
        item.error_code for place in answer.directories for topic in place.topics for item in topic.partitions
    ) == Counter(
        [
            ErrorCode.NONE,
            ErrorCode.NOT_LEADER_OR_FOLLOWER,
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            ErrorCode.UNKNOWN_TOPIC_ID,
        ]
    )
    assert directory_of(driven.image, topic_id, 9, 1) == UNASSIGNED_DIRECTORY
    assert directory_of(driven.image, others, 0, 1) == UNASSIGNED_DIRECTORY


def test_a_replica_that_is_lost_leads_nothing_until_it_is_in_a_directory_again() -> None:
    driven = two_brokers(directory := NEW_ID())
    topic_id = driven.image.topics_by_name["t"].topic_id

    def told(directory: UUID) -> PartitionState:
        driven.apply(driven.controller.decide(directories_request(1, driven.epoch_of(1), {(topic_id, 0): directory})))
        return driven.image.topics_by_name["t"].partitions[0]

    before = driven.image.topics_by_name["t"].partitions[0]
    lost = told(LOST_DIRECTORY)
    again = told(directory)

    assert (before.leader, before.isr) == (1, (1, 2))
    assert (lost.leader, lost.isr, lost.leader_epoch) == (2, (2,), before.leader_epoch + 1)
    assert (again.leader, again.isr, again.leader_epoch) == (2, (2,), lost.leader_epoch)
    assert directory_of(driven.image, topic_id, 0, 1) == directory


@pytest.mark.parametrize("was_told", [False, True])
def test_a_replica_in_a_directory_that_failed_before_it_was_told_leads_nothing(was_told: bool) -> None:
    """Its log is in the second directory, which failed before the controller knew that, or while it was told."""
    driven = two_brokers(failing := NEW_ID())
    topic_id = driven.image.topics_by_name["t"].topic_id
    epoch = driven.epoch_of(1)
    if was_told:  # by a controller that made nothing of it
        noted = driven.image.topics_by_name["t"]
        moved = attrs.evolve(noted, directories=((failing, noted.directories[0][1]),))
        driven.controller.replay(changed_partition_record(moved, 0, noted.partitions[0]))
        broker = driven.image.brokers[1]
        driven.controller.replay(broker_record(attrs.evolve(broker, log_dirs=broker.log_dirs[:1])))
    else:
        driven.apply(driven.controller.own_directories_failed(1, epoch, [failing]))
    before = driven.image.topics_by_name["t"].partitions[0]
    driven.apply(driven.controller.decide(directories_request(1, epoch, {(topic_id, 0): failing})))
    after = driven.image.topics_by_name["t"].partitions[0]
    count = len(driven.records)
    driven.apply(driven.controller.decide(directories_request(1, epoch, {(topic_id, 0): failing})))

    assert (before.leader, before.isr) == (1, (1, 2))
    assert (after.leader, after.isr, after.leader_epoch) == (2, (2,), before.leader_epoch + 1)
    assert directory_of(driven.image, topic_id, 0, 1) == failing
    assert len(driven.records) == count, "it is known by now"


def test_the_last_replica_in_sync_that_is_lost_leads_again_when_it_is_back() -> None:
    driven = two_brokers()
    topic_id = driven.image.topics_by_name["u"].topic_id
    states = []
    for directory in (LOST_DIRECTORY, driven.image.brokers[2].log_dirs[0]):
        driven.apply(driven.controller.decide(directories_request(2, driven.epoch_of(2), {(topic_id, 0): directory})))
        states.append(driven.image.topics_by_name["u"].partitions[0])

    assert [state.leader for state in states] == [-1, 2]
    assert states[1].isr == (2,)


def voters_directories(driven: DrivenController, log_dirs: tuple[UUID, ...], cordoned: tuple[UUID, ...]) -> set[UUID]:
    """Return in which directories a broker's voters of many new partitions lie."""
    broker = attrs.evolve(driven.image.brokers[1], log_dirs=log_dirs, cordoned_log_dirs=cordoned)
    image = attrs.evolve(driven.image, brokers={1: broker})
    quorum = QuorumElectionFactory()
    return {replica_directories(image, driven.rules, quorum, (1,))[0] for _ in range(40)}


def test_a_voter_is_in_one_directory_from_the_beginning() -> None:
    driven = two_brokers()
    one, other = NEW_ID(), NEW_ID()

    assert voters_directories(driven, (one, other), ()) == {one, other}
    assert voters_directories(driven, (one, other), (other,)) == {one}
    assert voters_directories(driven, (one,), (one,)) == {one}


def test_without_a_directory_nobody_votes() -> None:
    driven = two_brokers()

    with pytest.raises(KafkaError, match="broker 1 has no log directory") as refused:
        voters_directories(driven, (), ())
    assert refused.value.code is ErrorCode.INVALID_REPLICA_ASSIGNMENT


def test_a_replica_that_does_not_vote_may_be_in_any_of_several_directories() -> None:
    driven = two_brokers()
    broker = attrs.evolve(driven.image.brokers[1], log_dirs=(NEW_ID(), NEW_ID()))
    image = attrs.evolve(driven.image, brokers={1: broker})

    assert replica_directories(image, driven.rules, IsrElectionFactory(), (1, 9)) == [UNASSIGNED_DIRECTORY] * 2
