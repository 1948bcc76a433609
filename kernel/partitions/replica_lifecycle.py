"""Shell: the life of this broker's replicas: found on disk, opened, given their state, tried again, deleted, closed.

    start                 `start` the storages, then `open_topic` for all that the metadata has, `note_all_opened`
    metadata changes      `open_topic`, `reconfigure_topic_in_steps`, `delete_topic_in_steps`; `apply_leadership`
    now and then          `retry_failed_logs`
    end                   `close`

Whatever goes wrong with one replica, in its log or in a plugin, takes that partition offline and nothing else.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from ..errors import ErrorCode, OdradekError, StorageError
from ..machine.turnstile import run_in_slices
from ..plugin_system.manager import failed
from ..plugin_system.offers import plugin_of_object
from ..types import METADATA_TOPIC, TopicIdPartition
from .full_disks import FullDisks
from .recovery import have_producers_read
from .replica_opener import discard
from .topic_replicas import TopicReplicas

if TYPE_CHECKING:
    import uuid
    from collections.abc import Callable, Generator, Mapping

    from ..contracts.election import PartitionState
    from ..contracts.storage import StorageEngine
    from ..contracts.tiering import TierSettings
    from .full_disks import Reopened
    from .replica import Replica
    from .replica_opener import ReplicaOpener
    from .replicas import Replicas
    from .topic_plan import TopicPlan
    from .voting import Voting

log = logging.getLogger(__name__)


class ReplicaLifecycle:
    """Puts replicas into the broker's table and takes them out. Owned by the reactor's task.

    Attributes:
        full_disks: The replicas that wait for room.
        unfinished_moves: Which log directory the last run was moving logs to, by partition.
    """

    def __init__(
        self,
        replicas: Replicas,
        opener: ReplicaOpener,
        *,
        on_leader_changed: Callable[[TopicIdPartition, int, int], None],
    ) -> None:
        """Make it; nothing is open.

        Args:
            replicas: The table, empty.
            opener: Opens a replica.
            on_leader_changed: Called after a replica's leader or epoch changed.
        """
        self.full_disks = FullDisks(replicas, opener)
        self.unfinished_moves: dict[TopicIdPartition, str] = {}
        self._replicas = replicas
        self._opener = opener
        self._on_leader_changed = on_leader_changed
        self._started: list[str] = []
        self._found_logs: list[tuple[StorageEngine, TopicIdPartition]] = []

    def let_vote(self, voting: Voting) -> None:
        """Have somebody carry out what elections decide that vote, before any replica is opened."""
        self._opener.voting = voting

    # ------------------------------------------------------------------------------------------------------------ start

    def start(self) -> None:
        """Start the storage engines and see which logs they have.

        Raises:
            StorageError: An engine cannot work at all.
        """
        for name, engine in self._replicas.engines.items():
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
        kept_in = self._replicas.engines.get(storage)
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

    def note_all_opened(self) -> None:
        """Take note that everything was opened that was there before the start: what comes now may begin."""
        self._opener.is_starting = False

    # -------------------------------------------------------------------------------------------------------- metadata

    def open_topic(
        self, name: str, topic_id: uuid.UUID, plan: TopicPlan, partitions: Mapping[int, PartitionState]
    ) -> None:
        """Open this broker's replicas of a topic that are not open yet, and give all of them their state."""
        replicas = self._replicas
        topic = replicas.topics.get(name)
        if topic is None:
            topic = TopicReplicas(name, topic_id, plan, is_internal=name in replicas.internal_topics)
            replicas.topics[name] = topic
            replicas.topics_by_id[topic_id] = topic
        for index, state in partitions.items():
            if self._opener.broker_id not in state.replicas:
                self._give_up(topic, index)
                topic.elsewhere[index] = state
                continue
            topic.elsewhere.pop(index, None)
            replica = topic.partitions.get(index)
            if replica is None:
                replica = self._open(topic, TopicIdPartition(topic_id, name, index), plan, state)
                if replica is None:
                    continue
            self.apply_leadership(replica, state)

    def _open(
        self, topic: TopicReplicas, partition: TopicIdPartition, plan: TopicPlan, state: PartitionState
    ) -> Replica | None:
        if self._replicas.failed.note_state(partition, state):
            return None
        try:
            replica = self._opener.open(partition, plan)
        except Exception as error:  # its disk's, or a plugin's: its partition pays, nobody else
            self._replicas.failed.note(partition, state, error)
            return None
        self._put(topic, replica)
        return replica

    def _put(self, topic: TopicReplicas, replica: Replica) -> None:
        self._replicas.failed.forget(replica.partition)
        self._replicas.changed.note((replica,))
        topic.partitions[replica.partition.partition] = replica
        replica.on_gone_wrong = self._replicas.on_gone_wrong
        topic.is_plain = topic.is_plain and not replica.stages
        if replica.delays is not None:
            self._opener.delays.on_opened(replica)

    def _give_up(self, topic: TopicReplicas, index: int) -> None:
        """Close and delete a replica that was moved to other brokers, also one that could not be opened."""
        partition = TopicIdPartition(topic.topic_id, topic.name, index)
        if self._replicas.failed.forget(partition):
            self._delete_log(topic, partition)
        replica = topic.partitions.pop(index, None)
        if replica is not None:
            replica.go_offline("the replica moved to another broker", ErrorCode.NOT_LEADER_OR_FOLLOWER)
            self._replicas.progressed((replica,))
            if replica.tiered_log is not None:
                self._opener.tiers.give_up(replica.tiered_log)
            self._delete_log(topic, replica.partition)

    def apply_leadership(self, replica: Replica, state: PartitionState) -> None:
        """Give one replica the state that the committed metadata has for it, once its log has stopped moving."""
        if replica.is_paused:
            replica.state_after_pause = state
            return
        high_watermark = replica.high_watermark
        try:
            has_new_leader = replica.become(state)
            if has_new_leader or replica.high_watermark != high_watermark:  # who held it back may be out of sync now
                self._replicas.changed.note((replica,))
                self._replicas.progressed((replica,))
            if has_new_leader:
                if replica.delays is not None:
                    self._opener.delays.on_opened(replica)
                self._on_leader_changed(replica.partition, replica.leader_id, replica.leader_epoch)
        except Exception as error:
            self._replicas.fail(replica, error)

    def reconfigure_topic_in_steps(self, name: str, plan: TopicPlan) -> Generator[None, None, None]:
        """Give a topic's replicas new settings, one a step; storage and election of a topic never change."""
        topic = self._replicas.topics.get(name)
        if topic is None:
            return
        topic.plan = plan
        topic.is_plain = False  # until it is known that no replica has got a stage
        for index, replica in list(topic.partitions.items()):
            yield
            if topic.partitions.get(index) is not replica:
                continue  # replaced meanwhile by one that was opened with the new settings
            if not self._configure(replica, plan):
                continue
            self._replicas.changed.note((replica,))
            if replica.state is not None:
                self.apply_leadership(replica, replica.state)
        topic.is_plain = not topic.is_internal and not any(replica.stages for replica in topic.partitions.values())

    def _configure(self, replica: Replica, plan: TopicPlan) -> bool:
        """Give a replica settings that came after it was opened; return False where it has failed."""
        try:
            replica.settings = plan.settings
            if not replica.is_paused:
                self._opener.tiers.fit(replica, plan.tier)
            replica.log.reconfigure(plan.log_config)
            if plan.delay is not None:
                self._opener.delays.begin(replica, plan.delay)
            replica.stages = self._opener.make_stages(replica.partition, plan)
        except Exception as error:
            self._replicas.fail(replica, error)
            return False
        return True

    def expire_producers_in_steps(self, producer_id_expiration_ms: int) -> Generator[None, None, None]:
        """Take a new `producer.id.expiration.ms` for all replicas."""
        self._opener.producer_id_expiration_ms = producer_id_expiration_ms
        for replica in list(self._replicas):
            replica.producers.expire_after(producer_id_expiration_ms)
            yield

    def delete_topic_in_steps(self, name: str, partitions_count: int) -> Generator[None, None, None]:
        """Close and delete this broker's replicas of a topic; waiting requests are answered with an error.

        After the first step none of them is found or serves any more; the others end waits and delete logs.

        Args:
            name: The topic.
            partitions_count: How many it had: logs that could not be opened are deleted too.
        """
        topic = self._replicas.topics.pop(name, None)
        if topic is None:
            return
        self._replicas.topics_by_id.pop(topic.topic_id, None)
        for replica in topic.partitions.values():
            replica.go_offline("the topic was deleted", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        self._replicas.failed.forget_topic(topic.topic_id)
        for replica in list(topic.partitions.values()):
            self._replicas.progressed((replica,))
            yield
        for index in range(partitions_count):
            yield
            partition = TopicIdPartition(topic.topic_id, name, index)
            topic.partitions.pop(index, None)  # one by one: thousands that go together take their time as well
            if topic.plan.tier is not None:
                self._opener.tiers.delete(partition)
            self._delete_log(topic, partition)

    def _delete_log(self, topic: TopicReplicas, partition: TopicIdPartition) -> None:
        engine = self._replicas.engines.get(topic.plan.storage)
        if engine is None:
            return
        try:
            engine.delete_log(partition)
        except StorageError as error:
            log.error("deleting %s: %s", partition, error)

    # ----------------------------------------------------------------------------------------------------------- again

    async def retry_failed_logs(self) -> None:
        """Try once more to open what could not be opened: a disk may have room again, a file may be readable."""
        failed_logs = self._replicas.failed
        for partition in failed_logs:
            topic = self._replicas.topics_by_id.get(partition.topic_id)
            if topic is not None and failed_logs.state(partition) is not None:
                await self._retry(topic, partition)
        await self.full_disks.retry(self._serve_again)

    async def _retry(self, topic: TopicReplicas, partition: TopicIdPartition) -> None:
        plan, failed_logs = topic.plan, self._replicas.failed
        replica: Replica | None = None
        failure: Exception | None = None
        with failed_logs.opening(partition):
            try:
                replica = await self._opener.open_beside(
                    partition, plan, lambda: failed_logs.state(partition) is not None
                )
            except Exception as error:
                failure = error
        state = failed_logs.state(partition)
        if state is None:  # deleted meanwhile, or another broker's
            if replica is not None:
                discard(replica)
        elif replica is None:
            assert failure is not None, "it was wanted all the time"
            failed_logs.note(partition, state, failure)
        else:
            self._put(topic, replica)
            self.apply_leadership(replica, state)
            if topic.plan is not plan:
                await run_in_slices(self.reconfigure_topic_in_steps(topic.name, topic.plan))

    def _serve_again(self, reopened: Reopened) -> None:
        topic, old, fresh = reopened
        self._configure(fresh, topic.plan)  # which may have changed while it waited
        self._put(topic, fresh)
        if fresh.voting is not None:
            fresh.voting.note(fresh)  # while it waited for room it was not served, and nobody looked at its election
        self._replicas.progressed((old, fresh))
        self._on_leader_changed(fresh.partition, fresh.leader_id, fresh.leader_epoch)

    def resume(self, topic: TopicReplicas, replica: Replica, tier: TierSettings | None, reason: str) -> bool:
        """Serve a replica again that was paused and whose log was closed: the log is opened where it is now.

        Args:
            topic: Whose it was when it was paused.
            replica: Which.
            tier: What its log was wrapped with, before its settings changed perhaps.
            reason: Why it was paused.

        Returns:
            False when it was deleted or has failed meanwhile, or cannot be served.
        """
        partition = replica.partition
        state, replica.state_after_pause, replica.is_paused = replica.state_after_pause, None, False
        is_served = topic.partitions.get(partition.partition) is replica
        if not is_served or self._replicas.topics.get(partition.topic) is not topic:
            return False
        if replica.offline_reason != reason:
            self._after_pause(replica, state)
            return False
        try:
            opened = self._replicas.engines[topic.plan.storage].open_log(partition, topic.plan.log_config)
            replica.resume(opened, self._opener.tiers.wrap(opened, tier))
            self._opener.tiers.fit(replica, topic.plan.tier)
        except StorageError as error:
            self._replicas.fail(replica, error)
            return False
        self._after_pause(replica, state)
        return True

    def end_pause(self, replica: Replica, reason: str, error: Exception | None) -> None:
        """Serve a replica again that was paused and has kept its log, unless it was deleted or failed meanwhile.

        Args:
            replica: Which.
            reason: Why it was paused.
            error: What has gone wrong in the pause: it stays offline.
        """
        partition = replica.partition
        state, replica.state_after_pause, replica.is_paused = replica.state_after_pause, None, False
        topic = self._replicas.topics.get(partition.topic)
        if topic is None or topic.partitions.get(partition.partition) is not replica:
            return
        if replica.offline_reason == reason and error is not None:
            self._replicas.fail(replica, error)
        elif replica.offline_reason == reason:
            replica.end_pause()
            try:
                self._opener.tiers.fit(replica, topic.plan.tier)  # its settings may have changed
            except Exception as failure:  # its partition pays, nobody else
                self._replicas.fail(replica, failure)
        self._after_pause(replica, state)

    def _after_pause(self, replica: Replica, state: PartitionState | None) -> None:
        self._replicas.changed.note((replica,))
        if state is not None:
            self.apply_leadership(replica, state)
        self._replicas.progressed((replica,))

    # ------------------------------------------------------------------------------------------------------------- end

    def close(self) -> None:
        """Keep the producers' state, close every log and mark the shutdown as clean.

        Only where the engine was started: what it could not take belongs to another broker.
        """
        marks = self._replicas.high_watermarks()
        for replica in (*self._replicas, *self.full_disks.opened()):
            if replica.offline_reason is not None:
                have_producers_read(replica.log)  # it may not be offline itself, and is closed with the others
                continue
            try:
                replica.keep_producers()
            except StorageError as error:
                log.error("partition %s: its producers' state is not kept: %s", replica.partition, error)
            except Exception:  # a delay queue's bug: the next start reads the log, and all logs are closed
                log.exception("partition %s: what waits in it is not kept", replica.partition)
        if self._opener.voting is not None:
            self._opener.voting.end()
        for name in self._started:
            try:
                self._replicas.engines[name].close(marks[name])
            except StorageError as error:
                log.error("storage %s: %s", name, error)
