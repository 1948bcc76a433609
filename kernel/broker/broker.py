"""Shell: the composition root: builds one broker from its options and runs it in nested nurseries.

The nesting gives the order of the end; what stands innermost stops first::

    storage engines         closed last, marked as cleanly shut down
      metadata log          flushed
        services            flushes, upkeep, the purgatories' clockwork, plugins' services
          router            tasks of asynchronous requests
            network         listeners close, connections drain
"""

from __future__ import annotations

import functools
import logging
from contextlib import ExitStack
from typing import TYPE_CHECKING

import attrs
import trio

from ..classes import frozen
from ..cleanup.metrics import cleanup_metrics
from ..cluster.joining import joined_config
from ..config.listeners import SECURITY_PROTOCOLS, parse_controller_listeners, parse_listeners
from ..config.roles import parse_roles
from ..controller.brokers import Registration
from ..dispatch.cluster_metrics import cluster_metrics
from ..machine.system.machine import real_machine
from ..metadata.features import supported_ranges
from ..metadata.image import BrokerEndpoint
from ..network.configure import network_settings
from ..network.exposure import exposure
from ..network.server import NetworkServer
from ..partitions.dead_letters import dead_letter_metrics
from ..partitions.delay_delivery import delay_metrics
from ..partitions.directory_metrics import directory_metrics
from ..partitions.start_report import StartReport
from ..plugin_system.offers import joined_metrics
from .figures import Figures
from .options import BrokerOptions, read_broker_options
from .parts import BrokerParts
from .plugin_services import PluginServices
from .start_topics import create_start_topics
from .supervision import supervise

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ..config.broker import BrokerConfig
    from ..machine.machine import Machine
    from .metadata_parts import MetadataParts

__all__ = ["BoundListener", "Broker", "BrokerOptions", "read_broker_options"]

log = logging.getLogger(__name__)


@frozen
class BoundListener:
    """A listener that serves: what is bound, and what clients are told."""

    name: str
    host: str
    port: int
    advertised_host: str
    advertised_port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.name}://{host}:{self.port}"

    @property
    def advertised(self) -> str:
        """`HOST:PORT` as clients take it for `bootstrap.servers`: an IPv6 address stands in brackets."""
        host = f"[{self.advertised_host}]" if ":" in self.advertised_host else self.advertised_host
        return f"{host}:{self.advertised_port}"


