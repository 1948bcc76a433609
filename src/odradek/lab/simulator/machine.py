"""Shell: a simulated `Machine`: what one process of a simulated host takes that is not computation.

    SimulatedHost   name, disk, link to the network: outlives its processes
      Process       one life on it: a Machine, and its end by `kill`

What a machine that is not simulated has besides (the C pump, `sendfile`, worker processes) is switched off by
`Network.is_system` and `Machine.processes`.
"""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING, Final, NoReturn
from uuid import UUID

import trio

from odradek.kernel.machine.machine import Machine
from odradek.kernel.machine.network import Address

from .disk import Disk
from .files import Files
from .logs import living
from .scheduling import go_on, stand_still
from .seeds import IDS, SCHEDULING, between
from .sockets import INTERNET, READ, ListeningSocket, Poller, system_error, unknown_name
from .stream import Stream, connect
from .threads import Threads
from .world import MICROSECOND, MILLISECOND, SECOND, WALL_START_MS

if TYPE_CHECKING:
    import random
    from collections.abc import Awaitable, Callable, Sequence
    from pathlib import Path

    from odradek.testing.faults import PowerLoss

    from .network import Host, Network
    from .world import World

STEP_NS_MAX: Final = 40 * MICROSECOND
"""How much later each question finds the timer of latencies and turns, at most: computing takes some time, too."""


class HostClock:
    """Both clocks of a host; see `kernel.machine.clock.Clock`.

    What waits in trio goes by the world's time, whatever its host's clocks show.

    Attributes:
        skew_ms: How far the wall clock is off, beside what its rate makes of it.
    """

    def __init__(self, world: World) -> None:
        """Make clocks that are right."""
        self._world = world
        self._rate = 1000
        self._ahead_ns = 0
        self._since_ns = world.now_ns
        self.skew_ms = 0

    def go_at(self, rate: int) -> None:
        """Let both go at a rate from now on, in thousandths of the world's. No moment is shown twice or left out."""
        self._ahead_ns, self._since_ns = self._off_ns(), self._world.now_ns
        self._rate = rate

    def _off_ns(self) -> int:
        return self._ahead_ns + (self._world.now_ns - self._since_ns) * (self._rate - 1000) // 1000

    def now_ms(self) -> int:
        """See `Clock.now_ms`."""
        return WALL_START_MS + (self._world.elapsed_ns + self._off_ns()) // MILLISECOND + self.skew_ms

    def monotonic_ms(self) -> int:
        """See `Clock.monotonic_ms`."""
        return (self._world.now_ns + self._off_ns()) // MILLISECOND


class Timer:
    """A clock of a process that goes on while it computes, a little: for latencies, and how long a turn takes."""

    def __init__(self, world: World, source: random.Random) -> None:
        self._world = world
        self._random = source
        self._last_ns = 0

    def __call__(self) -> float:
        """Return seconds, never less than before."""
        step_ns = between(self._random, 0, STEP_NS_MAX)
        self._last_ns = max(self._world.now_ns, self._last_ns + step_ns)
        return self._last_ns / SECOND


class StreamListeners:
    """See `kernel.machine.network.StreamListeners`."""

    def __init__(self, network: Network, listening: ListeningSocket) -> None:
        self._network = network
        self._listening = listening

    @property
    def address(self) -> tuple[str, int]:
        """See `StreamListeners.address`."""
        return self._listening.getsockname()

    async def serve(self, handler: Callable[[trio.abc.Stream], Awaitable[object]]) -> NoReturn:
        """See `StreamListeners.serve`."""
        listening = self._listening
        poller = Poller(self._network, listening.host)
        poller.register(listening.fileno(), READ)
        async with trio.open_nursery() as nursery:
            while True:
                await poller.wait()
                served, _ = listening.accept()
                nursery.start_soon(handler, Stream(served))

    def close(self) -> None:
        """See `StreamListeners.close`."""
        self._listening.close()


class HostNetwork:
    """The network as a process of one host sees it; see `kernel.machine.network.Network`.

    Attributes:
        is_dead: Whether the process has died: then it gets no more connections, and is not told so.
    """

    is_system = False

    def __init__(self, network: Network, host: Host) -> None:
        self._network = network
        self._host = host
        self.is_dead = False

    def host_name(self) -> str:
        """See `Network.host_name`."""
        return self._host.name

    def listen(self, host: str, port: int, *, backlog: int, receive_buffer_bytes: int) -> ListeningSocket:
        """See `Network.listen`."""
        found = self._network.resolve(host, self._host)
        if found is None:
            raise unknown_name()
        if found is not self._host:
            raise system_error(errno.EADDRNOTAVAIL)
        return ListeningSocket(self._network, self._host, port, backlog)

    async def listen_streams(self, host: str, port: int) -> StreamListeners:
        """See `Network.listen_streams`."""
        await trio.lowlevel.checkpoint()
        return StreamListeners(self._network, self.listen(host, port, backlog=50, receive_buffer_bytes=0))

    def new_poller(self) -> Poller:
        """See `Network.new_poller`."""
        return Poller(self._network, self._host)

    async def resolve(self, host: str, port: int) -> Sequence[Address]:
        """See `Network.resolve`."""
        await trio.lowlevel.checkpoint()
        found = self._network.resolve(host, self._host)
        if found is None:
            raise unknown_name()
        return [Address(INTERNET, (found.address, port))]

    async def connect(self, address: Address, *, send_buffer_bytes: int, receive_buffer_bytes: int) -> Stream:
        """See `Network.connect`."""
        if self.is_dead:
            await trio.sleep_forever()
        return await connect(self._network, self._host, address.host, address.where[1])


