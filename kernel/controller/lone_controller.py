"""Shell: the metadata of the one node that keeps its log: of a broker alone, or of the controller of others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..metadata.quorum_figures import QuorumFigures

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping
    from uuid import UUID

    import trio

    from ..machine.machine import Machine
    from ..metadata.controller_calls import ObserverView
    from ..metadata.partition_counts import PartitionCounts
    from ..wire.message import Message
    from .brokers import Registration
    from .metadata_feed import MetadataFeed
    from .metadata_log import MetadataLog
    from .own_cordons import OwnCordons
    from .rules import ControllerRules
    from .serving import ControllerServing


class LoneController:
    """`MetadataKeeping` over a metadata log of this node; a `ControllerNode` once it is made to serve others."""

    is_live_once_registered = True

    def __init__(self, metadata: MetadataLog, cordons: OwnCordons) -> None:
        """Take the log, loaded, and what tells it of cordoned log directories of this node."""
        self._metadata = metadata
        self._cordons = cordons
        self._serving: ControllerServing | None = None
        self._feed: MetadataFeed | None = None

    def __repr__(self) -> str:
        return f"LoneController({self._metadata!r})"

    def serve_others(
        self, rules: ControllerRules, machine: Machine, failed_directories: Callable[[], Collection[UUID]]
    ) -> None:
        """Serve the controller to other nodes, and tell them of what is committed; see `ControllerServing`."""
        from ..config.listeners import controller_endpoints  # a broker alone does not pay for it
        from .metadata_feed import MetadataFeed
        from .serving import ControllerServing

        self._feed = MetadataFeed(
            self._metadata,
            node_id=rules.node_id,
            sessions=rules.sessions,
            clock=machine.clock,
            listeners=controller_endpoints(rules.config, machine.network.host_name()),
        )
        self._serving = ControllerServing(self._metadata, rules, machine, failed_directories)

    @property
    def serving(self) -> ControllerServing:
        """What serves the controller to other nodes."""
        assert self._serving is not None, "this broker serves its controller to nobody"
        return self._serving

    @property
    def source(self) -> MetadataLog:
        """See `MetadataKeeping.source`."""
        return self._metadata

    @property
    def log(self) -> MetadataLog:
        """See `MetadataKeeping.log`."""
        return self._metadata

    @property
    def figures(self) -> MetadataLog:
        """See `MetadataKeeping.figures`."""
        return self._metadata

    @property
    def partition_counts(self) -> PartitionCounts:
        """See `MetadataKeeping.partition_counts`."""
        return self._metadata.partition_counts

    @property
    def broker_epoch(self) -> int:
        """See `MetadataKeeping.broker_epoch`."""
        return self._metadata.broker_epoch

    def quorum_figures(self) -> QuorumFigures | None:
        """See `MetadataKeeping.quorum_figures`; a broker alone has no quorum to speak of."""
        feed = self._feed
        if feed is None:
            return None
        return QuorumFigures(feed.leader_id, feed.leader_epoch, "leader", feed.end_offset, self._metadata.end_offset, 1)

    async def ask(self, request: Message, timeout_ms: int | None = None) -> Any:
        """See `ControllerCalls.ask`."""
        return await self._metadata.ask(request, timeout_ms)

    async def run(self, *, task_status: trio.TaskStatus[None]) -> None:
        """See `MetadataLog.run`."""
        await self._metadata.run(task_status=task_status)

    async def register(self, registration: Registration) -> int:
        """See `MetadataLog.register`."""
        return await self._metadata.register(registration)

    async def begin(self) -> None:
        """See `MetadataLog.format`."""
        await self._metadata.format()

    async def go_live(self) -> None:
        """Do nothing: this node's broker is told of already."""

    async def leave(self) -> None:
        """See `ControllerServing.leave`."""
        if self._serving is not None:
            await self._serving.leave()

    async def close(self) -> None:
        """See `MetadataLog.close`."""
        await self._metadata.close()

    def services(self) -> Iterator[tuple[str, Callable[..., Awaitable[None]]]]:
        """See `MetadataKeeping.services`."""
        yield "own cordons", self._cordons.run
        if self._serving is not None:
            yield from self._serving.services()

    def cordons_changed(self) -> None:
        """See `MetadataKeeping.cordons_changed`."""
        self._cordons.changed()

    @property
    def feed(self) -> MetadataFeed:
        """See `ControllerNode.feed`."""
        assert self._feed is not None, "this broker serves its controller to nobody"
        return self._feed

    @property
    def observers(self) -> Mapping[int, ObserverView]:
        """By broker id, those that asked for news since the controller began."""
        return {} if self._feed is None else self._feed.observers

    @property
    def controller(self) -> LoneController:
        """See `ControllerNode.controller`."""
        return self

    def suspect(self, broker_id: int, broker_epoch: int) -> None:
        """See `ControllerNode.suspect`."""
        self.serving.dead.suspect(broker_id, broker_epoch)

    def end_waits(self) -> None:
        """See `ControllerNode.end_waits`."""
        self.feed.end_waits()
