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
from typing import TYPE_CHECKING, Final

import attrs
import trio

from ..cleanup.metrics import cleanup_metrics
from ..config.listeners import parse_listeners
from ..config.start_topics import differences
from ..controller.brokers import Registration
from ..errors import ConfigError, error_code
from ..machine.system.machine import real_machine
from ..metadata.cluster_view import ImageView
from ..metadata.image import BrokerEndpoint, MetadataImage
from ..network.configure import network_settings
from ..network.exposure import exposure
from ..network.server import NetworkServer
from ..plugin_system.hold_ups import watch_hold_ups
from ..plugin_system.offers import joined_metrics
from ..wire.messages.api_19_create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from .figures import Figures
from .options import BrokerOptions, read_broker_options
from .parts import BrokerParts
from .plugin_services import PluginServices
from .start_report import StartReport
from .supervision import supervise

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from random import Random

    from ..config.broker import BrokerConfig
    from ..contracts.assignor import Assignor
    from ..contracts.transactions import MarkerWriter, Transactions
    from ..machine.clock import Clock
    from ..machine.files import Files
    from ..machine.ids import IdSource
    from ..machine.machine import Machine
    from ..types import LogOffsets

__all__ = ["BoundListener", "Broker", "BrokerOptions", "read_broker_options"]

log = logging.getLogger(__name__)

SECURITY_PROTOCOLS: Final = {"PLAINTEXT": 0, "SSL": 1}


