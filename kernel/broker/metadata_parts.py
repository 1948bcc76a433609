"""Shell: the metadata of one broker: its log and who writes it, the newest image, and replicas that follow it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from ..config.roles import parse_roles
from ..controller.broker_sessions import BrokerSessions
from ..controller.lone_controller import LoneController
from ..controller.opening import load_metadata_log
from ..controller.own_cordons import OwnCordons
from ..controller.rules import ControllerRules
from ..errors import KafkaError, StorageError, error_code
from ..metadata.cluster_view import metadata_change
from ..metadata.config_warnings import ConfigWarnings
from ..metadata.controller_calls import directories_request
from ..types import METADATA_TOPIC, ZERO_ID, TopicIdPartition
from .metadata_follower import MetadataFollower
from .supervision import supervise

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Mapping
    from uuid import UUID

    from ..cluster.broker_channels import BrokerChannels
    from ..controller.brokers import Registration
    from ..controller.metadata_keeping import ControllerNode, MetadataKeeping
    from ..controller.metadata_log import MetadataLog
    from ..coordinator.runtimes import CoordinatorRuntimes
    from ..machine.machine import Machine
    from ..metadata.controller_calls import ObserverView
    from ..metadata.image import MetadataDelta, MetadataImage
    from ..metadata.published_image import PublishedImage
    from ..wire.message import Message
    from ..wire.messages.api_19_create_topics import CreateTopicsRequest, CreateTopicsResponse
    from .log_parts import LogParts
    from .options import BrokerOptions


class CallsOfThisBroker:
    """How this broker asks the controller (`ControllerCalls`); made before what knows it, which is attached.

    Attributes:
        keeping: Attached when the metadata was read.
    """

    def __init__(self, node_id: int) -> None:
        """Make calls of a broker that knows no controller yet."""
        self._node_id = node_id
        self.keeping: MetadataKeeping | None = None

    def kept(self) -> MetadataKeeping:
        """Return how this node has the metadata, once it was read."""
        assert self.keeping is not None, "this broker has not read the metadata yet"
        return self.keeping

    @property
    def broker_epoch(self) -> int:
        """This broker's epoch, -1 before it is registered."""
        return -1 if self.keeping is None else self.keeping.broker_epoch

    async def ask(self, request: Message, timeout_ms: int | None = None) -> Any:
        """See `ControllerCalls.ask`."""
        return await self.kept().ask(request, timeout_ms)

    async def create_topics(self, request: CreateTopicsRequest) -> CreateTopicsResponse:
        """Have the controller create topics; what CreateTopics answers."""
        response: CreateTopicsResponse = await self.ask(request)
        return response

    async def assign_directories(self, directories: Mapping[tuple[UUID, int], UUID]) -> None:
        """Have the controller note where replicas of this broker lie, or raise KafkaError; one it refuses is gone."""
        answer = await self.ask(directories_request(self._node_id, self.broker_epoch, directories))
        if answer.error_code:
            raise KafkaError(error_code(answer.error_code), "the controller refuses it as a whole")


class CallsOfThisNode:
    """Ask the controller of this node (`ControllerCalls`): what came by its listener goes to no other one."""

    def __init__(self, node: Callable[[], ControllerNode]) -> None:
        """Ask the node that is returned."""
        self._node = node

    async def ask(self, request: Message, timeout_ms: int | None = None) -> Any:
        """See `ControllerCalls.ask`."""
        return await self._node().controller.ask(request, timeout_ms)


