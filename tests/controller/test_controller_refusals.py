"""What the controller refuses in a cluster of several brokers, and with which words."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from odradek.kernel.contracts.election import PartitionState
from odradek.kernel.controller.topic_creation import PARTITIONS_PER_REQUEST_MAX
from odradek.kernel.errors import ErrorCode, KafkaError
from odradek.kernel.metadata.record_makers import changed_partition_record
from odradek.kernel.wire.messages.api_64_unregister_broker import UnregisterBrokerRequest

from .controller_requests import (
    create_partitions,
    create_topics,
    incremental_alter,
    reassign_partitions,
    topic,
)
from .metadata_helpers import DrivenController, registration

CLIENT_METRICS = 16
SET = 0


@pytest.fixture
def driven() -> DrivenController:
    """Four brokers, the fourth fenced; topic t with replicas 1 and 2."""
    driven = DrivenController(brokers=3)
    driven.register(registration(4, is_fenced=True))
    driven.apply(driven.controller.decide(create_topics(topic("t", -1, -1, {0: [1, 2]}))))
    return driven


def state_of(driven: DrivenController) -> PartitionState:
    return driven.image.topics_by_name["t"].partitions[0]


def set_state(driven: DrivenController, **changes: Any) -> None:
    changed = attrs.evolve(state_of(driven), **changes)
    driven.controller.replay(changed_partition_record(driven.image.topics_by_name["t"], 0, changed))


@pytest.mark.parametrize(
    ("assignment", "says"),
    [
        ({0: []}, "empty replica list"),
        ({0: [9]}, "broker 9, but no such broker is registered"),
        ({0: [2, 1, 2]}, "the broker 2 more than once"),
        ({0: [1, 2], 1: [1]}, "1 replica(s), but this is not consistent"),
        ({0: [4]}, "partition 0 are fenced or in controlled shutdown"),
    ],
)
def test_replicas_assigned_by_hand_must_make_sense(
    driven: DrivenController, assignment: dict[int, list[int]], says: str
) -> None:
    response = driven.apply(driven.controller.decide(create_topics(topic("u", -1, -1, assignment))))
    (result,) = response.topics

    assert result.error_code == ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert says in (result.error_message or "")


def test_a_fenced_broker_beside_a_live_one_is_a_replica_out_of_sync(driven: DrivenController) -> None:
    driven.apply(driven.controller.decide(create_topics(topic("u", -1, -1, {0: [4, 1]}))))
    state = driven.image.topics_by_name["u"].partitions[0]

    assert (state.leader, state.replicas, state.isr) == (1, (4, 1), (1,))


def test_a_request_for_too_many_new_partitions_is_refused(driven: DrivenController) -> None:
    request = create_partitions(("t", 2 + PARTITIONS_PER_REQUEST_MAX, None))
    (result,) = driven.apply(driven.controller.decide(request)).results

    assert (
        result.error_code,
        result.error_message,
    ) == (ErrorCode.POLICY_VIOLATION, "Excessively large number of partitions per request.")


def test_an_unregistered_broker_cannot_be_fenced_or_forgotten(driven: DrivenController) -> None:
    with pytest.raises(KafkaError, match="No broker registration found for broker id 9") as refused:
        driven.apply(driven.controller.change_broker(9, 0, fence=True))
    assert refused.value.code == ErrorCode.STALE_BROKER_EPOCH
    response = driven.apply(driven.controller.decide(UnregisterBrokerRequest(broker_id=9)))

    assert (response.error_code, response.error_message) == (
        ErrorCode.BROKER_ID_NOT_REGISTERED,
        "Broker ID 9 is not currently registered",
    )


def test_a_broker_that_comes_back_fenced_leads_no_more(driven: DrivenController) -> None:
    driven.register(registration(1, seed=8, is_fenced=True))

    assert (state_of(driven).leader, state_of(driven).isr) == (2, (2,))


def test_a_replica_out_of_sync_that_goes_changes_nothing(driven: DrivenController) -> None:
    set_state(driven, isr=(1,))
    before = state_of(driven)
    driven.apply(driven.controller.change_broker(2, driven.image.brokers[2].broker_epoch, fence=True))

    assert before == state_of(driven)


def test_a_reassignment_of_another_size_is_refused_where_the_request_says_so(driven: DrivenController) -> None:
    request = reassign_partitions(("t", 0, [3]))
    request.allow_replication_factor_change = False
    answer = driven.apply(driven.controller.decide(request)).responses[0].partitions[0]

    assert (answer.error_code, answer.error_message) == (
        ErrorCode.INVALID_REPLICATION_FACTOR,
        "The replication factor is changed from 2 to 1",
    )


def test_nothing_is_cancelled_where_nothing_moves_or_nobody_from_before_is_in_sync(driven: DrivenController) -> None:
    cancel = reassign_partitions(("t", 0, None))
    idle = driven.apply(driven.controller.decide(cancel)).responses[0].partitions[0]
    driven.apply(driven.controller.decide(reassign_partitions(("t", 0, [3]))))
    set_state(driven, isr=(3,), leader=3)
    late = driven.apply(driven.controller.decide(cancel)).responses[0].partitions[0]

    assert idle.error_code == ErrorCode.NO_REASSIGNMENT_IN_PROGRESS
    assert late.error_code == ErrorCode.INVALID_REPLICA_ASSIGNMENT


def test_client_metrics_have_no_defaults(driven: DrivenController) -> None:
    request = incremental_alter((CLIENT_METRICS, "", [("interval.ms", SET, "1000")]))
    (result,) = driven.apply(driven.controller.decide(request)).responses

    assert (result.error_code, result.error_message) == (
        ErrorCode.INVALID_REQUEST,
        "Subscription name can't be empty",
    )


def test_a_topic_whose_election_no_plugin_offers_is_refused() -> None:
    driven = DrivenController()
    with pytest.raises(KafkaError, match="no enabled plugin offers; there is isr"):
        driven.rules.election("lots")
    assert repr(driven.controller).startswith("Controller(")


def test_a_topic_is_created_though_a_list_repeats_itself(driven: DrivenController) -> None:
    """As Kafka does it; what is kept has every entry once."""
    wanted = topic("twice", 1, 1, None, cleanup_policy="compact, delete,compact")
    driven.apply(driven.controller.decide(create_topics(wanted)))

    assert driven.image.topic_config("twice") == {"cleanup.policy": "compact,delete"}
