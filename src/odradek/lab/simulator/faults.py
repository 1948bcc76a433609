"""Shell: what goes wrong in a run: crashes in the middle of anything, and a network that is not always there.

A crash comes when so many events of the run, or operations of the disk, have passed since the broker began to live: in
its start, while it serves, in the middle of a write. Few come late, so that starts are met as well.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import attrs
import trio

from odradek.testing.faults import PowerLoss

from .seeds import FAULTS, between
from .world import MILLISECOND, SECOND

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import PurePath
    from random import Random

    from .cluster import BrokerHost, Cluster
    from .network import Host
    from .world import World

EVENTS_EXPONENT: Final = 12
OPERATIONS_EXPONENT: Final = 9
MARKED_EXPONENT: Final = 6
"""A crash comes after at most 2 ** n of them."""
DOWN_NS_MAX: Final = 20 * SECOND


@attrs.frozen
class Counted:
    """What is counted until a crash comes.

    Attributes:
        is_by_operation: Whether operations of the disk are counted, or events of the run.
        marks: Of operations, only those on files whose names end so; all if there are none.
        exponent: At most 2 ** n of them pass.
    """

    is_by_operation: bool
    exponent: int
    marks: tuple[str, ...] = ()

    def counts(self, path: PurePath) -> bool:
        """Say whether an operation on a file is counted."""
        return not self.marks or path.name.endswith(self.marks)


EVENTS: Final = Counted(False, EVENTS_EXPONENT)
OPERATIONS: Final = Counted(True, OPERATIONS_EXPONENT)


def operations_on(*marks: str) -> Counted:
    """Return what counts operations on files whose names end so."""
    return Counted(True, MARKED_EXPONENT, marks)


@attrs.frozen
class Crash:
    """One crash.

    Attributes:
        counted: What passes until it comes.
        after: How many of these.
        style: What the loss of power leaves; None if only the process dies.
        down_ns: How long nothing lives there afterwards.
    """

    counted: Counted
    after: int
    style: PowerLoss | None
    down_ns: int

    @classmethod
    def drawn(cls, source: Random, choices: Sequence[Counted] = (EVENTS, OPERATIONS)) -> Crash:
        """Draw one, of which one of these is counted."""
        counted = source.choice(choices)
        return cls(
            counted,
            1 + source.randrange(1 << (source.randrange(counted.exponent) + 1)),
            source.choice((None, None, None, PowerLoss.LOST, PowerLoss.KEPT, PowerLoss.TORN, PowerLoss.TORN)),
            between(source, MILLISECOND, DOWN_NS_MAX),
        )


class Crashes:
    """Crashes one broker again and again, and starts it anew."""

    def __init__(
        self,
        cluster: Cluster,
        target: BrokerHost,
        count: int,
        on_crash: Callable[[PowerLoss | None], None],
        *,
        has_power_losses: bool = True,
        counted: Sequence[Counted] = (EVENTS, OPERATIONS),
    ) -> None:
        """Plan crashes of a broker.

        Args:
            cluster: Where.
            target: Which; it is started by `run`.
            count: How many.
            on_crash: Told of each, as it happens.
            has_power_losses: Whether its machine may lose its power, or only the process dies.
            counted: What may be counted until one comes; each as often.
        """
        self._world = cluster.world
        self._target = target
        self._on_crash = on_crash
        source = self._world.seeds.stream(FAULTS, "crashes", target.host.name)
        drawn = [Crash.drawn(source, counted) for _ in range(count)]
        self._planned = drawn if has_power_losses else [attrs.evolve(crash, style=None) for crash in drawn]

    async def run(self) -> None:
        """Start it, and after each crash again; return when it serves after the last one."""
        target = self._target
        for crash in self._planned:
            crashed = arm(self._world, target, crash, self._on_crash)
            target.start()
            await outlast(crashed, target, crash)
        target.start()
        await target.wait_serving()


def arm(world: World, target: BrokerHost, crash: Crash, on_crash: Callable[[PowerLoss | None], None]) -> trio.Event:
    """Let a crash come when its time is there; the event is set then.

    Args:
        world: Whose events are counted.
        target: What crashes.
        crash: When, and how.
        on_crash: Told of it, as it happens.
    """

    def fall() -> None:
        world.note("crash", target.host.name, crash.after, crash.counted.is_by_operation)
        on_crash(crash.style)
        target.crash(crash.style)

    return when(world, target, crash.counted, crash.after, fall)


def when(world: World, target: BrokerHost, counted: Counted, after: int, happen: Callable[[], object]) -> trio.Event:
    """Let something happen in the middle of anything; the event is set then.

    Args:
        world: Whose events are counted.
        target: Whose disk's operations are.
        counted: Which of both.
        after: How many pass until it happens.
        happen: What.
    """
    happened = trio.Event()
    passed = 0

    def count() -> None:
        nonlocal passed
        passed += 1
        if passed == after:
            world.before_event = lambda: None
            target.host.disk.before_operation = lambda _path: None
            happen()
            happened.set()

    def count_operation(path: PurePath) -> None:
        if counted.counts(path):
            count()

    if counted.is_by_operation:
        target.host.disk.before_operation = count_operation
    else:
        world.before_event = count
    return happened


async def outlast(crashed: trio.Event, target: BrokerHost, crash: Crash) -> None:
    """Wait until a crash has come and gone, so that the broker can be started again.

    Args:
        crashed: What `arm` returned.
        target: What crashes.
        crash: How.
    """
    await crashed.wait()
    await target.wait_ended()
    await trio.sleep(crash.down_ns / SECOND)
    if crash.style is not None:
        target.host.power_on()


def kind_of(style: PowerLoss | None) -> str:
    """Return as what a crash is counted, by what its loss of power leaves."""
    return "process crashes" if style is None else f"power losses, {style.value}"


class NetworkTrouble:
    """Cuts, stalls and resets what clients have with one broker, until cancelled; then the network is whole.

    Attributes:
        counts: How often, by what.
    """

    def __init__(self, cluster: Cluster, target: BrokerHost) -> None:
        """Trouble the connections of a broker."""
        self._network = cluster.network
        self._random = cluster.world.seeds.stream(FAULTS, "network")
        self._server = target.host.host
        self._pause_ns_max = 1 << self._random.randrange(29, 34)
        self.counts: dict[str, int] = {"cut": 0, "stall": 0, "reset": 0}

    async def run(self) -> None:
        """Do it."""
        source, server = self._random, self._server
        try:
            while True:
                await trio.sleep(between(source, MILLISECOND, self._pause_ns_max) / SECOND)
                others = [host for host in self._network.hosts.values() if host is not server]
                pair = [source.choice(others), server]
                source.shuffle(pair)
                what = source.choice(("cut", "stall", "reset"))
                duration_ns = between(source, MILLISECOND, 20 * SECOND)
                self.counts[what] += 1
                await self._trouble(what, pair[0], pair[1], duration_ns)
        finally:
            for source_host in self._network.hosts.values():
                for target_host in self._network.hosts.values():
                    self._network.heal(source_host, target_host)

    async def _trouble(self, what: str, source: Host, target: Host, duration_ns: int) -> None:
        if what == "cut":
            self._network.cut(source, target)
            await trio.sleep(duration_ns / SECOND)
            self._network.heal(source, target)
        elif what == "stall":
            self._network.stall(source, target, duration_ns)
        elif self._server.sockets:
            self._network.reset(self._random.choice([*self._server.sockets.values()]))