class MetadataParts:
    """Life: made, `load`, `register`, `follow`, `go_live`; `calls.kept()` is run, leaves and is closed by the broker.

    Attributes:
        published: The newest image and configuration, for all who read.
        calls: How the broker's own parts ask the controller.
        rules: The controller's collaborators.
        roles: What this node is.
        channels: To the other brokers; None of a broker alone.
        follower: Has replicas follow the images.
        here: Brings what other nodes ask to the controller of this node, and no further.
    """

    def __init__(
        self,
        options: BrokerOptions,
        machine: Machine,
        published: PublishedImage,
        calls: CallsOfThisBroker,
        logs: LogParts,
        *,
        has_static_voters: bool = False,
    ) -> None:
        """Make them; reads nothing. `has_static_voters`: `controller.quorum.voters` alone says who votes."""
        config = options.config
        self._options, self._machine, self._logs = options, machine, logs
        self.published, self.calls = published, calls
        self.rules = ControllerRules(
            node_id=config.node_id,
            config=config,
            elections=options.elections,
            ids=machine.ids,
            random=machine.random,
            internal_topics=logs.replicas.internal_topics,
            storages=logs.replicas.storages,
            sessions=BrokerSessions(
                monotonic_ms=machine.clock.monotonic_ms, timeout_ms=config.get_int("broker.session.timeout.ms")
            ),
        )
        self.roles = parse_roles(config)
        self.channels = self._make_channels()
        self._node: ControllerNode | None = None
        self._has_static_voters = has_static_voters
        self.here = CallsOfThisNode(lambda: self.node)
        self.follower = MetadataFollower(
            config,
            lifecycle=logs.lifecycle,
            internal_topics=logs.replicas.internal_topics,
            stages=logs.stages,
            published=published,
            clock=machine.clock,
            on_opened=logs.directory_reports.wake,
        )
        self.follower.config_listeners.append(lambda _config: logs.compactor.settings_altered())
        self._cordoned: frozenset[str] | None = None

    def _make_channels(self) -> BrokerChannels | None:
        if self.roles.controller is None:
            return None
        from ..cluster.broker_channels import BrokerChannels  # a broker alone does not pay for it

        return BrokerChannels(self._options.config, self._machine, self.published)

    @property
    def node(self) -> ControllerNode:
        """This node, which serves its controller to others, once `load` has read the metadata."""
        assert self._node is not None, "this node serves its controller to nobody, or has not read the metadata"
        return self._node

    @property
    def log(self) -> MetadataLog:
        """The metadata log of the broker that keeps it, once `load` has read it."""
        log = self.calls.kept().log
        assert log is not None, "this node has no controller that takes changes"
        return log

    def load(self) -> None:
        """Read the metadata; the log directories are taken.

        Raises:
            StorageError: There are logs and no metadata; nothing was changed.
            CorruptionError: The metadata log is damaged; nothing was changed.
            ConfigError: The data is another cluster's.
        """
        if not self.roles.is_controller:
            self._load_copy()
            return
        options, machine, logs = self._options, self._machine, self._logs
        if self.roles.is_among_several:
            self._load_node()
            return
        if not logs.lifecycle.has_found_metadata(options.config.storage):
            self._check_nothing_is_lost("no metadata log")
        metadata = load_metadata_log(
            config=options.config,
            live_config=lambda: self.published.config,
            engines=logs.replicas.engines,
            elections=options.elections,
            rules=self.rules,
            machine=machine,
        )
        if not metadata.image.cluster_id:
            self._check_nothing_is_lost("an empty metadata log")
        cordons = OwnCordons(metadata, node_id=options.config.node_id, cordoned=logs.directory_reports.cordoned)
        controller = LoneController(metadata, cordons)
        self._keep(controller)
        if self.roles.serves_controller:
            controller.serve_others(self.rules, machine, self._logs.directory_reports.failed)
            self._node = controller

    def observers(self) -> Mapping[int, ObserverView]:
        """Return who follows the metadata log that this node alone keeps, by id."""
        lone = self.calls.keeping
        return lone.observers if isinstance(lone, LoneController) else {}

    def _load_copy(self) -> None:
        from ..cluster.joining import open_member  # a broker alone does not pay for it

        member = open_member(self._options.config, self._machine, self._logs.replicas.engines)
        member.failed_directories = self._logs.directory_reports.failed
        member.cordoned_directories = self._logs.directory_reports.cordoned
        self._keep(member)

    def _load_node(self) -> None:
        from ..quorum.node_opening import NodeParts, open_node  # a broker alone does not pay for it

        node = self._node = open_node(
            NodeParts(
                config=self._options.config,
                live_config=lambda: self.published.config,
                machine=self._machine,
                engines=self._logs.replicas.engines,
                elections=self._options.elections,
                rules=self.rules,
                has_static_voters=self._has_static_voters,
                failed_directories=self._logs.directory_reports.failed,
                cordoned_directories=self._logs.directory_reports.cordoned,
                supervise=lambda name, run: partial(supervise, name, run, self._machine.clock),
            )
        )
        self._keep(node)

    def _keep(self, keeping: MetadataKeeping) -> None:
        self.published.image = keeping.source.image
        keeping.source.add_listener(self._publish)  # the first: who is told after it finds the newest image there
        self.calls.keeping = keeping

    async def register(self, registration: Registration) -> None:
        """Have the controller know this broker, if it is one; the metadata is here then.

        Raises:
            ConfigError: The controller of another node refuses it, or is not found.
        """
        if self.roles.is_broker:
            await self.calls.kept().register(registration)
        else:
            await self.calls.kept().begin()

    async def go_live(self) -> None:
        """Have clients told of this broker, which answers; one that is told of already stays so."""
        await self.calls.kept().go_live()

    def _look_at_cordons(self) -> None:
        """Tell the controller when other log directories are cordoned, by this broker's configuration or a level."""
        cordoned = self.published.cordoned_log_dirs()
        if cordoned != self._cordoned:
            self._cordoned = cordoned
            self.calls.kept().cordons_changed()

    def _publish(self, _delta: MetadataDelta, image: MetadataImage) -> None:
        self.published.publish(image, self._machine.clock.monotonic_ms())

    def _check_nothing_is_lost(self, found: str) -> None:
        """Refuse to begin anew beside logs: to empty metadata they would all be strays, and their topics gone."""
        logs = self._logs.lifecycle.found_logs()
        if logs and not self._options.keeps_strays:
            names = ", ".join(map(str, logs[:3]))
            raise StorageError(
                f"there are logs ({names}{', ...' if len(logs) > 3 else ''}) and {found} in storage "
                f"{self._options.config.storage!r}, and nothing was changed: is a disk of log.dirs not mounted, or a "
                "directory left out? Where the metadata is lost, take the logs in by `odradek topics adopt`"
            )

    def follow(self, coordinators: CoordinatorRuntimes) -> None:
        """Open this broker's replicas of every topic there is, and follow the metadata from now on."""
        image = self.published.image
        if not self._options.keeps_strays:
            node_id = self._options.config.node_id
            self._logs.lifecycle.set_strays_aside(lambda partition: is_known(image, partition, node_id))
        self.follower.open_topics()
        # Not before: a change would be followed with the configuration of the start.
        self.calls.kept().source.add_listener(self.follower.changed)
        self.calls.kept().source.add_listener(lambda _delta, _image: self._look_at_cordons())
        self.calls.kept().source.add_listener(
            lambda delta, image: coordinators.metadata_changed(metadata_change(delta, image))
        )
        self._logs.log_moves.go_on()

    def warn_of_configs(self, *, is_internal: Callable[[str], bool]) -> None:
        """Tell of configs that do not count as they are set."""
        warnings = ConfigWarnings(self._options.config, self.published.image, is_internal=is_internal)
        self.calls.kept().source.add_listener(warnings.changed)

    def services(self) -> Iterator[tuple[str, Callable[..., Awaitable[None]]]]:
        """Iterate over what runs while the broker serves, with names."""
        yield "topic opener", self.follower.opener.run
        if self.channels is not None:
            yield "channels to brokers", self.channels.run
        yield from self.calls.kept().services()


def is_known(image: MetadataImage, partition: TopicIdPartition, node_id: int) -> bool:
    """Return whether a log on a broker's disk belongs to the metadata log or to a replica that the broker has."""
    if partition.topic == METADATA_TOPIC:
        return True
    topic = image.topics_by_name.get(partition.topic)
    return (
        topic is not None
        and partition.topic_id in (topic.topic_id, ZERO_ID)
        and partition.partition < len(topic.partitions)
        and node_id in topic.partitions[partition.partition].replicas
    )
