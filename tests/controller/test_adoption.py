"""Partition directories of another broker become topics, all of them or none."""

from __future__ import annotations

from uuid import UUID

import pytest

from odradek.kernel.controller.adoption import FoundPartition
from odradek.kernel.errors import KafkaError
from odradek.kernel.types import ZERO_ID
from odradek.kernel.wire.messages.api_67_allocate_producer_ids import AllocateProducerIdsRequest

from .controller_requests import create_topics, topic
from .metadata_helpers import DrivenController

ID = UUID(int=99)


def adopt(driven: DrivenController, *found: tuple[str, int, UUID, int]) -> list[tuple[str, int, bool]]:
    adopted = driven.apply(driven.controller.adopt_topics([FoundPartition(*item) for item in found]))
    return [(item.topic, item.partitions_count, item.was_known) for item in adopted]


def test_directories_become_topics_above_the_epochs_of_their_logs() -> None:
    driven = DrivenController()
    adopted = adopt(driven, ("t", 1, ID, 7), ("t", 0, ID, -1), ("no-id", 0, ZERO_ID, 2))
    image = driven.image

    assert adopted == [("no-id", 1, False), ("t", 2, False)]
    assert [state.leader_epoch for state in image.topics_by_id[ID].partitions] == [0, 8]
    assert [state.leader for state in image.topics_by_name["t"].partitions] == [1, 1]
    assert image.topics_by_name["no-id"].topic_id != ZERO_ID


def test_configs_that_are_known_come_along() -> None:
    driven = DrivenController()
    found = [FoundPartition("t", 0, ID, 7), FoundPartition("u", 0, ZERO_ID, -1)]
    driven.apply(driven.controller.adopt_topics(found, {"t": {"retention.ms": "5", "cleanup.policy": "compact"}}))

    assert dict(driven.image.topic_config("t")) == {"retention.ms": "5", "cleanup.policy": "compact"}
    assert dict(driven.image.topic_config("u")) == {}


def test_a_config_that_does_not_fit_is_refused_with_its_topic() -> None:
    driven = DrivenController()

    with pytest.raises(KafkaError, match=r"topic t cannot be adopted: Unknown topic config name: colour"):
        driven.controller.adopt_topics([FoundPartition("t", 0, ID, 7)], {"t": {"colour": "blue"}})


def test_producer_ids_that_logs_from_elsewhere_know_are_given_to_nobody() -> None:
    driven = DrivenController()
    driven.apply(driven.controller.reserve_producer_ids(4711))
    driven.apply(driven.controller.reserve_producer_ids(3))

    answer = driven.apply(
        driven.controller.decide(AllocateProducerIdsRequest(broker_id=1, broker_epoch=driven.epoch_of(1)))
    )
    assert answer.producer_id_start == 4711


def test_adopting_twice_changes_nothing() -> None:
    driven = DrivenController()
    adopt(driven, ("t", 0, ID, 3))
    before = driven.image

    assert adopt(driven, ("t", 0, ID, 3)) == [("t", 1, True)]
    assert before is driven.image


@pytest.mark.parametrize(
    ("found", "reason"),
    [
        ([("t", 0, ID, 0), ("t", 2, ID, 0)], r"partitions \[1\] are missing"),
        ([("t", 0, ID, 0), ("t", 0, ID, 0)], "twice"),
        ([("t", 0, ID, 0), ("t", 1, UUID(int=98), 0)], "its directories have the ids"),
        ([("t", 0, ID, 0), ("u", 0, ID, 0)], "another topic found here"),
        ([("there", 0, ID, 0)], "exists already"),
        ([("a b", 0, ID, 0)], "Topic name is invalid"),
        ([("__cluster_metadata", 0, ID, 0)], "belongs to the cluster that wrote it"),
        ([("th.ere", 0, ID, 0)], "collides"),
    ],
)
def test_what_does_not_fit_is_refused_as_a_whole(found: list[tuple[str, int, UUID, int]], reason: str) -> None:
    driven = DrivenController()
    driven.apply(driven.controller.decide(create_topics(topic("there"), topic("th_ere"))))
    before = driven.image

    with pytest.raises(KafkaError, match=reason):
        adopt(driven, ("fine", 0, UUID(int=5), 0), *found)
    assert before is driven.image
