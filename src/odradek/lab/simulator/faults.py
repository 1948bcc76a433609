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
    from collections.abc import Callable
    from random import Random

    from .cluster import BrokerHost, Cluster
    from .network import Host

EVENTS_EXPONENT: Final = 12
OPERATIONS_EXPONENT: Final = 9
"""A crash comes after at most 2 ** n of them."""
DOWN_NS_MAX: Final = 20 * SECOND


@attrs.frozen
class Crash:
    """One crash.

    Attributes:
        is_by_operation: Whether operations of the disk are counted, or events.
        after: After how many.
        style: What the loss of power leaves; None if only the process dies.
        down_ns: How long nothing lives there afterwards.
    """

    is_by_operation: bool
    after: int
    style: PowerLoss | None
    down_ns: int

    @classmethod
    def drawn(cls, source: Random) -> Crash:
        """Draw one."""
        is_by_operation = source.random() < 0.5
        exponent = source.randrange(OPERATIONS_EXPONENT if is_by_operation else EVENTS_EXPONENT)
        return cls(
            is_by_operation,
            1 + source.randrange(1 << (exponent + 1)),
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
    ) -> None:
        """Plan crashes of a broker.

        Args:
            cluster: Where.
            target: Which; it is started by `run`.
            count: How many.
            on_crash: Told of each, as it happens.
            has_power_losses: Whether its machine may lose its power, or only the process dies.
        """
        self._world = cluster.world
        self._target = target
        self._on_crash = on_crash
        source = self._world.seeds.stream(FAULTS, "crashes", target.host.name)
        drawn = [Crash.drawn(source) for _ in range(count)]
        self._planned = drawn if has_power_losses else [attrs.evolve(crash, style=None) for crash in drawn]

    async def run(self) -> None:
        """Start it, and after each crash again; return when it serves after the last one."""
        target = self._target
        for crash in self._planned:
            crashed = self._arm(crash)
            target.start()
            await crashed.wait()
            await target.wait_ended()
            await trio.sleep(crash.down_ns / SECOND)
            if crash.style is not None:
                target.host.power_on()
        target.start()
        await target.wait_serving()

    def _arm(self, crash: Crash) -> trio.Event:
        crashed = trio.Event()
        passed = 0

        def count(_number: int) -> None:
            nonlocal passed
            passed += 1
            if passed == crash.after:
                self._disarm()
                self._world.note("crash", self._target.host.name, crash.after, crash.is_by_operation)
                self._on_crash(crash.style)
                self._target.crash(crash.style)
                crashed.set()

        if crash.is_by_operation:
            self._target.host.disk.before_operation = count
        else:
            self._world.before_event = count
        return crashed

    def _disarm(self) -> None:
        self._world.before_event = self._target.host.disk.before_operation = lambda _number: None


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
