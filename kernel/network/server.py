"""Shell: the network as one service of the broker: bind all listeners, serve, drain, close.

.. versionadded:: 0.1
"""

from __future__ import annotations

import logging
from contextlib import ExitStack
from typing import TYPE_CHECKING

import attrs
import trio

from ..classes import define
from ..errors import ConfigError
from .endpoint import Endpoint
from .listener import ACCEPT_PAUSE_MS, Acceptor, bind
from .settings import LoopKind, SecurityProtocol

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ..machine.machine import Machine
    from ..machine.network import ListeningSocket
    from .connection import Connection
    from .frame_receiver import FrameReceiver
    from .loop import EndpointMaker, Loop
    from .settings import ListenerSettings, NetworkSettings
    from .statistics import NetworkStatistics

_log = logging.getLogger(__name__)


def make_loop(receiver: FrameReceiver, settings: NetworkSettings, machine: Machine) -> Loop:
    """Return the loop that the settings choose.

    Raises:
        ConfigError: epoll is asked for on a system without it, or trio's own waiting for sockets that are none of its.
    """
    poller = machine.network.new_poller() if settings.loop is not LoopKind.PORTABLE else None
    if poller is not None:
        from .reactor import Reactor

        return Reactor(receiver=receiver, settings=settings, machine=machine, poller=poller)
    if settings.loop is LoopKind.EPOLL:
        raise ConfigError(
            "this system has no epoll",
            where="odradek.network.loop",
            hint="set it to auto or portable",
        )
    if not machine.network.is_system:
        raise ConfigError("simulated sockets take the reactor", where="odradek.network.loop", hint="set it to auto")
    from .portable import PortableLoop

    return PortableLoop(receiver=receiver, settings=settings, machine=machine)


