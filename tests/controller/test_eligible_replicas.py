"""Eligible leader replicas (KIP-966), unclean elections by key and what configs do to partitions.

The states were seen on three brokers of Apache Kafka 4.3.1 (2026-11-25), of which the third was paused until it was
fenced, and came back: DescribeTopicPartitions before, meanwhile and afterwards.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

import attrs
import pytest

from odradek.kernel.contracts.election import PartitionState
from odradek.kernel.errors import ErrorCode
from odradek.kernel.metadata.controller_calls import directories_request
from odradek.kernel.metadata.features import ELIGIBLE_LEADER_REPLICAS_VERSION
from odradek.kernel.metadata.image import ResourceType
from odradek.kernel.metadata.record_makers import changed_partition_record

from .controller_requests import BROKER, TOPIC, create_topics, elect_leaders, incremental_alter, topic, update_features
from .metadata_helpers import DrivenController, registration

if TYPE_CHECKING:
    from odradek.kernel.wire.messages.api_44_incremental_alter_configs import IncrementalAlterConfigsResponse

SET, DELETE = 0, 1
SAFE = 2


class Cluster(DrivenController):
    """Three brokers, whose states are told as (leader, leader epoch, isr, eligible, last known)."""

    def __init__(self, **settings: str) -> None:
        super().__init__(brokers=3, seed=1, **settings)

    def create(self, name: str, assignment: dict[int, list[int]], **configs: str | None) -> None:
        request = create_topics(topic(name, -1, -1, assignment, **configs))
        assert self.apply(self.controller.decide(request)).topics[0].error_code == 0

    def fence(self, broker_id: int) -> None:
        self.apply(self.controller.change_broker(broker_id, self.image.brokers[broker_id].broker_epoch, fence=True))

    def unfence(self, broker_id: int) -> None:
        self.apply(self.controller.change_broker(broker_id, self.image.brokers[broker_id].broker_epoch, fence=False))

    def restart(self, broker_id: int, *, is_clean: bool) -> None:
        """Have another process of a broker register, and be unfenced."""
        previous = self.image.brokers[broker_id].broker_epoch if is_clean else -1
        wanted = attrs.evolve(registration(broker_id, seed=9, is_fenced=True), previous_broker_epoch=previous)
        epoch = self.apply(self.controller.register_broker(wanted))
        self.apply(self.controller.change_broker(broker_id, epoch, fence=False))

    def return_with(self, broker_id: int, *log_dirs: UUID) -> None:
        """Have a broker stop cleanly, register with these log directories, and be unfenced."""
        self.fence(broker_id)
        wanted = attrs.evolve(
            registration(broker_id, seed=len(self.records), is_fenced=True),
            previous_broker_epoch=self.image.brokers[broker_id].broker_epoch,
            log_dirs=log_dirs,
        )
        epoch = self.apply(self.controller.register_broker(wanted))
        self.apply(self.controller.change_broker(broker_id, epoch, fence=False))

    def tell_directory(self, broker_id: int, name: str, directory: UUID) -> None:
        place = (self.image.topics_by_name[name].topic_id, 0)
        request = directories_request(broker_id, self.image.brokers[broker_id].broker_epoch, {place: directory})
        self.apply(self.controller.decide(request))

    def caught_up(self, name: str, partition: int, *isr: int) -> None:
        """Have the leader tell who is in sync."""
        image = self.image.topics_by_name[name]
        state = attrs.evolve(image.partitions[partition], isr=isr, eligible_leader_replicas=())
        self.controller.replay(changed_partition_record(image, partition, state))

    def alter(self, kind: int, resource: str, key: str, value: str | None) -> IncrementalAlterConfigsResponse:
        operation = DELETE if value is None else SET
        request = incremental_alter((kind, resource, [(key, operation, value)]))
        response: IncrementalAlterConfigsResponse = self.apply(self.controller.decide(request))
        return response

    def state(self, name: str, partition: int = 0) -> PartitionState:
        return self.image.topics_by_name[name].partitions[partition]

    def told(self, name: str, partition: int = 0) -> tuple[int, int, tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
        state = self.state(name, partition)
        return (
            state.leader,
            state.leader_epoch,
            state.isr,
            state.eligible_leader_replicas,
            state.last_known_elr,
        )


def test_who_leaves_below_the_minimum_is_eligible_and_leaves_that_set_when_the_minimum_is_reached() -> None:
    cluster = Cluster()
    cluster.create("q2", {0: [1, 3], 1: [3, 1], 2: [1, 2]}, min_insync_replicas="2")
    cluster.create("q3", {0: [1, 3, 2]}, min_insync_replicas="3")
    cluster.fence(3)

    assert [cluster.told("q2", index) for index in range(3)] == [
        (1, 0, (1,), (3,), ()),
        (1, 1, (1,), (3,), ()),
        (1, 0, (1, 2), (), ()),
    ]
    assert cluster.told("q3") == (1, 0, (1, 2), (3,), ())

    assert cluster.alter(TOPIC, "q2", "min.insync.replicas", "1").responses[0].error_code == 0
    assert [cluster.told("q2", index)[2:] for index in range(2)] == [((1,), (), ()), ((1,), (), ())]


def test_a_topic_asks_for_no_more_replicas_in_sync_than_it_has() -> None:
    cluster = Cluster()
    cluster.create("t", {0: [3, 1]}, min_insync_replicas="3")
    cluster.fence(3)

    assert cluster.told("t") == (1, 1, (1,), (3,), ())


def test_the_last_in_sync_replica_is_eligible_and_the_last_leader_is_remembered() -> None:
    cluster = Cluster()
    cluster.create("r1", {0: [3], 1: [1]})
    cluster.fence(3)
    assert cluster.told("r1") == (-1, 1, (), (3,), (3,))
    for kind, code in ((1, 83), (0, 80)):
        answer = cluster.apply(cluster.controller.decide(elect_leaders(kind, [("r1", [0])])))
        assert answer.replica_election_results[0].partition_result[0].error_code == code

    cluster.unfence(3)
    assert cluster.told("r1") == (3, 2, (3,), (), ())


def test_an_eligible_replica_leads_when_nobody_is_in_sync_any_more() -> None:
    cluster = Cluster()
    cluster.create("t", {0: [1, 2, 3]}, min_insync_replicas="2")
    for broker_id in (3, 2, 1):
        cluster.fence(broker_id)
    assert cluster.told("t") == (-1, 1, (), (2, 1), (1,))

    cluster.unfence(3)  # it left while enough others were in sync, and what came then it has not
    assert cluster.told("t")[0] == -1
    cluster.unfence(2)
    assert cluster.told("t") == (2, 2, (2,), (1,), ())


def test_who_may_have_lost_records_is_neither_in_sync_nor_eligible() -> None:
    cluster = Cluster()
    cluster.create("t", {0: [1, 2]}, min_insync_replicas="2")
    cluster.fence(2)
    assert cluster.told("t") == (1, 0, (1,), (2,), ())

    cluster.restart(2, is_clean=False)
    assert cluster.told("t") == (1, 0, (1,), (), ())


def test_who_stopped_cleanly_is_eligible_when_it_is_back() -> None:
    cluster = Cluster()
    cluster.create("t", {0: [1, 2]}, min_insync_replicas="2")
    cluster.fence(2)
    cluster.restart(2, is_clean=True)

    assert cluster.told("t") == (1, 0, (1,), (2,), ())


@pytest.mark.parametrize("is_clean", [True, False])
@pytest.mark.parametrize("has_eligible", [True, False])
def test_the_controllers_own_broker_gives_way_to_who_is_in_sync_unless_it_stopped_cleanly(
    is_clean: bool, has_eligible: bool
) -> None:
    cluster = Cluster()
    if not has_eligible:
        off = update_features((ELIGIBLE_LEADER_REPLICAS_VERSION, 0, SAFE))
        assert cluster.apply(cluster.controller.decide(off)).error_code == 0
    cluster.create("t", {0: [1, 2], 1: [2, 1]}, min_insync_replicas="2")
    cluster.create("alone", {0: [1]})
    previous = cluster.image.brokers[1].broker_epoch if is_clean else -1
    cluster.apply(
        cluster.controller.register_broker(attrs.evolve(registration(1, seed=9), previous_broker_epoch=previous))
    )

    if is_clean:
        assert [cluster.told("t", index)[:4] for index in range(2)] == [(1, 1, (1, 2), ()), (2, 0, (2, 1), ())]
    else:
        assert [cluster.told("t", index)[:4] for index in range(2)] == [(2, 1, (2,), ()), (2, 0, (2,), ())]
    assert cluster.told("alone")[:3] == (1, 1, (1,))


@pytest.mark.parametrize("is_clean", [True, False])
def test_the_controllers_own_broker_waits_for_who_is_eligible_unless_that_may_have_lost_records_too(
    is_clean: bool,
) -> None:
    cluster = Cluster()
    cluster.create("t", {0: [1, 2]}, min_insync_replicas="2")
    cluster.fence(2)
    cluster.apply(cluster.controller.register_broker(registration(1, seed=9)))
    assert cluster.told("t") == (-1, 1, (), (2,), (1,))

    cluster.restart(2, is_clean=is_clean)
    assert cluster.told("t") == ((2, 2, (2,), (), ()) if is_clean else (1, 2, (1,), (), ()))


def test_the_last_leader_leads_again_when_nobody_is_eligible() -> None:
    cluster = Cluster()
    cluster.create("t", {0: [3]})
    cluster.fence(3)
    cluster.restart(3, is_clean=False)

    # Nobody has more than it: it leads alone, and what it lost is lost.
    assert cluster.told("t") == (3, 2, (3,), (), ())


ONE, TWO = (UUID(int=number << 64) for number in (1, 2))
"""Log directories of a broker that has two."""


def with_a_broken_disk_that_is_waited_for() -> Cluster:
    """Only the replica in the third broker's directory TWO, which failed, has all that was acknowledged."""
    cluster = Cluster()
    cluster.return_with(3, ONE, TWO)
    cluster.create("t", {0: [1, 2, 3]}, min_insync_replicas="2")
    cluster.tell_directory(3, "t", TWO)
    cluster.fence(2)
    cluster.apply(cluster.controller.own_directories_failed(3, cluster.epoch_of(3), [TWO]))
    cluster.restart(1, is_clean=False)

    assert cluster.told("t")[::2] == (-1, (), (1,))
    assert cluster.state("t").eligible_leader_replicas == (3,)
    return cluster


