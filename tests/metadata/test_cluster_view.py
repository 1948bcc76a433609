"""What coordinators see of the metadata: always the newest, made once for each image."""

from __future__ import annotations

import uuid

import attrs

from odradek.kernel.contracts.election import PartitionState
from odradek.kernel.metadata.cluster_view import ImageView
from odradek.kernel.metadata.image import MetadataImage, TopicImage

TOPIC_ID = uuid.UUID(int=7)
STATE = PartitionState(leader=1, leader_epoch=0, partition_epoch=0, replicas=(1,), isr=(1,))


def image_of(partitions_count: int) -> MetadataImage:
    topic = TopicImage("t", TOPIC_ID, partitions=(STATE,) * partitions_count)
    return MetadataImage(topics_by_name={"t": topic}, topics_by_id={TOPIC_ID: topic})


def test_a_topic_is_looked_at_once_for_each_image() -> None:
    images = [image_of(3)]
    view = ImageView(lambda: images[-1])
    first = view.topic("t")

    assert first is not None
    assert (first.name, first.topic_id, first.partitions_count) == ("t", TOPIC_ID, 3)
    assert view.topic("t") is first
    assert view.topic_by_id(TOPIC_ID) is first
    assert view.topic("u") is None

    images.append(image_of(4))
    second = view.topic_by_id(TOPIC_ID)

    assert second is not None
    assert second.partitions_count == 4
    assert view.topic("t") is second

    images.append(attrs.evolve(images[-1], topics_by_name={}, topics_by_id={}))
    assert view.topic("t") is None
    assert view.topic_by_id(TOPIC_ID) is None
