"""Shell: a real broker inside a test's process: a real port, a data directory of its own, on a thread of its own.

    from odradek.testing.running_broker import running_broker

    with running_broker({"num.partitions": 4}) as broker:
        producer = Producer({"bootstrap.servers": broker.bootstrap})
        broker.fail_next("Produce", "NOT_LEADER_OR_FOLLOWER", times=3)

The broker runs in trio on its own thread, so the test may use threads, asyncio or trio as it likes. What the broker
consists of is imported when the first one is started: a test run that starts none pays nothing.
"""

from __future__ import annotations

import os
import socket
import tempfile
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from .broker_faults import BrokerFaults
from .broker_helpers import BrokerHelpers
from .broker_thread import BrokerDiedError, BrokerThread

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from datetime import timedelta

    from odradek.kernel.broker import BrokerOptions
    from odradek.kernel.broker.parts import BrokerParts
    from odradek.kernel.machine.files import Files
    from odradek.kernel.machine.machine import Machine

    from .advanced_clock import AdvancedClock
    from .certificates import Certificates
    from .cut_network import CutNetwork
    from .killable_files import KillableFiles
    from .virtual_time import SharedTime, VirtualTime

__all__ = ["TEST_SETTINGS", "BrokerDiedError", "RunningBroker", "running_broker"]

TEST_SETTINGS: Final = {"group.initial.rebalance.delay.ms": "0", "listeners": "PLAINTEXT://127.0.0.1:0"}
"""What differs from a broker that is no test's: it takes a free port; and in Kafka, the first member of a new classic
group waits three seconds for others. That spares a deployment some rebalances, and would cost every test that reads as
a group three seconds."""
TLS_LISTENERS: Final = "PLAINTEXT://127.0.0.1:0,SSL://localhost:0"
"""The listeners of a broker with TLS that is not told others."""


def settings_text(settings: Mapping[str, object] | None) -> dict[str, str]:
    """Return a test's settings as a configuration file would have them."""
    given = (settings or {}).items()
    return {key: str(value).lower() if isinstance(value, bool) else str(value) for key, value in given}


