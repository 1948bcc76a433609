"""Shell: the parts of one broker, made from its options and tied together; `broker.py` runs them."""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, Any

from ..cleanup.compactor import Compactor, CompactorSettings
from ..cleanup.log_states import Policies
from ..cleanup.retention import Retention, RetentionSettings
from ..cleanup.workers import start_worker
from ..contracts.storage import StorageContext, StorageEngine
from ..controller.directory_changes import directory_of
from ..controller.rules import ControllerRules
from ..coordinator.runtimes import CoordinatorRuntimes
from ..dispatch.controller_call import MetadataLogCall
from ..dispatch.fetch_session import FetchSessionCache
from ..dispatch.handlers.api_00_produce import ProduceHandler
from ..dispatch.handlers.api_22_init_producer_id import ProducerIdSource
from ..dispatch.produce_admission import AdmissionSettings, ProduceAdmission
from ..dispatch.request_operation import RequestOperation
from ..dispatch.router import Router
from ..errors import OdradekError, StorageError
from ..machine.long_work import LongWork
from ..machine.throttle import Throttle
from ..metadata.cluster_view import metadata_change
from ..metadata.config_warnings import ConfigWarnings
from ..metadata.image import MetadataImage
from ..metadata.topic_maker import TopicMaker
from ..partitions.directory_reports import DirectoryReports
from ..partitions.flush_service import FlushService
from ..partitions.log_moves import LogMoves
from ..partitions.marker_writer import LocalMarkerWriter
from ..partitions.replica_lifecycle import ReplicaLifecycle
from ..partitions.replica_opener import ReplicaOpener
from ..partitions.replicas import Replicas
from ..partitions.staged_writes import StagedWrites
from ..partitions.tiers import Tiers
from ..partitions.upkeep import Upkeep, UpkeepSettings
from ..plugin_system.manager import choose_offer, failed
from ..plugin_system.missing_roles import keeps_nothing, missing_roles, told
from ..plugin_system.offers import check_made
from ..purgatory import clockwork
from ..purgatory.purgatory import Purgatory
from ..purgatory.timing_wheel import TimingWheel
from ..types import METADATA_TOPIC, ZERO_ID, TopicIdPartition
from ..wire.messages.api_19_create_topics import CreatableTopic
from .handlers import kernel_handlers
from .metadata_follower import MetadataFollower
from .metadata_opening import load_metadata_log

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping
    from uuid import UUID

    from ..config.broker import BrokerConfig
    from ..contracts.storage import StorageFactory
    from ..contracts.transactions import Transactions
    from ..controller.metadata_log import MetadataLog
    from ..metadata.image import MetadataDelta
    from ..network.connection import Connection
    from ..partitions.replica import Replica
    from ..purgatory.delayed_operation import DelayedOperation
    from ..wire.messages.api_19_create_topics import CreateTopicsRequest, CreateTopicsResponse
    from .broker import Broker

log = logging.getLogger(__name__)


