"""Pure core: what a plugin runs inside a broker, and what it may ask of that broker.

.. versionadded:: 0.1
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from ..classes import frozen

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    import trio

    from ..machine.machine import Machine
    from ..types import LogOffsets
    from .assignor import Assignor
    from .coordinator import ClusterView
    from .observing import BrokerFigures
    from .transactions import MarkerWriter, Transactions


class ConfigView(Protocol):
    """The broker's configuration as it is now, dynamic layers included; see `odradek config describe` for the keys."""

    def get_int(self, name: str) -> int:
        """Return a number."""
        ...

    def get_float(self, name: str) -> float:
        """Return a number with a fraction."""
        ...

    def get_bool(self, name: str) -> bool:
        """Return a switch."""
        ...

    def get_text(self, name: str) -> str:
        """Return a text, empty when it is not set."""
        ...

    def get_list(self, name: str) -> tuple[str, ...]:
        """Return a list."""
        ...


class ServiceRun(Protocol):
    """How a service is run: `await nursery.start(run)`."""

    async def __call__(self, *, task_status: trio.TaskStatus[None]) -> None:
        """Call `task_status.started()` once it stands, then work until cancelled."""
        ...


class ServicePrepare(Protocol):
    """How a service is prepared."""

    async def __call__(self) -> None:
        """Take what has to be there before the broker touches a disk."""
        ...


class ServiceCall(Protocol):
    """How a service is closed, or asked where it listens: a plain call without arguments."""

    def __call__(self) -> object:
        """Do it at once."""
        ...


class MetricRead(Protocol):
    """How a metric is read, whenever somebody asks."""

    def __call__(self) -> Mapping[tuple[str, ...], float]:
        """Return the values by label values."""
        ...


async def _nothing_to_prepare() -> None:
    pass


@frozen
class Service:
    """A long-running task of a plugin.

    Attributes:
        name: For logs and task names.
        run: `await nursery.start(run)`: calls `task_status.started()` once it stands, then works until cancelled.
        prepare: Awaited once before the broker touches a disk: takes a port, refuses settings. What it raises ends
            the start: a `ConfigError` with its one line.
        close: Called at the broker's end, also where `run` never was: gives back what `prepare` took.
        address: Returns where the service listens, once it is prepared: `odradek serve` says it. Empty for nowhere.
    """

    name: str
    run: Callable[..., Awaitable[None]]
    prepare: Callable[[], Awaitable[None]] = _nothing_to_prepare
    close: Callable[[], object] = lambda: None
    address: Callable[[], str] = lambda: ""


@frozen
class Metric:
    """A number that can be asked for.

    Attributes:
        name: Kafka's metric name in Prometheus form, or `odradek_...`.
        help: One sentence.
        kind: `counter` or `gauge`.
        read: Returns the values by label values; the empty tuple for a metric without labels.
            Where there are many, `items` may make them one by one: clients are served in between.
        labels: Label names, in the order of the keys that `read` returns.
    """

    name: str
    help: str
    kind: str
    read: Callable[[], Mapping[tuple[str, ...], float]]
    labels: tuple[str, ...] = ()


class BrokerHandle(Protocol):
    """What a plugin may ask of the broker that it lives in."""

    @property
    def node_id(self) -> int:
        """This broker's id."""
        ...

    @property
    def cluster_id(self) -> str:
        """The cluster's id, once the broker serves."""
        ...

    @property
    def machine(self) -> Machine:
        """All that a plugin takes of the host and is no computation: clocks, chance, ids, files, threads, sockets.

        What a plugin does by other means than these does not follow the time, the faults and the chance of a test.
        """
        ...

    @property
    def config(self) -> ConfigView:
        """The configuration; always the newest."""
        ...

    @property
    def cluster(self) -> ClusterView:
        """The committed metadata; always the newest."""
        ...

    @property
    def assignors(self) -> Mapping[str, Assignor]:
        """What active plugins offer as assignors, by name."""
        ...

    @property
    def marker_writer(self) -> MarkerWriter:
        """Brings the ends of transactions to partitions; to be asked for when it is needed, once the broker serves."""
        ...

    @property
    def transactions(self) -> Transactions | None:
        """The transaction coordinator, None when no active plugin has one; ask for it when it is needed."""
        ...

    @property
    def figures(self) -> BrokerFigures:
        """What it counts and how it stands; to be asked for by metrics and services, and by what they run."""
        ...

    def offsets(self, topic: str, partition: int) -> LogOffsets | None:
        """Return the offsets of a replica of this broker, None when it has none or cannot read it."""
        ...

    def may_leave_disk(self, topic: str, partition: int, below: int) -> int | None:
        """Return up to where a log may leave the disk for a store, at most `below`; None where none of it waits."""
        ...

    async def new_producer_id(self) -> int:
        """Return a producer id that no other producer of the cluster has. If it is cancelled, ids are lost.

        Raises:
            KafkaError: The controller cannot give one now.
        """
        ...

    def settings(self, plugin: str) -> Mapping[str, object]:
        """Return the plugin's own section `[plugins.NAME]`."""
        ...
