"""Shell: the replicas of this broker: found by topic or id and partition, and taken offline when one fails.

Owned by the reactor's task, as its replicas are. Three modules share what they are for:

| module | who calls it |
|---|---|
| this one | requests, which look a replica up; whoever sees one fail |
| `replica_lifecycle` | the start, the end, and changes of the metadata: opens, closes, deletes, tries again |
| `staged_writes` | an append, which stages; the turn's end, which writes; flushes, which make it count |

The two others know this one; it knows neither.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from ..contracts.culprits import blame
from ..errors import ErrorCode, KafkaError, StorageError
from ..types import INTERNAL_TOPICS, TopicIdPartition
from .changed_replicas import ChangedReplicas
from .failed_logs import FailedLogs

if TYPE_CHECKING:
    import uuid
    from collections.abc import Callable, Collection, Iterator, Mapping

    from ..contracts.storage import StorageEngine
    from .replica import Replica
    from .topic_replicas import TopicReplicas

log = logging.getLogger(__name__)


def _nothing(*_told: object) -> None:
    """Do nothing: nobody has asked to be told."""


class Replicas:
    """The replicas of this broker; iterating gives all of them. `ReplicaLifecycle` puts them in and takes them out.

    Attributes:
        internal_topics: To which no client writes: Kafka's, and those of coordinators, which are added before a topic
            is opened.
        topics: By name.
        topics_by_id: The same by id.
        failed: The partitions that could not be opened.
        changed: Those that regular work has to look at.
        engines: The storage engines that keep the logs, by name.
        progressed: To be called with replicas whose watermarks moved, or that went offline or were replaced: wakes
            whoever waits for them. Does not raise.
        on_gone_wrong: Called when a replica goes offline in the midst of what somebody does with it, as an append: who
            waits for it is to be told, but not at once. Must not raise.
        on_room_changed: Called when a replica has found its disk full, or is served again. Must not raise.
    """

    __slots__ = (
        "changed",
        "engines",
        "failed",
        "internal_topics",
        "on_gone_wrong",
        "on_room_changed",
        "progressed",
        "topics",
        "topics_by_id",
    )

    def __init__(
        self, engines: Mapping[str, StorageEngine], *, on_progress: Callable[[Collection[Replica]], None]
    ) -> None:
        """Make an empty table.

        Args:
            engines: Storage engines by name; `ReplicaLifecycle.start` starts them.
            on_progress: What `progressed` calls. Must not raise.
        """
        self.internal_topics = set(INTERNAL_TOPICS)
        self.topics: dict[str, TopicReplicas] = {}
        self.topics_by_id: dict[uuid.UUID, TopicReplicas] = {}
        self.failed = FailedLogs()
        self.changed = ChangedReplicas()
        self.engines = engines
        self.progressed = on_progress
        self.on_gone_wrong: Callable[[Replica], None] = _nothing
        self.on_room_changed: Callable[[], None] = _nothing

    def __repr__(self) -> str:
        count = sum(len(topic.partitions) for topic in self.topics.values())
        return f"<Replicas: {count} of {len(self.topics)} topics>"

    @property
    def storages(self) -> dict[str, bool]:
        """The storages by name, each with whether it tells its log directories apart, those that failed too."""
        return {name: hasattr(engine, "failed_log_dirs") for name, engine in self.engines.items()}

    # -------------------------------------------------------------------------------------------------------- look-ups

    def __iter__(self) -> Iterator[Replica]:
        for topic in self.topics.values():
            yield from topic.partitions.values()

    def find(self, topic: str, partition: int) -> Replica | None:
        """Return a replica whose log can be read, if this broker has one."""
        replicas = self.topics.get(topic)
        return replicas.partitions.get(partition) if replicas is not None else None

    def get(self, topic: str, partition: int) -> Replica:
        """Return a replica.

        Raises:
            KafkaError: This broker has none: NOT_LEADER_OR_FOLLOWER when others have; KAFKA_STORAGE_ERROR when its log
                failed, UNKNOWN_SERVER_ERROR when a plugin has a bug.
        """
        replica = self.find(topic, partition)
        if replica is not None:
            return replica
        replicas = self.topics.get(topic)
        if replicas is not None:
            code = self.failed.code(TopicIdPartition(replicas.topic_id, topic, partition))
            if code is not None:
                raise KafkaError(code)
            if partition in replicas.elsewhere:
                raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)

    def high_watermarks(self) -> dict[str, dict[TopicIdPartition, int]]:
        """Return every replica's high watermark, by the storage that keeps them."""
        by_engine: dict[str, dict[TopicIdPartition, int]] = {name: {} for name in self.engines}
        for topic in self.topics.values():
            if topic.partitions:
                marks = by_engine[topic.plan.storage]
                marks.update((replica.partition, replica.high_watermark) for replica in topic.partitions.values())
        return by_engine

    def unmade_logs_count(self) -> int:
        """Return how many logs are on no disk yet: the first write of each has to make it, see `StorageEngine`."""
        return sum(getattr(engine, "unmade_logs_count", 0) for engine in self.engines.values())

    # --------------------------------------------------------------------------------------------------------- notices

    def fail(self, replica: Replica, error: Exception) -> None:
        """Take a replica offline that failed, and say why: one line for a disk, a trace for a bug."""
        if isinstance(error, StorageError):
            log.error("partition %s goes offline: %s", replica.partition, error, extra=blame(error))
        else:
            log.error("partition %s goes offline", replica.partition, exc_info=error)
        replica.failed(error)
        self.tell_offline(replica)

    def tell_offline(self, replica: Replica) -> None:
        """Wake whoever waits for a replica that is offline; the controller hears of it if it is for want of room."""
        self.progressed((replica,))
        if replica.lacks_room:
            self.on_room_changed()

    def note_failure(self, topic: str, partition: int, error: Exception) -> None:
        """Take note of what a look at a log has raised: a bug takes its replica offline; a disk has told."""
        replica = self.find(topic, partition)
        if replica is not None and not isinstance(error, StorageError):
            self.fail(replica, error)

    def is_served(self, replica: Replica) -> bool:
        """Return whether it is in the table and online: others may have come in between."""
        is_there = self.find(replica.partition.topic, replica.partition.partition) is replica
        return is_there and replica.offline_reason is None
