"""Shell: what answers requests: the router with its handlers, coordinators, and requests that wait."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from ..coordinator.runtimes import CoordinatorRuntimes
from ..dispatch.current_leaders import CurrentLeaders
from ..dispatch.fetch_session import FetchSessionCache
from ..dispatch.handlers.api_00_produce import ProduceHandler
from ..dispatch.long_work import LongWork
from ..dispatch.produce_admission import AdmissionSettings, ProduceAdmission
from ..dispatch.producer_ids import ProducerIdSource
from ..dispatch.request_operation import RequestOperation
from ..dispatch.router import Router
from ..metadata.topic_maker import TopicMaker, topics_for
from ..partitions.marker_writer import LocalMarkerWriter
from ..purgatory import clockwork
from ..purgatory.purgatory import Purgatory
from ..purgatory.timing_wheel import TimingWheel

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from ..cluster.coordination import Coordination
    from ..contracts.transactions import MarkerWriter, Transactions
    from ..machine.clock import Clock
    from ..machine.machine import Machine
    from ..network.connection import Connection
    from ..purgatory.delayed_operation import DelayedOperation
    from ..wire.messages.api_19_create_topics import CreatableTopic
    from .log_parts import LogParts
    from .metadata_parts import MetadataParts
    from .options import BrokerOptions
    from .plugin_view import PluginView
    from .replica_events import ReplicaEvents

log = logging.getLogger(__name__)


class WaitingRequests:
    """Where requests wait for replicas, and for time. Made before the replicas, which wake them.

    Attributes:
        wheel: What is to happen at a time.
        produce: Produce requests with acks=all, and markers.
        fetch: Fetch requests that found too little.
    """

    def __init__(self, clock: Clock) -> None:
        """Make them with nobody waiting; the wheel begins now."""
        self._clock = clock
        self.wheel = TimingWheel(now_ms=clock.monotonic_ms())
        self.produce = Purgatory("Produce", self.wheel, on_error=report_operation_error)
        self.fetch = Purgatory("Fetch", self.wheel, on_error=report_operation_error)

    def connection_closed(self, connection: Connection) -> None:
        """Forget what a connection waits for."""
        self.produce.cancel_for(connection)
        self.fetch.cancel_for(connection)

    async def run(self, **options: Any) -> None:
        """Let time pass for them, until cancelled."""
        await clockwork.run(self.wheel, self._clock, **options)


class RequestParts:
    """Life: made, `add_handlers`, then the services; `end_waits` when the broker stops, `close`. Owned by the broker.

    Attributes:
        waiting: Requests that wait.
        sessions: Fetch sessions.
        coordinators: The runtimes of the plugins' coordinators.
        transactions: The transaction coordinator, None when no active plugin has one.
        local_markers: Writes the ends of transactions to partitions that this broker leads.
        marker_writer: Brings them to whoever leads.
        coordination: What coordinators need of other brokers; None of a broker alone.
        producer_ids: Gives out producer ids.
        topic_maker: Makes topics that somebody asked for.
        long_work: Does what is too long for the reactor.
        produce: The handler of Produce, which has a turn's end of its own.
        router: Brings each request to its handler.
    """

    def __init__(
        self,
        options: BrokerOptions,
        machine: Machine,
        view: PluginView,
        waiting: WaitingRequests,
        events: ReplicaEvents,
        logs: LogParts,
        metadata: MetadataParts,
    ) -> None:
        """Make all of them; the router knows no handler yet.

        Raises:
            PluginError: A plugin's coordinator cannot be used.
        """
        config, published, clock = options.config, metadata.published, machine.clock
        replicas, writes = logs.replicas, logs.writes
        self._published = published
        self.waiting = waiting
        self.sessions = FetchSessionCache(
            slots=config.get_int("max.incremental.fetch.session.cache.slots"), random_source=machine.random
        )
        self.producer_ids = ProducerIdSource(
            broker_id=config.node_id, broker_epoch=lambda: metadata.calls.broker_epoch, calls=metadata.calls
        )
        self.coordinators = CoordinatorRuntimes(
            options.plugins.coordinators(view),
            replicas=replicas,
            writes=writes,
            clock=clock,
            wheel=waiting.wheel,
            config=lambda: published.config,
            topic_partitions=published.partitions_count,
            elections=options.elections,
            want_turn=events.staged,
            threads=machine.threads,
        )
        self.transactions: Transactions | None = self.coordinators.transactions()
        self.local_markers = self._make_local_markers(logs, clock, events)
        self.marker_writer: MarkerWriter = self.local_markers
        self.coordination = self._make_coordination(config.node_id, metadata)
        self.topic_maker = TopicMaker(metadata.calls.create_topics, self._topics_to_make)
        self.long_work = LongWork(machine.threads)
        self.produce = ProduceHandler(
            replicas=replicas,
            writes=writes,
            purgatory=waiting.produce,
            clock=clock,
            admission=ProduceAdmission(
                transactions=lambda: self.transactions,
                settings=lambda: AdmissionSettings.of(published.config),
                purgatory=waiting.produce,
                clock=clock,
            ),
            begin_long_work=self.long_work.begin,
            leaders=CurrentLeaders.configured(config, replicas, lambda: published.image),
        )
        self.router = Router(
            timer=machine.timer,
            turn_enders=(
                self.coordinators.turn_ended,
                self.local_markers.turn_ended,
                writes.write_staged,
                self.produce.turn_ended,
            ),
            on_connection_closed=waiting.connection_closed,
        )

    def _make_local_markers(self, logs: LogParts, clock: Clock, events: ReplicaEvents) -> LocalMarkerWriter:
        return LocalMarkerWriter(
            replicas=logs.replicas,
            writes=logs.writes,
            purgatory=self.waiting.produce,
            clock=clock,
            timeout_ms=lambda: self._published.config.get_int("request.timeout.ms"),
            owner_of=self.coordinators.owner_of,
            want_turn=events.staged,
        )

    def _make_coordination(self, node_id: int, metadata: MetadataParts) -> Coordination | None:
        if metadata.channels is None:
            return None
        from ..cluster.coordination import Coordination  # a broker alone does not pay for it

        made = Coordination(
            node_id, self._published, metadata.channels, self.coordinators, self.transactions, self.local_markers
        )
        if metadata.roles.serves_controller:
            made.keep_replicas(metadata.calls, lambda: metadata.calls.kept().log is not None)
        self.marker_writer, self.transactions = made.marker_writer, made.transactions
        return made

    def _topics_to_make(self, name: str) -> list[CreatableTopic]:
        """Return what is created where somebody asked for a topic: as its coordinator wants it, else with defaults."""
        image, config = self._published.image, self._published.config
        internal = self.coordinators.topic_to_create(name, len(image.brokers_for_new_replicas()))
        return topics_for(name, image, config.get_int("message.max.bytes")) if internal is None else [internal]

    def services(self) -> Iterator[tuple[str, Callable[..., Awaitable[None]]]]:
        """Iterate over what runs while the broker serves, with names."""
        yield "clockwork", self.waiting.run
        yield "router", self.router.run
        yield "long work", self.long_work.run
        yield "topic maker", self.topic_maker.run
        if self.coordinators.by_topic:
            yield "coordinator loading", self.coordinators.loader.run
            yield "coordinator computing", self.coordinators.computing.run
            yield "coordinator slices", self.coordinators.long_operations.run
        if self.coordination is not None:
            yield from self.coordination.services()

    def end_waits(self) -> None:
        """Answer requests that wait for other requests: the broker stops, there will be none."""
        self.waiting.fetch.expire_all()
        self.coordinators.release_parked()

    def close(self) -> None:
        """Let the coordinators end."""
        self.coordinators.close()


def report_operation_error(operation: DelayedOperation, error: Exception) -> None:
    """Log that a waiting request failed. One that cannot be ended costs its connection; others wait for their time."""
    log.error("%r failed: %s", operation, error, exc_info=error)
    if operation.outcome is not None and isinstance(operation, RequestOperation):
        operation.fail("internal failure")
