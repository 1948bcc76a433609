"""Elections, reassignments, registration and producer ids in a cluster of three brokers."""

from __future__ import annotations

import attrs
import pytest

from odradek.kernel.contracts.election import ElectionReason, PartitionState
from odradek.kernel.controller.partition_states import PartitionRules, next_state
from odradek.kernel.errors import KafkaError
from odradek.kernel.metadata.image import TopicImage
from odradek.kernel.metadata.record_makers import changed_partition_record
from odradek.kernel.wire.messages.api_64_unregister_broker import UnregisterBrokerRequest
from odradek.kernel.wire.messages.api_67_allocate_producer_ids import AllocateProducerIdsRequest

from .controller_requests import (
    BROKER,
    alter_configs,
    create_topics,
    delete_topics,
    elect_leaders,
    list_reassignments,
    reassign_partitions,
    topic,
)
from .metadata_helpers import DrivenController, registration


def three_brokers() -> DrivenController:
    driven = DrivenController(brokers=3)
    driven.apply(driven.controller.decide(create_topics(topic("t", -1, -1, {0: [1, 2]}))))
    return driven


def topic_of(driven: DrivenController) -> TopicImage:
    return driven.image.topics_by_name["t"]


def state_of(driven: DrivenController) -> PartitionState:
    return topic_of(driven).partitions[0]


def fence(driven: DrivenController, broker_id: int, *, shutdown: bool = False) -> None:
    epoch = driven.image.brokers[broker_id].broker_epoch
    driven.apply(driven.controller.change_broker(broker_id, epoch, fence=not shutdown, shutdown=shutdown))


@pytest.mark.parametrize("shutdown", [True, False])
def test_another_in_sync_replica_leads_when_the_leader_goes(shutdown: bool) -> None:
    driven = three_brokers()
    fence(driven, 1, shutdown=shutdown)

    assert (*attrs.astuple(state_of(driven))[:3], state_of(driven).isr) == (2, 1, 1, (2,))


def test_the_last_in_sync_replica_leads_again_when_it_is_back() -> None:
    driven = three_brokers()
    fence(driven, 1)
    fence(driven, 2)
    assert (state_of(driven).leader, state_of(driven).isr) == (-1, ())

    driven.register(registration(1, seed=8))
    assert state_of(driven).leader == -1

    driven.register(registration(2, seed=8))
    assert (state_of(driven).leader, state_of(driven).isr) == (2, (2,))


def test_a_preferred_election_needs_the_preferred_leader_in_sync() -> None:
    driven = three_brokers()
    fence(driven, 1)
    driven.register(registration(1, seed=8))
    response = driven.apply(driven.controller.decide(elect_leaders(0, [("t", [0])])))
    assert response.replica_election_results[0].partition_result[0].error_code == 80

    caught_up = attrs.evolve(state_of(driven), isr=(2, 1))
    driven.controller.replay(changed_partition_record(topic_of(driven), 0, caught_up))
    response = driven.apply(driven.controller.decide(elect_leaders(0, None)))

    assert response.replica_election_results[0].partition_result[0].error_code == 0
    assert state_of(driven).leader == 1


def test_a_reassignment_keeps_the_old_replicas_until_the_new_ones_are_in_sync() -> None:
    driven = three_brokers()
    driven.apply(driven.controller.decide(reassign_partitions(("t", 0, [3, 2]))))
    moving = state_of(driven)
    listed = driven.apply(driven.controller.decide(list_reassignments(None))).topics[0].partitions[0]

    assert (moving.replicas, moving.adding_replicas, moving.removing_replicas) == ((3, 2, 1), (3,), (1,))
    assert (listed.replicas, listed.adding_replicas, listed.removing_replicas) == ([3, 2, 1], [3], [1])

    topic_rules = PartitionRules(driven.rules.election("isr"), [1, 2, 3])
    done = next_state(moving, attrs.evolve(moving, isr=(1, 2, 3)), topic_rules, ElectionReason.REASSIGNMENT)

    assert done is not None
    assert (done.leader_epoch, done.partition_epoch) == (moving.leader_epoch + 1, moving.partition_epoch + 1)
    assert (done.replicas, done.adding_replicas, done.removing_replicas) == ((3, 2), (), ())
    assert done.leader in (2, 3)


