"""Shell: the newest image, as coordinators see it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..contracts.coordinator import MetadataChange, TopicView
from .image import ResourceType

if TYPE_CHECKING:
    import uuid
    from collections.abc import Callable, Mapping, Sequence

    from .image import MetadataDelta, MetadataImage, TopicImage


class ImageView:
    """The committed metadata: a `ClusterView` that always shows the newest image."""

    def __init__(self, image: Callable[[], MetadataImage]) -> None:
        """Make a view of whatever `image` returns when it is looked at."""
        self._image = image
        self._views: dict[str, TopicView] = {}
        self._viewed: MetadataImage | None = None

    @property
    def version(self) -> int:
        """Grows with every change: the offset of the last record that is in the image."""
        return self._image().offset

    def topic(self, name: str) -> TopicView | None:
        """Return a topic by its name."""
        image = self._image()
        topic = image.topics_by_name.get(name)
        return self._view(topic, image) if topic is not None else None

    def topic_by_id(self, topic_id: uuid.UUID) -> TopicView | None:
        """Return a topic by its id."""
        image = self._image()
        topic = image.topics_by_id.get(topic_id)
        return self._view(topic, image) if topic is not None else None

    def _view(self, topic: TopicImage, image: MetadataImage) -> TopicView:
        """Return the view of a topic, made once for each image: every commit of an offset asks for one."""
        if self._viewed is not image:
            self._views, self._viewed = {}, image
        view = self._views.get(topic.name)
        if view is None:
            view = self._views[topic.name] = topic_view(topic, image)
        return view

    def topic_names(self) -> Sequence[str]:
        """Return the names of all topics, in no order."""
        return tuple(self._image().topics_by_name)

    def group_configs(self, group_id: str) -> Mapping[str, str]:
        """Return what is set on a group."""
        return self._image().config(ResourceType.GROUP, group_id)

    def feature_level(self, name: str) -> int:
        """Return the finalized level of a feature, 0 when it is not finalized."""
        return self._image().features.get(name, 0)


def topic_view(topic: TopicImage, image: MetadataImage) -> TopicView:
    """Return a topic as plugins see it."""
    racks_of = {broker.broker_id: broker.rack for broker in image.brokers.values() if broker.rack}
    racks: tuple[frozenset[str], ...] = ()
    if racks_of:
        racks = tuple(
            frozenset(racks_of[broker] for broker in partition.replicas if broker in racks_of)
            for partition in topic.partitions
        )
    return TopicView(
        name=topic.name,
        topic_id=topic.topic_id,
        partitions_count=len(topic.partitions),
        racks=racks,
        configs=image.topic_config(topic.name),
        storage=topic.storage,
        partitions=topic.partitions,
    )


def metadata_change(delta: MetadataDelta, image: MetadataImage) -> MetadataChange:
    """Return what of a change coordinators care for."""
    return MetadataChange(
        created_topics=_names(delta.created_topics, image),
        changed_topics=_names(delta.changed_topics, image),
        deleted_topics=tuple(topic_view(topic, image) for topic in delta.deleted_topics),
        changed_groups=frozenset(name for kind, name in delta.changed_configs if kind == ResourceType.GROUP),
    )


def _names(topic_ids: frozenset[uuid.UUID], image: MetadataImage) -> frozenset[str]:
    return frozenset(image.topics_by_id[topic_id].name for topic_id in topic_ids if topic_id in image.topics_by_id)
