"""Pure core: the cluster's metadata at one offset of its log, as frozen values.

An image never changes; records make the next one (`image_builder`), which shares with it all that stayed the same. So
a handler may hold one for as long as it likes. The look-ups of the hot path are plain dictionary and tuple accesses:

    image.topics_by_name[name]      image.topics_by_id[topic_id]      topic.partitions[index]
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import TYPE_CHECKING, Final
from uuid import UUID

import attrs

from ..classes import frozen
from ..config.keys import Scope
from ..types import ZERO_ID
from .features import METADATA_VERSION

if TYPE_CHECKING:
    from ..contracts.election import PartitionState

NOTHING: Final[Mapping[str, str]] = {}

UNASSIGNED_DIRECTORY: Final = ZERO_ID
"""The directory of a replica that has not said yet where it keeps its log (KIP-858)."""

NO_LEADER: Final = -1
"""The leader of a partition that nobody leads."""


class ResourceType(IntEnum):
    """What configs are set on, by Kafka's numbers (`ConfigResource.Type`)."""

    UNKNOWN = 0
    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


SCOPES: Final[Mapping[int, Scope]] = {
    ResourceType.TOPIC: Scope.TOPIC,
    ResourceType.BROKER: Scope.BROKER,
    ResourceType.GROUP: Scope.GROUP,
    ResourceType.CLIENT_METRICS: Scope.CLIENT_METRICS,
}
"""What configs are set on, as the metadata and as the configuration names it."""


@frozen
class BrokerEndpoint:
    """An address under which a broker is reached.

    `security_protocol` is Kafka's number: 0 PLAINTEXT, 1 SSL, 2 SASL_PLAINTEXT, 3 SASL_SSL.
    """

    name: str
    host: str
    port: int
    security_protocol: int = 0


@frozen
class BrokerImage:
    """A registered broker.

    Attributes:
        broker_id: Its `node.id`.
        broker_epoch: Of this registration; a later one has a greater epoch.
        incarnation_id: Of the process that registered.
        listeners: By name, with advertised addresses.
        rack: `broker.rack`, None when not set.
        log_dirs: Ids of its working log directories; none where it told of none, `LOST_DIRECTORY` where all failed.
        is_fenced: Whether it may lead nothing and is hidden from clients.
        in_controlled_shutdown: Whether it is giving up its leaderships to stop.
        features: What it supports: name to (lowest, highest) level.
        cordoned_log_dirs: Ids of those of its log directories that get no new replicas.
    """

    broker_id: int
    broker_epoch: int
    incarnation_id: UUID
    listeners: Mapping[str, BrokerEndpoint]
    rack: str | None
    log_dirs: tuple[UUID, ...]
    is_fenced: bool
    in_controlled_shutdown: bool
    features: Mapping[str, tuple[int, int]] = attrs.field(factory=dict)
    cordoned_log_dirs: tuple[UUID, ...] = ()

    @property
    def is_cordoned(self) -> bool:
        """Whether it gets no new replicas: all of its working log directories are cordoned."""
        return bool(self.cordoned_log_dirs) and set(self.log_dirs) <= set(self.cordoned_log_dirs)

    @property
    def is_live(self) -> bool:
        """Whether it may lead partitions."""
        return not self.is_fenced and not self.in_controlled_shutdown


@frozen
class ControllerImage:
    """A registered controller.

    Attributes:
        controller_id: Its `node.id`.
        incarnation_id: Of the process that registered.
        listeners: By name, with advertised addresses; controllers find each other by the first.
        features: What it supports: name to (lowest, highest) level.
    """

    controller_id: int
    incarnation_id: UUID
    listeners: Mapping[str, BrokerEndpoint]
    features: Mapping[str, tuple[int, int]]


@frozen
class TopicImage:
    """A topic. Partitions are numbered without gaps, so the index into both tuples is the partition's number.

    Attributes:
        name: Its name.
        topic_id: Its id, which a deleted namesake does not share.
        storage: The storage that holds it, for its life.
        election: The election that leads it, for its life.
        partitions: State by partition.
        directories: By partition, the log directory of each replica, in the order of `replicas`.
    """

    name: str
    topic_id: UUID
    storage: str = ""
    election: str = ""
    partitions: tuple[PartitionState, ...] = ()
    directories: tuple[tuple[UUID, ...], ...] = ()


