"""Registrations and heartbeats of brokers, as their controller decides them."""

from __future__ import annotations

import random
from typing import Any

import attrs
import pytest

from odradek.kernel.controller.broker_sessions import BrokerSessions
from odradek.kernel.controller.controller import Controller
from odradek.kernel.errors import ErrorCode, KafkaError
from odradek.kernel.machine.ids import RandomIds
from odradek.kernel.metadata.features import supported_ranges
from odradek.kernel.metadata.image import MetadataImage
from odradek.kernel.wire.messages.api_62_broker_registration import BrokerRegistrationRequest, Feature, Listener
from odradek.kernel.wire.messages.api_63_broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse

from .controller_requests import create_topics, topic
from .metadata_helpers import CLUSTER_ID, DrivenController, make_rules

NEW_ID = RandomIds(random.Random(5)).new_id
TIMEOUT_MS = 9000


class Cluster(DrivenController):
    """A controller with broker 1 of its own, and a clock."""

    def __init__(self) -> None:
        super().__init__()
        self.now_ms = 50_000
        sessions = BrokerSessions(monotonic_ms=lambda: self.now_ms, timeout_ms=TIMEOUT_MS)
        self.rules = attrs.evolve(make_rules(), sessions=sessions)
        self.controller = Controller(image=self.image, rules=self.rules)

    def ask_to_join(self, broker_id: int, **fields: Any) -> int:
        listeners = [Listener(name="PLAINTEXT", host=f"broker-{broker_id}", port=9092)]
        features = [
            Feature(name=name, min_supported_version=low, max_supported_version=high)
            for name, (low, high) in supported_ranges(self.rules.config).items()
        ]
        wanted = {
            "features": features,
            "cluster_id": CLUSTER_ID,
            "incarnation_id": NEW_ID(),
            "listeners": listeners,
            **fields,
        }
        request = BrokerRegistrationRequest(broker_id=broker_id, rack=None, **wanted)
        epoch: int = self.apply(self.controller.decide(request)).broker_epoch
        return epoch

    def beat(self, broker_id: int, epoch: int, *, offset: int = 1 << 40, **wants: Any) -> BrokerHeartbeatResponse:
        request = BrokerHeartbeatRequest(
            broker_id=broker_id, broker_epoch=epoch, current_metadata_offset=offset, **wants
        )
        answer: BrokerHeartbeatResponse = self.apply(self.controller.decide(request))
        return answer

    def join(self, broker_id: int) -> int:
        epoch = self.ask_to_join(broker_id)
        assert not self.beat(broker_id, epoch).is_fenced
        return epoch

    def refused(self, broker_id: int, **fields: Any) -> ErrorCode:
        with pytest.raises(KafkaError) as refusal:
            self.ask_to_join(broker_id, **fields)
        return refusal.value.code


def test_a_broker_is_fenced_until_it_has_seen_its_own_registration() -> None:
    cluster = Cluster()
    epoch = cluster.ask_to_join(2)
    behind = cluster.beat(2, epoch, offset=epoch - 1)
    unready = cluster.beat(2, epoch, offset=epoch, want_fence=True)

    assert cluster.image.brokers[2].is_fenced
    assert (behind.is_caught_up, behind.is_fenced) == (False, True)
    assert (unready.is_caught_up, unready.is_fenced) == (True, True)
    assert not cluster.beat(2, epoch, offset=epoch).is_fenced
    assert not cluster.image.brokers[2].is_fenced


def test_the_same_process_asked_again_has_the_same_epoch() -> None:
    cluster, incarnation = Cluster(), NEW_ID()
    epoch = cluster.ask_to_join(2, incarnation_id=incarnation)
    count = len(cluster.records)

    assert cluster.ask_to_join(2, incarnation_id=incarnation) == epoch
    assert len(cluster.records) == count


def test_another_cluster_and_a_broker_that_nobody_reaches_are_refused() -> None:
    cluster = Cluster()

    assert cluster.refused(2, cluster_id="other") is ErrorCode.INCONSISTENT_CLUSTER_ID
    assert cluster.refused(2, listeners=[]) is ErrorCode.INVALID_REGISTRATION


def test_nobody_registers_with_the_id_of_the_controllers_own_node_or_with_none() -> None:
    cluster = Cluster()
    known = cluster.image.brokers[1]

    assert cluster.refused(1) is ErrorCode.DUPLICATE_BROKER_REGISTRATION
    assert cluster.refused(1, incarnation_id=known.incarnation_id) is ErrorCode.DUPLICATE_BROKER_REGISTRATION
    assert cluster.refused(-1) is ErrorCode.INVALID_REGISTRATION
    assert cluster.image.brokers == {1: known}


