"""Registrations and heartbeats of brokers, as their controller decides them."""

from __future__ import annotations

import random
from typing import Any
from uuid import UUID

import attrs
import pytest

from odradek.kernel.controller.broker_sessions import BrokerSessions
from odradek.kernel.controller.controller import Controller
from odradek.kernel.errors import ErrorCode, KafkaError
from odradek.kernel.machine.ids import RandomIds
from odradek.kernel.metadata.controller_calls import directories_request
from odradek.kernel.metadata.features import METADATA_VERSION, METADATA_VERSION_CORDONS, supported_ranges
from odradek.kernel.metadata.image import MetadataImage
from odradek.kernel.types import LOST_DIRECTORY
from odradek.kernel.wire.messages.api_43_elect_leaders import ElectLeadersRequest
from odradek.kernel.wire.messages.api_57_update_features import (
    FeatureUpdateKey,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)
from odradek.kernel.wire.messages.api_62_broker_registration import BrokerRegistrationRequest, Feature, Listener
from odradek.kernel.wire.messages.api_63_broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from odradek.kernel.wire.messages.api_64_unregister_broker import UnregisterBrokerRequest

from .controller_requests import create_topics, topic
from .metadata_helpers import CLUSTER_ID, DrivenController, make_rules

NEW_ID = RandomIds(random.Random(5)).new_id
TIMEOUT_MS = 9000
SAFE_DOWNGRADE = 2


class Cluster(DrivenController):
    """A controller with broker 1 of its own, and a clock."""

    def __init__(self) -> None:
        super().__init__()
        self.now_ms = 50_000
        self.begin_anew()

    def begin_anew(self) -> None:
        """Have the next controller take over, which knows what is written and no more."""
        sessions = BrokerSessions(monotonic_ms=lambda: self.now_ms, timeout_ms=TIMEOUT_MS)
        self.rules = attrs.evolve(make_rules(), sessions=sessions)
        sessions.begin(each for each in self.image.brokers.values() if not self.rules.is_own(each.broker_id))
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

    def cordoned(self, broker_id: int) -> tuple[UUID, ...]:
        return self.image.brokers[broker_id].cordoned_log_dirs

    def set_metadata_version(self, level: int) -> UpdateFeaturesResponse:
        update = FeatureUpdateKey(feature=METADATA_VERSION, max_version_level=level, upgrade_type=SAFE_DOWNGRADE)
        answer: UpdateFeaturesResponse = self.apply(
            self.controller.decide(UpdateFeaturesRequest(feature_updates=[update]))
        )
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


def test_a_broker_of_another_cluster_is_refused() -> None:
    assert Cluster().refused(2, cluster_id="other") is ErrorCode.INCONSISTENT_CLUSTER_ID


def test_of_brokers_that_ask_for_an_id_the_first_has_it_and_is_told_so_again() -> None:
    cluster = Cluster()
    first = NEW_ID()
    epoch = cluster.ask_to_join(2, listeners=[], incarnation_id=first)
    cluster.now_ms += 10 * TIMEOUT_MS

    assert cluster.refused(2, listeners=[]) is ErrorCode.DUPLICATE_BROKER_REGISTRATION
    assert cluster.ask_to_join(2, listeners=[], incarnation_id=first) == epoch
    assert (cluster.image.brokers[2].is_fenced, dict(cluster.image.brokers[2].listeners)) == (True, {})


def test_who_has_taken_an_id_registers_with_it_at_once() -> None:
    cluster = Cluster()
    taken = cluster.ask_to_join(2, listeners=[])
    epoch = cluster.join(2)

    assert epoch > taken
    assert list(cluster.image.brokers[2].listeners) == ["PLAINTEXT"]


def test_an_id_of_which_something_is_left_is_not_free() -> None:
    cluster = Cluster()
    cluster.join(2)
    cluster.apply(cluster.controller.decide(create_topics(topic("t", -1, -1, {0: [1, 2]}))))
    cluster.apply(cluster.controller.decide(UnregisterBrokerRequest(broker_id=2)))

    assert 2 not in cluster.image.brokers
    assert [cluster.refused(each, listeners=[]) for each in (1, 2)] == [ErrorCode.DUPLICATE_BROKER_REGISTRATION] * 2
    assert cluster.ask_to_join(3, listeners=[]) > 0


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


def test_the_next_controller_too_lets_a_broker_go_only_once_others_know_who_leads_instead() -> None:
    cluster = Cluster()
    two, three = cluster.join(2), cluster.join(3)
    cluster.beat(2, two, want_shut_down=True)
    cluster.begin_anew()

    assert not cluster.beat(2, two, want_shut_down=True).should_shut_down
    cluster.beat(3, three, offset=three)
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


class ClusterWithDisks(Cluster):
    """Brokers 2 and 3 with two directories each; `t` has a partition led from each directory of broker 2."""

    def __init__(self) -> None:
        super().__init__()
        self.directories = {broker_id: [NEW_ID(), NEW_ID()] for broker_id in (2, 3)}
        self.epochs = {}
        for broker_id, known in self.directories.items():
            self.epochs[broker_id] = self.ask_to_join(broker_id, log_dirs=known)
            self.beat(broker_id, self.epochs[broker_id])
        assignment = {0: [2, 3], 1: [2, 3]}
        self.apply(self.controller.decide(create_topics(topic("t", -1, -1, assignment))))
        self.topic_id = self.image.topics_by_name["t"].topic_id
        for broker_id in (2, 3):
            self.assign(broker_id, dict(enumerate(self.directories[broker_id])))

    def assign(self, broker_id: int, places: dict[int, UUID]) -> None:
        told = {(self.topic_id, index): directory for index, directory in places.items()}
        self.apply(self.controller.decide(directories_request(broker_id, self.epochs[broker_id], told)))

    def fail(self, broker_id: int, *places: int, **wants: Any) -> BrokerHeartbeatResponse:
        """Have a broker tell that directories failed."""
        failed = [self.directories[broker_id][place] for place in places]
        return self.beat(broker_id, self.epochs[broker_id], offline_log_dirs=failed, **wants)

    def partitions(self) -> list[tuple[int, list[int]]]:
        """Return who leads each partition, and who is in sync."""
        return [(each.leader, sorted(each.isr)) for each in self.image.topics_by_name["t"].partitions]