class Broker:
    """One broker. Life: made, `run` once, `stop`.

    Owned by the task that calls `run`; `stop` may be called by any task of the same trio run.
    """

    def __init__(
        self,
        options: BrokerOptions,
        *,
        machine: Machine | None = None,
        on_parts: Callable[[BrokerParts], None] = lambda _parts: None,
    ) -> None:
        """Make a broker; nothing is opened yet.

        Args:
            options: What the operator chose; with what the cluster says of it once that is known.
            machine: What it takes of the host; the real one when None.
            on_parts: Given the broker's parts before anything runs: where a test puts its faults in.
        """
        self.options = options
        self.machine = machine or real_machine()
        self.network: NetworkServer | None = None
        self._parts: BrokerParts | None = None
        self._on_parts = on_parts
        self.listeners: tuple[BoundListener, ...] = ()
        self.addresses: Mapping[str, str] = {}
        """Where services of plugins listen, by their names."""
        self.found = StartReport()
        self._is_serving = False
        self._stopping = trio.Event()
        self._stopped = trio.Event()

    @property
    def parts(self) -> BrokerParts:
        """What it consists of, once `run` has begun."""
        assert self._parts is not None, "a broker has parts once it runs"
        return self._parts

    @property
    def has_parts(self) -> bool:
        """Whether `run` has come so far that it has parts."""
        return self._parts is not None

    def __repr__(self) -> str:
        state = "stopping" if self._stopping.is_set() else "serving" if self.listeners else "new"
        return f"<Broker {self.options.config.node_id}, {state}>"

    @property
    def is_serving(self) -> bool:
        """Whether clients are served, and nobody has asked for the end yet."""
        return self._is_serving and not self._stopping.is_set()

    def stop(self) -> None:
        """Ask the broker to end: it answers what is in flight, keeps everything and lets `run` return."""
        self._stopping.set()

    async def warm_up(self) -> None:
        """Once clients are served: import, a bit at a time, what most of them will soon ask for."""
        await self.parts.requests.router.warm_up()

    async def wait_stopped(self) -> None:
        """Wait until everything is kept and closed."""
        await self._stopped.wait()

    async def run(self, *, task_status: trio.TaskStatus[tuple[BoundListener, ...]] = trio.TASK_STATUS_IGNORED) -> None:
        """Serve until `stop`, or until cancelled: then clients are not waited for; what was acknowledged is kept.

        Args:
            task_status: Told the listeners once clients are served.

        Raises:
            ConfigError: A port is taken, a certificate cannot be used.
            StorageError: No log directory can be used, or the metadata log is damaged.
            PluginError: A plugin offers what it cannot give, or one of its services failed for good.
        """
        config = await joined_config(self.options.config, self.machine)
        has_static_voters = False
        if parse_roles(config).is_among_several:
            config, has_static_voters = await self._founded(config)
        options = self.options = attrs.evolve(self.options, config=config)
        parts = self._parts = BrokerParts(options, self.machine, has_static_voters=has_static_voters)
        self._on_parts(parts)
        parts.tell_missing_roles()
        settings, is_alone = network_settings(self.options.config), not parts.metadata.roles.controllers
        network = self.network = NetworkServer(parts.receiver, settings, self.machine, admits_clients=is_alone)
        parts.events.want_turn = network.want_turn
        parts.metadata.follower.config_listeners.append(lambda config: network.reconfigure(network_settings(config)))
        services = self._observe(parts, network)
        with ExitStack() as closing:
            closing.callback(self._stopped.set)
            closing.callback(services.close)
            closing.callback(network.close)
            await services.prepare()
            self.addresses = services.addresses()
            bound = network.bind()
            if exposed := exposure(network.settings.listeners, bound):
                log.warning("%s", exposed)
            self.listeners = self._bound_listeners(bound)
            closing.callback(parts.close)
            parts.start_storage()
            async with trio.open_nursery() as nursery:
                metadata, kept = parts.metadata, parts.metadata.calls.kept()
                if metadata.roles.is_among_several:  # nothing is decided before voters have heard of each other
                    await nursery.start(network.run)
                    for name, run in parts.node_services():
                        await nursery.start(functools.partial(supervise, name, run, self.machine.clock), name=name)
                await nursery.start(kept.run)
                await metadata.register(self._registration(parts))
                parts.open_topics()
                self.found = StartReport.of(parts.logs.replicas)
                if metadata.roles.is_broker and kept.is_live_once_registered:
                    await create_start_topics(self.options, metadata)
                owner_of = parts.requests.coordinators.owner_of
                metadata.warn_of_configs(is_internal=lambda topic: owner_of(topic) is not None)
                async with trio.open_nursery() as serving:
                    for name, run in (*parts.services(), *services.runs()):
                        await serving.start(functools.partial(supervise, name, run, self.machine.clock), name=name)
                    async with trio.open_nursery() as connections:
                        if not metadata.roles.is_among_several:
                            await connections.start(network.run)
                        await self._go_live(metadata, network)
                        self._is_serving = True
                        task_status.started(self.listeners)
                        await self._stopping.wait()
                        await kept.leave()
                        await network.drain(parts.end_waits)
                    serving.cancel_scope.cancel()
                await parts.logs.upkeep.keep_at_end()
                await kept.close()
                nursery.cancel_scope.cancel()

    async def _go_live(self, metadata: MetadataParts, network: NetworkServer) -> None:
        """Serve clients, and have them told of this broker."""
        if metadata.published.image.live_brokers():
            network.admit_clients()
        if metadata.roles.is_broker and not metadata.calls.kept().is_live_once_registered:
            await metadata.go_live()  # it may lead, and clients come, once it is unfenced
            await create_start_topics(self.options, metadata)
        network.admit_clients()  # not sooner where there was no broker to tell them of

    async def _founded(self, config: BrokerConfig) -> tuple[BrokerConfig, bool]:
        """Return the configuration with the cluster's id, once that is founded, and whether its voters are fixed."""
        from ..dispatch.controller.listener import receiver_of  # a broker alone does not pay for it
        from ..quorum.founding_shell import founded_config

        timer = self.machine.timer
        config, outcome = await founded_config(
            config, self.machine, lambda handlers: receiver_of(config, handlers, timer)
        )
        return config, outcome is not None and outcome.has_static_voters

    def _observe(self, parts: BrokerParts, network: NetworkServer) -> PluginServices:
        """Let plugins ask how this broker is: first for their metrics, then for the services that show them all."""
        plugins = self.options.plugins
        figures = parts.view.shown = Figures(parts, network, lambda: self.is_serving)
        offered = [*cleanup_metrics(parts.logs.retention, parts.logs.compactor), *parts.requests.coordinators.metrics()]
        offered += delay_metrics(parts.logs.delivery) + dead_letter_metrics(parts.logs.dead_letters)
        offered += cluster_metrics(parts.metadata.calls, parts.events.replication)
        offered += directory_metrics(parts.logs.replicas, parts.published.is_cordoned, parts.logs.moved_rate)
        figures.offered = joined_metrics([*offered, *plugins.metrics(parts.view)])
        return PluginServices(plugins.services(parts.view) if self.options.runs_plugin_services else ())

    def _bound_listeners(self, bound: Mapping[str, tuple[str, int]]) -> tuple[BoundListener, ...]:
        host_name = self.machine.network.host_name()
        found = []
        config = self.options.config
        for listener in parse_listeners(config) or parse_controller_listeners(config):
            host, port = bound[listener.name]
            found.append(BoundListener(listener.name, host, port, *listener.advertised(port, host_name)))
        return tuple(found)

    def _registration(self, parts: BrokerParts) -> Registration:
        protocols = {listener.name: listener.security_protocol for listener in parse_listeners(self.options.config)}
        return Registration(
            broker_id=self.options.config.node_id,
            incarnation_id=self.machine.ids.new_id(),
            listeners=[
                BrokerEndpoint(
                    listener.name,
                    listener.advertised_host,
                    listener.advertised_port,
                    SECURITY_PROTOCOLS[protocols[listener.name]],
                )
                for listener in self.listeners
                if listener.name in protocols
            ],
            log_dirs=parts.logs.log_dir_ids(),
            rack=self.options.config.get_text("broker.rack") or None,
            is_fenced=False,
            features=supported_ranges(self.options.config),
            previous_broker_epoch=parts.logs.previous_broker_epoch(),
        )
