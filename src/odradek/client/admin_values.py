"""Pure core: what admin calls take and give.

.. versionadded:: 0.1
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING

import attrs

if TYPE_CHECKING:
    import uuid
    from collections.abc import Mapping, Sequence

    from .cluster import Node


class ResourceType(IntEnum):
    """What has configs, by Kafka's numbers."""

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


class ConfigSource(IntEnum):
    """Where a config's value comes from, by Kafka's numbers."""

    UNKNOWN = 0
    TOPIC = 1
    DYNAMIC_BROKER = 2
    DYNAMIC_DEFAULT_BROKER = 3
    STATIC_BROKER = 4
    DEFAULT = 5
    DYNAMIC_BROKER_LOGGER = 6
    CLIENT_METRICS = 7
    GROUP = 8


class ConfigOperation(IntEnum):
    """How a config is changed: set, back to its default, or a list with entries more or less."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


@attrs.frozen
class NewTopic:
    """A topic to create.

    Attributes:
        name: Its name.
        partitions_count: -1 leaves it to the broker (`num.partitions`).
        replication_factor: -1 leaves it to the broker (`default.replication.factor`).
        configs: Its configs, beside the defaults.
        assignments: Instead of the two numbers: for each partition, in order, the brokers to hold it, leader first.
    """

    name: str
    partitions_count: int = -1
    replication_factor: int = -1
    configs: Mapping[str, str | None] = attrs.field(factory=dict)
    assignments: Sequence[Sequence[int]] = ()


@attrs.frozen
class CreatedTopic:
    """A topic that was created, or would have been."""

    name: str
    topic_id: uuid.UUID
    partitions_count: int
    replication_factor: int


@attrs.frozen
class ClusterDescription:
    """The cluster as one broker sees it; `controller_id` is -1 when unknown."""

    cluster_id: str
    controller_id: int
    nodes: tuple[Node, ...]


@attrs.frozen
class QuorumReplica:
    """A controller's or a broker's copy of the metadata log, or a voter's of a topic's partition.

    Attributes:
        replica_id: Its node.
        directory_id: Of the directory that has it; zero where that is not known.
        log_end_offset: Where it ended when its node asked last.
        fetched_ms: When that was, by the leader's clock; -1 for never, and from brokers before Kafka 3.3.
        caught_up_ms: When it had all of the log last; the same.
        listeners: Of a voter: name, host and port; none where they are not known.
    """

    replica_id: int
    directory_id: uuid.UUID
    log_end_offset: int
    fetched_ms: int = -1
    caught_up_ms: int = -1
    listeners: tuple[tuple[str, str, int], ...] = ()


@attrs.frozen
class QuorumDescription:
    """Who keeps the metadata, or a partition whose replicas vote, as whoever leads them tells it.

    Attributes:
        leader_id: The active controller, or the partition's leader.
        leader_epoch: The epoch in which it leads.
        high_watermark: Where the committed records end.
        voters: Who elects the leader, by id.
        observers: Who follows without a vote.
    """

    leader_id: int
    leader_epoch: int
    high_watermark: int
    voters: tuple[QuorumReplica, ...]
    observers: tuple[QuorumReplica, ...]

    def log_end(self) -> int:
        """Return where the leader's log ends; the high watermark where it does not tell."""
        ends = (each.log_end_offset for each in (*self.voters, *self.observers) if each.replica_id == self.leader_id)
        return next(ends, self.high_watermark)


@attrs.frozen
class Reassignment:
    """A partition that is moving to other brokers.

    Attributes:
        replicas: All that have it or will have it, those that it leaves among them.
        adding_replicas: Who gets it.
        removing_replicas: Whom it leaves.
    """

    replicas: tuple[int, ...]
    adding_replicas: tuple[int, ...]
    removing_replicas: tuple[int, ...]

    @property
    def wanted(self) -> tuple[int, ...]:
        """The replicas that it is to have in the end."""
        return tuple(each for each in self.replicas if each not in self.removing_replicas)

    @property
    def coming(self) -> tuple[int, ...]:
        """Who gets it for good: whom an earlier plan was adding is told as added and removed."""
        return tuple(each for each in self.adding_replicas if each not in self.removing_replicas)


@attrs.frozen
class ConfigEntry:
    """One config of a resource.

    Attributes:
        name: The key.
        value: As text; None where it is secret or not set.
        source: Where the value comes from.
        is_read_only: Whether only a restart changes it.
        is_sensitive: Whether it is secret.
        synonyms: Names, values and sources that stand behind it, nearest first.
        documentation: What it does; empty where the broker does not say.
    """

    name: str
    value: str | None
    source: ConfigSource
    is_read_only: bool
    is_sensitive: bool
    synonyms: tuple[tuple[str, str | None, ConfigSource], ...] = ()
    documentation: str = ""

    @property
    def is_default(self) -> bool:
        """Whether nobody set it."""
        return self.source is ConfigSource.DEFAULT


@attrs.frozen
class ReplicaInDir:
    """One replica on a broker's disk; `offset_lag` counts records that it is behind the leader."""

    topic: str
    partition: int
    size_bytes: int
    offset_lag: int
    is_future: bool


@attrs.frozen
class LogDir:
    """One of a broker's log directories; `total_bytes` and `usable_bytes` are its file system's, -1 when unknown.

    One that is cordoned gets no new replicas (KIP-1066).
    """

    path: str
    is_failed: bool
    total_bytes: int
    usable_bytes: int
    replicas: tuple[ReplicaInDir, ...]
    is_cordoned: bool = False


@attrs.frozen
class ActiveProducer:
    """A producer that a partition's leader remembers; -1 where there is no transaction."""

    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_timestamp: int
    coordinator_epoch: int
    transaction_start_offset: int
