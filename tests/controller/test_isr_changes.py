"""AlterPartition: what a leader may make of its in-sync set, and why it is refused."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from odradek.kernel.contracts.election import PartitionState
from odradek.kernel.errors import ErrorCode
from odradek.kernel.wire.messages.api_45_alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from odradek.kernel.wire.messages.api_56_alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    BrokerState,
    PartitionData,
    ResponsePartitionData,
    TopicData,
)

from .controller_requests import create_topics, topic
from .metadata_helpers import DrivenController, registration


class Cluster:
    """Three brokers, and a topic with one partition that the first leads."""

    def __init__(self, replicas: list[int] | None = None) -> None:
        self.driven = DrivenController(brokers=4)
        self.driven.apply(self.driven.controller.decide(create_topics(topic("t", -1, -1, {0: replicas or [1, 2, 3]}))))
        self.topic_id = self.driven.image.topics_by_name["t"].topic_id

    @property
    def state(self) -> PartitionState:
        return self.driven.image.topics_by_name["t"].partitions[0]

    def epoch(self, broker_id: int) -> int:
        return self.driven.image.brokers[broker_id].broker_epoch

    def fence(self, broker_id: int, *, shutdown: bool = False) -> None:
        controller = self.driven.controller
        self.driven.apply(
            controller.change_broker(broker_id, self.epoch(broker_id), fence=not shutdown, shutdown=shutdown)
        )

    def ask(self, *parts: PartitionData, broker_id: int = 1, **more: Any) -> AlterPartitionResponse:
        request = AlterPartitionRequest(
            broker_id=broker_id,
            broker_epoch=more.pop("broker_epoch", self.epoch(broker_id)),
            topics=[TopicData(topic_id=more.pop("topic_id", self.topic_id), partitions=list(parts))],
        )
        response = self.driven.apply(self.driven.controller.decide(request))
        assert isinstance(response, AlterPartitionResponse)
        return response

    def alter(self, *isr: int, **more: Any) -> ResponsePartitionData:
        asked = {name: more.pop(name) for name in ("broker_id", "topic_id") if name in more}
        (told,) = self.ask(self.wanted(*isr, **more), **asked).topics
        (part,) = told.partitions
        return part

    def wanted(self, *isr: int, **more: Any) -> PartitionData:
        state = self.state
        epochs = more.pop("epochs", {})
        return PartitionData(
            partition_index=more.pop("index", 0),
            leader_epoch=more.pop("leader_epoch", state.leader_epoch),
            partition_epoch=more.pop("partition_epoch", state.partition_epoch),
            new_isr_with_epochs=[
                BrokerState(broker_id=each, broker_epoch=epochs.get(each, self.epoch(each) if each < 5 else -1))
                for each in isr
            ],
            **more,
        )


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


def test_the_set_shrinks_and_grows_and_the_leader_epoch_stays(cluster: Cluster) -> None:
    before = cluster.state
    shrunk = cluster.alter(1, 3)
    grown = cluster.alter(1, 3, 2)
    after = cluster.state

    assert [(part.error_code, part.isr, part.partition_epoch) for part in (shrunk, grown)] == [
        (0, [1, 3], before.partition_epoch + 1),
        (0, [1, 3, 2], before.partition_epoch + 2),
    ]
    assert (after.isr, after.leader_epoch, shrunk.leader_id) == ((1, 3, 2), before.leader_epoch, 1)


def test_what_is_so_already_is_no_change(cluster: Cluster) -> None:
    records = len(cluster.driven.records)
    part = cluster.alter(1, 2, 3)

    assert (part.error_code, part.partition_epoch) == (0, cluster.state.partition_epoch)
    assert len(cluster.driven.records) == records


def test_version_2_names_no_epochs(cluster: Cluster) -> None:
    state = cluster.state
    wanted = PartitionData(leader_epoch=state.leader_epoch, partition_epoch=state.partition_epoch, new_isr=[1, 2])
    (told,) = cluster.ask(wanted).topics

    assert (told.partitions[0].error_code, told.partitions[0].isr) == (0, [1, 2])


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        pytest.param({"topic_id": uuid.UUID(int=9)}, ErrorCode.UNKNOWN_TOPIC_ID, id="topic"),
        pytest.param({"index": 1}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, id="partition"),
        pytest.param({"leader_epoch": 1}, ErrorCode.NOT_CONTROLLER, id="later leader epoch"),
        pytest.param({"partition_epoch": 9}, ErrorCode.NOT_CONTROLLER, id="later partition epoch"),
        pytest.param({"leader_epoch": -1}, ErrorCode.FENCED_LEADER_EPOCH, id="earlier leader epoch"),
        pytest.param({"broker_id": 2}, ErrorCode.INVALID_REQUEST, id="no leader"),
        pytest.param({"partition_epoch": -1}, ErrorCode.INVALID_UPDATE_VERSION, id="earlier partition epoch"),
        pytest.param({"leader_recovery_state": 1}, ErrorCode.INVALID_REQUEST, id="recovering"),
        pytest.param({"epochs": {2: 1}}, ErrorCode.INELIGIBLE_REPLICA, id="another process"),
    ],
)
def test_a_change_is_refused(cluster: Cluster, asked: dict[str, Any], code: ErrorCode) -> None:
    part = cluster.alter(1, 2, **asked)

    assert (part.error_code, cluster.state.isr) == (code, (1, 2, 3))


@pytest.mark.parametrize("isr", [(), (2, 3), (1, 1), (1, 4)], ids=["empty", "without leader", "twice", "no replica"])
def test_a_set_that_cannot_be_is_refused(cluster: Cluster, isr: tuple[int, ...]) -> None:
    assert cluster.alter(*isr).error_code == ErrorCode.INVALID_REQUEST


def test_one_partition_twice_in_a_request_is_answered_once(cluster: Cluster) -> None:
    (told,) = cluster.ask(cluster.wanted(1, 2), cluster.wanted(1, 3)).topics

    assert [part.error_code for part in told.partitions] == [0, ErrorCode.INVALID_REQUEST]
    assert cluster.state.isr == (1, 2)


@pytest.mark.parametrize("shutdown", [False, True], ids=["fenced", "stopping"])
def test_who_is_fenced_or_about_to_stop_does_not_come_in(cluster: Cluster, shutdown: bool) -> None:
    cluster.fence(2, shutdown=shutdown)

    assert cluster.alter(1, 3, 2).error_code == ErrorCode.INELIGIBLE_REPLICA


def test_an_earlier_process_of_the_leader_is_refused_as_a_whole(cluster: Cluster) -> None:
    old = cluster.epoch(1)
    cluster.driven.register(registration(1, seed=8))

    assert cluster.ask(cluster.wanted(1), broker_epoch=old).error_code == ErrorCode.STALE_BROKER_EPOCH
    assert cluster.ask(cluster.wanted(1), broker_epoch=old).topics == []


def test_a_set_that_ends_a_reassignment_may_cost_the_asker_its_lead() -> None:
    cluster = Cluster([1, 2])
    move = AlterPartitionReassignmentsRequest(
        topics=[ReassignableTopic(name="t", partitions=[ReassignablePartition(partition_index=0, replicas=[4, 2])])]
    )
    cluster.driven.apply(cluster.driven.controller.decide(move))
    leader_epoch = cluster.state.leader_epoch

    part = cluster.alter(1, 2, 4)
    state = cluster.state

    assert part.error_code == ErrorCode.NEW_LEADER_ELECTED
    assert (state.leader, state.replicas, state.isr, state.leader_epoch) == (4, (4, 2), (2, 4), leader_epoch + 1)