def test_a_disk_that_was_broken_is_back_with_all_that_was_acknowledged() -> None:
    cluster = with_a_broken_disk_that_is_waited_for()
    cluster.return_with(3, ONE)  # still broken
    assert cluster.told("t")[0] == -1

    cluster.return_with(3, ONE, TWO)
    assert cluster.told("t")[::2] == (3, (3,), ())


def test_a_replica_that_begins_anew_is_not_eligible() -> None:
    cluster = with_a_broken_disk_that_is_waited_for()
    cluster.return_with(3, ONE)
    cluster.tell_directory(3, "t", ONE)  # its disk was taken out of log.dirs

    assert cluster.told("t")[0::2] == (1, (1,), ())
    assert cluster.state("t").eligible_leader_replicas == ()


def test_a_replica_that_begins_anew_is_not_eligible_beside_a_leader_either() -> None:
    cluster = Cluster()
    cluster.return_with(3, ONE, TWO)
    cluster.create("t", {0: [1, 3]}, min_insync_replicas="2")
    cluster.tell_directory(3, "t", TWO)
    cluster.fence(3)
    assert cluster.told("t")[2:4] == ((1,), (3,))

    cluster.return_with(3, ONE)
    cluster.tell_directory(3, "t", ONE)
    assert cluster.told("t")[2:4] == ((1,), ())


