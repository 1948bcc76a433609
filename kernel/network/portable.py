"""Shell: the portable loop: trio's own waiting, a reader and a writer task per connection; for systems without epoll.

Every wake-up is a turn of its own. About half as fast as the reactor, and everything else is the same code.

.. versionadded:: 0.1
"""

from __future__ import annotations

import os
import socket
from contextlib import suppress
from typing import TYPE_CHECKING

import attrs
import trio

from .endpoint import READ, WRITE
from .loop import Loop

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from ..machine.network import ListeningSocket, Socket
    from .endpoint import Endpoint


@attrs.define(eq=False)
class _Gate:
    """A condition that one task waits for and others switch."""

    is_open: bool
    _waiter: trio.Event | None = attrs.field(default=None, init=False)

    def switch(self, is_open: bool) -> None:
        """Open or shut; an opened gate lets its task go on."""
        self.is_open = is_open
        if is_open and self._waiter is not None:
            self._waiter.set()
            self._waiter = None

    async def wait_open(self) -> None:
        """Return when it is open; a checkpoint only if it is not. Cancellation leaves it as it is."""
        while not self.is_open:
            self._waiter = trio.Event()
            await self._waiter.wait()


@attrs.define(eq=False, kw_only=True)
class PortableLoop(Loop):
    """The loop for systems without epoll, or by choice: `odradek.network.loop=portable`."""

    _gates: dict[Endpoint, tuple[_Gate, _Gate]] = attrs.field(init=False, factory=dict)
    _listener_gates: dict[ListeningSocket, _Gate] = attrs.field(init=False, factory=dict)
    _turn_gate: _Gate = attrs.field(init=False, factory=lambda: _Gate(False))
    _nursery: trio.Nursery | None = attrs.field(init=False, default=None)

    def wake(self) -> None:
        """Have a turn made soon; called between turns."""
        self._turn_gate.switch(True)

    def watch(self, endpoint: Endpoint, interest: int) -> None:
        """Watch the endpoint's socket for `READ`, `WRITE`, both or (0) nothing."""
        endpoint.interest = interest
        gates = self._gates.get(endpoint)
        if gates is not None:
            gates[0].switch(bool(interest & READ))
            gates[1].switch(bool(interest & WRITE))

    def watch_listener(self, listening: ListeningSocket, on_readable: Callable[[], None]) -> None:
        """Call `on_readable` while clients wait at `listening`."""
        assert self._nursery is not None, "listeners are watched while the loop runs"
        gate = self._listener_gates[listening] = _Gate(True)
        self._nursery.start_soon(self._watch_listener_for_ever, listening, on_readable, gate)

    async def _watch_listener_for_ever(
        self, listening: ListeningSocket, on_readable: Callable[[], None], gate: _Gate
    ) -> None:
        while True:
            await gate.wait_open()
            if listening not in self._listener_gates:
                return
            with suppress(trio.ClosedResourceError):
                await trio.lowlevel.wait_readable(listening)
            if gate.is_open and listening in self._listener_gates:
                on_readable()

    def pause_listener(self, listening: ListeningSocket, is_paused: bool) -> None:
        """Stop calling for a while, or go on."""
        self._listener_gates[listening].switch(not is_paused)

    def unwatch_listener(self, listening: ListeningSocket) -> None:
        """Stop calling: the socket is about to be closed."""
        gate = self._listener_gates.pop(listening)
        trio.lowlevel.notify_closing(listening)
        gate.switch(True)

    def _attach(self, endpoint: Endpoint) -> None:
        gates = self._gates[endpoint] = (_Gate(True), _Gate(False))
        assert self._nursery is not None, "connections are taken while the loop runs"
        self._nursery.start_soon(self._watch_for_ever, endpoint, READ, gates[0], trio.lowlevel.wait_readable)
        self._nursery.start_soon(self._watch_for_ever, endpoint, WRITE, gates[1], trio.lowlevel.wait_writable)

    def _detach(self, endpoint: Endpoint) -> None:
        gates = self._gates.pop(endpoint)
        trio.lowlevel.notify_closing(endpoint.socket)
        for gate in gates:
            gate.switch(True)

    async def _watch_for_ever(
        self, endpoint: Endpoint, mask: int, gate: _Gate, wait: Callable[[Socket], Awaitable[None]]
    ) -> None:
        """Call the endpoint whenever its socket is ready for what `mask` says and the gate is open."""
        while True:
            await gate.wait_open()
            if endpoint not in self._gates:
                return
            with suppress(trio.ClosedResourceError):
                await wait(endpoint.socket)
            # What was watched for may have changed while this task slept.
            if gate.is_open and endpoint in self._gates:
                self.now_ms = self.clock.monotonic_ms()
                busy_from = self.machine.timer()
                self.begin_turn()
                endpoint.on_event(mask)
                self.finish_turn()
                self.busy_seconds += self.machine.timer() - busy_from
                if self.resumed:
                    self.wake()

    def sweep(self, now_ms: int) -> None:
        """Close those, too, whose clients have reset them unseen: of a muted socket nobody waits for anything."""
        for endpoint in list(self.endpoints.values()):
            if not endpoint.interest:
                error = endpoint.socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
                if error:
                    endpoint.receiving_failed(OSError(error, os.strerror(error)))
        super().sweep(now_ms)

    async def _run_turns(self, nursery: trio.Nursery, task_status: trio.TaskStatus[None]) -> None:
        """Make the turns that no socket asks for: answers completed by timers and tasks, frames left over."""
        self._nursery = nursery
        task_status.started()
        while True:
            await self._turn_gate.wait_open()
            self._turn_gate.switch(False)
            busy_from = self.machine.timer()
            self.begin_turn()
            self.finish_turn()
            self.busy_seconds += self.machine.timer() - busy_from
            if self.resumed:
                self._turn_gate.switch(True)
            await trio.lowlevel.checkpoint()