def test_a_heartbeat_for_the_controllers_own_node_begins_no_session_that_could_end() -> None:
    cluster = Cluster()
    with pytest.raises(KafkaError) as refusal:
        cluster.beat(1, cluster.epoch_of(1))
    cluster.now_ms += TIMEOUT_MS

    assert refusal.value.code is ErrorCode.STALE_BROKER_EPOCH
    assert cluster.apply(cluster.controller.fence_overdue()) == []
    assert not cluster.image.brokers[1].is_fenced


def test_a_second_process_with_the_id_of_one_that_lives_is_refused() -> None:
    cluster = Cluster()
    cluster.join(2)
    cluster.now_ms += TIMEOUT_MS - 1

    assert cluster.refused(2) is ErrorCode.DUPLICATE_BROKER_REGISTRATION
    cluster.now_ms += 1
    assert cluster.ask_to_join(2) > 0
    assert cluster.image.brokers[2].is_fenced


def test_heartbeats_of_another_registration_are_refused() -> None:
    cluster = Cluster()
    epoch = cluster.join(2)

    for broker_id, told, code in (
        (2, epoch - 1, ErrorCode.STALE_BROKER_EPOCH),
        (3, epoch, ErrorCode.STALE_BROKER_EPOCH),
    ):
        with pytest.raises(KafkaError) as refusal:
            cluster.beat(broker_id, told)
        assert refusal.value.code is code


def test_who_is_not_heard_of_is_fenced_and_leads_nothing() -> None:
    cluster = Cluster()
    epoch = cluster.join(2)
    cluster.apply(cluster.controller.decide(create_topics(topic("t", -1, -1, {0: [2, 1]}))))
    cluster.now_ms += TIMEOUT_MS
    overdue = cluster.apply(cluster.controller.fence_overdue())
    (state,) = cluster.image.topics_by_name["t"].partitions

    assert overdue == [2]
    assert cluster.apply(cluster.controller.fence_overdue()) == []
    assert (state.leader, state.isr) == (1, (1,))
    assert not cluster.beat(2, epoch).is_fenced, "it lived, and is back"


def test_a_controlled_shutdown_moves_leaders_before_the_broker_may_end() -> None:
    cluster = Cluster()
    two, three = cluster.join(2), cluster.join(3)
    cluster.apply(cluster.controller.decide(create_topics(topic("t", -1, -1, {0: [2, 3]}))))
    first = cluster.beat(2, two, want_shut_down=True)
    (state,) = cluster.image.topics_by_name["t"].partitions

    assert (first.should_shut_down, first.is_fenced) == (False, False)
    assert (state.leader, state.isr) == (3, (3,))
    assert cluster.beat(2, two, want_shut_down=True).should_shut_down
    assert cluster.image.brokers[2].is_fenced
    assert cluster.beat(2, two).is_fenced, "what has ended is not let in without a registration"
    assert not cluster.beat(3, three).should_shut_down


def test_a_broker_waits_with_its_end_until_others_know_who_leads_instead() -> None:
    cluster = Cluster()
    two = cluster.join(2)
    three = cluster.ask_to_join(3)
    cluster.beat(3, three, offset=three)
    cluster.beat(2, two, want_shut_down=True)

    assert not cluster.beat(2, two, want_shut_down=True).should_shut_down
    cluster.beat(3, three, offset=cluster.image.offset)
    assert cluster.beat(2, two, want_shut_down=True).should_shut_down


def test_a_controller_that_stood_still_gives_everybody_more_time() -> None:
    cluster = Cluster()
    cluster.join(2)
    sessions = cluster.rules.sessions
    cluster.now_ms += TIMEOUT_MS
    sessions.extend(TIMEOUT_MS)

    assert sessions.overdue(cluster.image) == []
    assert sessions.until_next_ms() == TIMEOUT_MS


def test_sessions_of_who_is_fenced_and_silent_are_forgotten() -> None:
    cluster = Cluster()
    cluster.ask_to_join(2)
    cluster.now_ms += TIMEOUT_MS
    sessions = cluster.rules.sessions

    assert sessions.until_next_ms() == 0
    sessions.drop_over(cluster.image)
    assert sessions.until_next_ms() == TIMEOUT_MS


def test_a_controller_that_begins_gives_everybody_a_session() -> None:
    cluster = Cluster()
    epoch = cluster.join(2)
    fresh = BrokerSessions(monotonic_ms=lambda: cluster.now_ms, timeout_ms=TIMEOUT_MS)
    fresh.begin(cluster.image.brokers.values())

    assert fresh.is_valid(2, epoch)
    assert fresh.overdue(MetadataImage()) == []