class RunningBroker(BrokerFaults, BrokerHelpers):
    """A broker that serves, with what a test may do to it. One thread at a time may use it.

    Life: it serves from the beginning of `running_broker`'s block; `stop` or `kill`, and `start`, as often as you like;
    the block's end stops it.

    Attributes:
        data_dir: Where it keeps its logs.

    .. versionadded:: 0.1
    """

    def __init__(
        self,
        data_dir: Path,
        read_options: Callable[[Mapping[str, str]], BrokerOptions],
        files: Files | None,
        certificates: Certificates | None,
        *,
        is_time_virtual: bool = False,
        clock: AdvancedClock | None = None,
        network: CutNetwork | None = None,
    ) -> None:
        """Make a broker that `start` starts.

        Args:
            data_dir: Where it keeps its logs.
            read_options: Returns what it is started with, given settings that beat all others.
            files: What it keeps goes through them; by default the machine's own, which can be killed.
            certificates: Those of its listeners with TLS.
            is_time_virtual: Whether `advance` can let time pass.
            clock: By which its time passes, if that of others does, too; then it passes for all of them at once.
            network: By which it is reached, and can be cut off; None for the machine's own.
        """
        super().__init__()
        self.data_dir = data_dir
        self._read_options = read_options
        self._files = files
        self._certificates = certificates
        self._is_time_virtual = is_time_virtual
        self._clock = clock
        self._network = network
        self._time: VirtualTime | None = None
        self._killable: KillableFiles | None = None
        self._addresses: dict[str, str] = {}
        self._bound: dict[str, tuple[str, int]] = {}
        self._held_ports: list[socket.socket] = []

    def __repr__(self) -> str:
        state = "stopped" if self._thread is None else "paused" if self._thread.is_paused else "serving"
        return f"<RunningBroker {self.bootstrap}, {state}>"

    # ---------------------------------------------------------------------------------------------------- addresses

    @property
    def bootstrap(self) -> str:
        """`HOST:PORT` of its first listener, for `bootstrap.servers`."""
        return next(iter(self._addresses.values()))

    def bootstrap_of(self, listener: str) -> str:
        """Return `HOST:PORT` of the listener of this name: `SSL`, where it was given no other.

        Raises:
            ValueError: The broker has none of this name; with those that it has.
        """
        address = self._addresses.get(listener.upper())
        if address is None:
            raise ValueError(f"the broker has no listener {listener!r}; it has {', '.join(self._addresses)}")
        return address

    @property
    def certificates(self) -> Certificates:
        """What its clients with TLS need.

        Raises:
            ValueError: It was not started with `tls=True`.
        """
        if self._certificates is None:
            raise ValueError("the broker has no certificates of the test's own: start it with `tls=True`")
        return self._certificates

    @property
    def host(self) -> str:
        """The address of its first listener."""
        return self.bootstrap.rpartition(":")[0]

    @property
    def port(self) -> int:
        """The port of its first listener."""
        return int(self.bootstrap.rpartition(":")[2])

    def leader(self, topic: str, partition: int = 0) -> int:
        """Return the id of the broker that leads a partition as far as this one knows; -1 for none.

        Raises:
            ValueError: It knows of no such partition; or it is stopped.
            BrokerDiedError: It ended by itself.
        """
        found = self._running("leader").leader_of(topic, partition)
        if found is None:
            raise ValueError(f"leader: there is no partition {partition} of a topic {topic!r}")
        return found

    # --------------------------------------------------------------------------------------------------------- life

    def check(self) -> None:
        """Do nothing while the broker lives: for a test that wonders why its client waits.

        Raises:
            BrokerDiedError: It ended by itself.
        """
        if self._thread is not None:
            self._thread.check()

    def start(self) -> None:
        """Start it on the same ports with the same data; nothing happens when it was started already.

        Raises:
            OdradekError: It cannot start: as `odradek serve` says it.
        """
        if self._thread is not None:
            return
        import attrs

        from odradek.kernel.broker import Broker
        from odradek.kernel.machine.system.machine import real_machine

        from .killable_files import KillableFiles

        options = self._read_options(self._same_ports())
        files = self._files or KillableFiles(is_flushed=not self._is_time_virtual)
        self._killable = files if isinstance(files, KillableFiles) else None
        machine = attrs.evolve(real_machine(), files=files)
        if self._network is not None:
            machine = attrs.evolve(machine, network=self._network)
        if self._is_time_virtual:
            thread = self._in_virtual_time(options, machine)
        else:
            thread = BrokerThread(Broker(options, machine=machine, on_parts=self._handlers.attach))
        self._release_ports()
        thread.start()
        self._thread = thread
        self._addresses = {bound.name: bound.advertised for bound in thread.listeners}
        # One that is taken for a listener which clients are not told of, as a controller's, stays that.
        self._bound |= {bound.name: (bound.host, bound.port) for bound in thread.listeners}

    def _in_virtual_time(self, options: BrokerOptions, machine: Machine) -> BrokerThread:
        from odradek.kernel.broker import Broker

        from .virtual_time import VirtualTime

        time = self._time = self._time or VirtualTime(machine, self._clock)

        def attach(parts: BrokerParts) -> None:
            time.attach(parts)
            self._handlers.attach(parts)

        return BrokerThread(Broker(options, machine=time.begin_life(machine), on_parts=attach), time.clock)

    def _same_ports(self) -> dict[str, str]:
        """Return the setting of listeners with the ports that they had; nothing before the first start."""
        if not self._bound:
            return {}
        listeners = []
        for text in self._read_options({}).config.get_list("listeners"):
            name = text.partition(":")[0].upper()
            listeners.append(f"{text.rpartition(':')[0]}:{self._bound[name][1]}" if name in self._bound else text)
        return {"listeners": ",".join(listeners)}

    def stop(self) -> None:
        """Stop it as SIGTERM does: what is in flight is answered, everything is kept. A second time nothing happens.

        Raises:
            BrokerDiedError: It had ended by itself.
        """
        thread, self._thread = self._thread, None
        if thread is not None:
            try:
                thread.stop(self._handlers.release)
            finally:
                self._hold_ports()

    def kill(self) -> None:
        """End it as `kill -9` does: nobody is answered, and nothing is on the disk but what was written before.

        The next `start` recovers it as after a crash. What a plugin keeps by other means than the broker's files ends
        as that plugin ends it.

        Raises:
            BrokerDiedError: It had ended by itself.
            ValueError: It is stopped, or was given `files` of the test's own.
        """
        thread = self._running("kill")
        if self._killable is None:
            raise ValueError("kill: the broker keeps its data in files of the test's own: let those fail instead")
        self._thread = None
        try:
            thread.kill(self._killable)
        finally:
            self._hold_ports()

    def pause(self) -> None:
        """Have it do nothing, as SIGSTOP does: clients can connect and are not answered until `resume`."""
        self._running("pause").pause()

    def resume(self) -> None:
        """Let it go on after `pause`; nothing happens otherwise."""
        self._running("resume").resume()

    def isolate(self) -> None:
        """Cut it off: until `heal` nothing reaches it, and nothing leaves it. It may be stopped.

        Raises:
            ValueError: It is a single broker, or this system has no epoll.
        """
        if self._network is None:
            raise ValueError("isolate: only brokers of `running_cluster` are cut off, where the system has epoll")
        self._on_its_thread(self._network.cut)

    def heal(self) -> None:
        """Connect it again after `isolate`; nothing happens otherwise."""
        if self._network is not None and self._network.is_cut:
            self._on_its_thread(self._network.heal)

    @property
    def is_serving(self) -> bool:
        """Whether it was started, and neither stopped nor paused since."""
        return self._thread is not None and not self._thread.is_paused

    @property
    def is_isolated(self) -> bool:
        """Whether it is cut off."""
        return self._network is not None and self._network.is_cut

    def _on_its_thread(self, function: Callable[[], None]) -> None:
        if self._thread is None:
            function()
        else:
            self._running("isolate, heal").call(function)

    # --------------------------------------------------------------------------------------------------------- time

    def share_time(self) -> SharedTime | None:
        """Return its part in a time that passes for several brokers; None while it is stopped or paused."""
        if self._thread is None or self._thread.is_paused or self._time is None:
            return None
        return self._time.share(self._running("advance"))

    def now_ms(self) -> int:
        """Return the broker's wall clock, in milliseconds since the Unix epoch: for the timestamps of records."""
        from odradek.kernel.machine.clock import SystemClock

        return SystemClock().now_ms() if self._time is None else self._time.clock.now_ms()

    def advance(self, duration: str | timedelta | int, *, silent: Iterable[str] = ()) -> None:
        """Let time pass for the broker, and return when what became due meanwhile is done.

        Members of groups that are connected count as having spoken all along, and their connections stay, however idle;
        sessions of others end. Transactions time out, whoever is connected. Clients know nothing of it: what their own
        clocks decide stands in `docs/how-to/test-with-odradek.md`.

        Args:
            duration: `"30m"`, `"7d"`, `"1h30m"`, `"PT5M"`; milliseconds; a `timedelta`.
            silent: Who shall not count as having spoken, and is not heard meanwhile: client ids, member ids, ids of
                static members.

        Raises:
            ValueError: Time is real here; the broker is stopped, or paused; nobody of that name was ever here; or the
                duration is negative.
            ConfigError: The text is no duration.
            BrokerDiedError: The broker ended by itself.
        """
        if self._clock is not None:
            raise ValueError("advance: brokers of a cluster have one time; advance the cluster")
        if not self._is_time_virtual:
            raise ValueError(
                "advance: time is real here; start the broker by `running_broker(virtual_time=True)`, or override the "
                "fixture `odradek_virtual_time`"
            )
        thread = self._running("advance")
        if thread.is_paused:
            raise ValueError("advance: the broker is paused; resume it first")
        assert self._time is not None, "it was started"

        from .virtual_time import duration_ms

        self._time.advance(thread, duration_ms(duration), {silent} if isinstance(silent, str) else {*silent})

    # -------------------------------------------------------------------------------------------------------- ports

    def reserve_port(self, listener: str) -> int:
        """Take a free port for a listener before the first start, and return it: others are told it before, too."""
        held = _hold(("127.0.0.1", 0))
        self._held_ports.append(held)
        host, port = held.getsockname()[:2]
        self._bound[listener] = (host, port)
        return int(port)

    def _hold_ports(self) -> None:
        """Keep the ports of a broker that is stopped: nobody else gets them, and who connects is refused."""
        for address in self._bound.values():
            with suppress(OSError):  # somebody was quicker: the next start says so
                self._held_ports.append(_hold(address))

    def _release_ports(self) -> None:
        for held in self._held_ports:
            held.close()
        self._held_ports.clear()

    def close(self) -> None:
        """Stop it for good."""
        try:
            self.stop()
        finally:
            self._release_ports()


