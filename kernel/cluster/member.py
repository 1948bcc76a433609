"""Shell: a broker as a member of a cluster: what it tells whoever is the active controller, and asks of it.

    register    the metadata is here as far as the controller had it; the controller knows the broker, fenced
    go_live     its replicas are open, and it answers: the controller unfences it, and clients are told of it
    ...         heartbeats say that it lives
    leave       its leaders move to other brokers before it ends

Several channels, since a node answers one request of a connection at a time: heartbeats wait for nobody, requests that
are sent on wait for each other. Another controller is told at once that the broker lives, and asked what the one before
did not answer. Where the metadata comes from is said by whoever makes the member: it follows a controller (`joining`),
or a log of this node's own.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final

import trio

from ..errors import ConfigError, ErrorCode, KafkaError, UnansweredError, error_code
from ..metadata.partition_counts import MIN_INSYNC_REPLICAS, PartitionCounts
from ..peers.errors import ClientError
from ..types import id_text
from ..wire.messages.api_62_broker_registration import BrokerRegistrationRequest, Feature, Listener
from .controller_channel import ControllerChannel
from .lifecycle import BrokerLifecycle, BrokerState
from .remote_controller import RemoteController

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Sequence
    from uuid import UUID

    from ..config.broker import BrokerConfig
    from ..controller.brokers import Registration
    from ..machine.machine import Machine
    from ..wire.message import Message
    from ..wire.messages.api_62_broker_registration import BrokerRegistrationResponse
    from ..wire.messages.api_63_broker_heartbeat import BrokerHeartbeatResponse
    from .controller_nodes import ControllerNodes
    from .metadata_source import MetadataSource

log = logging.getLogger(__name__)

FAILURE_TIMEOUT: Final = "log.dir.failure.timeout.ms"
LEAVE_S_MAX: Final = 30
"""How long a broker waits for its leaders to move before it ends all the same."""
SILENCE_S_MAX: Final = 3
"""A controller that answers nothing for so long will not move them."""
_TELL_EVERY_S: Final = 5
_RETRY_S: Final = 0.05
FINAL_REFUSALS: Final = frozenset(
    {
        ErrorCode.INCONSISTENT_CLUSTER_ID,
        ErrorCode.INVALID_REGISTRATION,
        ErrorCode.UNSUPPORTED_VERSION,
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    }
)
"""Refusals of a registration that asking again does not change."""


class ClusterMember:
    """`MetadataKeeping` of a broker. Life: made, `run` as a task, `register`, `go_live`, `leave`. Owned by the broker.

    Attributes:
        source: The metadata.
        partition_counts: Partitions that are not as they should be.
        controller: Brings requests to the controller.
        failed_directories: Returns the ids of this broker's log directories that failed, for its heartbeats.
        cordoned_directories: Returns the ids of those that are cordoned, None while the metadata cannot hold it.
    """

    def __init__(
        self,
        config: BrokerConfig,
        machine: Machine,
        nodes: ControllerNodes,
        source: MetadataSource,
        cluster_id: str,
        *,
        follow: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        """Make one that has talked to nobody yet.

        Args:
            config: The broker's.
            machine: Network, clock and chance.
            nodes: Where controllers are, and who is the active one.
            source: The metadata.
            cluster_id: Of the cluster.
            follow: Keeps `source` up to date for as long as `run` runs; None where others do.

        Raises:
            ConfigError: A certificate cannot be used.
        """
        self._config = config
        self._clock = machine.clock
        self._cluster_id = cluster_id
        self._nodes = nodes
        self._follow = follow
        self._lifecycle: BrokerLifecycle | None = None
        self._changed = trio.Event()
        self._hurry = trio.Event()
        self._told_code = ErrorCode.NONE
        self._heard_s = 0.0
        self.broker_epoch = -1
        self.failed_directories: Callable[[], Sequence[UUID]] = tuple
        self.cordoned_directories: Callable[[], Sequence[UUID] | None] = lambda: None
        self._heartbeats = ControllerChannel("heartbeats", config=config, machine=machine, nodes=nodes)
        timeout_ms = config.get_int("request.timeout.ms")
        # So that what had waited until then can be answered over another connection within its time.
        silence_ms = timeout_ms // 2
        self._requests, self._own_requests = (
            ControllerChannel(name, config=config, machine=machine, nodes=nodes, silence_ms=silence_ms)
            for name in ("requests", "own requests")
        )
        nodes.add_listener(lambda: self._hurry.set())
        self.controller = RemoteController(
            self._requests, own=self._own_requests, client_id=f"broker-{config.node_id}", timeout_ms=timeout_ms
        )
        self.source = source
        self.partition_counts = PartitionCounts(config.node_id, config.get_int(MIN_INSYNC_REPLICAS))
        self.partition_counts.begin(source.image)
        source.add_listener(self.partition_counts.changed)
        source.add_listener(lambda _delta, _image: self._tell_changed())

    is_live_once_registered: bool = False
    log: None = None
    """Takes no changes: the controller is another node."""
    figures: None = None

    def quorum_figures(self) -> None:
        """See `MetadataKeeping.quorum_figures`: it is no controller."""

    def services(self) -> Iterator[tuple[str, Callable[..., Awaitable[None]]]]:
        """See `MetadataKeeping.services`: there are none."""
        return iter(())

    async def close(self) -> None:
        """Do nothing: what waits for the controller waits elsewhere."""

    def __repr__(self) -> str:
        return f"ClusterMember({self._nodes!r}, {self._lifecycle!r})"

    async def ask(self, request: Message, timeout_ms: int | None = None) -> Any:
        """See `metadata.controller_calls.ControllerCalls.ask`."""
        return await self.controller.ask(request, timeout_ms)

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Follow the metadata, and be heard of once registered, until cancelled.

        Raises:
            StorageError: What `follow` raises: the copy of the metadata cannot be written, or holds what this version
                does not know.
            ConfigError: Another process has taken this broker's id, or it was unregistered; or the cluster has a
                feature at a level that this version does not support.
            UnansweredError: The controller cannot be told of a log directory that failed.
        """
        async with trio.open_nursery() as nursery:
            for channel in (self._heartbeats, self._requests, self._own_requests):
                await nursery.start(channel.run)
            if self._follow is not None:
                nursery.start_soon(self._follow)
            task_status.started()
            while self._lifecycle is None:
                await self._changed.wait()
            while self._lifecycle.state is not BrokerState.STOPPED:
                await self._beat(self._lifecycle)

    # --------------------------------------------------------------------------------------------------- registration

    async def register(self, registration: Registration) -> int:
        """Catch up with the metadata, and have the controller know this broker; return its broker epoch.

        Raises:
            ConfigError: The controller refuses.
            UnansweredError: None answers within `initial.broker.registration.timeout.ms`.
        """
        limit_ms = self._config.get_int("initial.broker.registration.timeout.ms")
        request = self._registration_request(registration)
        with trio.move_on_after(limit_ms / 1000):
            await self.source.wait_caught_up()
            self.broker_epoch = await self._registered(request)
            self._lifecycle = BrokerLifecycle(
                broker_id=registration.broker_id,
                broker_epoch=self.broker_epoch,
                interval_ms=self._config.get_int("broker.heartbeat.interval.ms"),
                failure_timeout_ms=self._config.get_int(FAILURE_TIMEOUT),
            )
            self._tell_changed()
            await self._wait_known(registration)
            return self.broker_epoch
        if self._told_code is ErrorCode.DUPLICATE_BROKER_REGISTRATION:
            raise ConfigError(
                f"another process lives as broker {registration.broker_id}, still after {limit_ms} ms",
                where=self._config.where("node.id"),
                hint="each broker needs a node.id of its own",
            )
        raise UnansweredError(
            f"no controller registered this broker within {limit_ms} ms",
            where=self._config.where("controller.quorum.voters"),
            hint=f"does the controller run, and is it reached at {self._nodes}?",
        )

    async def _wait_known(self, registration: Registration) -> None:
        """Wait until the metadata here says of this very process that it is registered, and what follows from that.

        Not only until it has the offset of that: by what was so before, this broker might lead with records it lost.
        """
        await self.source.wait_for(self.broker_epoch)
        while True:
            known = self.source.image.brokers.get(registration.broker_id)
            if known is not None and known.incarnation_id == registration.incarnation_id:
                return
            await self._changed.wait()

    async def begin(self) -> None:
        """Catch up with the metadata, of a node that is no broker. Cancelled: nothing happens."""
        await self.source.wait_caught_up()

    def _registration_request(self, registration: Registration) -> BrokerRegistrationRequest:
        return BrokerRegistrationRequest(
            broker_id=registration.broker_id,
            cluster_id=self._cluster_id,
            incarnation_id=registration.incarnation_id,
            listeners=[
                Listener(name=item.name, host=item.host, port=item.port, security_protocol=item.security_protocol)
                for item in registration.listeners
            ],
            features=[
                Feature(name=name, min_supported_version=low, max_supported_version=high)
                for name, (low, high) in registration.features.items()
            ],
            rack=registration.rack,
            log_dirs=list(registration.log_dirs),
            previous_broker_epoch=registration.previous_broker_epoch,
        )

    async def _registered(self, request: BrokerRegistrationRequest) -> int:
        """Ask until it is granted; also while the id is taken: one that died is forgotten when its session is over.

        Only the controller knows when that is: its clock may be slow, and its session time another.
        """
        timeout_ms = self._config.get_int("broker.session.timeout.ms")
        while True:
            try:
                answer: BrokerRegistrationResponse = await self._heartbeats.request(request, timeout_ms=timeout_ms)
            except ClientError:
                await self._heartbeats.rest()
                continue
            except KafkaError as error:  # nobody is the controller, or not yet
                if error.code is not ErrorCode.NOT_CONTROLLER:
                    raise
                await self._heartbeats.rest()
                continue
            code = error_code(answer.error_code)
            self._tell_refusal(code)
            if code is ErrorCode.NONE:
                return answer.broker_epoch
            if code in FINAL_REFUSALS:
                raise ConfigError(f"the controller refuses this broker: {code.name}: {code.text}")
            await trio.sleep(_RETRY_S)

    def _tell_refusal(self, code: ErrorCode) -> None:
        if code is not self._told_code and code is not ErrorCode.NONE:
            log.warning("the controller (%s) refuses this broker: %s: %s", self._nodes, code.name, code.text)
        self._told_code = code

    # ------------------------------------------------------------------------------------------------------ heartbeats

    async def _beat(self, lifecycle: BrokerLifecycle) -> None:
        timeout_ms = self._config.get_int("broker.session.timeout.ms") // 2
        was_fenced, self._hurry = lifecycle.is_fenced, trio.Event()
        hurry = self._hurry
        lifecycle.note_failures(self.failed_directories(), self._clock.monotonic_ms())
        lifecycle.cordoned = self.cordoned_directories()
        try:
            request = lifecycle.heartbeat(self.source.image.offset)
            answer: BrokerHeartbeatResponse = await self._heartbeats.request(request, timeout_ms=timeout_ms)
        except (ClientError, KafkaError) as error:
            log.debug("heartbeat: %s", error)
            pause_ms = self._heartbeats.rest_ms
        else:
            code = error_code(answer.error_code)
            self._tell_refusal(code)
            if code is ErrorCode.STALE_BROKER_EPOCH:
                raise ConfigError(
                    f"the controller knows another process as broker {self._config.node_id}, or none any more",
                    hint="each broker needs a node.id of its own; one that was unregistered is started again",
                )
            self._heard_s = trio.current_time()
            pause_ms = lifecycle.answered(answer)
        self._check_failures_are_told(lifecycle)
        if lifecycle.is_fenced != was_fenced:
            log.info("the controller %s this broker", "fenced" if lifecycle.is_fenced else "unfenced")
        self._tell_changed()
        with trio.move_on_after(pause_ms / 1000):
            await hurry.wait()

    def _check_failures_are_told(self, lifecycle: BrokerLifecycle) -> None:
        untold = lifecycle.untold_failure(self._clock.monotonic_ms())
        if untold is not None:
            raise UnansweredError(
                f"the controller could not be told within {self._config.get_int(FAILURE_TIMEOUT)} ms that log "
                f"directory {id_text(untold)} has failed: this broker ends, so that others lead what lies in it",
                where=self._config.where(FAILURE_TIMEOUT),
                hint=f"repair the directory, or take it out of log.dirs; does the controller run at {self._nodes}?",
            )

    def _tell_changed(self) -> None:
        self._changed.set()
        self._changed = trio.Event()

    async def go_live(self) -> None:
        """Have the controller unfence this broker, and the metadata here say so. Cancelled: it may be so, or not.

        Not only the first of it: clients that this broker then serves would not be told of it, perhaps of no broker.
        """
        lifecycle = self._lifecycle
        assert lifecycle is not None, "a broker registers first"
        lifecycle.ready()
        self._hurry.set()
        while lifecycle.is_fenced or self._config.node_id not in self.source.image.live_brokers():
            with trio.move_on_after(_TELL_EVERY_S) as patience:
                await self._changed.wait()
            if patience.cancelled_caught:
                log.warning("the controller has not unfenced this broker yet, as far as the metadata here says")

    def cordons_changed(self) -> None:
        """See `MetadataKeeping.cordons_changed`: the next heartbeat says it, and it comes at once."""
        self._hurry.set()

    async def leave(self) -> None:
        """Have the leaders of this broker move to others, as far as they can, within `LEAVE_S_MAX`."""
        lifecycle = self._lifecycle
        if lifecycle is None or not self._config.get_bool("controlled.shutdown.enable"):
            return
        lifecycle.stop()
        self._hurry.set()
        self._heard_s = trio.current_time()
        with trio.move_on_after(LEAVE_S_MAX):
            while lifecycle.state is not BrokerState.STOPPED and trio.current_time() - self._heard_s < SILENCE_S_MAX:
                await self._changed.wait()
        if lifecycle.state is not BrokerState.STOPPED:
            log.warning("the controller did not let this broker go in time; it ends all the same")