def test_the_only_replica_leads_again_though_it_begins_anew() -> None:
    cluster = Cluster()
    cluster.return_with(3, ONE, TWO)
    cluster.create("t", {0: [3]})
    cluster.tell_directory(3, "t", TWO)
    cluster.fence(3)
    cluster.return_with(3, ONE)
    assert cluster.told("t")[0] == -1

    cluster.tell_directory(3, "t", ONE)
    assert cluster.told("t")[::2] == (3, (3,), ())


def test_the_controllers_own_broker_does_not_lead_what_lay_in_a_directory_that_is_gone() -> None:
    cluster = Cluster()
    first = attrs.evolve(registration(1, seed=9), log_dirs=[ONE, TWO])
    cluster.register(first)
    cluster.create("t", {0: [1, 2]})
    cluster.tell_directory(1, "t", TWO)
    cluster.create("alone", {0: [1]})
    cluster.tell_directory(1, "alone", TWO)
    # It closed its logs, but was told to end at once, before it had handed over.
    clean = attrs.evolve(registration(1, seed=10), log_dirs=[ONE], previous_broker_epoch=cluster.epoch_of(1))
    cluster.register(clean)
    assert [cluster.told(name)[::2] for name in ("t", "alone")] == [(2, (2,), ()), (-1, (), (1,))]

    for name in ("t", "alone"):
        cluster.tell_directory(1, name, ONE)
    assert [cluster.told(name)[::2] for name in ("t", "alone")] == [(2, (2,), ()), (1, (1,), ())]


