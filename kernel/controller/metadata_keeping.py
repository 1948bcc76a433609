"""Pure core: how a node has the metadata of its cluster: what the broker asks of whoever keeps or follows it.

| who | where |
| --- | --- |
| `controller.lone_controller.LoneController` | the one node that keeps the metadata log |
| `quorum.node.QuorumNode` | one of several that keep it together |
| `cluster.member.ClusterMember` | a broker that follows other nodes' |
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    import trio

    from ..metadata.controller_calls import ControllerCalls
    from ..metadata.feed_view import MetadataFeedView
    from ..metadata.image_source import ImageSource
    from ..metadata.partition_counts import PartitionCounts
    from ..metadata.quorum_figures import ControllerFigures, QuorumFigures
    from ..wire.message import Message
    from .brokers import Registration
    from .metadata_log import MetadataLog


class MetadataKeeping(Protocol):
    """Life: made when the metadata was read; `run` as a task, `register`, `go_live`, `leave`, `close`.

    Owned by the broker.
    """

    @property
    def source(self) -> ImageSource:
        """Where images come from."""
        ...

    @property
    def partition_counts(self) -> PartitionCounts:
        """Partitions that are not as they should be, and elections."""
        ...

    @property
    def broker_epoch(self) -> int:
        """This broker's epoch, -1 before it is registered."""
        ...

    @property
    def log(self) -> MetadataLog | None:
        """The controller, where it is here and takes changes; None elsewhere."""
        ...

    @property
    def figures(self) -> ControllerFigures | None:
        """What is counted of the controller of this node, whether it is the active one or not; None without one."""
        ...

    @property
    def is_live_once_registered(self) -> bool:
        """Whether this node's broker may lead, and clients are told of it, without `go_live`."""
        ...

    def quorum_figures(self) -> QuorumFigures | None:
        """Return how this node stands in the metadata quorum; None for one that is none of its controllers."""
        ...

    async def ask(self, request: Message, timeout_ms: int | None = None) -> Any:
        """See `ControllerCalls.ask`."""
        ...

    async def run(self, *, task_status: trio.TaskStatus[None]) -> None:
        """Write or follow the metadata, until `close` or cancelled."""
        ...

    async def register(self, registration: Registration) -> object:
        """Have the controller know this broker; the metadata is here then.

        Raises:
            ConfigError: The controller of another node refuses it, or is not found.
        """
        ...

    async def begin(self) -> None:
        """Have the metadata here, of a node that is no broker."""
        ...

    async def go_live(self) -> None:
        """Have clients told of this broker, which answers."""
        ...

    async def leave(self) -> None:
        """Have leaders move to other brokers before this one ends."""
        ...

    async def close(self) -> None:
        """Serve what waits, then end `run`."""
        ...

    def cordons_changed(self) -> None:
        """Have the controller told soon which log directories of this broker are cordoned."""
        ...

    def services(self) -> Iterator[tuple[str, Callable[..., Awaitable[None]]]]:
        """Iterate over what runs while the node serves, with names."""
        ...


class ControllerNode(MetadataKeeping, Protocol):
    """A node with a controller that serves others."""

    @property
    def feed(self) -> MetadataFeedView:
        """What is committed, for who follows it."""
        ...

    @property
    def controller(self) -> ControllerCalls:
        """The controller of this node alone: NOT_CONTROLLER while another node has it."""
        ...

    def suspect(self, broker_id: int, broker_epoch: int) -> None:
        """Have it looked at whether a broker is alive whose connection has ended."""
        ...

    def end_waits(self) -> None:
        """Let nobody wait for news any more: the node stops."""
        ...