@define(eq=False)
class NetworkServer:
    """All listeners of a broker with the loop that serves them.

    Life: `bind` (optional: `run` does it) -> `run` -> `drain` -> end. Owned by the broker's nursery:
    `bound = await nursery.start(server.run)`.

    Attributes:
        receiver: Takes the frames.
        settings: Listeners and limits.
        machine: Its clock and network.
        admits_clients: Whether all listeners are served; until `admit_clients` only those that go first may be.
    """

    receiver: FrameReceiver
    settings: NetworkSettings
    machine: Machine
    admits_clients: bool = True
    _sockets: list[tuple[ListenerSettings, ListeningSocket, EndpointMaker]] = attrs.field(init=False, factory=list)
    _acceptors: list[Acceptor] = attrs.field(init=False, factory=list)
    _loop: Loop | None = attrs.field(init=False, default=None)
    _has_resting: trio.Event = attrs.field(init=False, factory=trio.Event)
    _scope: trio.CancelScope = attrs.field(init=False, factory=trio.CancelScope)

    def bind(self) -> Mapping[str, tuple[str, int]]:
        """Take the ports, without serving yet: clients wait in the backlog.

        For brokers that must know their ports before they are set up.

        Returns:
            Listener name to the host and port that are bound; no port is 0.

        Raises:
            ConfigError: An address cannot be bound, or a certificate cannot be used; nothing stays bound.
        """
        with ExitStack() as undo:
            for listener in self.settings.listeners:
                maker = self._endpoint_maker(listener)
                listening = bind(listener, self.settings, self.machine.network)
                undo.callback(listening.close)
                self._sockets.append((listener, listening, maker))
            undo.pop_all()
        return {listener.name: listening.getsockname()[:2] for listener, listening, _ in self._sockets}

    def _endpoint_maker(self, listener: ListenerSettings) -> EndpointMaker:
        if listener.security_protocol is SecurityProtocol.PLAINTEXT:
            return Endpoint
        if listener.tls is None:
            raise ConfigError(
                f"listener {listener.name} is to speak TLS but has no certificate",
                where="listeners",
                hint="set ssl.keystore.location",
            )
        from .tls import server_context, tls_endpoint_maker  # only where TLS is spoken

        return tls_endpoint_maker(server_context(listener.tls), self.settings.handshake_timeout_ms)

    async def run(
        self, *, task_status: trio.TaskStatus[Mapping[str, tuple[str, int]]] = trio.TASK_STATUS_IGNORED
    ) -> None:
        """Serve until `drain` has ended, or until cancelled: then all connections are closed at once.

        Args:
            task_status: Told listener name to bound host and port, once clients are served.

        Raises:
            ConfigError: As `bind`.
        """
        if not self._sockets:
            self.bind()
        loop = self._loop = make_loop(self.receiver, self.settings, self.machine)
        self._acceptors = [
            Acceptor(listener, listening, loop, maker, self._acceptor_rests)
            for listener, listening, maker in self._sockets
        ]
        try:
            with self._scope:
                async with trio.open_nursery() as nursery:
                    await nursery.start(loop.run)
                    for acceptor in self._acceptors:
                        if self.admits_clients or acceptor.listener.goes_first:
                            acceptor.start()
                    nursery.start_soon(self._rest_acceptors)
                    task_status.started({each.listener.name: each.bound_address for each in self._acceptors})
        finally:
            self._close_listeners()

    def admit_clients(self) -> None:
        """Serve all listeners from now on, while `run` runs: clients of the others have waited in the backlog."""
        if self.admits_clients:
            return
        self.admits_clients = True
        for acceptor in self._acceptors:
            if not acceptor.listener.goes_first:
                acceptor.start()

    def _acceptor_rests(self) -> None:
        self._has_resting.set()

    async def _rest_acceptors(self) -> None:
        """Let acceptors that rest go on when their time has come."""
        while True:
            await self._has_resting.wait()
            self._has_resting = trio.Event()
            while any(acceptor.is_resting for acceptor in self._acceptors):
                await trio.sleep(ACCEPT_PAUSE_MS / 1000)
                for acceptor in self._acceptors:
                    acceptor.go_on()

    def _close_listeners(self) -> None:
        acceptors, self._acceptors = self._acceptors, []
        for acceptor in acceptors:
            acceptor.close()

    def close(self) -> None:
        """Give the ports back, also those that were bound and never served; may be called at any time, and again."""
        self._close_listeners()
        for _, listening, _ in self._sockets:
            listening.close()

    def close_connections(self, reason: str) -> None:
        """Close every connection at once, whatever it is owed; call between turns. Clients may come again."""
        for acceptor in self._acceptors:
            acceptor.accept()  # to their clients those that wait to be accepted are connections, too
        if self._loop is not None:
            for endpoint in list(self._loop.endpoints.values()):
                self._loop.close(endpoint, reason)

    def keep_connections(self, is_kept: Callable[[Connection], bool]) -> None:
        """Take it that bytes of these connections have just moved; for a test that lets time pass."""
        if self._loop is not None:
            now_ms = self.machine.clock.monotonic_ms()
            for endpoint in self._loop.endpoints.values():
                if is_kept(endpoint.connection):
                    endpoint.keep(now_ms)

    def want_turn(self) -> None:
        """Have a turn end soon though no frame came: something was staged that `turn_ended` writes."""
        if self._loop is not None:
            self._loop.want_turn()

    def reconfigure(self, settings: NetworkSettings) -> None:
        """Take new limits of connections; everything else stays as it was bound.

        Connections beyond a new limit stay: it counts for the next ones.
        """
        self.settings = attrs.evolve(
            self.settings,
            connections_max=settings.connections_max,
            connections_per_ip_max=settings.connections_per_ip_max,
            connections_per_ip_overrides=settings.connections_per_ip_overrides,
        )
        if self._loop is not None:
            self._loop.settings = self.settings
            for acceptor in self._acceptors:
                acceptor.go_on()

    async def drain(self, end_waits: Callable[[], None] = lambda: None) -> None:
        """Stop accepting, take no further frame, answer what is in flight within `drain_timeout_ms`, close, end `run`.

        If it is cancelled, `run` ends at once.

        Args:
            end_waits: Called once no further frame is taken: ends long polls, which have nothing left to wait for.
        """
        self._close_listeners()
        try:
            if self._loop is not None:
                with trio.move_on_after(self.settings.drain_timeout_ms / 1000) as deadline:
                    await self._loop.drain(end_waits)
                if deadline.cancelled_caught:
                    _log.warning("some clients were not answered in time; closing their connections")
        finally:
            self._scope.cancel()

    def statistics(self) -> NetworkStatistics | None:
        """Return the loop's counters, None before `run`."""
        return self._loop.statistics() if self._loop is not None else None
