"""Machines of tests: the real one, with some parts exchanged."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs
import trio

from odradek.kernel.machine.clock import SystemClock
from odradek.kernel.machine.ids import RandomIds
from odradek.kernel.machine.machine import Machine
from odradek.kernel.machine.network import Address
from odradek.kernel.machine.system.machine import real_machine
from odradek.kernel.machine.system.network import SystemNetwork
from odradek.kernel.machine.system.poller import system_poller
from odradek.kernel.network.reactor import Reactor

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from odradek.kernel.network.frame_receiver import FrameReceiver
    from odradek.kernel.network.settings import NetworkSettings


def machine_with(**parts: Any) -> Machine:
    """Return the real machine with other parts, named as `Machine` names them; ids follow another `random`."""
    if "random" in parts:
        parts.setdefault("ids", RandomIds(parts["random"]))
    return attrs.evolve(real_machine(), **parts)


class WiredNetwork(SystemNetwork):
    """A network on which a test makes the connections, given host and port; every name is an address."""

    def __init__(self, connect: Callable[[str, int], Awaitable[trio.abc.HalfCloseableStream]]) -> None:
        self._connect = connect

    async def resolve(self, host: str, port: int) -> list[Address]:
        await trio.lowlevel.checkpoint()
        return [Address(0, (host, port))]

    async def connect(self, address: Address, **_buffers: int) -> Any:
        return await self._connect(*address.where)


class NetworkWithoutEpoll(SystemNetwork):
    """That of a system where trio alone waits for sockets."""

    def new_poller(self) -> None:
        """See `Network.new_poller`."""


def make_reactor(receiver: FrameReceiver, settings: NetworkSettings) -> Reactor:
    """Return a reactor on the real machine, its clock that of no run."""
    poller = system_poller()
    assert poller is not None, "only where there is epoll"
    return Reactor(receiver=receiver, settings=settings, machine=machine_with(clock=SystemClock()), poller=poller)