def test_a_reassignment_can_be_cancelled() -> None:
    driven = three_brokers()
    driven.apply(driven.controller.decide(reassign_partitions(("t", 0, [3, 2]))))
    response = driven.apply(driven.controller.decide(reassign_partitions(("t", 0, None))))

    assert response.responses[0].partitions[0].error_code == 0
    assert ({1, 2}, ()) == (set(state_of(driven).replicas), state_of(driven).adding_replicas)


def test_a_smaller_replication_factor_takes_effect_at_once() -> None:
    driven = three_brokers()
    reassign(driven, 2)

    assert (state_of(driven).leader, state_of(driven).replicas, state_of(driven).isr) == (2, (2,), (2,))


def five_brokers(*replicas: int) -> DrivenController:
    driven = DrivenController(brokers=5)
    driven.apply(driven.controller.decide(create_topics(topic("t", -1, -1, {0: list(replicas)}))))
    return driven


def reassign(driven: DrivenController, *target: int) -> PartitionState:
    response = driven.apply(driven.controller.decide(reassign_partitions(("t", 0, list(target) or None))))

    assert response.responses[0].partitions[0].error_code == 0
    return state_of(driven)


def in_sync(driven: DrivenController, *isr: int) -> PartitionState:
    """Have the partition's leader ask for an in-sync set."""
    driven.alter_isr("t", 0, isr)
    return state_of(driven)


def moves(state: PartitionState) -> tuple[tuple[int, ...], ...]:
    return state.replicas, state.isr, state.adding_replicas, state.removing_replicas


def test_a_second_reassignment_keeps_the_only_replica_in_sync_until_another_one_is() -> None:
    driven = five_brokers(1)
    reassign(driven, 2, 3)
    in_sync(driven, 1, 2)
    fence(driven, 1)
    back = reassign(driven, 1)

    # What Apache Kafka 4.3.1 makes of it: who was to come is to come and to go.
    assert (back.leader, *moves(back)) == (2, (1, 2, 3), (2,), (2, 3), (2, 3))

    driven.register(registration(1, seed=8))
    done = in_sync(driven, 2, 1)
    assert (done.leader, *moves(done)) == (1, (1,), (1,), (), ())


def test_a_second_reassignment_drops_nobody_before_it_is_done() -> None:
    driven = five_brokers(1, 2)
    reassign(driven, 2, 3)
    in_sync(driven, 1, 2)

    assert moves(reassign(driven, 2, 4)) == ((2, 4, 1, 3), (1, 2), (3, 4), (1, 3))
    assert moves(in_sync(driven, 1, 2, 3)) == ((2, 4, 1, 3), (1, 2, 3), (3, 4), (1, 3))
    assert moves(in_sync(driven, 1, 2, 3, 4)) == ((2, 4), (2, 4), (), ())


def test_a_reassignment_that_was_given_up_for_another_is_cancelled_to_what_was_before_both() -> None:
    driven = five_brokers(1, 2)
    reassign(driven, 2, 3)
    reassign(driven, 2, 4)
    cancelled = reassign(driven)

    assert (set(cancelled.replicas), cancelled.adding_replicas, cancelled.removing_replicas) == ({1, 2}, (), ())


def test_a_plan_that_is_sent_again_changes_nothing() -> None:
    driven = five_brokers(1, 2)
    begun = reassign(driven, 2, 3)

    assert reassign(driven, 2, 3) == begun
    assert moves(in_sync(driven, 1, 2, 3)) == ((2, 3), (2, 3), (), ())


def test_a_replica_that_was_to_come_is_waited_for_though_the_plan_changed() -> None:
    driven = five_brokers(1)
    reassign(driven, 2)
    reassign(driven, 2, 3, 4)

    assert moves(in_sync(driven, 1, 3, 4)) == ((2, 3, 4, 1), (1, 3, 4), (2, 3, 4), (1,))
    assert moves(in_sync(driven, 1, 3, 4, 2)) == ((2, 3, 4), (3, 4, 2), (), ())


def test_replicas_that_come_and_go_are_told_in_ascending_order() -> None:
    driven = five_brokers(3, 2, 1)

    assert moves(reassign(driven, 5, 2, 4)) == ((5, 2, 4, 1, 3), (3, 2, 1), (4, 5), (1, 3))


