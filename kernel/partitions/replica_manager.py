"""Shell: all replicas of this broker: opens, closes and finds them, and writes what a turn of the reactor staged.

Owned by the reactor's task, as its replicas are. Who calls what:

    on start and on metadata changes   `open_topic`, `delete_topic_in_steps`, `reconfigure_topic_in_steps`
    a Produce request                  `stage`, then the turn's end calls `write_staged`
    a worker thread's fsync            the flush service takes `flush_queue` and calls `note_flushed`
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from ..contracts.culprits import blame
from ..errors import ErrorCode, KafkaError, OdradekError, StorageError
from ..machine.turnstile import run_in_slices
from ..plugin_system.manager import failed
from ..plugin_system.offers import plugin_of_object
from ..types import INTERNAL_TOPICS, METADATA_TOPIC, ZERO_ID, TopicIdPartition
from .failed_logs import FailedLogs
from .full_disks import FullDisks
from .replica_opener import ReplicaOpener, discard
from .tiers import Tiers
from .topic_replicas import TopicReplicas

if TYPE_CHECKING:
    import random
    import uuid
    from collections.abc import Callable, Collection, Generator, Iterator, Mapping

    from ..contracts.append_stage import AppendStageFactory
    from ..contracts.election import ElectionFactory, PartitionState
    from ..contracts.services import ConfigView
    from ..contracts.storage import PartitionLog, StorageEngine
    from ..contracts.tiering import Tier
    from ..machine.clock import Clock
    from .replica import Replica
    from .topic_plan import TopicPlan

log = logging.getLogger(__name__)


class ReplicaManager:
    """The replicas of this broker. Life: made, `open_topic` for what metadata says, then requests; `close`.

    Attributes:
        internal_topics: To which no client writes: Kafka's, and those of coordinators, which are added before a topic
            is opened.
        topics: By name.
        topics_by_id: The same by id.
        flush_queue: Whose logs want to be flushed.
        engines: Storage engines by name.
        tiers: Wraps logs.
        unfinished_moves: Which log directory the last run was moving logs to, by partition.
    """

    def __init__(
        self,
        *,
        broker_id: int,
        engines: Mapping[str, StorageEngine],
        elections: Mapping[str, ElectionFactory],
        config: Callable[[], ConfigView],
        stages: Mapping[str, AppendStageFactory],
        clock: Clock,
        random_source: random.Random,
        producer_id_expiration_ms: int,
        on_progress: Callable[[Collection[Replica]], None],
        on_staged: Callable[[], None],
        on_flush_wanted: Callable[[], None],
        on_leader_changed: Callable[[TopicIdPartition, int, int], None],
        known_directory: Callable[[uuid.UUID, int], uuid.UUID] = lambda _topic_id, _index: ZERO_ID,
        tier: Tier | None = None,
    ) -> None:
        """Make an empty manager.

        Args:
            broker_id: This broker.
            engines: Storage engines by name; `start` starts them.
            elections: Election factories by name.
            config: Returns the broker's configuration as it is now, for elections.
            stages: Append stage factories by name.
            clock: Both clocks.
            random_source: For elections.
            producer_id_expiration_ms: `producer.id.expiration.ms`.
            on_progress: Called when the watermarks of replicas moved or they went offline: wakes the purgatories. Must
                not raise.
            on_staged: Called when something is staged after nothing was: `write_staged` is to be called soon.
            on_flush_wanted: Called when `flush_queue` got an entry.
            on_leader_changed: Called after a replica's leader or epoch changed.
            known_directory: Returns the log directory that the metadata has for this broker's replica of
                (topic id, index); `ZERO_ID` for none.
            tier: For the logs of topics that want one; None where tiered storage is off.
        """
        self.internal_topics = set(INTERNAL_TOPICS)
        self.topics: dict[str, TopicReplicas] = {}
        self.topics_by_id: dict[uuid.UUID, TopicReplicas] = {}
        self.flush_queue: list[Replica] = []
        self._broker_id = broker_id
        self.engines = engines
        self.tiers = Tiers(tier)
        self._opener = ReplicaOpener(
            broker_id=broker_id,
            engines=engines,
            elections=elections,
            config=config,
            stages=stages,
            tiers=self.tiers,
            clock=clock,
            random=random_source,
            producer_id_expiration_ms=producer_id_expiration_ms,
            known_directory=known_directory,
        )
        self._on_progress = on_progress
        self._on_staged = on_staged
        self._on_flush_wanted = on_flush_wanted
        self._on_leader_changed = on_leader_changed
        self._started: list[str] = []
        self._found_logs: list[tuple[StorageEngine, TopicIdPartition]] = []
        self.unfinished_moves: dict[TopicIdPartition, str] = {}
        self._staged: list[Replica] = []
        self._failed = FailedLogs()
        self.full_disks = FullDisks(self)

    def __repr__(self) -> str:
        count = sum(len(topic.partitions) for topic in self.topics.values())
        return f"ReplicaManager({len(self.topics)} topics, {count} replicas)"

    # -------------------------------------------------------------------------------------------------------- metadata

    def note_all_opened(self) -> None:
        """Take note that everything was opened that was there before the start: what comes now may begin."""
        self._opener.is_starting = False

    def open_topic(
        self, name: str, topic_id: uuid.UUID, plan: TopicPlan, partitions: Mapping[int, PartitionState]
    ) -> None:
        """Open this broker's replicas of a topic that are not open yet, and give all of them their state.

        Whatever goes wrong with one of them, in its log or in a plugin, takes that partition offline and nothing else.
        """
        topic = self.topics.get(name)
        if topic is None:
            topic = TopicReplicas(name, topic_id, plan, is_internal=name in self.internal_topics)
            self.topics[name] = topic
            self.topics_by_id[topic_id] = topic
        for index, state in partitions.items():
            partition = TopicIdPartition(topic_id, name, index)
            if self._broker_id not in state.replicas:
                self._give_up(topic, index)
                continue
            replica = topic.partitions.get(index)
            if replica is None:
                replica = self._open(partition, plan, state)
                if replica is None:
                    continue
                self._add(topic, replica)
            self.apply_leadership(replica, state)

    def _add(self, topic: TopicReplicas, replica: Replica) -> None:
        self._failed.forget(replica.partition)
        topic.partitions[replica.partition.partition] = replica
        topic.is_plain = topic.is_plain and not replica.stages

    def _give_up(self, topic: TopicReplicas, index: int) -> None:
        """Close and delete a replica that was moved to other brokers, also one that could not be opened."""
        partition = TopicIdPartition(topic.topic_id, topic.name, index)
        if self._failed.forget(partition):
            self._delete_log(topic, partition)
        replica = topic.partitions.pop(index, None)
        if replica is not None:
            self._take_offline(replica, "the replica moved to another broker")
            if replica.tiered_log is not None:
                replica.tiered_log.unwrap()  # what is in the store is the other brokers'
            self._delete_log(topic, replica.partition)

    def _open(self, partition: TopicIdPartition, plan: TopicPlan, state: PartitionState) -> Replica | None:
        if self._failed.note_state(partition, state):
            return None
        try:
            return self._opener.open(partition, plan)
        except Exception as error:
            self._failed.note(partition, state, error)
            return None

    def apply_leadership(self, replica: Replica, state: PartitionState) -> None:
        """Give one replica the state that the committed metadata has for it, once its log has stopped moving."""
        if replica.is_paused:
            replica.state_after_pause = state
            return
        try:
            if replica.become(state):
                self._on_progress((replica,))
                self._on_leader_changed(replica.partition, replica.leader_id, replica.leader_epoch)
        except Exception as error:
            self.fail(replica, error)

    def reconfigure_topic_in_steps(self, name: str, plan: TopicPlan) -> Generator[None, None, None]:
        """Give a topic's replicas new settings, one a step; storage and election of a topic never change."""
        topic = self.topics.get(name)
        if topic is None:
            return
        topic.plan = plan
        topic.is_plain = False  # until it is known that no replica has got a stage
        for index, replica in list(topic.partitions.items()):
            yield
            if topic.partitions.get(index) is not replica:
                continue  # replaced meanwhile by one that was opened with the new settings
            try:
                replica.settings = plan.settings
                if not replica.is_paused:
                    self.tiers.fit(replica, plan.tier)
                replica.log.reconfigure(plan.log_config)
                replica.stages = self._opener.make_stages(replica.partition, plan)
            except Exception as error:
                self.fail(replica, error)
                continue
            if replica.state is not None:
                self.apply_leadership(replica, replica.state)
        topic.is_plain = not topic.is_internal and not any(replica.stages for replica in topic.partitions.values())

    def expire_producers_in_steps(self, producer_id_expiration_ms: int) -> Generator[None, None, None]:
        """Take a new `producer.id.expiration.ms` for all replicas."""
        self._opener.producer_id_expiration_ms = producer_id_expiration_ms
        for replica in list(self.replicas()):
            replica.producers.expire_after(producer_id_expiration_ms)
            yield

    def delete_topic_in_steps(self, name: str, partitions_count: int) -> Generator[None, None, None]:
        """Close and delete this broker's replicas of a topic; waiting requests are answered with an error.

        After the first step none of them is found or serves any more; the others end waits and delete logs.

        Args:
            name: The topic.
            partitions_count: How many it had: logs that could not be opened are deleted too.
        """
        topic = self.topics.pop(name, None)
        if topic is None:
            return
        self.topics_by_id.pop(topic.topic_id, None)
        for replica in topic.partitions.values():
            replica.go_offline("the topic was deleted")
        for index in range(partitions_count):
            self._failed.forget(TopicIdPartition(topic.topic_id, name, index))
        for replica in list(topic.partitions.values()):
            self._on_progress((replica,))
            yield
        for index in range(partitions_count):
            yield
            partition = TopicIdPartition(topic.topic_id, name, index)
            if topic.plan.tier is not None:
                self.tiers.delete(partition)
            self._delete_log(topic, partition)

    def _delete_log(self, topic: TopicReplicas, partition: TopicIdPartition) -> None:
        engine = self.engines.get(topic.plan.storage)
        if engine is None:
            return
        try:
            engine.delete_log(partition)
        except StorageError as error:
            log.error("deleting %s: %s", partition, error)

    async def retry_failed_logs(self) -> None:
        """Try once more to open what could not be opened: a disk may have room again, a file may be readable."""
        for partition in self._failed:
            topic = self.topics_by_id.get(partition.topic_id)
            if topic is not None and self._failed.state(partition) is not None:
                await self._retry(topic, partition)
        await self.full_disks.retry()

    async def _retry(self, topic: TopicReplicas, partition: TopicIdPartition) -> None:
        plan = topic.plan
        replica: Replica | None = None
        failure: Exception | None = None
        with self._failed.opening(partition):
            try:
                replica = await self._opener.open_in_slices(partition, plan)
            except Exception as error:
                failure = error
        state = self._failed.state(partition)
        if state is None:  # deleted meanwhile, or another broker's
            if replica is not None:
                discard(replica)
        elif replica is None:
            assert failure is not None
            self._failed.note(partition, state, failure)
        else:
            self._add(topic, replica)
            self.apply_leadership(replica, state)
            if topic.plan is not plan:
                await run_in_slices(self.reconfigure_topic_in_steps(topic.name, topic.plan))

    async def open_again(self, topic: TopicReplicas, replica: Replica) -> Replica:
        """See `full_disks.Opener`."""
        self._opener.kept_high_watermarks[replica.partition] = replica.high_watermark
        return await self._opener.open_in_slices(replica.partition, topic.plan)

    def replace(self, topic: TopicReplicas, old: Replica, fresh: Replica) -> None:
        """See `full_disks.Opener`."""
        self._add(topic, fresh)
        self._on_progress((old, fresh))
        self._on_leader_changed(fresh.partition, fresh.leader_id, fresh.leader_epoch)

    def fail(self, replica: Replica, error: Exception) -> None:
        """Take a replica offline that failed, and say why: one line for a disk, a trace for a bug."""
        if isinstance(error, StorageError):
            log.error("partition %s goes offline: %s", replica.partition, error, extra=blame(error))
        else:
            log.error("partition %s goes offline", replica.partition, exc_info=error)
        replica.failed(error)
        self._on_progress((replica,))

    def note_failure(self, topic: str, partition: int, error: Exception) -> None:
        """Take note of what a look at a log has raised: a bug takes its replica offline; a disk has told."""
        replica = self.find(topic, partition)
        if replica is not None and not isinstance(error, StorageError):
            self.fail(replica, error)

    def _take_offline(self, replica: Replica, reason: str) -> None:
        replica.go_offline(reason)
        self._on_progress((replica,))

    def start(self) -> None:
        """Start the storage engines and see which logs they have.

        Raises:
            StorageError: An engine cannot work at all.
        """
        for name, engine in self.engines.items():
            try:
                logs = engine.start()
                for found in logs:
                    self._found_logs.append((engine, found.partition))
                    if found.moves_to:
                        self.unfinished_moves[found.partition] = found.moves_to
            except OdradekError:
                raise
            except Exception as error:
                raise failed(plugin_of_object(engine), f"storage {name!r} cannot start", error) from error
            self._started.append(name)
            self._opener.kept_high_watermarks.update(engine.high_watermarks())
            self._opener.note_started(name, engine.log_dirs(), [found.partition for found in logs])

    def has_found_metadata(self, storage: str) -> bool:
        """Return whether the metadata log of a storage was on disk at the start."""
        kept_in = self.engines.get(storage)
        return any(engine is kept_in and partition.topic == METADATA_TOPIC for engine, partition in self._found_logs)

    def found_logs(self) -> list[TopicIdPartition]:
        """Return the logs that were on disk at the start, but the metadata's."""
        return [partition for _, partition in self._found_logs if partition.topic != METADATA_TOPIC]

    def set_strays_aside(self, is_known: Callable[[TopicIdPartition], bool]) -> None:
        """Take logs out of the way that were on disk at the start and that the metadata does not know.

        A deletion that a crash cut short leaves them, or a directory that was copied in by hand. They would keep a
        topic of their name from being created.
        """
        for engine, partition in self._found_logs:
            if not is_known(partition):
                try:
                    engine.set_aside(partition)
                except StorageError as error:
                    log.error("%s", error)
        self._found_logs.clear()

    # -------------------------------------------------------------------------------------------------------- requests

    def find(self, topic: str, partition: int) -> Replica | None:
        """Return a replica whose log can be read, if this broker has one."""
        replicas = self.topics.get(topic)
        return replicas.partitions.get(partition) if replicas is not None else None

    def get(self, topic: str, partition: int) -> Replica:
        """Return a replica.

        Raises:
            KafkaError: This broker has none; KAFKA_STORAGE_ERROR when its log failed, UNKNOWN_SERVER_ERROR when a
                plugin has a bug.
        """
        replica = self.find(topic, partition)
        if replica is not None:
            return replica
        replicas = self.topics.get(topic)
        if replicas is not None:
            code = self._failed.code(TopicIdPartition(replicas.topic_id, topic, partition))
            if code is not None:
                raise KafkaError(code)
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)

    def replicas(self) -> Iterator[Replica]:
        """Iterate over all replicas."""
        for topic in self.topics.values():
            yield from topic.partitions.values()

    def progressed(self, replica: Replica) -> None:
        """Wake whoever waits for a replica whose watermarks moved."""
        self._on_progress((replica,))

    def stage(self, replica: Replica) -> None:
        """Note that a replica has staged batches, to be written at the turn's end."""
        if not replica.is_dirty:
            replica.is_dirty = True
            self._staged.append(replica)
            if len(self._staged) == 1:
                self._on_staged()

    def write_staged(self) -> None:
        """Write everything that is staged, one gathered write a replica, then wake whoever waits for any of it."""
        staged = self._staged
        if not staged:
            return
        self._staged = []
        written = []
        for replica in staged:
            try:
                if replica.write():
                    self.ask_for_flush(replica)
                else:
                    written.append(replica)
            except Exception as error:  # one replica's failure must not keep the others' batches from being written
                self.fail(replica, error)
        if written:
            self._on_progress(written)

    def ask_for_flush(self, replica: Replica) -> None:
        """Have a replica's log flushed soon; `note_flushed` then counts what it has."""
        self.flush_queue.append(replica)
        self._on_flush_wanted()

    def note_flushed(self, replica: Replica, flushed: PartitionLog, error: Exception | None) -> None:
        """Take note that a log was flushed, or why not; never raises.

        Args:
            replica: Whose log it was; nothing happens if it has another one by now, or is offline.
            flushed: The log.
            error: Why it was not flushed.
        """
        if replica.log is not flushed or replica.offline_reason is not None:
            return
        if error is not None:
            self.fail(replica, error)
            return
        try:
            replica.note_appended(flushed.recovery_point)
            self._on_progress((replica,))
        except Exception as exc:
            self.fail(replica, exc)

    # ---------------------------------------------------------------------------------------------------------- upkeep

    def high_watermarks(self) -> dict[str, dict[TopicIdPartition, int]]:
        """Return every replica's high watermark, by the storage that keeps them."""
        by_engine: dict[str, dict[TopicIdPartition, int]] = {name: {} for name in self.engines}
        for topic in self.topics.values():
            if topic.partitions:
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
                try:
                    replica.keep_producers()
                except StorageError as error:
                    log.error("partition %s: its producers' state is not kept: %s", replica.partition, error)
        for name in self._started:
            try:
                self.engines[name].close(marks[name])
            except StorageError as error:
                log.error("storage %s: %s", name, error)
