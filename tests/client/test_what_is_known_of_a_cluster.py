"""A client's image of its cluster: what an answer of a broker that lags behind changes in it."""

from __future__ import annotations

import uuid

import pytest

from odradek.client.cluster import Cluster
from odradek.kernel.types import ZERO_ID, TopicPartition
from odradek.kernel.wire.messages.api_03_metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

OLD, NEW = uuid.UUID(int=1), uuid.UUID(int=2)
BROKERS = [MetadataResponseBroker(node_id=node_id, host="h", port=node_id) for node_id in (1, 2)]


def answer(count: int, topic_id: uuid.UUID = OLD, *, leader_id: int = 1, leader_epoch: int = 5) -> MetadataResponse:
    """Return an answer that gives the topic `t` so many partitions."""
    partitions = [
        MetadataResponsePartition(partition_index=number, leader_id=leader_id, leader_epoch=leader_epoch)
        for number in range(count)
    ]
    topic = MetadataResponseTopic(name="t", topic_id=topic_id, partitions=partitions)
    return MetadataResponse(brokers=BROKERS, topics=[topic])


def test_partitions_that_were_added_stay_known() -> None:
    """No topic loses partitions: an answer with fewer is older, whatever else it says."""
    cluster = Cluster()
    cluster.update(answer(4), 0)
    cluster.update(answer(2, leader_id=2, leader_epoch=6), 1)

    assert list(cluster.topics["t"].partitions) == [0, 1, 2, 3]
    assert [cluster.leader_of(TopicPartition("t", number)) for number in range(4)] == [2, 2, 1, 1]


@pytest.mark.parametrize(("before", "after"), [(OLD, NEW), (ZERO_ID, ZERO_ID), (OLD, ZERO_ID)])
def test_a_topic_that_may_have_been_made_again_has_the_partitions_of_the_answer(
    before: uuid.UUID, after: uuid.UUID
) -> None:
    cluster = Cluster()
    cluster.update(answer(4, before), 0)
    cluster.update(answer(2, after), 1)

    assert list(cluster.topics["t"].partitions) == [0, 1]
