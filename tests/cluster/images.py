"""Metadata of clusters, as far as who leads what goes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from uuid import UUID

from odradek.kernel.contracts.election import PartitionState
from odradek.kernel.metadata.image import BrokerImage, MetadataImage, TopicImage


def image(topics: Mapping[str, Sequence[int]], fenced: Sequence[int] = ()) -> MetadataImage:
    """Topics with the leader of each partition; of three brokers these are fenced."""
    found = {
        name: TopicImage(
            name,
            UUID(int=number),
            partitions=tuple(PartitionState(leader, 5, 0, (1, 2, 3), (1, 2, 3)) for leader in leaders),
        )
        for number, (name, leaders) in enumerate(topics.items(), 1)
    }
    brokers = {
        broker_id: BrokerImage(broker_id, broker_id, UUID(int=broker_id), {}, None, (), broker_id in fenced, False)
        for broker_id in (1, 2, 3)
    }
    return MetadataImage(
        brokers=brokers, topics_by_name=found, topics_by_id={each.topic_id: each for each in found.values()}
    )
