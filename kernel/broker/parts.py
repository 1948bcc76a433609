"""Shell: the parts of one broker, made from its options and tied together in one order; `broker.py` runs them.

::

    published image   waiting requests   plugins' view        hold what others read, wake or are asked
            replica events                                    whom replicas tell
                logs                                          engines, replicas, what keeps them in order
                    metadata                                  log, controller, who follows it
                        requests                              coordinators, router, handlers

Each knows those above it. What has to call below it is given a method of one that stands above, and what it needs is
attached there when it is made: three places, all in `BrokerParts`.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING

from ..dispatch.unkept_groups import UNKEPT_GROUPS_APIS, refuser_of
from ..metadata.published_image import PublishedImage
from ..plugin_system.hold_ups import watch_hold_ups
from ..plugin_system.missing_roles import missing_roles, told
from .handlers import first_handlers, later_handlers
from .log_parts import LogParts
from .metadata_parts import CallsOfThisBroker, MetadataParts
from .plugin_view import PluginView
from .replica_events import ReplicaEvents
from .request_parts import RequestParts, WaitingRequests

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Iterator

    from ..contracts.api_handler import ApiHandler, AsyncApiHandler
    from ..dispatch.controller.listener import ControllerListener
    from ..machine.machine import Machine
    from ..network.frame_receiver import FrameReceiver
    from ..replication.replication import Replication
    from ..types import TopicIdPartition
    from .options import BrokerOptions

log = logging.getLogger(__name__)


class BrokerParts:
    """Everything that one broker consists of, but for its sockets.

    Life: made, `start_storage`, `open_topics`, then the services; `close` at the end. Owned by the broker.

    Attributes:
        options: What the operator chose.
        machine: What it lives on.
        published: The newest metadata and configuration.
        view: The broker as plugins see it.
        events: Whom replicas tell; who runs the network attaches `want_turn`.
        logs: Storage engines, replicas, and what keeps them in order.
        metadata: The metadata log, and who follows it.
        requests: What answers.
        listener: What answers other nodes, where the controller is here and serves them.
    """

    def __init__(self, options: BrokerOptions, machine: Machine, *, has_static_voters: bool = False) -> None:
        """Build all parts; opens nothing. One of the trio run's tasks: times begin now.

        Args:
            options: What the operator chose.
            machine: What it lives on.
            has_static_voters: Whether `controller.quorum.voters` alone says who votes (kraft.version 0).

        Raises:
            PluginError: What the configuration chooses is not offered, or something is offered twice.
        """
        self.options, self.machine = options, machine
        self.published = PublishedImage(options.config)
        self.view = PluginView(options, machine, self.published)
        waiting = WaitingRequests(machine.clock)
        self.events = ReplicaEvents(waiting.produce, waiting.fetch, self._tell_plugins_of_leader)
        calls = CallsOfThisBroker(options.config.node_id)
        self.logs = LogParts(options, machine, self.published, self.view, self.events, calls)
        self.view.replicas = self.events.replicas = self.logs.replicas
        self.view.carrying = self.logs.delivery.carrying
        self.metadata = MetadataParts(
            options, machine, self.published, calls, self.logs, has_static_voters=has_static_voters
        )
        self.events.replication = self._make_replication()
        self.requests = RequestParts(options, machine, self.view, waiting, self.events, self.logs, self.metadata)
        self.events.coordinators = self.requests.coordinators
        self.view.producer_ids = self.requests.producer_ids
        self.view.markers, self.view.transactions = self.requests.marker_writer, self.requests.transactions
        self._add_handlers()
        self.listener = self._make_listener()

    def _make_replication(self) -> Replication | None:
        metadata, published = self.metadata, self.published
        if metadata.channels is None:
            return None
        from ..cluster.dead_letter_reads import DeadLetterReads  # a broker alone does not pay for it
        from ..replication.replication import Replication

        replication = Replication(
            self.options.config.node_id,
            self.machine,
            replicas=self.logs.replicas,
            lifecycle=self.logs.lifecycle,
            writes=self.logs.writes,
            brokers=metadata.channels,
            calls=metadata.calls,
            elections=self.options.elections,
            broker_epoch=lambda: metadata.calls.broker_epoch,
            published=published,
            role_changed=self.events.role_changed,
        )
        metadata.channels.on_refused = replication.voting.peer_refused
        self.logs.dead_letters.others = DeadLetterReads(
            metadata.channels, lambda: published.config.get_int("request.timeout.ms")
        )
        metadata.follower.config_listeners.append(lambda _config: replication.fetchers.settings_altered())
        return replication

    def _make_listener(self) -> ControllerListener | None:
        if not self.metadata.roles.serves_controller:
            return None
        from ..dispatch.controller.listener import ControllerListener  # a broker alone does not pay for it

        return ControllerListener(
            self.options.config,
            self.requests.router,
            timer=self.machine.timer,
            calls=self.metadata.here,
            feed=lambda: self.metadata.node.feed,
            on_broker_gone=lambda *broker: self.metadata.node.suspect(*broker),
            image=lambda: self.published.image,
            shared=self._shared_handlers(),
        )

    def _shared_handlers(self) -> Iterable[ApiHandler | AsyncApiHandler] | None:
        """Return what answers other nodes where clients' listeners bring it to whoever is the controller."""
        if not self.metadata.roles.is_among_several:
            return None
        from ..dispatch.controller.handlers import shared_of_several  # a broker alone does not pay for it

        return shared_of_several(
            self.requests.router.routes,
            broker_id=self.options.config.node_id,
            calls=self.metadata.here,
            feed=lambda: self.metadata.node.feed,
            config=lambda: self.published.config,
        )

    @property
    def receiver(self) -> FrameReceiver:
        """Who takes the frames of all listeners."""
        return self.requests.router if self.listener is None else self.listener.receiver

    def _tell_plugins_of_leader(self, partition: TopicIdPartition, leader_id: int, leader_epoch: int) -> None:
        self.options.plugins.leader_changed(self.view, partition, leader_id, leader_epoch)

    def _add_handlers(self) -> None:
        router = self.requests.router
        for handler in first_handlers(self):
            router.add(handler)
        for api_key, make in later_handlers(self):
            router.add_later(api_key, make)
        for plugin, offered in (*self.requests.coordinators.handlers(), *self.options.plugins.api_handlers(self.view)):
            router.add(offered, plugin)
        for api_key in UNKEPT_GROUPS_APIS:
            if api_key not in router.routes:
                router.add_later(api_key, partial(refuser_of, api_key))

    def start_storage(self) -> None:
        """Take the log directories, find the logs in them, and load the metadata.

        Raises:
            StorageError: No directory can be used, or there are logs and no metadata log; nothing was changed.
            CorruptionError: The metadata log is damaged; nothing was changed.
            ConfigError: The data is another cluster's.
        """
        self.logs.lifecycle.start()
        self.metadata.load()

    def open_topics(self) -> None:
        """Open this broker's replicas of every topic there is, and follow the metadata from now on."""
        self.metadata.follow(self.requests.coordinators)
        if self.requests.coordination is not None:
            self.metadata.calls.kept().source.add_listener(self.requests.coordination.image_changed)

    def services(self) -> Iterator[tuple[str, Callable[..., Awaitable[None]]]]:
        """Iterate over the services that run while the broker serves, with their names."""
        yield from self.logs.services()
        yield from self.metadata.services()
        yield from self.requests.services()
        if self.events.replication is not None:
            yield from self.events.replication.services()
        if not self.metadata.roles.is_among_several:
            yield from self.node_services()
        yield "hold-up watch", partial(watch_hold_ups, self.machine.threads)

    def node_services(self) -> Iterator[tuple[str, Callable[..., Awaitable[None]]]]:
        """Iterate over what has to run before this node's quorum can decide anything."""
        if self.listener is not None:
            yield "controller's router", self.listener.router.run

    def end_waits(self) -> None:
        """Answer requests that wait for something to happen: the broker stops."""
        self.requests.end_waits()
        if self.listener is not None:
            self.metadata.node.end_waits()

    def tell_missing_roles(self) -> None:
        """Say, a line each, what no active plugin does: a broker comes up all the same."""
        for role in missing_roles(
            storages=self.logs.replicas.engines.keys(),
            elections=self.options.elections.keys(),
            cleanup_policies=self.options.config.registry.cleanup_policies.keys(),
            key_types=self.requests.coordinators.by_key_type.keys(),
        ):
            log.warning("%s", told(role))

    def close(self) -> None:
        """Keep everything and close all logs, as cleanly shut down."""
        self.requests.close()
        self.logs.close()