def test_a_replica_that_was_to_go_may_stay_after_all() -> None:
    driven = five_brokers(1, 2)
    reassign(driven, 2, 3)

    assert moves(reassign(driven, 2, 3, 1)) == ((2, 3, 1), (1, 2), (3,), ())
    assert moves(in_sync(driven, 1, 2, 3)) == ((2, 3, 1), (1, 2, 3), (), ())


def test_fewer_replicas_are_had_when_all_that_stay_are_in_sync() -> None:
    driven = five_brokers(1, 2, 3)
    fence(driven, 2)
    waiting = reassign(driven, 1, 2)
    listed = driven.apply(driven.controller.decide(list_reassignments(None))).topics[0].partitions[0]

    assert moves(waiting) == ((1, 2, 3), (1, 3), (), (3,))
    assert (listed.replicas, listed.adding_replicas, listed.removing_replicas) == ([1, 2, 3], [], [3])

    driven.register(registration(2, seed=8))
    assert moves(in_sync(driven, 1, 2, 3)) == ((1, 2), (1, 2), (), ())


def test_as_many_new_replicas_as_old_ones_are_enough_though_one_that_stays_is_not_in_sync() -> None:
    driven = five_brokers(1, 2, 3)
    fence(driven, 2)
    reassign(driven, 1, 2, 4)

    assert moves(in_sync(driven, 1, 3, 4)) == ((1, 2, 4), (1, 4), (), ())


def test_while_a_reassignment_goes_on_the_size_is_that_of_its_goal() -> None:
    driven = five_brokers(1, 2)
    reassign(driven, 2, 3, 4)
    for target, code in (([2, 3], 38), ([2, 3, 5], 0)):
        request = reassign_partitions(("t", 0, target))
        request.allow_replication_factor_change = False
        response = driven.apply(driven.controller.decide(request))

        assert response.responses[0].partitions[0].error_code == code


def test_a_restart_of_the_only_broker_raises_the_leader_epoch() -> None:
    driven = DrivenController()
    driven.apply(driven.controller.decide(create_topics(topic("t"))))
    first = driven.image.brokers[1].broker_epoch
    second = driven.register(registration(1, seed=8))

    assert first < second
    assert (state_of(driven).leader, state_of(driven).leader_epoch) == (1, 1)


def test_a_living_broker_of_the_same_id_is_refused_and_a_stale_epoch_too() -> None:
    driven = three_brokers()
    with pytest.raises(KafkaError, match="Another broker is registered"):
        driven.apply(driven.controller.register_broker(registration(2, seed=8)))
    with pytest.raises(KafkaError, match="Expected broker epoch"):
        driven.apply(driven.controller.change_broker(2, 10_000, fence=True))
    with pytest.raises(KafkaError, match="No broker registration found for broker id 9"):
        driven.apply(driven.controller.change_broker(9, 1, fence=True))


def test_an_unregistered_broker_is_forgotten_and_leads_nothing() -> None:
    driven = three_brokers()
    driven.apply(driven.controller.decide(UnregisterBrokerRequest(broker_id=1)))

    assert sorted(driven.image.brokers) == [2, 3]
    assert state_of(driven).leader == 2


def test_blocks_of_producer_ids_never_overlap() -> None:
    driven = three_brokers()
    requests = [
        AllocateProducerIdsRequest(broker_id=broker, broker_epoch=driven.epoch_of(broker)) for broker in (1, 2, 1)
    ]
    blocks = [driven.apply(driven.controller.decide(request)) for request in requests]

    assert [(block.producer_id_start, block.producer_id_len) for block in blocks] == [
        (0, 1000),
        (1000, 1000),
        (2000, 1000),
    ]


def test_topics_are_not_deleted_where_that_is_disabled() -> None:
    driven = DrivenController(delete_topic_enable="false")
    with pytest.raises(KafkaError):
        driven.apply(driven.controller.decide(delete_topics("t")))


def test_another_brokers_configs_are_kept_under_its_id() -> None:
    driven = three_brokers()
    driven.apply(driven.controller.decide(alter_configs(BROKER, "02", log_cleaner_threads="2")))

    assert dict(driven.image.config(BROKER, "2")) == {"log.cleaner.threads": "2"}
