"""Partitions whose replicas vote: their leaders tell the controller, which chooses nobody and makes no epochs."""

from __future__ import annotations

import uuid
from typing import Any

import attrs
import pytest

from odradek.kernel.contracts.election import PartitionState
from odradek.kernel.controller.adoption import FoundPartition
from odradek.kernel.errors import ErrorCode, KafkaError
from odradek.kernel.metadata.image import NO_LEADER
from odradek.kernel.metadata.record_makers import partition_record
from odradek.kernel.metadata.records import TopicRecord
from odradek.kernel.types import ZERO_ID
from odradek.kernel.wire.message import Message
from odradek.kernel.wire.messages.api_56_alter_partition import (
    AlterPartitionRequest,
    BrokerState,
    PartitionData,
    ResponsePartitionData,
    TopicData,
)
from odradek.kernel.wire.messages.api_73_assign_replicas_to_dirs import AssignReplicasToDirsRequest, DirectoryData
from odradek.kernel.wire.messages.api_73_assign_replicas_to_dirs import PartitionData as AssignedPartition
from odradek.kernel.wire.messages.api_73_assign_replicas_to_dirs import TopicData as AssignedTopic
from odradek.plugins.election_quorum.factory import QuorumElectionFactory

from .controller_requests import create_topics, elect_leaders, reassign_partitions, topic
from .metadata_helpers import DrivenController, registration

TOPIC_ID = uuid.UUID(int=77)
PREFERRED, UNCLEAN = 0, 1


class Cluster:
    """Three brokers, and a topic with one partition that all of them vote for."""

    def __init__(self) -> None:
        self.driven = driven = DrivenController(brokers=4)
        factory = QuorumElectionFactory()
        elections = {**driven.rules.elections, "quorum": factory}
        driven.controller._rules = driven.rules = attrs.evolve(driven.rules, elections=elections)
        driven.controller.replay(TopicRecord(name="t", topic_id=TOPIC_ID, storage="memory", election="quorum"))
        state = factory.initial_state((1, 2, 3), driven.image.live_brokers())
        driven.controller.replay(partition_record(TOPIC_ID, 0, state, [ZERO_ID] * 3))

    @property
    def state(self) -> PartitionState:
        return self.driven.image.topics_by_id[TOPIC_ID].partitions[0]

    @property
    def leader(self) -> tuple[int, int]:
        return self.state.leader, self.state.leader_epoch

    def ask(self, request: Message) -> Any:
        return self.driven.apply(self.driven.controller.decide(request))

    def tell(
        self, broker_id: int, leader_epoch: int, partition_epoch: int | None = None, *, isr: tuple[int, ...] = (1, 2, 3)
    ) -> ResponsePartitionData:
        """Have a broker tell that it leads, and by whom it was elected."""
        part = PartitionData(
            partition_index=0,
            leader_epoch=leader_epoch,
            partition_epoch=self.state.partition_epoch if partition_epoch is None else partition_epoch,
            new_isr_with_epochs=[BrokerState(broker_id=each) for each in isr],
        )
        request = AlterPartitionRequest(
            broker_id=broker_id,
            broker_epoch=self.driven.epoch_of(broker_id),
            topics=[TopicData(topic_id=TOPIC_ID, partitions=[part])],
        )
        (told,) = self.ask(request).topics
        (answer,) = told.partitions
        assert isinstance(answer, ResponsePartitionData)
        return answer

    def change(self, broker_id: int, *, fence: bool = False, shutdown: bool = False) -> None:
        epoch = self.driven.epoch_of(broker_id)
        self.driven.apply(self.driven.controller.change_broker(broker_id, epoch, fence=fence, shutdown=shutdown))


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


def test_a_leader_that_tells_so_is_recorded_with_its_epoch(cluster: Cluster) -> None:
    before = cluster.state
    answer = cluster.tell(2, 5)

    assert (before.leader, before.leader_epoch) == (NO_LEADER, 0)
    assert cluster.leader == (2, 5)
    assert (answer.error_code, answer.leader_id, answer.leader_epoch) == (0, 2, 5)
    assert (answer.partition_epoch, answer.isr) == (before.partition_epoch + 1, [1, 2, 3])


def test_what_is_told_again_is_no_change(cluster: Cluster) -> None:
    first = cluster.tell(2, 5)
    records_count = len(cluster.driven.records)
    second = cluster.tell(2, 5)

    assert second == first
    assert len(cluster.driven.records) == records_count