@frozen(repr=False)
class MetadataImage:
    """Everything the cluster agreed on, up to and with the record at `offset`.

    Attributes:
        cluster_id: The cluster's id, empty before the first record.
        brokers: Registered brokers by id.
        controllers: Registered controllers by id; none where there is only one.
        topics_by_name: Topics.
        topics_by_id: The same topics.
        configs: (resource type, name) to what is set on it; no entry when nothing is.
        features: Finalized levels, all greater than 0.
        disabled_features: Features that were switched off, so that no later version finalizes them by itself.
        next_producer_id: The first producer id that no broker was given.
        format_version: Of the log, 0 before the first record.
        offset: Of the last record in it, -1 before the first.
        epoch: The leader epoch of that record, -1 before the first.
    """

    cluster_id: str = ""
    brokers: Mapping[int, BrokerImage] = attrs.field(factory=dict)
    controllers: Mapping[int, ControllerImage] = attrs.field(factory=dict)
    topics_by_name: Mapping[str, TopicImage] = attrs.field(factory=dict)
    topics_by_id: Mapping[UUID, TopicImage] = attrs.field(factory=dict)
    configs: Mapping[tuple[int, str], Mapping[str, str]] = attrs.field(factory=dict)
    features: Mapping[str, int] = attrs.field(factory=dict)
    disabled_features: frozenset[str] = frozenset()
    next_producer_id: int = 0
    format_version: int = 0
    offset: int = -1
    epoch: int = -1

    def config(self, resource_type: int, name: str) -> Mapping[str, str]:
        """Return what is set on a resource, by key; the cluster's broker defaults are (BROKER, "")."""
        return self.configs.get((resource_type, name), NOTHING)

    def topic_config(self, topic: str) -> Mapping[str, str]:
        """Return what is set on a topic, by key."""
        return self.configs.get((ResourceType.TOPIC, topic), NOTHING)

    @property
    def metadata_version(self) -> int:
        """The level in which records are written, 0 before the first was finalized."""
        return self.features.get(METADATA_VERSION, 0)

    def live_brokers(self) -> list[int]:
        """Return the brokers that may lead partitions, ascending."""
        return sorted(broker.broker_id for broker in self.brokers.values() if broker.is_live)

    def brokers_for_new_replicas(self) -> list[int]:
        """Return the live brokers that are not cordoned, ascending: who may be given replicas that nobody assigns."""
        return [broker_id for broker_id in self.live_brokers() if not self.brokers[broker_id].is_cordoned]

    def __repr__(self) -> str:
        return (
            f"MetadataImage(offset {self.offset}, epoch {self.epoch}, {len(self.brokers)} brokers, "
            f"{len(self.topics_by_name)} topics)"
        )


def is_reassigned(state: PartitionState) -> bool:
    """Return whether replicas of a partition come or go, or, where replicas vote, votes do."""
    return bool(state.adding_replicas or state.removing_replicas or state.voters or state.former_voters)


@frozen
class MetadataDelta:
    """What an image has that the one before had not: names of changed things, to be looked up in both images.

    A topic that was deleted and made again under its name stands in both `deleted_topics` and `created_topics`.

    Attributes:
        created_topics: Ids of new topics.
        changed_topics: Ids of topics that were there, some partition of which changed or came.
        deleted_topics: The topics that are gone, as they were.
        changed_partitions: Topic id to the indexes of its new or changed partitions.
        changed_configs: (resource type, name) of resources whose configs changed.
    """

    created_topics: frozenset[UUID] = frozenset()
    changed_topics: frozenset[UUID] = frozenset()
    deleted_topics: tuple[TopicImage, ...] = ()
    changed_partitions: Mapping[UUID, frozenset[int]] = attrs.field(factory=dict)
    changed_configs: frozenset[tuple[int, str]] = frozenset()
