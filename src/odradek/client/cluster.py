"""Pure core: what a client knows of its cluster: brokers, topics, leaders and their epochs, and how old that is.

Answers to Metadata flow in by `update`; a leader that a Produce or Fetch answer names (KIP-951) by `set_leader`. Leader
epochs never go back: an answer from a broker that lags behind changes nothing for partitions known better. Nor do the
partitions of a topic become fewer while its id is the same.

*Source:* `org.apache.kafka.clients.Metadata`; KIP-320 (epochs), KIP-516 (topic ids), KIP-951.

.. versionadded:: 0.1
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import attrs

from odradek.kernel.errors import ErrorCode, error_code
from odradek.kernel.types import NO_EPOCH, ZERO_ID, TopicPartition

if TYPE_CHECKING:
    import uuid
    from collections.abc import Iterable

    from odradek.kernel.wire.messages.api_03_metadata import MetadataResponse, MetadataResponseTopic

LEADER_MOVED: Final = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INCONSISTENT_TOPIC_ID,
    }
)
"""Another broker leads now, or this one does not know yet that it does: look at the metadata."""
COORDINATOR_MOVED: Final = frozenset({ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE})
"""Another broker coordinates now: ask for it."""
_NO_LEADER: Final = -1


@attrs.frozen
class Node:
    """A broker as clients know it."""

    node_id: int
    host: str
    port: int
    rack: str | None = None
    is_fenced: bool = False


@attrs.frozen
class PartitionInfo:
    """One partition of a topic; lists of node ids."""

    topic: str
    partition: int
    leader_id: int
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    offline_replicas: tuple[int, ...] = ()

    @property
    def has_leader(self) -> bool:
        """Whether somebody can be asked to write or read."""
        return self.leader_id != _NO_LEADER


@attrs.frozen
class TopicInfo:
    """One topic; `partitions` by number, all that exist, rising."""

    name: str
    topic_id: uuid.UUID
    is_internal: bool
    partitions: dict[int, PartitionInfo]

    @property
    def available(self) -> tuple[int, ...]:
        """The partitions that have a leader."""
        return tuple(number for number, info in self.partitions.items() if info.has_leader)


@attrs.define
class Cluster:
    """The client's image of its cluster; owned by one task at a time, no awaits between reads that belong together.

    Attributes:
        cluster_id: As the brokers say.
        controller_id: The broker to send changes to; -1 when unknown.
        nodes: Brokers by id.
        topics: Topics by name.
        topic_errors: What the last answer said of topics that it could not describe.
        updated_ms: Monotonic time of the last answer; None before the first.
        is_update_needed: Whether something was seen that makes the image doubtful.
        version: Grows with each change.
    """

    cluster_id: str | None = None
    controller_id: int = -1
    nodes: dict[int, Node] = attrs.field(factory=dict)
    topics: dict[str, TopicInfo] = attrs.field(factory=dict)
    topic_errors: dict[str, ErrorCode] = attrs.field(factory=dict)
    updated_ms: int | None = None
    is_update_needed: bool = True
    version: int = 0
    _names: dict[uuid.UUID, str] = attrs.field(factory=dict, init=False)

    def update(self, response: MetadataResponse, now_ms: int) -> None:
        """Take an answer to Metadata over.

        Args:
            response: About all topics or some; others keep what was known.
            now_ms: Monotonic time.
        """
        self.cluster_id = response.cluster_id
        self.controller_id = response.controller_id
        self.nodes = {
            broker.node_id: Node(broker.node_id, broker.host, broker.port, broker.rack) for broker in response.brokers
        }
        for topic in response.topics:
            self._take(topic)
        self.updated_ms = now_ms
        self.is_update_needed = False
        self.version += 1

    def _take(self, topic: MetadataResponseTopic) -> None:
        if topic.name is None:
            return
        code = error_code(topic.error_code)
        if code:
            self.topic_errors[topic.name] = code
            if code in {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID}:
                self.forget((topic.name,))
            return
        self.topic_errors.pop(topic.name, None)
        known = self.topics.get(topic.name)
        is_same = known is not None and known.topic_id == topic.topic_id
        # Partitions are added and never taken away: who names fewer of the same topic has not heard of the others yet.
        partitions = dict(known.partitions) if known is not None and is_same and topic.topic_id != ZERO_ID else {}
        for item in sorted(topic.partitions, key=lambda item: item.partition_index):
            info = PartitionInfo(
                topic.name,
                item.partition_index,
                item.leader_id,
                item.leader_epoch,
                tuple(item.replica_nodes),
                tuple(item.isr_nodes),
                tuple(item.offline_replicas),
            )
            previous = known.partitions.get(item.partition_index) if known is not None and is_same else None
            is_older = previous is not None and NO_EPOCH != info.leader_epoch < previous.leader_epoch
            partitions[item.partition_index] = previous if previous is not None and is_older else info
        if known is not None:
            self._names.pop(known.topic_id, None)
        self.topics[topic.name] = TopicInfo(topic.name, topic.topic_id, topic.is_internal, partitions)
        if topic.topic_id != ZERO_ID:
            self._names[topic.topic_id] = topic.name

    def set_leader(self, partition: TopicPartition, leader_id: int, leader_epoch: int) -> bool:
        """Take over a leader that a broker named in an answer; return whether that was news."""
        topic = self.topics.get(partition.topic)
        info = topic.partitions.get(partition.partition) if topic is not None else None
        if topic is None or info is None or leader_id not in self.nodes or leader_epoch <= info.leader_epoch:
            return False
        changed = attrs.evolve(info, leader_id=leader_id, leader_epoch=leader_epoch)
        self.topics[partition.topic] = attrs.evolve(
            topic, partitions={**topic.partitions, partition.partition: changed}
        )
        self.version += 1
        return True

    def add_nodes(self, nodes: Iterable[Node]) -> None:
        """Take over the addresses that came with such an answer."""
        for node in nodes:
            self.nodes[node.node_id] = node

    def forget(self, topics: Iterable[str]) -> None:
        """Drop topics that nobody uses or that are gone."""
        for name in topics:
            known = self.topics.pop(name, None)
            if known is not None:
                self._names.pop(known.topic_id, None)
                self.version += 1

    def request_update(self) -> None:
        """Note that the image is doubtful."""
        self.is_update_needed = True

    def is_stale(self, now_ms: int, age_ms_max: int) -> bool:
        """Say whether it is time to ask again."""
        return self.is_update_needed or self.updated_ms is None or now_ms - self.updated_ms >= age_ms_max

    def partition(self, partition: TopicPartition) -> PartitionInfo | None:
        """Return what is known of a partition."""
        topic = self.topics.get(partition.topic)
        return None if topic is None else topic.partitions.get(partition.partition)

    def leader_of(self, partition: TopicPartition) -> int | None:
        """Return the id of a partition's leader; None when unknown, absent or without an address."""
        info = self.partition(partition)
        return info.leader_id if info is not None and info.leader_id in self.nodes else None

    def topic_id(self, topic: str) -> uuid.UUID:
        """Return a topic's id; `ZERO_ID` when unknown."""
        info = self.topics.get(topic)
        return ZERO_ID if info is None else info.topic_id

    def topic_name(self, topic_id: uuid.UUID) -> str | None:
        """Return the name of the topic with this id."""
        return self._names.get(topic_id)
