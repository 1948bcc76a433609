"""Logs on a broker's disk that are nobody's any more: their topic is gone, or its partition moved to other brokers."""

from __future__ import annotations

import pytest

from odradek.kernel.broker.metadata_parts import is_known
from odradek.kernel.types import METADATA_TOPIC, METADATA_TOPIC_ID, ZERO_ID, TopicIdPartition
from tests.controller.controller_requests import create_topics, topic
from tests.controller.metadata_helpers import DrivenController

driven = DrivenController(brokers=3)
driven.apply(driven.controller.decide(create_topics(topic("t", -1, -1, {0: [1, 2], 1: [3, 1]}))))
TOPIC_ID = driven.image.topics_by_name["t"].topic_id


@pytest.mark.parametrize(
    ("partition", "node_id", "is_ours"),
    [
        (TopicIdPartition(TOPIC_ID, "t", 0), 2, True),
        (TopicIdPartition(TOPIC_ID, "t", 0), 3, False),
        (TopicIdPartition(TOPIC_ID, "t", 1), 3, True),
        (TopicIdPartition(TOPIC_ID, "t", 2), 3, False),
        (TopicIdPartition(ZERO_ID, "t", 0), 1, True),
        (TopicIdPartition(METADATA_TOPIC_ID, "t", 0), 1, False),
        (TopicIdPartition(METADATA_TOPIC_ID, METADATA_TOPIC, 0), 3, True),
    ],
)
def test_a_log_is_a_brokers_own_if_the_metadata_gives_it_that_replica(
    partition: TopicIdPartition, node_id: int, is_ours: bool
) -> None:
    assert is_known(driven.image, partition, node_id) == is_ours