def test_what_lay_in_a_directory_that_failed_is_led_by_another_and_the_rest_is_as_it_was() -> None:
    cluster = ClusterWithDisks()
    before = cluster.image.topics_by_name["t"].partitions
    answer = cluster.fail(2, 0)
    after = cluster.image.topics_by_name["t"].partitions

    assert not answer.is_fenced
    assert cluster.partitions() == [(3, [3]), (2, [2, 3])]
    assert cluster.image.brokers[2].log_dirs == (cluster.directories[2][1],)
    assert after[0].leader_epoch == before[0].leader_epoch + 1
    assert after[1] is before[1]


def test_a_directory_that_is_told_of_again_changes_nothing() -> None:
    cluster = ClusterWithDisks()
    cluster.fail(2, 0)
    count = len(cluster.records)
    cluster.fail(2, 0)
    cluster.beat(2, cluster.epochs[2], offline_log_dirs=[NEW_ID()])

    assert len(cluster.records) == count


def test_a_replica_in_a_directory_that_failed_leads_nothing_until_it_lies_elsewhere() -> None:
    cluster = ClusterWithDisks()
    cluster.fail(2, 0)
    cluster.fail(3, 0)
    alone = cluster.partitions()
    asked = ElectLeadersRequest(election_type=1, topic_partitions=None)
    cluster.apply(cluster.controller.decide(asked))
    elected = cluster.partitions()
    cluster.apply(cluster.controller.change_broker(3, cluster.epochs[3], fence=True))
    cluster.beat(3, cluster.epochs[3])
    back = cluster.partitions()
    cluster.assign(3, {0: cluster.directories[3][1]})

    assert alone[0][0] == elected[0][0] == back[0][0] == -1
    assert cluster.partitions()[0][0] == 3


def test_a_broker_whose_directory_failed_goes_on_to_its_next_state_with_the_next_heartbeat() -> None:
    cluster = ClusterWithDisks()
    cluster.fail(2, 0, want_shut_down=True)
    first = cluster.image.brokers[2]
    cluster.fail(2, 0, want_shut_down=True)

    assert (first.in_controlled_shutdown, first.log_dirs) == (False, (cluster.directories[2][1],))
    assert cluster.image.brokers[2].in_controlled_shutdown
    assert [leader for leader, _ in cluster.partitions()] == [3, 3]


def test_a_directory_of_the_controllers_own_node_is_told_without_a_heartbeat() -> None:
    driven = DrivenController(brokers=2)
    driven.apply(driven.controller.decide(create_topics(topic("t", -1, -1, {0: [1, 2]}))))
    (directory,) = driven.image.brokers[1].log_dirs
    driven.apply(driven.controller.own_directories_failed(1, driven.epoch_of(1), [directory]))

    assert driven.image.topics_by_name["t"].partitions[0].leader == 2
    assert driven.image.brokers[1].log_dirs == (LOST_DIRECTORY,)


def test_which_directories_are_cordoned_is_taken_from_heartbeats_and_kept_over_a_restart() -> None:
    cluster = Cluster()
    one, two = UUID(int=101), UUID(int=102)
    epoch = cluster.ask_to_join(2, log_dirs=[one, two])
    cluster.beat(2, epoch, cordoned_log_dirs=[two])
    assert cluster.cordoned(2) == (two,)
    cluster.beat(2, epoch)  # now it is unfenced
    offset = cluster.image.offset
    cluster.beat(2, epoch, cordoned_log_dirs=[two])
    cluster.beat(2, epoch)  # one that says nothing of it changes nothing
    assert cluster.image.offset == offset
    cluster.beat(2, epoch, cordoned_log_dirs=[two, one])
    cluster.now_ms += TIMEOUT_MS + 1
    assert cluster.cordoned(2) == (two, one)
    again = cluster.ask_to_join(2, log_dirs=[one, two])
    assert cluster.image.brokers[2].is_cordoned
    cluster.beat(2, again, cordoned_log_dirs=[])

    assert cluster.cordoned(2) == ()


def test_below_its_level_nothing_is_cordoned_and_what_is_keeps_the_level_up() -> None:
    cluster = Cluster()
    epoch = cluster.ask_to_join(2, log_dirs=[UUID(int=101)])
    cluster.beat(2, epoch, cordoned_log_dirs=[UUID(int=101)])
    refused = cluster.set_metadata_version(METADATA_VERSION_CORDONS - 1)
    assert refused.error_message is not None
    assert "Uncordon the log directories of broker 2 first." in refused.error_message
    cluster.beat(2, epoch, cordoned_log_dirs=[])
    assert cluster.set_metadata_version(METADATA_VERSION_CORDONS - 1).error_code == ErrorCode.NONE
    cluster.beat(2, epoch, cordoned_log_dirs=[UUID(int=101)])

    assert cluster.cordoned(2) == ()
