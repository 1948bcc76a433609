"""What clients are told of many brokers, as three brokers of Apache Kafka 4.3.1 told it while the third was paused.

Topic `r1`: partition 0 on broker 3 alone, 1 on broker 1 alone; `u1`: on 3 and 1. Recorded 2026-11-25: Metadata in
versions 0 to 13, DescribeTopicPartitions and DescribeCluster, after the third broker was fenced.
"""

from __future__ import annotations

from collections.abc import Generator
from types import SimpleNamespace
from typing import Any

import attrs
import pytest

from odradek.kernel.dispatch.handlers.api_03_metadata import MetadataHandler
from odradek.kernel.dispatch.handlers.api_60_describe_cluster import DescribeClusterHandler
from odradek.kernel.dispatch.handlers.api_75_describe_topic_partitions import DescribeTopicPartitionsHandler
from odradek.kernel.errors import ErrorCode
from odradek.kernel.machine.turnstile import run_at_once
from odradek.kernel.metadata.image import BrokerEndpoint, MetadataImage
from odradek.kernel.wire.messages.api_03_metadata import MetadataRequest, MetadataResponse
from odradek.kernel.wire.messages.api_60_describe_cluster import DescribeClusterRequest
from odradek.kernel.wire.messages.api_75_describe_topic_partitions import DescribeTopicPartitionsRequest, TopicRequest
from tests.controller.controller_requests import create_topics, topic
from tests.controller.metadata_helpers import DrivenController

NO_LEADER, NO_LISTENER = ErrorCode.LEADER_NOT_AVAILABLE, ErrorCode.LISTENER_NOT_FOUND


@pytest.fixture
def image() -> MetadataImage:
    driven = DrivenController(brokers=3)
    for name, assignment in (("r1", {0: [3], 1: [1]}), ("u1", {0: [3, 1]})):
        driven.apply(driven.controller.decide(create_topics(topic(name, -1, -1, assignment))))
    driven.apply(driven.controller.change_broker(3, driven.image.brokers[3].broker_epoch, fence=True))
    return driven.image


def context(version: int, listener: str = "PLAINTEXT") -> Any:
    return SimpleNamespace(api_version=version, connection=SimpleNamespace(listener_name=listener))


def done(steps: Any) -> Any:
    return run_at_once(steps) if isinstance(steps, Generator) else steps


def metadata(
    image: MetadataImage, version: int, listener: str = "PLAINTEXT", *, lost: tuple[int, ...] = ()
) -> MetadataResponse:
    handler = MetadataHandler(
        broker_id=1,
        image=lambda: image,
        may_create_topics=lambda: False,
        create_topics=lambda _names: None,
        internal_topics=frozenset(),
        lost_brokers=lambda: [image.brokers[each] for each in lost],
    )
    answer = done(handler.answer_in_steps(MetadataRequest(topics=None), context(version, listener)))
    assert isinstance(answer, MetadataResponse)
    return answer


def partitions_of(answer: MetadataResponse, name: str) -> list[tuple[int, int, list[int], list[int], list[int]]]:
    (found,) = [each for each in answer.topics if each.name == name]
    return [
        (part.error_code, part.leader_id, part.replica_nodes, part.isr_nodes, part.offline_replicas)
        for part in found.partitions
    ]


def test_a_broker_that_was_lost_a_moment_ago_is_named_and_leads_nothing(image: MetadataImage) -> None:
    without, answer = metadata(image, 13), metadata(image, 13, lost=(3,))

    assert [broker.node_id for broker in answer.brokers] == [1, 2, 3]
    assert (answer.topics, answer.controller_id) == (without.topics, without.controller_id)
    assert [broker.node_id for broker in metadata(image, 13, "OTHER", lost=(3,)).brokers] == []


@pytest.mark.parametrize("version", [0, 1, 4, 5, 6, 8, 12, 13])
def test_a_leader_that_is_fenced_is_not_available_in_any_version(image: MetadataImage, version: int) -> None:
    answer = metadata(image, version)

    assert [broker.node_id for broker in answer.brokers] == [1, 2]
    assert answer.controller_id == 1
    assert partitions_of(answer, "r1") == [
        (NO_LEADER, -1, [] if version == 0 else [3], [], [3]),
        (0, 1, [1], [1], []),
    ]
    # The first version knows no offline replicas: they are left out, and the partition says that some are.
    whole = (0, 1, [3, 1], [1], [3])
    assert partitions_of(answer, "u1") == [
        (ErrorCode.REPLICA_NOT_AVAILABLE, 1, [1], [1], [3]) if version == 0 else whole
    ]


@pytest.mark.parametrize("version", [5, 6])
def test_a_leader_without_the_clients_listener_is_told_as_such_from_version_6_on(
    image: MetadataImage, version: int
) -> None:
    inner = {"INNER": BrokerEndpoint("INNER", "inside", 1)}
    hidden = attrs.evolve(image.brokers[1], listeners=inner)
    split = attrs.evolve(image, brokers={**image.brokers, 1: hidden})

    answer = metadata(split, version)

    assert [broker.node_id for broker in answer.brokers] == [2]
    assert answer.controller_id == 2
    error = NO_LISTENER if version >= 6 else NO_LEADER
    assert partitions_of(answer, "u1") == [(error, -1, [3, 1], [1], [3, 1])]


def test_a_broker_that_hands_its_leaders_over_is_still_shown(image: MetadataImage) -> None:
    stopping = attrs.evolve(image.brokers[2], in_controlled_shutdown=True)
    answer = metadata(attrs.evolve(image, brokers={**image.brokers, 2: stopping}), 12)

    assert [broker.node_id for broker in answer.brokers] == [1, 2]


def test_fenced_brokers_are_described_to_who_asks_for_them(image: MetadataImage) -> None:
    handler = DescribeClusterHandler(broker_id=1, image=lambda: image)

    def brokers(*, fenced: bool) -> list[tuple[int, bool]]:
        request = DescribeClusterRequest(include_fenced_brokers=fenced, endpoint_type=1)
        answer: Any = handler.handle(request, context(2))
        return [(broker.broker_id, broker.is_fenced) for broker in answer.brokers]

    assert brokers(fenced=True) == [(1, False), (2, False), (3, True)]
    assert brokers(fenced=False) == [(1, False), (2, False)]


def test_partitions_are_described_with_who_is_eligible(image: MetadataImage) -> None:
    handler = DescribeTopicPartitionsHandler(
        image=lambda: image, partitions_max=lambda: 100, internal_topics=frozenset()
    )
    request = DescribeTopicPartitionsRequest(topics=[TopicRequest(name="r1")], response_partition_limit=100)
    answer = done(handler.answer_in_steps(request, context(0)))
    first, second = answer.topics[0].partitions

    assert (first.error_code, first.leader_id, first.leader_epoch, first.isr_nodes) == (0, -1, 1, [])
    assert (first.eligible_leader_replicas, first.last_known_elr, first.offline_replicas) == ([3], [3], [3])
    assert (second.leader_id, second.eligible_leader_replicas, second.last_known_elr) == (1, [], [])
