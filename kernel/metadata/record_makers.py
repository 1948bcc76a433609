"""Pure core: turns values of an image back into records: for changes that keep most of a value, and for snapshots."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .image import UNASSIGNED_DIRECTORY
from .records import (
    BrokerRecord,
    ConfigRecord,
    ControllerRecord,
    FeatureRecord,
    FormatRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RegisteredListener,
    SupportedFeature,
    TopicRecord,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from uuid import UUID

    from ..contracts.election import PartitionState
    from .image import BrokerEndpoint, BrokerImage, ControllerImage, MetadataImage, TopicImage
    from .records import MetadataRecord


def broker_record(broker: BrokerImage) -> BrokerRecord:
    """Return the record that states this broker."""
    return BrokerRecord(
        broker_id=broker.broker_id,
        broker_epoch=broker.broker_epoch,
        incarnation_id=broker.incarnation_id,
        listeners=_listeners(broker.listeners),
        rack=broker.rack,
        log_dirs=list(broker.log_dirs),
        is_fenced=broker.is_fenced,
        in_controlled_shutdown=broker.in_controlled_shutdown,
        features=_features(broker.features),
        cordoned_log_dirs=list(broker.cordoned_log_dirs),
    )


def controller_record(controller: ControllerImage) -> ControllerRecord:
    """Return the record that states this controller."""
    return ControllerRecord(
        controller_id=controller.controller_id,
        incarnation_id=controller.incarnation_id,
        listeners=_listeners(controller.listeners),
        features=_features(controller.features),
    )


def _listeners(listeners: Mapping[str, BrokerEndpoint]) -> list[RegisteredListener]:
    return [
        RegisteredListener(name=item.name, host=item.host, port=item.port, security_protocol=item.security_protocol)
        for item in listeners.values()
    ]


def _features(features: Mapping[str, tuple[int, int]]) -> list[SupportedFeature]:
    return [
        SupportedFeature(name=name, level_min=lowest, level_max=highest) for name, (lowest, highest) in features.items()
    ]


def partition_record(
    topic_id: UUID, partition: int, state: PartitionState, directories: Sequence[UUID]
) -> PartitionRecord:
    """Return the record that states this partition."""
    return PartitionRecord(
        topic_id=topic_id,
        partition=partition,
        leader=state.leader,
        leader_epoch=state.leader_epoch,
        partition_epoch=state.partition_epoch,
        replicas=list(state.replicas),
        isr=list(state.isr),
        adding_replicas=list(state.adding_replicas),
        removing_replicas=list(state.removing_replicas),
        directories=list(directories),
        eligible_leader_replicas=list(state.eligible_leader_replicas),
        last_known_elr=list(state.last_known_elr),
        voters=list(state.voters),
        former_voters=list(state.former_voters),
        voters_epoch=state.voters_epoch,
    )


def changed_partition_record(topic: TopicImage, partition: int, state: PartitionState) -> PartitionRecord:
    """Return the record of a partition's new state; replicas that stay keep their directories."""
    known = dict(zip(topic.partitions[partition].replicas, topic.directories[partition], strict=True))
    directories = [known.get(replica, UNASSIGNED_DIRECTORY) for replica in state.replicas]
    return partition_record(topic.topic_id, partition, state, directories)


def topic_record(topic: TopicImage) -> TopicRecord:
    """Return the record of a topic, without its partitions."""
    return TopicRecord(name=topic.name, topic_id=topic.topic_id, storage=topic.storage, election=topic.election)


def config_records(
    resource_type: int, resource_name: str, old: Mapping[str, str], new: Mapping[str, str]
) -> list[MetadataRecord]:
    """Return records that turn a resource's configs from `old` into `new`, by name."""
    changed = [(name, new[name]) for name in sorted(new) if old.get(name) != new[name]]
    gone = [(name, None) for name in sorted(old) if name not in new]
    return [
        ConfigRecord(resource_type=resource_type, resource_name=resource_name, name=name, value=value)
        for name, value in (*changed, *gone)
    ]


def image_records(image: MetadataImage) -> Iterator[MetadataRecord]:
    """Iterate over records that, replayed on an empty image, make this one (but for `offset` and `epoch`)."""
    yield FormatRecord(format_version=image.format_version, cluster_id=image.cluster_id)
    for name, level in sorted(image.features.items()):
        yield FeatureRecord(name=name, level=level)
    for name in sorted(image.disabled_features):
        yield FeatureRecord(name=name, level=0)
    for broker_id in sorted(image.brokers):
        yield broker_record(image.brokers[broker_id])
    for controller_id in sorted(image.controllers):
        yield controller_record(image.controllers[controller_id])
    for _, topic in sorted(image.topics_by_name.items()):
        yield topic_record(topic)
        for index, state in enumerate(topic.partitions):
            yield partition_record(topic.topic_id, index, state, topic.directories[index])
    for (resource_type, resource_name), values in sorted(image.configs.items()):
        yield from config_records(resource_type, resource_name, {}, values)
    yield ProducerIdsRecord(broker_id=-1, broker_epoch=-1, next_producer_id=image.next_producer_id)
