"""Shell: the logs of one broker: storage engines, replicas over them, and what keeps them in order beside requests."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from ..cleanup.compactor import Compactor, CompactorSettings
from ..cleanup.log_states import Policies
from ..cleanup.retention import Retention, RetentionSettings
from ..cleanup.workers import start_worker
from ..contracts.storage import StorageEngine
from ..contracts.storage_context import StorageContext
from ..controller.directory_changes import directory_of
from ..controller.rules import ELECTION_KEYS, check_election
from ..errors import OdradekError
from ..machine.threads import Workers
from ..machine.throttle import Throttle
from ..partitions.byte_rate import ByteRate
from ..partitions.dead_letters import DeadLetters
from ..partitions.delay_delivery import DelayDelivery
from ..partitions.delays import Delays, Retries
from ..partitions.directory_reports import DirectoryReports
from ..partitions.flush_service import FlushService
from ..partitions.log_moves import LogMoves
from ..partitions.replica_lifecycle import ReplicaLifecycle
from ..partitions.replica_opener import ReplicaOpener
from ..partitions.replicas import Replicas
from ..partitions.staged_writes import StagedWrites
from ..partitions.tiers import Tiers
from ..partitions.upkeep import Upkeep, UpkeepSettings
from ..plugin_system.manager import choose_offer, failed
from ..plugin_system.missing_roles import keeps_nothing
from ..plugin_system.offers import check_made

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator
    from uuid import UUID

    from ..contracts.storage_context import StorageFactory
    from ..machine.machine import Machine
    from ..metadata.published_image import PublishedImage
    from ..partitions.replica import Replica
    from .metadata_parts import CallsOfThisBroker
    from .options import BrokerOptions
    from .plugin_view import PluginView
    from .replica_events import ReplicaEvents


class LogParts:
    """Life: made, `lifecycle.start`, then the services; `close` at the end. Owned by the broker.

    Attributes:
        replicas: All replicas of this broker, to be found.
        lifecycle: Opens, configures, closes them.
        writes: Writes what requests stage.
        tier: Of tiered topics, None where tiered storage is off.
        delivery: Has delayed records appended when they are due.
        dead_letters: Takes dead letters out of retry topics.
        flushes: Flushes their logs.
        upkeep: Rolls, checkpoints, snapshots, expiry of producers.
        retention: Has what cleanup policies give up deleted.
        compactor: Has what they want rewritten.
        directory_reports: Tells the controller in which directories logs lie.
        log_moves: Moves logs from one directory to another.
        moved_rate: How fast it copies them.
        stages: Names of the append stages that plugins offer, in order, with their factories.
    """

    def __init__(
        self,
        options: BrokerOptions,
        machine: Machine,
        published: PublishedImage,
        view: PluginView,
        events: ReplicaEvents,
        calls: CallsOfThisBroker,
    ) -> None:
        """Make all of them; opens nothing.

        Args:
            options: What the operator chose.
            machine: Clocks, chance, ids, files.
            published: The newest metadata and configuration.
            view: The broker as plugins see it.
            events: Whom replicas tell.
            calls: Asks the controller to note where replicas of this broker lie; knows its epoch.

        Raises:
            PluginError: What the configuration chooses is not offered, or something is offered twice.
        """
        self._options, self._machine, self._published, self._view = options, machine, published, view
        config, clock, threads = options.config, machine.clock, machine.threads
        self._calls = calls
        self.stages = options.plugins.append_stages()
        self.tier = options.plugins.tier(view) if config.get_bool("remote.log.storage.system.enable") else None
        self.replicas = Replicas(self._make_engines(), on_progress=events.progressed)
        self.writes = StagedWrites(self.replicas, on_staged=events.staged, on_flush_wanted=lambda: self.flushes.wake())
        self.delivery = DelayDelivery(replicas=self.replicas, writes=self.writes, clock=clock)
        self.dead_letters = DeadLetters(config.node_id, self.replicas, self.writes, clock, published.leader_of)
        self.lifecycle = self._make_lifecycle(events)
        self.flushes = FlushService(self.writes, threads)
        self.upkeep = Upkeep(
            replicas=self.replicas,
            lifecycle=self.lifecycle,
            writes=self.writes,
            flushes=self.flushes,
            clock=clock,
            threads=threads,
            settings=UpkeepSettings.of(config),
        )
        policies = Policies(config.registry.cleanup_policies)
        self.retention = Retention(
            replicas=self.replicas,
            full_disks=self.lifecycle.full_disks,
            policies=policies,
            clock=clock,
            threads=threads,
            settings=lambda: RetentionSettings.of(published.config),
            carry=self.delivery.carrying.ask,
        )
        self.compactor = Compactor(
            replicas=self.replicas,
            policies=policies,
            clock=clock,
            threads=threads,
            settings=lambda: CompactorSettings.of(published.config),
            start_worker=partial(start_worker, machine=machine),
            after_pass=self.retention.after_pass,
        )
        self.directory_reports = DirectoryReports(
            replicas=self.replicas,
            known_directory=self._known_directory,
            assign=calls.assign_directories,
            cordoned_paths=published.cordoned_log_dirs,
        )
        self.replicas.on_room_changed = self.directory_reports.wake
        self.moved_rate = ByteRate.of(config, "alter.log.dirs.replication.quota", clock)
        self.log_moves = self._make_moves()

    def _make_moves(self) -> LogMoves:
        logs = (self.replicas, self.lifecycle, self.writes)
        on_moved, threads = self.directory_reports.wake, self._machine.threads
        return LogMoves(*logs, on_moved=on_moved, new_throttle=self._new_throttle, threads=threads)

    def _new_throttle(self) -> Throttle:
        clock, threads = self._machine.clock, self._machine.threads
        return Throttle(
            lambda: self._published.config.get_int("replica.alter.log.dirs.io.max.bytes.per.second"),
            lambda: clock.monotonic_ms() / 1000,
            threads.new_event(),
            self.moved_rate.note,
        )

    def _make_lifecycle(self, events: ReplicaEvents) -> ReplicaLifecycle:
        options, machine, config = self._options, self._machine, self._options.config
        delivery = self.delivery
        told_of_delays = (delivery.note_due, self._watch, delivery.beginnings.ask, delivery.note_unreadable)
        opener = ReplicaOpener(
            broker_id=config.node_id,
            engines=self.replicas.engines,
            elections=options.elections,
            config=lambda: self._published.config,
            stages=self.stages,
            tiers=Tiers(self.tier),
            clock=machine.clock,
            random=machine.random,
            producer_id_expiration_ms=config.get_int("producer.id.expiration.ms"),
            known_directory=self._known_directory,
            broker=self._published.broker,
            workers=Workers(machine.threads, 1),
            ask_isr=events.ask_isr,
            delays=Delays(options.delay_queues, machine.clock.now_ms, *told_of_delays),
            retries=Retries(options.retry_policies, machine.clock.now_ms, machine.random, self.dead_letters.breakers),
        )
        return ReplicaLifecycle(self.replicas, opener, on_leader_changed=events.leader_changed)

    def _watch(self, replica: Replica) -> None:
        self.delivery.watch(replica)
        self.dead_letters.watch(replica)

    def _make_engines(self) -> dict[str, StorageEngine]:
        options, config = self._options, self._options.config
        if keeps_nothing(config, options.storages.keys()):
            return {}
        choose_offer(options.storages, config.storage, "storage", "odradek.storage")
        for key in ELECTION_KEYS:
            if (chosen := config.value(key)) is not None:
                check_election(config, key, choose_offer(options.elections, str(chosen), "election", key))
        return {name: self._make_engine(name, factory) for name, factory in options.storages.items()}

    def _make_engine(self, name: str, factory: StorageFactory) -> StorageEngine:
        machine, config = self._machine, self._options.config
        plugin = self._options.plugins.owners.get(("storage", name), "")
        context = StorageContext(
            log_dirs=config.log_dirs,
            node_id=config.node_id,
            cluster_id=config.get_text("odradek.cluster.id"),
            settings=self._view.settings(plugin),
            now_ms=machine.clock.now_ms,
            monotonic_ms=machine.clock.monotonic_ms,
            random=machine.random,
            new_id=machine.ids.new_id,
            files=machine.files,
            threads=machine.threads,
            reserved_dirs=config.reserved_dirs,
            broker_epoch=lambda: self._calls.broker_epoch,
            is_cordoned=self._published.is_cordoned,
        )
        try:
            engine = factory(context)
        except OdradekError:
            raise
        except Exception as error:
            raise failed(plugin, f"the engine of storage {name!r} cannot be made", error) from error
        check_made(engine, StorageEngine, f"the engine of storage {name!r}", factory)
        return engine

    def _known_directory(self, topic_id: UUID, partition: int) -> UUID:
        return directory_of(self._published.image, topic_id, partition, self._options.config.node_id)

    def log_dir_ids(self) -> list[UUID]:
        """Return the ids of the working log directories."""
        return [
            info.directory_id
            for engine in self.replicas.engines.values()
            for info in engine.log_dirs()
            if not info.error
        ]

    def previous_broker_epoch(self) -> int:
        """Return the broker epoch with which all logs were cleanly closed, -1 when they were not."""
        told = [getattr(engine, "previous_broker_epoch", None) for engine in self.replicas.engines.values()]
        epochs = {epoch for epoch in told if epoch is not None}
        return epochs.pop() if len(epochs) == 1 else -1

    def services(self) -> Iterator[tuple[str, Callable[..., Awaitable[None]]]]:
        """Iterate over what runs while the broker serves, with names."""
        yield "flushes", self.flushes.run
        yield "moves of logs", self.log_moves.run
        yield "upkeep", self.upkeep.run
        yield "delivery of delayed records", self.delivery.run
        yield "dead letters", self.dead_letters.run
        yield "retention", self.retention.run
        yield "compaction", self.compactor.run
        yield "directory reports", self.directory_reports.run

    def close(self) -> None:
        """Keep everything and close all logs, as cleanly shut down."""
        self.lifecycle.close()