def test_metadata_that_the_leader_does_not_know_yet_is_no_obstacle(cluster: Cluster) -> None:
    old = cluster.state.partition_epoch
    cluster.change(3, fence=True)
    answer = cluster.tell(1, 1, partition_epoch=old)

    assert (answer.error_code, answer.isr, cluster.leader) == (0, [1, 2], (1, 1))


@pytest.mark.parametrize(
    ("told", "code"),
    [
        pytest.param((2, 5, 99), ErrorCode.NOT_CONTROLLER, id="later partition epoch"),
        pytest.param((2, 3), ErrorCode.FENCED_LEADER_EPOCH, id="earlier leader epoch"),
        pytest.param((2, 4), ErrorCode.INVALID_REQUEST, id="second leader of an epoch"),
        pytest.param((4, 5), ErrorCode.INVALID_REQUEST, id="no replica"),
    ],
)
def test_what_cannot_be_so_is_refused(cluster: Cluster, told: tuple[int, ...], code: ErrorCode) -> None:
    cluster.tell(1, 4)
    before = cluster.state
    answer = cluster.tell(*told)

    assert (answer.error_code, cluster.state) == (code, before)


def test_a_leader_that_is_fenced_leads_no_more_in_the_metadata_and_the_epoch_stays_its_own(cluster: Cluster) -> None:
    cluster.tell(1, 4)
    cluster.change(1, fence=True)
    fenced = cluster.state
    refused = cluster.tell(1, 4)
    cluster.change(1, fence=False)
    back = cluster.state
    cluster.tell(1, 4)

    assert (fenced.leader, fenced.leader_epoch, fenced.isr) == (NO_LEADER, 4, (2, 3))
    assert refused.error_code == ErrorCode.INELIGIBLE_REPLICA
    assert (back.leader, back.leader_epoch, back.isr) == (NO_LEADER, 4, (1, 2, 3))
    assert cluster.leader == (1, 4)


def test_a_broker_that_stops_leads_no_more(cluster: Cluster) -> None:
    cluster.tell(1, 4)
    cluster.change(1, shutdown=True)

    assert cluster.leader == (NO_LEADER, 4)
    assert cluster.tell(2, 5).error_code == 0
    assert cluster.leader == (2, 5)


def test_a_leader_that_begins_again_gets_no_epoch_of_the_controller(cluster: Cluster) -> None:
    cluster.tell(1, 4)
    cluster.driven.register(registration(1, seed=8))

    assert cluster.state.leader_epoch == 4


def test_a_dead_follower_changes_who_lives_and_nothing_else(cluster: Cluster) -> None:
    cluster.tell(1, 4)
    cluster.change(3, fence=True)
    without = cluster.state
    cluster.change(3, fence=False)

    assert (without.leader, without.leader_epoch, without.isr) == (1, 4, (1, 2))
    assert (cluster.leader, cluster.state.isr) == ((1, 4), (1, 2, 3))


def test_a_replica_that_has_another_directory_by_now_lives(cluster: Cluster) -> None:
    cluster.tell(1, 4)
    directory = cluster.driven.image.brokers[3].log_dirs[0]
    assigned = AssignedTopic(topic_id=TOPIC_ID, partitions=[AssignedPartition(partition_index=0)])
    request = AssignReplicasToDirsRequest(
        broker_id=3,
        broker_epoch=cluster.driven.epoch_of(3),
        directories=[DirectoryData(id=directory, topics=[assigned])],
    )
    cluster.ask(request)

    assert (cluster.leader, cluster.state.isr) == ((1, 4), (1, 2, 3))
    assert cluster.driven.image.topics_by_id[TOPIC_ID].directories[0][2] == directory


@pytest.mark.parametrize(
    ("kind", "code"),
    [(PREFERRED, ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE), (UNCLEAN, ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE)],
)
def test_nobody_elects_in_the_stead_of_the_voters(cluster: Cluster, kind: int, code: ErrorCode) -> None:
    if kind == PREFERRED:
        cluster.tell(2, 4)
    before = cluster.state
    (told,) = cluster.ask(elect_leaders(kind, [("t", [0])])).replica_election_results
    (answer,) = told.partition_result

    assert (answer.error_code, cluster.state) == (code, before)
    assert "among themselves" in (answer.error_message or "")


def test_preferred_leaders_are_not_restored_by_the_controller(cluster: Cluster) -> None:
    cluster.tell(2, 4)
    cluster.driven.apply(cluster.driven.controller.balance_leaders())

    assert cluster.leader == (2, 4)


