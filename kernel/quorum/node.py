"""Shell: a node among the controllers of a cluster: its replica of the metadata log, its terms, and the broker beside.

    channels   the election's messages, to the other voters
    log        the replica, which leads, follows or observes
    following  what the leader has comes here
    images     what is committed; the broker's metadata
    terms      the controller, while this node leads
    member     the broker beside it, which asks whoever is the controller
    registrar  has the controller know this node for one that may follow it
    upkeep     has the quorum know this node for a voter, where it is to be one

`opening.py` reads what is on the disk, `node_opening.py` puts the parts together.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import trio

from ..contracts.election import Role
from ..errors import ErrorCode, KafkaError
from ..metadata.controller_calls import OF_QUORUM
from ..metadata.partition_counts import MIN_INSYNC_REPLICAS, PartitionCounts
from ..metadata.quorum_figures import QuorumFigures

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from ..cluster.member import ClusterMember
    from ..config.broker import BrokerConfig
    from ..controller.brokers import Registration
    from ..controller.metadata_log import MetadataLog
    from ..wire.message import Message
    from .committed_images import CommittedImages
    from .following import MetadataFollowing
    from .known_controllers import KnownControllers
    from .own_voter import VoterUpkeep
    from .quorum_log import QuorumLog
    from .quorum_view import QuorumFeed
    from .registration import ControllerRegistrar
    from .terms import ControllerTerms
    from .voter_channels import VoterChannels

log = logging.getLogger(__name__)

SUCCESSION_S_MAX: Final = 2.0
"""How long a controller that stops waits until another one leads: who asks it meanwhile is told who it is."""


class QuorumNode:
    """`ControllerNode` of a quorum. Life: made, `run` as a task, `register` or `begin`, `go_live`, `leave`, `close`.

    Owned by the broker.

    Attributes:
        replica: Of the metadata log.
        images: What is committed of it.
        terms: The controller, in the epochs in which this node leads.
        feed: What other nodes may ask.
        partition_counts: Partitions that are not as they should be.
    """

    is_live_once_registered: bool = False

    def __init__(
        self,
        config: BrokerConfig,
        *,
        replica: QuorumLog,
        images: CommittedImages,
        terms: ControllerTerms,
        feed: QuorumFeed,
        following: MetadataFollowing,
        channels: VoterChannels,
        known: KnownControllers,
        member: ClusterMember | None,
        registrar: ControllerRegistrar,
        upkeep: VoterUpkeep,
    ) -> None:
        """Put it together; nothing runs yet."""
        self.replica, self.images, self.terms, self.feed = replica, images, terms, feed
        self._following, self._channels, self._known, self._member = following, channels, known, member
        self._registrar, self._upkeep = registrar, upkeep
        if member is not None:
            self.partition_counts = member.partition_counts
        else:
            self.partition_counts = PartitionCounts(config.node_id, config.get_int(MIN_INSYNC_REPLICAS))
            self.partition_counts.begin(images.image)
            images.add_listener(self.partition_counts.changed)

    def __repr__(self) -> str:
        return f"QuorumNode({self.replica!r})"

    @property
    def source(self) -> CommittedImages:
        """See `MetadataKeeping.source`."""
        return self.images

    @property
    def broker_epoch(self) -> int:
        """See `MetadataKeeping.broker_epoch`."""
        return -1 if self._member is None else self._member.broker_epoch

    @property
    def log(self) -> MetadataLog | None:
        """See `MetadataKeeping.log`."""
        return self.terms.active

    @property
    def figures(self) -> ControllerTerms:
        """See `MetadataKeeping.figures`."""
        return self.terms

    @property
    def controller(self) -> ControllerTerms:
        """See `ControllerNode.controller`."""
        return self.terms

    async def ask(self, request: Message, timeout_ms: int | None = None) -> Any:
        """See `ControllerCalls.ask`: whoever is the controller is asked, this node without a detour.

        What the quorum is asked itself is answered at its leader's listener, be that of this node.
        """
        if self._member is not None and request.__api_key__ in OF_QUORUM:
            return await self._member.ask(request, timeout_ms)
        try:
            return await self.terms.ask(request, timeout_ms)
        except KafkaError as error:
            if error.code is not ErrorCode.NOT_CONTROLLER or self._member is None:
                raise
        return await self._member.ask(request, timeout_ms)

    def quorum_figures(self) -> QuorumFigures:
        """See `MetadataKeeping.quorum_figures`."""
        replica, times = self.replica, self.replica.times
        state = replica.role.value
        if replica.role is Role.FOLLOWER and not self.feed.is_voter(replica.node_id, replica.directory_id):
            state = "observer"
        elif replica.role is Role.FOLLOWER and replica.leader_id < 0:
            state = "unattached"
        return QuorumFigures(
            replica.leader_id,
            self.feed.leader_epoch,
            state,
            replica.high_watermark,
            replica.end_offset,
            len(self.feed.listeners),
            times.elections.mean,
            times.elections.max,
            times.commits.mean,
            times.commits.max,
        )

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Take part in the quorum, and be heard of as a broker once registered, until cancelled.

        Raises:
            StorageError: The metadata log cannot be written or read, or is another one than what was committed.
            ConfigError: As `ClusterMember.run`.
            UnansweredError: As `ClusterMember.run`.
        """
        async with trio.open_nursery() as nursery:
            await nursery.start(self._channels.run)
            await nursery.start(self._known.run)
            await nursery.start(partial(self.replica.run, self._channels.send))
            await nursery.start(self.images.run)
            await nursery.start(self._following.run)
            await nursery.start(self.terms.run)
            await nursery.start(self._registrar.run)
            await nursery.start(self._upkeep.run)
            if self._member is not None:
                await nursery.start(self._member.run)
            task_status.started()

    async def register(self, registration: Registration) -> int:
        """See `ClusterMember.register`."""
        assert self._member is not None, "a node that is no broker begins without"
        return await self._member.register(registration)

    async def begin(self) -> None:
        """Wait until what the quorum has committed is here. Cancelled: nothing happens."""
        await self.images.wait_caught_up()

    async def go_live(self) -> None:
        """See `ClusterMember.go_live`."""
        if self._member is not None:
            await self._member.go_live()

    async def leave(self) -> None:
        """Have other brokers lead what this one leads, and another node the quorum, as far as they can.

        The last broker of a cluster that ends has nobody to leave anything to, and mostly no majority that decides it.
        """
        others = (each for each in self.images.image.brokers.values() if each.broker_id != self.replica.node_id)
        if not any(broker.is_live for broker in others):
            return
        if self._member is not None:
            await self._member.leave()
        with trio.move_on_after(SUCCESSION_S_MAX) as patience:
            await self.terms.leave()
            while self.replica.leader_id in (self.replica.node_id, -1):
                await self.replica.wait_changed()
        if patience.cancelled_caught:
            log.warning("no other controller leads yet; this one ends all the same")

    async def close(self) -> None:
        """Do nothing: what is committed is kept, and what is not is decided by the others."""

    def cordons_changed(self) -> None:
        """See `ClusterMember.cordons_changed`."""
        if self._member is not None:
            self._member.cordons_changed()

    def services(self) -> Iterator[tuple[str, Callable[..., Awaitable[None]]]]:
        """See `MetadataKeeping.services`: a term has its own."""
        return iter(())

    def suspect(self, broker_id: int, broker_epoch: int) -> None:
        """See `ControllerNode.suspect`; who is no controller leaves it to the one that is."""
        if self.terms.serving is not None:
            self.terms.serving.dead.suspect(broker_id, broker_epoch)

    def end_waits(self) -> None:
        """See `ControllerNode.end_waits`."""
        self.feed.end_waits()