@attrs.frozen
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
            options: What the operator chose.
            machine: What it takes of the host; the real one when None.
            on_parts: Given the broker's parts before anything runs: where a test puts its faults in.
        """
        self.options = options
        self.machine = machine or real_machine()
        self.parts: BrokerParts | None = None
        self.network: NetworkServer | None = None
        self._on_parts = on_parts
        self._cluster = ImageView(self._image)
        self.listeners: tuple[BoundListener, ...] = ()
        self.addresses: Mapping[str, str] = {}
        """Where services of plugins listen, by their names."""
        self._figures: Figures | None = None
        self.found = StartReport()
        self._is_serving = False
        self._stopping = trio.Event()
        self._stopped = trio.Event()

    # ---------------------------------------------------------------------------------------- what plugins may ask

    @property
    def node_id(self) -> int:
        """This broker's id."""
        return self.options.config.node_id

    @property
    def clock(self) -> Clock:
        """The broker's clocks."""
        return self.machine.clock

    @property
    def random(self) -> Random:
        """The source of chance."""
        return self.machine.random

    @property
    def ids(self) -> IdSource:
        """The source of new ids."""
        return self.machine.ids

    @property
    def files(self) -> Files:
        """The file system."""
        return self.machine.files

    @property
    def cluster_id(self) -> str:
        """The cluster's id, once the broker serves."""
        return self.parts.image().cluster_id if self.parts is not None else ""

    @property
    def config(self) -> BrokerConfig:
        """The configuration; always the newest."""
        return self.parts.live_config if self.parts is not None else self.options.config

    @property
    def cluster(self) -> ImageView:
        """The committed metadata; always the newest. Empty before the broker has read it."""
        return self._cluster

    def _image(self) -> MetadataImage:
        return self.parts.image() if self.parts is not None else MetadataImage()

    @property
    def assignors(self) -> Mapping[str, Assignor]:
        """What active plugins offer as assignors, by name."""
        return self.options.assignors

    @property
    def marker_writer(self) -> MarkerWriter:
        """Brings the ends of transactions to partitions; for a broker that serves."""
        assert self.parts is not None, "a broker that serves writes markers"
        return self.parts.marker_writer

    @property
    def transactions(self) -> Transactions | None:
        """The transaction coordinator, None when no active plugin has one."""
        return self.parts.transactions if self.parts is not None else None

    @property
    def figures(self) -> Figures:
        """What it counts and how it stands; for metrics and services, and what they run."""
        assert self._figures is not None, "figures are asked for before the broker's parts are there"
        return self._figures

    def offsets(self, topic: str, partition: int) -> LogOffsets | None:
        """Return the offsets of a replica of this broker, None when it has none or cannot read it."""
        replica = self.parts.replicas.find(topic, partition) if self.parts is not None else None
        return replica.offsets if replica is not None else None

    async def new_producer_id(self) -> int:
        """Return a producer id that no other producer of the cluster has. If it is cancelled, ids are lost.

        Raises:
            KafkaError: The controller cannot give one now.
        """
        assert self.parts is not None, "a broker that serves gives producer ids"
        return await self.parts.producer_ids.new_producer_id()

    def settings(self, plugin: str) -> Mapping[str, object]:
        """Return the plugin's own section `[plugins.NAME]`."""
        return self.options.plugin_settings.get(plugin, {})

    # -------------------------------------------------------------------------------------------------------- life

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
        parts = self.parts = BrokerParts(self)
        self._on_parts(parts)
        parts.tell_missing_roles()
        network = self.network = NetworkServer(parts.router, network_settings(self.options.config), self.machine)
        parts.want_turn = network.want_turn
        parts.follower.config_listeners.append(lambda config: network.reconfigure(network_settings(config)))
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
                await nursery.start(parts.metadata.run)
                await parts.metadata.register(self._registration())
                parts.open_topics()
                self.found = StartReport.of(parts.replicas)
                await self._create_start_topics(parts)
                parts.metadata.add_listener(parts.config_warnings().changed)
                async with trio.open_nursery() as serving:
                    watch: Callable[..., Awaitable[None]] = functools.partial(watch_hold_ups, self.machine.threads)
                    for name, run in (*parts.services(), ("hold-up watch", watch), *services.runs()):
                        await serving.start(functools.partial(supervise, name, run, self.clock), name=name)
                    async with trio.open_nursery() as connections:
                        await connections.start(network.run)
                        self._is_serving = True
                        task_status.started(self.listeners)
                        await self._stopping.wait()
                        await network.drain(parts.end_waits)
                    serving.cancel_scope.cancel()
                await parts.upkeep.keep_at_end()
                await parts.metadata.close()
                nursery.cancel_scope.cancel()

    def _observe(self, parts: BrokerParts, network: NetworkServer) -> PluginServices:
        """Let plugins ask how this broker is: first for their metrics, then for the services that show them all."""
        figures = self._figures = Figures(parts, network, lambda: self.is_serving)
        figures.offered = joined_metrics(
            [
                *cleanup_metrics(parts.retention, parts.compactor),
                *parts.coordinators.metrics(),
                *parts.plugins.metrics(self),
            ]
        )
        return PluginServices(parts.plugins.services(self) if self.options.runs_plugin_services else ())

    def _bound_listeners(self, bound: Mapping[str, tuple[str, int]]) -> tuple[BoundListener, ...]:
        host_name = self.machine.network.host_name()
        found = []
        for listener in parse_listeners(self.options.config):
            host, port = bound[listener.name]
            advertised_host, advertised_port = listener.advertised(port, host_name)
            found.append(BoundListener(listener.name, host, port, advertised_host, advertised_port))
        return tuple(found)

    def _registration(self) -> Registration:
        protocols = {listener.name: listener.security_protocol for listener in parse_listeners(self.options.config)}
        return Registration(
            broker_id=self.options.config.node_id,
            incarnation_id=self.ids.new_id(),
            listeners=[
                BrokerEndpoint(
                    listener.name,
                    listener.advertised_host,
                    listener.advertised_port,
                    SECURITY_PROTOCOLS[protocols[listener.name]],
                )
                for listener in self.listeners
            ],
            log_dirs=self.parts.log_dir_ids() if self.parts else (),
            rack=self.options.config.get_text("broker.rack") or None,
            is_fenced=False,
        )

    async def _create_start_topics(self, parts: BrokerParts) -> None:
        """Create the topics of `[topics.NAME]` that do not exist yet; of others, tell what their section would change.

        Raises:
            ConfigError: One cannot be created as it is described.
        """
        image = parts.image()
        for topic in self.options.topics:
            existing = image.topics_by_name.get(topic.name)
            if existing is not None:
                kept = {"odradek.storage": existing.storage, "odradek.election": existing.election}
                found = differences(
                    topic,
                    parts.live_config,
                    partitions_count=len(existing.partitions),
                    replication_factor=len(existing.partitions[0].replicas),
                    overrides={**image.topic_config(topic.name), **kept},
                )
                if found:
                    told = "; ".join(found)
                    log.warning("%s: topic %s exists and stays as it is: %s", topic.where, topic.name, told)
                continue
            wanted = CreatableTopic(
                name=topic.name,
                num_partitions=-1 if topic.partitions is None else topic.partitions,
                replication_factor=-1 if topic.replication_factor is None else topic.replication_factor,
                configs=[CreatableTopicConfig(name=key, value=value.text) for key, value in topic.configs.items()],
            )
            response = await parts.create_topics(CreateTopicsRequest(topics=[wanted], timeout_ms=30_000))
            (result,) = response.topics
            if result.error_code:
                raise ConfigError(result.error_message or error_code(result.error_code).text, where=topic.where)
