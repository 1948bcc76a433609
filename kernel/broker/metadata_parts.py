"""Shell: the metadata of one broker: its log and who writes it, the newest image, and replicas that follow it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..config.roles import parse_roles
from ..controller.broker_sessions import BrokerSessions
from ..controller.opening import load_metadata_log
from ..controller.rules import ControllerRules
from ..errors import StorageError
from ..metadata.cluster_view import metadata_change
from ..metadata.config_warnings import ConfigWarnings
from ..metadata.controller_calls import directories_request
from ..types import METADATA_TOPIC, ZERO_ID, TopicIdPartition
from .metadata_follower import MetadataFollower

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Mapping
    from uuid import UUID

    from ..cluster.broker_channels import BrokerChannels
    from ..cluster.member import ClusterMember
    from ..cluster.metadata_observer import MetadataObserver
    from ..controller.brokers import Registration
    from ..controller.metadata_log import MetadataLog
    from ..controller.serving import ControllerServing
    from ..coordinator.runtimes import CoordinatorRuntimes
    from ..machine.machine import Machine
    from ..metadata.image import MetadataDelta, MetadataImage
    from ..metadata.published_image import PublishedImage
    from ..wire.message import Message
    from ..wire.messages.api_19_create_topics import CreateTopicsRequest, CreateTopicsResponse
    from .log_parts import LogParts
    from .options import BrokerOptions


class CallsOfThisBroker:
    """How this broker asks the controller (`ControllerCalls`); made before the log that answers, which is attached.

    Attributes:
        log: Attached when it was read, of the broker that keeps it.
        member: Attached when its copy was read, of any other.
    """

    def __init__(self, node_id: int) -> None:
        """Make calls of a broker that knows no controller yet."""
        self._node_id = node_id
        self.log: MetadataLog | None = None
        self.member: ClusterMember | None = None

    def opened(self) -> MetadataLog | MetadataObserver:
        """Return the metadata log, or the copy of it, once it was read."""
        return self.member.observer if self.member is not None else self.kept()

    def kept(self) -> MetadataLog:
        """Return the metadata log of the broker that keeps it, once it was read."""
        assert self.log is not None, "this broker keeps no metadata log, or has not read it yet"
        return self.log

    @property
    def broker_epoch(self) -> int:
        """This broker's epoch, -1 before it is registered."""
        known = self.member or self.log
        return -1 if known is None else known.broker_epoch

    async def ask(self, request: Message, timeout_ms: int | None = None) -> Any:
        """See `ControllerCalls.ask`."""
        return await (self.member or self.kept()).ask(request, timeout_ms)

    async def create_topics(self, request: CreateTopicsRequest) -> CreateTopicsResponse:
        """Have the controller create topics; what CreateTopics answers."""
        response: CreateTopicsResponse = await self.ask(request)
        return response

    async def assign_directories(self, directories: Mapping[tuple[UUID, int], UUID]) -> None:
        """Have the controller note in which directories replicas of this broker lie; what it refuses is gone by now."""
        await self.ask(directories_request(self._node_id, self.broker_epoch, directories))


class MetadataParts:
    """Life: made, `load`, then `run` as a task, `register`, `follow`, `go_live`, `leave`, `close`. Owned by the broker.

    Attributes:
        published: The newest image and configuration, for all who read.
        calls: How the broker's own parts ask the controller.
        rules: The controller's collaborators.
        roles: What this node is.
        channels: To the other brokers; None of a broker alone.
        follower: Has replicas follow the images.
    """

    def __init__(
        self,
        options: BrokerOptions,
        machine: Machine,
        published: PublishedImage,
        calls: CallsOfThisBroker,
        logs: LogParts,
    ) -> None:
        """Make them; reads nothing."""
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
            has_storage=bool(logs.replicas.engines),
            sessions=BrokerSessions(
                monotonic_ms=machine.clock.monotonic_ms, timeout_ms=config.get_int("broker.session.timeout.ms")
            ),
        )
        self.roles = parse_roles(config)
        self.channels = self._make_channels()
        self._serving: ControllerServing | None = None
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

    def _make_channels(self) -> BrokerChannels | None:
        if self.roles.controller is None:
            return None
        from ..cluster.broker_channels import BrokerChannels  # a broker alone does not pay for it

        return BrokerChannels(self._options.config, self._machine, self.published)

    @property
    def serving(self) -> ControllerServing:
        """What serves the controller of this broker to other nodes, once `load` has read the metadata."""
        assert self._serving is not None, "this broker serves its controller to nobody, or has not read the metadata"
        return self._serving

    @property
    def log(self) -> MetadataLog:
        """The metadata log of the broker that keeps it, once `load` has read it."""
        return self.calls.kept()

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
        self.published.image = metadata.image
        metadata.add_listener(self._publish)  # the first: who is told after it finds the newest image there
        self.calls.log = metadata
        if self.roles.serves_controller:
            from ..controller.serving import ControllerServing  # a broker alone does not pay for it

            self._serving = ControllerServing(metadata, self.rules, machine, self._logs.directory_reports.failed)

    def _load_copy(self) -> None:
        from ..cluster.joining import open_member  # a broker alone does not pay for it

        member = self.calls.member = open_member(self._options.config, self._machine, self._logs.replicas.engines)
        member.failed_directories = self._logs.directory_reports.failed
        self.published.image = member.observer.image
        member.observer.add_listener(self._publish)

    @property
    def run(self) -> Callable[..., Awaitable[None]]:
        """What writes or follows the metadata, to be run as a task."""
        return self.calls.member.run if self.calls.member is not None else self.log.run

    async def register(self, registration: Registration) -> None:
        """Have the controller know this broker, if it is one; the metadata is here then.

        Raises:
            ConfigError: The controller of another node refuses it, or is not found.
        """
        if self.calls.member is not None:
            await self.calls.member.register(registration)
        elif self.roles.is_broker:
            await self.log.register(registration)
        else:
            await self.log.format()

    async def go_live(self) -> None:
        """Have clients told of this broker, which answers; a controller's own is told of already."""
        if self.calls.member is not None:
            await self.calls.member.go_live()

    async def leave(self) -> None:
        """Have leaders move to other brokers before this one ends."""
        if self.calls.member is not None:
            await self.calls.member.leave()
        elif self._serving is not None:
            await self._serving.leave()

    async def close(self) -> None:
        """Serve what waits for the metadata log, then end it."""
        if self.calls.log is not None:
            await self.log.close()

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
        self.calls.opened().add_listener(self.follower.changed)
        self.calls.opened().add_listener(
            lambda delta, image: coordinators.metadata_changed(metadata_change(delta, image))
        )
        self._logs.log_moves.go_on()

    def warn_of_configs(self, *, is_internal: Callable[[str], bool]) -> None:
        """Tell of configs without effect that are set from now on."""
        warnings = ConfigWarnings(self._options.config.registry, self.published.image, is_internal=is_internal)
        self.calls.opened().add_listener(warnings.changed)

    def services(self) -> Iterator[tuple[str, Callable[..., Awaitable[None]]]]:
        """Iterate over what runs while the broker serves, with names."""
        yield "topic opener", self.follower.opener.run
        if self.channels is not None:
            yield "channels to brokers", self.channels.run
        if self._serving is not None:
            yield from self._serving.services()


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