class Process:
    """One life on a host: its machine, until `kill`.

    Attributes:
        name: Its host's, and the how many-th it is there.
        machine: What it takes of its host.
        is_dead: Whether it was killed.
        is_paused: Whether it stands still.
    """

    def __init__(self, host: SimulatedHost, number: int) -> None:
        """Begin a life; `SimulatedHost.start_process` does it."""
        world, name = host.world, host.name
        self._host = host
        self._files = Files(host.disk, host.locked)
        self._threads = Threads(world, host.disk, f"{name}/{number}")
        self._network = HostNetwork(host.network, host.host)
        self._scope = trio.CancelScope()
        self.name = f"{name}/{number}"
        self.is_dead = False
        self.is_paused = False
        self.machine = Machine(
            clock=host.clock,
            timer=Timer(world, world.seeds.stream(SCHEDULING, "timer", name, str(number))),
            random=world.seeds.stream(IDS, name, str(number)),
            files=self._files,
            threads=self._threads,
            processes=None,
            network=self._network,
            boot_id=UUID(int=host.boots_count),
        )

    async def run(self, main: Callable[[], Awaitable[object]]) -> None:
        """Run what it consists of, until that ends or the process is killed: then nothing of it is heard."""
        living.set(self)
        try:
            with self._scope:
                await main()
        except Exception:
            if not self.is_dead:
                raise

    def pause(self) -> None:
        """Let it stand still as SIGSTOP does: neither tasks nor threads go on, while clocks, disk and network do."""
        if not self.is_paused and not self.is_dead:
            self.is_paused = True
            stand_still(self)
            self._threads.stand_still()

    def resume(self) -> None:
        """Let it go on as SIGCONT does, at this moment."""
        if self.is_paused:
            self.is_paused = False
            self._threads.go_on()
            go_on(self)
            self._host.world.after(0, lambda: None)  # time does not pass before something has happened now

    def kill(self) -> None:
        """End it as `kill -9` does. What it still does, to its tasks' next checkpoints, has no effect."""
        if self.is_dead:
            return
        self.is_dead = True
        self._host.world.killed_ns = self._host.world.now_ns
        self._files.end()
        self._threads.end()
        self.resume()  # its tasks get the turns that they need to end
        self._network.is_dead = True
        self._host.process_ended(self)
        self._scope.cancel()


class SimulatedHost:
    """A machine with a disk, a name and an address, on which one process lives after the other.

    Attributes:
        world: Whose time it is.
        network: What it is connected to.
        host: What the network knows of it.
        disk: Its disk.
        clock: Its clocks.
        locked: The paths that its process has locked.
        boots_count: How often its kernel has begun.
        process: What lives on it now, if anything.
    """

    def __init__(self, world: World, network: Network, name: str) -> None:
        """Connect a new host."""
        self.world = world
        self.network = network
        self.name = name
        self.host = network.add_host(name)
        self.disk = Disk(world, name)
        self.clock = HostClock(world)
        self.locked: dict[Path, Files] = {}
        self.process: Process | None = None
        self.boots_count = 1
        self._processes_count = 0

    def start_process(self) -> Process:
        """Let a new process live here; the one before has ended."""
        assert self.process is None, f"a process lives on {self.name}"
        self._processes_count += 1
        self.world.note("process", self.name, self._processes_count)
        self.process = Process(self, self._processes_count)
        return self.process

    def process_ended(self, process: Process) -> None:
        """Take back what a process had: connections, ports."""
        if self.process is process:
            self.process = None
            if self.host.is_up:
                self.network.end_process(self.host)

    def kill_process(self) -> None:
        """End its process as `kill -9` does."""
        if self.process is not None:
            self.world.note("killed", self.name)
            self.process.kill()

    def lose_power(self, style: PowerLoss) -> None:
        """End its process, let it vanish from the network, and leave of its disk what a loss of power leaves."""
        self.network.power_off(self.host)
        if self.process is not None:
            self.process.kill()
        self.disk.lose_power(style)
        self.boots_count += 1

    def power_on(self) -> None:
        """Let it be there again; nothing lives on it."""
        self.network.power_on(self.host)