def _hold(address: tuple[str, int]) -> socket.socket:
    """Return a socket that has an address, and lets nobody in.

    Raises:
        OSError: Somebody else has it.
    """
    held = socket.socket(socket.AF_INET6 if ":" in address[0] else socket.AF_INET)
    if os.name == "posix":  # else connections that have just ended would be in the way
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        held.bind(address)
    except OSError:
        held.close()
        raise
    return held


@contextmanager
def running_broker(
    settings: Mapping[str, object] | None = None,
    *,
    data_dir: Path | None = None,
    config: Path | None = None,
    files: Files | None = None,
    tls: bool = False,
    virtual_time: bool = False,
) -> Iterator[RunningBroker]:
    """Run a broker for the time of a `with` block.

    Args:
        settings: Kafka's broker keys; lists as comma-separated text. `TEST_SETTINGS`, a free port among them, unless
            they, or the configuration file, say something else.
        data_dir: Where its data lives and stays: a second block with the same directory finds it again. By default a
            temporary directory, removed at the end.
        config: A configuration file, under the settings: what it says holds, its `listeners` too. `[plugins]` and
            `[topics.NAME]` stand there.
        files: What the broker keeps goes through them: `FaultyFiles(data_dir)` for a disk that fails.
        tls: Whether it has certificates, made anew (`RunningBroker.certificates`), and a listener `SSL` beside the
            plain one, unless other listeners are given. Needs trustme, of the `testing` extra.
        virtual_time: Whether its time can be advanced: `RunningBroker.advance`.

    Raises:
        OdradekError: The broker could not start.
        BrokerDiedError: It ended by itself; raised at the end of the block, or by `RunningBroker.check`.

    .. versionadded:: 0.1
    """
    from odradek.kernel.broker import read_broker_options
    from odradek.kernel.config.settings import read_settings

    from .certificates import make_certificates

    said = read_settings(config=config).file.broker
    defaults = {**TEST_SETTINGS, "listeners": TLS_LISTENERS} if tls else TEST_SETTINGS
    chosen = {key: value for key, value in defaults.items() if key not in said}
    # Plugins keep things beside the data, too: all of its folder is removed.
    with tempfile.TemporaryDirectory(prefix="odradek-", ignore_cleanup_errors=True) as folder:
        certificates = make_certificates(Path(folder)) if tls else None
        if certificates is not None:
            chosen.update(certificates.broker_settings)
        chosen.update(settings_text(settings))
        directory = data_dir or Path(folder, "data")

        def read_options(more: Mapping[str, str]) -> BrokerOptions:
            return read_broker_options(
                config=config,
                environment={},
                options=[f"{key}={value}" for key, value in {**chosen, **more}.items()],
                data_dir=directory,
            )

        broker = RunningBroker(directory, read_options, files, certificates, is_time_virtual=virtual_time)
        broker.start()
        try:
            yield broker
        finally:
            broker.close()
