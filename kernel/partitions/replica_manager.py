"""Shell: all replicas of this broker: opens, closes and finds them, and writes what a turn of the reactor staged.

Owned by the reactor's task, as its replicas are. Who calls what:

    on start and on metadata changes   `open_topic`, `delete_topic`, `reconfigure_topic`, `apply_leadership`
    a Produce request                  `stage`, then the turn's end calls `write_staged`
    a worker thread's fsync            the flush service takes `flush_queue` and calls `note_flushed`
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import attrs

from ..contracts.election import ElectionContext
from ..errors import ErrorCode, KafkaError, StorageError
from ..types import INTERNAL_TOPICS, TopicIdPartition
from .producer_state import ProducerStateTable
from .recovery import recover_producers
from .replica import Replica

if TYPE_CHECKING:
    import random
    import uuid
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from ..clock import Clock
    from ..contracts.append_stage import AppendStage, AppendStageFactory
    from ..contracts.election import ElectionFactory, PartitionState
    from ..contracts.storage import FoundLog, StorageEngine
    from .topic_plan import TopicPlan

log = logging.getLogger(__name__)


@attrs.define
class AppendCounters:
    """What a topic has taken and given since the start; read by the metrics."""

    messages_in: int = 0
    bytes_in: int = 0
    bytes_out: int = 0
    produce_requests: int = 0
    fetch_requests: int = 0
    failed_produce_requests: int = 0
    failed_fetch_requests: int = 0


class TopicReplicas:
    """The replicas of one topic on this broker, by partition, and the topic's counters.

    `is_plain` says that clients may produce to it and no stage looks at what they do.
    """

    __slots__ = ("counters", "is_plain", "name", "partitions", "plan", "topic_id")

    def __init__(self, name: str, topic_id: uuid.UUID, plan: TopicPlan) -> None:
        self.name = name
        self.topic_id = topic_id
        self.plan = plan
        self.is_plain = not plan.stages and name not in INTERNAL_TOPICS
        self.partitions: dict[int, Replica] = {}
        self.counters = AppendCounters()


class ReplicaManager:
    """The replicas of this broker. Life: made, `open_topic` for what metadata says, then requests; `close`."""

    def __init__(
        self,
        *,
        broker_id: int,
        engines: Mapping[str, StorageEngine],
        elections: Mapping[str, ElectionFactory],
        stages: Mapping[str, AppendStageFactory],
        clock: Clock,
        random_source: random.Random,
        producer_id_expiration_ms: int,
        on_progress: Callable[[Replica], None],
        on_flush_wanted: Callable[[], None],
        on_leader_changed: Callable[[TopicIdPartition, int, int], None],
    ) -> None:
        """Make an empty manager.

        Args:
            broker_id: This broker.
            engines: Storage engines by name; `start` starts them.
            elections: Election factories by name.
            stages: Append stage factories by name.
            clock: Both clocks.
            random_source: For elections.
            producer_id_expiration_ms: `producer.id.expiration.ms`.
            on_progress: Called when a replica's watermarks moved or it went offline: wakes the purgatories.
            on_flush_wanted: Called when `flush_queue` got an entry.
            on_leader_changed: Called after a replica's leader or epoch changed.
        """
        self.topics: dict[str, TopicReplicas] = {}
        self.topics_by_id: dict[uuid.UUID, TopicReplicas] = {}
        self.flush_queue: list[Replica] = []
        self._broker_id = broker_id
        self.engines = engines
        self._elections = elections
        self._stages = stages
        self._clock = clock
        self._random = random_source
        self._producer_id_expiration_ms = producer_id_expiration_ms
        self._on_progress = on_progress
        self._on_flush_wanted = on_flush_wanted
        self._on_leader_changed = on_leader_changed
        self._kept_high_watermarks: dict[TopicIdPartition, int] = {}
        self._started: list[str] = []
        self._staged: list[Replica] = []
        self._failed_logs: dict[TopicIdPartition, str] = {}

    def __repr__(self) -> str:
        count = sum(len(topic.partitions) for topic in self.topics.values())
        return f"ReplicaManager({len(self.topics)} topics, {count} replicas)"

    # -------------------------------------------------------------------------------------------------------- metadata

    def open_topic(
        self, name: str, topic_id: uuid.UUID, plan: TopicPlan, partitions: Mapping[int, PartitionState]
    ) -> None:
        """Open this broker's replicas of a topic that are not open yet, and give all of them their state.

        A log that cannot be opened takes its partition offline, and nothing else.
        """
        topic = self.topics.get(name)
        if topic is None:
            topic = TopicReplicas(name, topic_id, plan)
            self.topics[name] = topic
            self.topics_by_id[topic_id] = topic
        for index, state in partitions.items():
            if self._broker_id not in state.replicas:
                continue
            replica = topic.partitions.get(index)
            if replica is None:
                partition = TopicIdPartition(topic_id, name, index)
                replica = self._open(partition, plan)
                if replica is None:
                    continue
                topic.partitions[index] = replica
            self.apply_leadership(replica, state)

    def _open(self, partition: TopicIdPartition, plan: TopicPlan) -> Replica | None:
        try:
            engine = self.engines[plan.storage]
            partition_log = engine.open_log(partition, plan.log_config)
            producers = ProducerStateTable(self._producer_id_expiration_ms)
            recover_producers(partition_log, producers, self._clock.now_ms())
        except StorageError as error:
            log.error("partition %s is offline: %s", partition, error)
            self._failed_logs[partition] = str(error)
            return None
        high_watermark = self._kept_high_watermarks.get(partition, partition_log.log_start_offset)
        election = self._elections[plan.election].new_election(
            ElectionContext(
                partition=partition,
                broker_id=self._broker_id,
                log_end_offset=partition_log.log_end_offset,
                high_watermark=min(high_watermark, partition_log.log_end_offset),
                latest_epoch=partition_log.latest_epoch,
                hard_state=None,
                settings=plan.values,
                random=self._random,
            )
        )
        return Replica(
            partition=partition,
            log=partition_log,
            election=election,
            producers=producers,
            settings=plan.settings,
            stages=self._make_stages(partition, plan),
        )

    def _make_stages(self, partition: TopicIdPartition, plan: TopicPlan) -> tuple[AppendStage, ...]:
        made = (self._stages[name](partition, plan.values) for name in plan.stages)
        return tuple(stage for stage in made if stage is not None)

    def apply_leadership(self, replica: Replica, state: PartitionState) -> None:
        """Give one replica the state that the committed metadata has for it."""
        if replica.become(state):
            self._on_progress(replica)
            self._on_leader_changed(replica.partition, replica.leader_id, replica.leader_epoch)

    def reconfigure_topic(self, name: str, plan: TopicPlan) -> None:
        """Give a topic's replicas new settings; storage and election of a topic never change."""
        topic = self.topics.get(name)
        if topic is None:
            return
        topic.plan = plan
        for replica in topic.partitions.values():
            replica.settings = plan.settings
            replica.log.reconfigure(plan.log_config)
            replica.stages = self._make_stages(replica.partition, plan)

    def expire_producers_after(self, producer_id_expiration_ms: int) -> None:
        """Take a new `producer.id.expiration.ms` for all replicas."""
        self._producer_id_expiration_ms = producer_id_expiration_ms
        for replica in self.replicas():
            replica.producers.expire_after(producer_id_expiration_ms)

    def delete_topic(self, name: str) -> None:
        """Close and delete this broker's replicas of a topic; waiting requests are answered with an error."""
        topic = self.topics.pop(name, None)
        if topic is None:
            return
        self.topics_by_id.pop(topic.topic_id, None)
        for replica in topic.partitions.values():
            replica.go_offline("the topic was deleted")
            self._on_progress(replica)
            try:
                self.engines[topic.plan.storage].delete_log(replica.partition)
            except StorageError as error:
                log.error("deleting %s: %s", replica.partition, error)

    def start(self) -> Iterator[FoundLog]:
        """Start the storage engines and iterate over every log that they have on disk.

        Raises:
            StorageError: An engine cannot work at all.
        """
        for name, engine in self.engines.items():
            yield from engine.start()
            self._started.append(name)
            self._kept_high_watermarks.update(engine.high_watermarks())

    # -------------------------------------------------------------------------------------------------------- requests

    def get(self, topic: str, partition: int) -> Replica:
        """Return a replica.

        Raises:
            KafkaError: This broker has none; KAFKA_STORAGE_ERROR when its log failed.
        """
        replicas = self.topics.get(topic)
        replica = replicas.partitions.get(partition) if replicas else None
        if replica is not None:
            return replica
        if replicas is not None and TopicIdPartition(replicas.topic_id, topic, partition) in self._failed_logs:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR)
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)

    def replicas(self) -> Iterator[Replica]:
        """Iterate over all replicas."""
        for topic in self.topics.values():
            yield from topic.partitions.values()

    def progressed(self, replica: Replica) -> None:
        """Wake whoever waits for a replica whose watermarks moved."""
        self._on_progress(replica)

    def stage(self, replica: Replica) -> None:
        """Note that a replica has staged batches, to be written at the turn's end."""
        if not replica.is_dirty:
            replica.is_dirty = True
            self._staged.append(replica)

    def write_staged(self) -> None:
        """Write everything that is staged, one gathered write a replica, and wake whoever waits for it."""
        staged = self._staged
        if not staged:
            return
        self._staged = []
        for replica in staged:
            try:
                if replica.write():
                    self.flush_queue.append(replica)
                    self._on_flush_wanted()
                    continue
            except StorageError as error:
                log.error("partition %s goes offline: %s", replica.partition, error)
            self._on_progress(replica)

    def note_flushed(self, flushed: Iterable[tuple[Replica, int | StorageError]]) -> None:
        """Take note of recovery points that an fsync reached, or of its failure."""
        for replica, outcome in flushed:
            if isinstance(outcome, StorageError):
                log.error("partition %s goes offline: %s", replica.partition, outcome)
                replica.go_offline(str(outcome))
            else:
                replica.note_appended(outcome)
            self._on_progress(replica)

    # ---------------------------------------------------------------------------------------------------------- upkeep

    def high_watermarks(self) -> dict[str, dict[TopicIdPartition, int]]:
        """Return every replica's high watermark, by the storage that keeps them."""
        by_engine: dict[str, dict[TopicIdPartition, int]] = {name: {} for name in self.engines}
        for topic in self.topics.values():
            marks = by_engine[topic.plan.storage]
            marks.update((replica.partition, replica.high_watermark) for replica in topic.partitions.values())
        return by_engine

    def close(self) -> None:
        """Keep the producers' state, close every log and mark the shutdown as clean.

        Only where the engine was started: what it could not take belongs to another broker.
        """
        marks = self.high_watermarks()
        for replica in self.replicas():
            if replica.offline_reason is None:
                replica.keep_producers()
        for name in self._started:
            self.engines[name].close(marks[name])
