"""Pure core: applies metadata records to an image, sharing whatever they leave alone.

builder = ImageBuilder(image)
builder.replay(record) ...      a dictionary is copied at its first change
image = builder.build()         frozen; the builder goes on from it
delta = builder.take_delta()    what changed since the last delta was taken
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

import attrs

from ..classes import define
from ..contracts.election import PartitionState
from ..errors import CorruptionError
from .image import BrokerEndpoint, BrokerImage, ControllerImage, MetadataDelta, MetadataImage, ResourceType, TopicImage
from .records import (
    BrokerRecord,
    ConfigRecord,
    ControllerRecord,
    FeatureRecord,
    FormatRecord,
    NoOpRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RemoveBrokerRecord,
    RemoveTopicRecord,
    SnapshotEndRecord,
    TopicRecord,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Mapping
    from uuid import UUID

    from .records import MetadataRecord, RegisteredListener, SupportedFeature

K = TypeVar("K")
V = TypeVar("V")


class _Shared(Generic[K, V]):
    """A dictionary that belongs to an image until its first change."""

    __slots__ = ("_base", "_own")

    def __init__(self, base: Mapping[K, V]) -> None:
        self._base = base
        self._own: dict[K, V] | None = None

    def read(self) -> Mapping[K, V]:
        return self._base if self._own is None else self._own

    def write(self) -> dict[K, V]:
        if self._own is None:
            self._own = dict(self._base)
        return self._own

    def freeze(self) -> Mapping[K, V]:
        self._base = self.read()
        self._own = None
        return self._base


class _OpenTopic:
    """A topic whose partitions are being changed."""

    __slots__ = ("_topic", "directories", "partitions")

    def __init__(self, topic: TopicImage) -> None:
        self._topic = topic
        self.partitions = list(topic.partitions)
        self.directories = list(topic.directories)

    def freeze(self) -> TopicImage:
        return attrs.evolve(self._topic, partitions=tuple(self.partitions), directories=tuple(self.directories))


@define
class _Changes:
    """A delta that is still growing."""

    created_topics: set[UUID] = attrs.field(factory=set)
    deleted_topics: list[TopicImage] = attrs.field(factory=list)
    changed_partitions: dict[UUID, set[int]] = attrs.field(factory=dict)
    changed_configs: set[tuple[int, str]] = attrs.field(factory=set)


class ImageBuilder:
    """Makes the next image out of records. Owned by one task.

    Invariant: after `build`, the builder's content and the image's are the same; `replay` of a record that an operation
    of this version made never fails.
    """

    def __init__(self, image: MetadataImage) -> None:
        """Begin with an image."""
        self._image = image
        self._is_dirty = False
        self._scalars: dict[str, Any] = {}
        self._brokers = _Shared(image.brokers)
        self._controllers = _Shared(image.controllers)
        self._topics_by_name = _Shared(image.topics_by_name)
        self._topics_by_id = _Shared(image.topics_by_id)
        self._configs = _Shared(image.configs)
        self._features = _Shared(image.features)
        self._open: dict[UUID, _OpenTopic] = {}
        self._changes = _Changes()

    def note_position(self, offset: int, epoch: int) -> None:
        """Note the offset and leader epoch of the record that was replayed last."""
        self._scalars["offset"] = offset
        self._scalars["epoch"] = epoch
        self._is_dirty = True

    def replay(self, record: MetadataRecord) -> None:
        """Apply one record.

        Raises:
            CorruptionError: It contradicts what came before it: the log is damaged.
        """
        self._REPLAYS[type(record)](self, record)
        self._is_dirty = True

    def settle_in_steps(self) -> Generator[None, None, None]:
        """Freeze the topics that were changed, one a step: `build` need not do it for all of them at once then."""
        for topic_id in list(self._open):
            frozen = self._open.pop(topic_id).freeze()
            self._topics_by_name.write()[frozen.name] = frozen
            self._topics_by_id.write()[topic_id] = frozen
            yield

    def build(self) -> MetadataImage:
        """Return the image as it is now; the same object while nothing changes."""
        if not self._is_dirty:
            return self._image
        for _ in self.settle_in_steps():
            pass
        self._image = attrs.evolve(
            self._image,
            brokers=self._brokers.freeze(),
            controllers=self._controllers.freeze(),
            topics_by_name=self._topics_by_name.freeze(),
            topics_by_id=self._topics_by_id.freeze(),
            configs=self._configs.freeze(),
            features=self._features.freeze(),
            **self._scalars,
        )
        self._scalars.clear()
        self._is_dirty = False
        return self._image

    def take_delta(self) -> MetadataDelta:
        """Return what changed since the last call, and begin anew."""
        changes, self._changes = self._changes, _Changes()
        return MetadataDelta(
            created_topics=frozenset(changes.created_topics),
            changed_topics=frozenset(changes.changed_partitions.keys() - changes.created_topics),
            deleted_topics=tuple(changes.deleted_topics),
            changed_partitions={topic: frozenset(indexes) for topic, indexes in changes.changed_partitions.items()},
            changed_configs=frozenset(changes.changed_configs),
        )

    # ------------------------------------------------------------------------------------------------- one record each

    def _replay_format(self, record: FormatRecord) -> None:
        self._scalars["format_version"] = record.format_version
        self._scalars["cluster_id"] = record.cluster_id

    def _replay_broker(self, record: BrokerRecord) -> None:
        self._brokers.write()[record.broker_id] = BrokerImage(
            record.broker_id,
            record.broker_epoch,
            record.incarnation_id,
            _endpoints(record.listeners),
            record.rack,
            tuple(record.log_dirs),
            record.is_fenced,
            record.in_controlled_shutdown,
            _levels(record.features),
            tuple(record.cordoned_log_dirs),
        )

    def _replay_controller(self, record: ControllerRecord) -> None:
        self._controllers.write()[record.controller_id] = ControllerImage(
            record.controller_id, record.incarnation_id, _endpoints(record.listeners), _levels(record.features)
        )

    def _replay_remove_broker(self, record: RemoveBrokerRecord) -> None:
        self._brokers.write().pop(record.broker_id, None)

    def _replay_topic(self, record: TopicRecord) -> None:
        self._open[record.topic_id] = _OpenTopic(
            TopicImage(record.name, record.topic_id, record.storage, record.election)
        )
        self._changes.created_topics.add(record.topic_id)

    def _replay_partition(self, record: PartitionRecord) -> None:
        topic = self._open_topic(record.topic_id)
        state = PartitionState(
            record.leader,
            record.leader_epoch,
            record.partition_epoch,
            tuple(record.replicas),
            tuple(record.isr),
            tuple(record.adding_replicas),
            tuple(record.removing_replicas),
            tuple(record.eligible_leader_replicas),
            tuple(record.last_known_elr),
            tuple(record.voters),
            tuple(record.former_voters),
            record.voters_epoch,
        )
        directories = tuple(record.directories)
        if record.partition < len(topic.partitions):
            topic.partitions[record.partition] = state
            topic.directories[record.partition] = directories
        elif record.partition == len(topic.partitions):
            topic.partitions.append(state)
            topic.directories.append(directories)
        else:
            raise CorruptionError(
                f"metadata has partition {record.partition} of {topic.freeze().name} and not those before: "
                "the log is damaged"
            )
        self._changes.changed_partitions.setdefault(record.topic_id, set()).add(record.partition)

    def _open_topic(self, topic_id: UUID) -> _OpenTopic:
        topic = self._open.get(topic_id)
        if topic is None:
            frozen = self._topics_by_id.read().get(topic_id)
            if frozen is None:
                raise CorruptionError(f"metadata speaks of a topic {topic_id} that it never made: the log is damaged")
            topic = self._open[topic_id] = _OpenTopic(frozen)
        return topic

    def _replay_remove_topic(self, record: RemoveTopicRecord) -> None:
        topic = self._open_topic(record.topic_id).freeze()
        del self._open[record.topic_id]
        self._topics_by_name.write().pop(topic.name, None)
        self._topics_by_id.write().pop(topic.topic_id, None)
        resource = (int(ResourceType.TOPIC), topic.name)
        if resource in self._configs.read():
            del self._configs.write()[resource]
            self._changes.changed_configs.add(resource)
        changes = self._changes
        changes.changed_partitions.pop(topic.topic_id, None)
        if topic.topic_id in changes.created_topics:
            changes.created_topics.discard(topic.topic_id)
        else:
            changes.deleted_topics.append(topic)

    def _replay_config(self, record: ConfigRecord) -> None:
        resource = (record.resource_type, record.resource_name)
        values = dict(self._configs.read().get(resource, {}))
        if record.value is None:
            values.pop(record.name, None)
        else:
            values[record.name] = record.value
        if values:
            self._configs.write()[resource] = values
        else:
            self._configs.write().pop(resource, None)
        self._changes.changed_configs.add(resource)

    def _replay_feature(self, record: FeatureRecord) -> None:
        disabled = self._scalars.get("disabled_features", self._image.disabled_features)
        if record.level > 0:
            self._features.write()[record.name] = record.level
            self._scalars["disabled_features"] = disabled - {record.name}
        else:
            self._features.write().pop(record.name, None)
            self._scalars["disabled_features"] = disabled | {record.name}

    def _replay_producer_ids(self, record: ProducerIdsRecord) -> None:
        self._scalars["next_producer_id"] = record.next_producer_id

    def _replay_nothing(self, record: MetadataRecord) -> None:
        del record

    _REPLAYS: ClassVar[dict[type[MetadataRecord], Callable[[ImageBuilder, Any], None]]] = {
        FormatRecord: _replay_format,
        BrokerRecord: _replay_broker,
        RemoveBrokerRecord: _replay_remove_broker,
        TopicRecord: _replay_topic,
        PartitionRecord: _replay_partition,
        RemoveTopicRecord: _replay_remove_topic,
        ConfigRecord: _replay_config,
        FeatureRecord: _replay_feature,
        ProducerIdsRecord: _replay_producer_ids,
        SnapshotEndRecord: _replay_nothing,
        NoOpRecord: _replay_nothing,
        ControllerRecord: _replay_controller,
    }


def _endpoints(listeners: Iterable[RegisteredListener]) -> dict[str, BrokerEndpoint]:
    return {item.name: BrokerEndpoint(item.name, item.host, item.port, item.security_protocol) for item in listeners}


def _levels(features: Iterable[SupportedFeature]) -> dict[str, tuple[int, int]]:
    return {item.name: (item.level_min, item.level_max) for item in features}