class BrokerParts:
    """Everything that one broker consists of, but for its sockets.

    Life: made, `start_storage`, `open_topics`, then the services; `close` at the end. Owned by the broker.
    """

    def __init__(self, broker: Broker) -> None:
        """Build all parts from the broker's options; opens nothing.

        Raises:
            PluginError: What the configuration chooses is not offered, or something is offered twice.
        """
        options, clock, threads = broker.options, broker.clock, broker.machine.threads
        self.broker = broker
        self.config = options.config
        self.want_turn: Callable[[], None] = lambda: None
        self.plugins = options.plugins
        self.wheel = TimingWheel(now_ms=clock.monotonic_ms())
        self.produce_purgatory = Purgatory("Produce", self.wheel, on_error=report_operation_error)
        self.fetch_purgatory = Purgatory("Fetch", self.wheel, on_error=report_operation_error)
        self.elections = options.elections
        self.stages = options.plugins.append_stages()
        self.tier = options.plugins.tier(broker) if self.config.get_bool("remote.log.storage.system.enable") else None
        self.replicas = Replicas(self._make_engines(), on_progress=self._replicas_progressed)
        self.lifecycle = self._make_lifecycle()
        self.writes = StagedWrites(self.replicas, on_staged=self._staged, on_flush_wanted=lambda: self.flushes.wake())
        self.follower = self._make_follower()
        self.flushes, self.long_work = FlushService(self.writes, threads), LongWork(threads)
        self.upkeep = self._make_upkeep()
        self.retention, self.compactor = self._make_cleanup()
        self.follower.config_listeners.append(lambda _config: self.compactor.settings_altered())
        self.directory_reports = DirectoryReports(
            replicas=self.replicas, known_directory=self._known_directory, assign=self._assign_directories
        )
        self.log_moves = LogMoves(
            self.replicas,
            self.lifecycle,
            self.writes,
            on_moved=self.directory_reports.wake,
            new_throttle=self._new_throttle,
            threads=threads,
        )
        self.sessions = FetchSessionCache(
            slots=self.config.get_int("max.incremental.fetch.session.cache.slots"), random_source=broker.random
        )
        self.rules = ControllerRules(
            node_id=self.config.node_id,
            config=self.config,
            elections=self.elections,
            ids=broker.ids,
            random=broker.random,
            internal_topics=self.replicas.internal_topics,
            has_storage=bool(self.replicas.engines),
        )
        self._metadata: MetadataLog | None = None
        self.producer_ids = ProducerIdSource(
            broker_id=self.config.node_id, submit=MetadataLogCall(lambda: self.metadata).submit
        )
        self.coordinators = self._make_coordinators()
        self.transactions: Transactions | None = self.coordinators.transactions()
        self.marker_writer = LocalMarkerWriter(
            replicas=self.replicas,
            writes=self.writes,
            purgatory=self.produce_purgatory,
            clock=clock,
            timeout_ms=lambda: self.live_config.get_int("request.timeout.ms"),
            owner_of=self.coordinators.owner_of,
        )
        self.topic_maker = TopicMaker(self.create_topics, self._topic_to_make)
        self.produce = self._make_produce()
        self.router = Router(
            timer=broker.machine.timer,
            turn_enders=(self.coordinators.turn_ended, self.writes.write_staged, self.produce.turn_ended),
            on_connection_closed=self._connection_closed,
        )
        self._add_handlers()

    # ------------------------------------------------------------------------------------------------------- building

    def _make_engines(self) -> dict[str, StorageEngine]:
        broker, config = self.broker, self.config
        factories = broker.options.storages
        if keeps_nothing(config, factories.keys()):
            return {}
        choose_offer(factories, config.storage, "storage", "odradek.storage")
        choose_offer(self.elections, config.get_text("odradek.election"), "election", "odradek.election")
        return {name: self._make_engine(name, factory) for name, factory in factories.items()}

    def _make_engine(self, name: str, factory: StorageFactory) -> StorageEngine:
        broker, config = self.broker, self.config
        plugin = self.plugins.owners.get(("storage", name), "")
        context = StorageContext(
            log_dirs=config.log_dirs,
            node_id=config.node_id,
            cluster_id=config.get_text("odradek.cluster.id"),
            settings=broker.settings(plugin),
            now_ms=broker.clock.now_ms,
            monotonic_ms=broker.clock.monotonic_ms,
            random=broker.random,
            new_id=broker.ids.new_id,
            files=broker.files,
            reserved_dirs=config.reserved_dirs,
        )
        try:
            engine = factory(context)
        except OdradekError:
            raise
        except Exception as error:
            raise failed(plugin, f"the engine of storage {name!r} cannot be made", error) from error
        check_made(engine, StorageEngine, f"the engine of storage {name!r}", factory)
        return engine

    def _make_lifecycle(self) -> ReplicaLifecycle:
        opener = ReplicaOpener(
            broker_id=self.config.node_id,
            engines=self.replicas.engines,
            elections=self.elections,
            config=lambda: self.live_config,
            stages=self.stages,
            tiers=Tiers(self.tier),
            clock=self.broker.clock,
            random=self.broker.random,
            producer_id_expiration_ms=self.config.get_int("producer.id.expiration.ms"),
            known_directory=self._known_directory,
        )
        return ReplicaLifecycle(self.replicas, opener, on_leader_changed=self._leader_changed)

    def _make_follower(self) -> MetadataFollower:
        return MetadataFollower(
            self.config,
            lifecycle=self.lifecycle,
            internal_topics=self.replicas.internal_topics,
            stages=self.stages,
            image=self.image,
            clock=self.broker.clock,
            on_opened=lambda: self.directory_reports.wake(),
        )

    def _make_upkeep(self) -> Upkeep:
        return Upkeep(
            replicas=self.replicas,
            lifecycle=self.lifecycle,
            writes=self.writes,
            flushes=self.flushes,
            clock=self.broker.clock,
            threads=self.broker.machine.threads,
            settings=upkeep_settings(self.config),
        )

    def _new_throttle(self) -> Throttle:
        machine = self.broker.machine
        return Throttle(
            lambda: self.live_config.get_int("replica.alter.log.dirs.io.max.bytes.per.second"),
            lambda: machine.clock.monotonic_ms() / 1000,
            machine.threads.new_event(),
        )

    def _make_cleanup(self) -> tuple[Retention, Compactor]:
        policies = Policies(self.config.registry.cleanup_policies)
        retention = Retention(
            replicas=self.replicas,
            full_disks=self.lifecycle.full_disks,
            policies=policies,
            clock=self.broker.clock,
            threads=self.broker.machine.threads,
            settings=lambda: retention_settings(self.live_config),
        )
        compactor = Compactor(
            replicas=self.replicas,
            policies=policies,
            clock=self.broker.clock,
            threads=self.broker.machine.threads,
            settings=lambda: CompactorSettings.of(self.live_config),
            start_worker=partial(start_worker, machine=self.broker.machine),
        )
        return retention, compactor

    def _make_coordinators(self) -> CoordinatorRuntimes:
        return CoordinatorRuntimes(
            self.plugins.coordinators(self.broker),
            replicas=self.replicas,
            writes=self.writes,
            clock=self.broker.clock,
            wheel=self.wheel,
            config=lambda: self.live_config,
            topic_partitions=self._topic_partitions,
            want_turn=self._staged,
            threads=self.broker.machine.threads,
        )

    def _make_produce(self) -> ProduceHandler:
        return ProduceHandler(
            replicas=self.replicas,
            writes=self.writes,
            purgatory=self.produce_purgatory,
            clock=self.broker.clock,
            admission=ProduceAdmission(
                transactions=lambda: self.transactions,
                settings=lambda: admission_settings(self.live_config),
                purgatory=self.produce_purgatory,
                clock=self.broker.clock,
            ),
            begin_long_work=self.long_work.begin,
        )

    def _add_handlers(self) -> None:
        for handler in kernel_handlers(self):
            self.router.add(handler)
        for plugin, coordinated in self.coordinators.handlers():
            self.router.add(coordinated, plugin)
        for plugin, offered in self.plugins.api_handlers(self.broker):
            self.router.add(offered, plugin)

    # ------------------------------------------------------------------------------------------------- between parts

    def _known_directory(self, topic_id: UUID, partition: int) -> UUID:
        return directory_of(self.image(), topic_id, partition, self.config.node_id)

    @property
    def metadata(self) -> MetadataLog:
        """The metadata log, once `start_storage` has read it."""
        assert self._metadata is not None, "the metadata log is asked for before it was read"
        return self._metadata

    @property
    def live_config(self) -> BrokerConfig:
        """The configuration with what was set while the broker ran."""
        return self.follower.live_config

    def image(self) -> MetadataImage:
        """Return the current metadata, empty before it was read."""
        return self._metadata.image if self._metadata is not None else MetadataImage()

    def _replicas_progressed(self, replicas: Collection[Replica]) -> None:
        # Hot: each turn comes by.
        if self.produce_purgatory.watchers:
            self.produce_purgatory.check(replicas)
        if self.fetch_purgatory.watchers:
            self.fetch_purgatory.check(replicas)
        for replica in replicas:
            try:
                self.coordinators.progressed(replica)
            except Exception as error:  # a plugin's: its partition pays, nobody else
                if replica.offline_reason is None:
                    self.replicas.fail(replica, error)
                else:  # told that its replica is offline
                    log.exception("the coordinator of %s failed", replica.partition)

    def _leader_changed(self, partition: TopicIdPartition, leader_id: int, leader_epoch: int) -> None:
        self.coordinators.leader_changed(partition)
        self.plugins.leader_changed(self.broker, partition, leader_id, leader_epoch)

    def _staged(self) -> None:
        self.want_turn()

    def _connection_closed(self, connection: Connection) -> None:
        self.produce_purgatory.cancel_for(connection)
        self.fetch_purgatory.cancel_for(connection)

    def _topic_partitions(self, name: str) -> int | None:
        topic = self.image().topics_by_name.get(name)
        return len(topic.partitions) if topic is not None else None

    def _topic_to_make(self, name: str) -> CreatableTopic:
        """Return how a topic is created that somebody asked for: as its coordinator wants it, else with defaults."""
        internal = self.coordinators.topic_to_create(name, len(self.image().live_brokers()))
        return internal or CreatableTopic(name=name, num_partitions=-1, replication_factor=-1)

    async def create_topics(self, request: CreateTopicsRequest) -> CreateTopicsResponse:
        """Have the controller create topics; what CreateTopics answers."""
        return await self.metadata.submit(lambda controller, _now_ms: controller.create_topics(request))

    # ------------------------------------------------------------------------------------------------------- metadata

    def open_topics(self) -> None:
        """Open this broker's replicas of every topic there is, and follow the metadata from now on."""
        image = self.image()
        if not self.broker.options.keeps_strays:
            self.lifecycle.set_strays_aside(lambda partition: is_known(image, partition))
        self.follower.open_topics()
        # Not before: a change would be followed with the configuration of the start.
        self.metadata.add_listener(self.follower.changed)
        self.metadata.add_listener(self._tell_coordinators)
        self.log_moves.go_on()

    async def _assign_directories(self, directories: Mapping[tuple[UUID, int], UUID]) -> None:
        node_id = self.config.node_id
        await self.metadata.submit(lambda controller, _now_ms: controller.assign_directories(node_id, directories))

    def _tell_coordinators(self, delta: MetadataDelta, image: MetadataImage) -> None:
        self.coordinators.metadata_changed(metadata_change(delta, image))

    def config_warnings(self) -> ConfigWarnings:
        """Return who tells of configs without effect, beginning with what is set from now on."""
        return ConfigWarnings(
            self.config.registry, self.image(), is_internal=lambda topic: self.coordinators.owner_of(topic) is not None
        )

    # ----------------------------------------------------------------------------------------------------------- life

    def start_storage(self) -> None:
        """Take the log directories, find the logs in them, and load the metadata.

        Raises:
            StorageError: No directory can be used, or there are logs and no metadata log; nothing was changed.
            CorruptionError: The metadata log is damaged; nothing was changed.
            ConfigError: The data is another cluster's.
        """
        self.lifecycle.start()
        if not self.lifecycle.has_found_metadata(self.config.storage):
            self._check_nothing_is_lost("no metadata log")
        metadata = load_metadata_log(
            config=self.config,
            live_config=lambda: self.live_config,
            engines=self.replicas.engines,
            elections=self.elections,
            rules=self.rules,
            machine=self.broker.machine,
        )
        if not metadata.image.cluster_id:
            self._check_nothing_is_lost("an empty metadata log")
        self._metadata = metadata

    def _check_nothing_is_lost(self, found: str) -> None:
        """Refuse to begin anew beside logs: to empty metadata they would all be strays, and their topics gone."""
        logs = self.lifecycle.found_logs()
        if logs and not self.broker.options.keeps_strays:
            names = ", ".join(map(str, logs[:3]))
            raise StorageError(
                f"there are logs ({names}{', ...' if len(logs) > 3 else ''}) and {found} in storage "
                f"{self.config.storage!r}, and nothing was changed: is a disk of log.dirs not mounted, or a directory "
                "left out? Where the metadata is lost, take the logs in by `odradek topics adopt`"
            )

    def log_dir_ids(self) -> list[UUID]:
        """Return the ids of the working log directories."""
        return [
            info.directory_id
            for engine in self.replicas.engines.values()
            for info in engine.log_dirs()
            if not info.error
        ]

    def services(self) -> Iterator[tuple[str, Callable[..., Awaitable[None]]]]:
        """Iterate over the services that run while the broker serves, with their names."""
        yield "clockwork", self._run_clockwork
        yield "flushes", self.flushes.run
        yield "moves of logs", self.log_moves.run
        yield "upkeep", self.upkeep.run
        yield "retention", self.retention.run
        yield "compaction", self.compactor.run
        yield "router", self.router.run
        yield "long work", self.long_work.run
        yield "topic maker", self.topic_maker.run
        yield "topic opener", self.follower.opener.run
        yield "directory reports", self.directory_reports.run
        if self.coordinators.by_topic:
            yield "coordinator loading", self.coordinators.loader.run

    async def _run_clockwork(self, **options: Any) -> None:
        await clockwork.run(self.wheel, self.broker.clock, **options)

    def end_waits(self) -> None:
        """Answer requests that wait for other requests: the broker stops, there will be none."""
        self.fetch_purgatory.expire_all()
        self.coordinators.release_parked()

    def tell_missing_roles(self) -> None:
        """Say, a line each, what no active plugin does: a broker comes up all the same."""
        for role in missing_roles(
            storages=self.replicas.engines.keys(),
            elections=self.elections.keys(),
            cleanup_policies=self.config.registry.cleanup_policies.keys(),
            key_types=self.coordinators.by_key_type.keys(),
        ):
            log.warning("%s", told(role))

    def close(self) -> None:
        """Keep everything and close all logs, as cleanly shut down."""
        self.coordinators.close()
        self.lifecycle.close()


