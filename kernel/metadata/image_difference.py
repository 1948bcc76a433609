"""Pure core: what lies between two images, where the records between them were never seen: a snapshot came instead."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .image import MetadataDelta

if TYPE_CHECKING:
    from .image import MetadataImage, TopicImage


def difference(old: MetadataImage, new: MetadataImage) -> MetadataDelta:
    """Return the delta that leads from one image to another."""
    created = frozenset(topic_id for topic_id in new.topics_by_id if topic_id not in old.topics_by_id)
    deleted = tuple(topic for topic_id, topic in old.topics_by_id.items() if topic_id not in new.topics_by_id)
    partitions = {
        topic_id: indexes
        for topic_id, topic in new.topics_by_id.items()
        if (indexes := _changed(old.topics_by_id.get(topic_id), topic))
    }
    resources = old.configs.keys() | new.configs.keys()
    return MetadataDelta(
        created_topics=created,
        changed_topics=frozenset(partitions.keys() - created),
        deleted_topics=deleted,
        changed_partitions=partitions,
        changed_configs=frozenset(name for name in resources if old.config(*name) != new.config(*name)),
    )


def _changed(old: TopicImage | None, new: TopicImage) -> frozenset[int]:
    known = 0 if old is None else len(old.partitions)
    return frozenset(
        index
        for index, state in enumerate(new.partitions)
        if old is None
        or index >= known
        or old.partitions[index] != state
        or old.directories[index] != new.directories[index]
    )