def test_voters_of_an_election_that_does_not_change_them_are_not_reassigned(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(QuorumElectionFactory, "changes_voters", False)
    before = cluster.state
    (told,) = cluster.ask(reassign_partitions(("t", 0, [1, 2, 4]))).responses
    (answer,) = told.partitions

    assert (answer.error_code, cluster.state) == (ErrorCode.INVALID_REPLICA_ASSIGNMENT, before)
    assert "does not change voters" in (answer.error_message or "")


def test_voters_are_reassigned_as_their_leader_tells_and_new_ones_are_in_a_directory_from_the_begin() -> None:
    cluster = in_a_cluster()
    cluster.tell(1, 4)
    (told,) = cluster.ask(reassign_partitions(("t", 0, [1, 2, 4]))).responses
    begun = cluster.state
    tellings = 0
    while cluster.state.removing_replicas and tellings < 9:
        tellings += 1
        cluster.tell(1, 4 + tellings, cluster.state.voters_epoch, isr=(1, 2, 3, 4))

    assert [answer.error_code for answer in told.partitions] == [ErrorCode.NONE]
    assert (begun.replicas, begun.adding_replicas, begun.removing_replicas) == ((1, 2, 4, 3), (4,), (3,))
    assert begun.isr == (1, 2, 3)
    assert (cluster.state.replicas, cluster.state.isr, tellings) == ((1, 2, 4), (1, 2, 4), 3)
    directories = cluster.driven.image.topics_by_id[TOPIC_ID].directories[0]
    assert directories[2] == cluster.driven.image.brokers[4].log_dirs[0]


def test_that_a_leader_leads_is_no_news_of_its_voters(cluster: Cluster) -> None:
    cluster.tell(1, 4)
    cluster.ask(reassign_partitions(("t", 0, [1, 2, 4])))
    before = cluster.state
    cluster.tell(1, 5, isr=())

    assert (cluster.leader, cluster.state.voters) == ((1, 5), before.voters)


def test_a_broker_alone_makes_no_topic_with_voters(cluster: Cluster) -> None:
    wanted = topic("new", -1, -1, {0: [1, 2, 3]}, odradek_election="quorum")
    (answer,) = cluster.ask(create_topics(wanted)).topics

    assert answer.error_code == ErrorCode.INVALID_CONFIG
    assert "alone" in (answer.error_message or "")


def in_a_cluster() -> Cluster:
    """Return three brokers whose controller is others', too."""
    cluster = Cluster()
    rules = DrivenController(
        process_roles="broker,controller",
        controller_listener_names="CONTROLLER",
        controller_quorum_voters="1@localhost:9093",
        listeners="PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093",
    ).rules
    rules = attrs.evolve(cluster.driven.rules, config=rules.config)
    cluster.driven.controller._rules = cluster.driven.rules = rules
    return cluster


def test_a_topic_with_voters_has_no_leader_before_they_have_voted_and_is_where_it_will_be() -> None:
    cluster = in_a_cluster()
    wanted = topic("new", -1, -1, {0: [1, 2, 3]}, odradek_election="quorum")
    (answer,) = cluster.ask(create_topics(wanted)).topics
    made = cluster.driven.image.topics_by_name["new"]
    brokers = cluster.driven.image.brokers

    assert answer.error_code == ErrorCode.NONE
    assert (made.election, made.partitions[0].leader) == ("quorum", NO_LEADER)
    assert made.directories[0] == tuple(brokers[each].log_dirs[0] for each in (1, 2, 3))


def test_replicas_do_not_vote_where_a_disk_could_be_replaced_without_a_word() -> None:
    cluster = in_a_cluster()
    rules = attrs.evolve(cluster.driven.rules, storages={"memory": False, "segment": True})
    cluster.driven.controller._rules = cluster.driven.rules = rules
    wanted = topic("new", -1, -1, {0: [1, 2, 3]}, odradek_election="quorum", odradek_storage="memory")
    (answer,) = cluster.ask(create_topics(wanted)).topics

    assert (answer.error_code, "new" in cluster.driven.image.topics_by_name) == (ErrorCode.INVALID_CONFIG, False)
    assert "odradek.storage is 'memory', which has none: choose one that has them ('segment')" in answer.error_message


def test_what_is_adopted_has_no_voters() -> None:
    cluster = in_a_cluster()
    found = [FoundPartition("old", 0, uuid.UUID(int=5), 3)]

    with pytest.raises(KafkaError, match=r"cannot be adopted with odradek\.election=quorum"):
        cluster.driven.controller.adopt_topics(found, {"old": {"odradek.election": "quorum"}})