def report_operation_error(operation: DelayedOperation, error: Exception) -> None:
    """Log that a waiting request failed. One that cannot be ended costs its connection; others wait for their time."""
    log.error("%r failed: %s", operation, error, exc_info=error)
    if operation.outcome is not None and isinstance(operation, RequestOperation):
        operation.fail("internal failure")


def is_known(image: MetadataImage, partition: TopicIdPartition) -> bool:
    """Return whether a log on disk belongs to the metadata log or to a partition of an image."""
    if partition.topic == METADATA_TOPIC:
        return True
    topic = image.topics_by_name.get(partition.topic)
    return (
        topic is not None
        and partition.topic_id in (topic.topic_id, ZERO_ID)
        and partition.partition < len(topic.partitions)
    )


def admission_settings(config: BrokerConfig) -> AdmissionSettings:
    """Return how transactional batches are admitted."""
    return AdmissionSettings(
        verifies=config.get_bool("transaction.partition.verification.enable"),
        retry_pause_ms=config.get_int("add.partitions.to.txn.retry.backoff.ms"),
        retry_ms_max=min(
            config.get_int("add.partitions.to.txn.retry.backoff.max.ms"), config.get_int("request.timeout.ms")
        ),
    )


def retention_settings(config: BrokerConfig) -> RetentionSettings:
    """Pick what Retention needs: who has logs looked at often wants it from the start, unless they say otherwise."""
    delay = "log.initial.task.delay.ms"
    return RetentionSettings(
        check_interval_ms=config.get_int("log.retention.check.interval.ms"),
        initial_delay_ms=config.get_int(delay) if config.is_set(delay) else None,
    )


def upkeep_settings(config: BrokerConfig) -> UpkeepSettings:
    """Return how often the upkeep works."""
    return UpkeepSettings(
        checkpoint_interval_ms=config.get_int("replica.high.watermark.checkpoint.interval.ms"),
        snapshot_interval_ms=config.get_int("log.flush.offset.checkpoint.interval.ms"),
        producer_expiration_interval_ms=config.get_int("producer.id.expiration.check.interval.ms"),
        flush_check_interval_ms=config.get_int("log.flush.scheduler.interval.ms"),
    )