def test_an_unclean_election_takes_place_where_the_topic_allows_it() -> None:
    cluster = Cluster()
    for name, allowed in (("may", "true"), ("may not", "false")):
        name = name.replace(" ", "-")
        cluster.create(name, {0: [3, 1]}, unclean_leader_election_enable=allowed)
        cluster.fence(1)
        cluster.fence(3)
        cluster.unfence(1)
        cluster.unfence(3)
        cluster.caught_up(name, 0, *cluster.state(name).isr)
    cluster.create("late", {0: [3, 1]})
    cluster.fence(1)
    cluster.fence(3)
    assert [cluster.told(name)[0] for name in ("may", "may-not", "late")] == [-1, -1, -1]

    cluster.unfence(1)

    assert cluster.told("may")[0] == 1
    assert cluster.told("may")[2:] == ((1,), (), ())
    assert cluster.told("may-not")[0] == -1
    assert cluster.told("late")[0] == -1


@pytest.mark.parametrize("resource", [(TOPIC, "late"), (BROKER, "")])
def test_an_unclean_election_takes_place_at_once_when_it_is_switched_on(resource: tuple[int, str]) -> None:
    cluster = Cluster()
    cluster.create("late", {0: [3, 1], 1: [2, 1]})
    cluster.fence(1)
    cluster.fence(3)
    cluster.unfence(1)
    assert cluster.told("late") == (-1, 1, (), (3,), (3,))

    answer = cluster.alter(*resource, "unclean.leader.election.enable", "true")

    assert answer.responses[0].error_code == 0
    assert cluster.told("late") == (1, 2, (1,), (), ())
    assert cluster.told("late", 1) == (2, 0, (2,), (), ())  # who leads goes on leading


def test_a_cluster_has_one_minimum_while_replicas_may_be_eligible() -> None:
    cluster = Cluster(min_insync_replicas="2")
    assert cluster.image.config(ResourceType.BROKER, "") == {"min.insync.replicas": "2"}

    # Texts and codes of Apache Kafka 4.3.1.
    for resource, value, text in (
        ("", None, "Cluster-level min.insync.replicas cannot be removed while ELR is enabled."),
        ("1", "2", "Broker-level min.insync.replicas cannot be altered while ELR is enabled."),
    ):
        answer = cluster.alter(BROKER, resource, "min.insync.replicas", value).responses[0]
        assert (answer.error_code, answer.error_message) == (ErrorCode.INVALID_CONFIG, text)
    assert cluster.alter(BROKER, "", "min.insync.replicas", "1").responses[0].error_code == 0


def test_without_the_feature_those_who_were_eligible_are_in_sync() -> None:
    cluster = Cluster()
    cluster.create("t", {0: [1, 2]}, min_insync_replicas="2")
    cluster.create("u", {0: [3]})
    for broker_id in (2, 1, 3):
        cluster.fence(broker_id)
    assert cluster.told("t")[2:] == ((), (2, 1), (1,))

    answer = cluster.apply(cluster.controller.decide(update_features((ELIGIBLE_LEADER_REPLICAS_VERSION, 0, SAFE))))

    assert answer.error_code == 0
    assert cluster.told("t")[2:] == ((2, 1), (), ())
    assert cluster.told("u")[2:] == ((3,), (), ())
    assert cluster.alter(BROKER, "", "min.insync.replicas", None).responses[0].error_code == 0

    cluster.unfence(3)
    cluster.fence(3)
    assert cluster.told("u")[2:] == ((3,), (), ())  # the last one stays in sync


def test_the_feature_needs_a_level_of_metadata_that_keeps_it() -> None:
    cluster = Cluster()
    refused = cluster.apply(cluster.controller.decide(update_features(("metadata.version", 22, SAFE))))
    assert "Set eligible.leader.replicas.version to 0 first." in (refused.error_message or "")

    both = update_features((ELIGIBLE_LEADER_REPLICAS_VERSION, 0, SAFE), ("metadata.version", 22, SAFE))
    assert cluster.apply(cluster.controller.decide(both)).error_code == 0

    refused = cluster.apply(cluster.controller.decide(update_features((ELIGIBLE_LEADER_REPLICAS_VERSION, 1, 1))))
    assert "eligible.leader.replicas.version could not be set to 1 because it depends on metadata.version level 23" in (
        refused.error_message or ""
    )


def test_leaders_go_back_to_the_preferred_replicas_that_are_in_sync() -> None:
    cluster = Cluster()
    cluster.create("t", {0: [3, 1], 1: [3, 2], 2: [1, 2]})
    cluster.fence(3)
    cluster.unfence(3)
    cluster.caught_up("t", 0, 1, 3)
    assert [cluster.state("t", index).leader for index in range(3)] == [1, 2, 1]

    assert cluster.apply(cluster.controller.balance_leaders()) is False

    assert [cluster.state("t", index).leader for index in range(3)] == [3, 2, 1]
    assert cluster.apply(cluster.controller.balance_leaders()) is False
