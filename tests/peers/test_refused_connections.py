"""What is told of a host that takes no connection: that nobody listens there, where all its addresses say so."""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from typing import Any, NoReturn

import pytest
import trio

from odradek.kernel.machine.network import Address
from odradek.kernel.peers.connection import connect_stream
from odradek.kernel.peers.errors import ClientError, ConnectionFailedError, NobodyListensError, NotABrokerError
from odradek.kernel.peers.settings import ConnectionSettings

SETTINGS = ConnectionSettings(bootstrap=(), client_id="test")
REFUSED = ConnectionRefusedError(errno.ECONNREFUSED, os.strerror(errno.ECONNREFUSED))
UNREACHABLE = OSError(errno.EHOSTUNREACH, os.strerror(errno.EHOSTUNREACH))


class Refusing:
    """A network that has a host with as many addresses as there are ways in which it takes no connection."""

    def __init__(self, errors: Sequence[Exception]) -> None:
        self._errors = errors

    async def resolve(self, host: str, port: int) -> list[Address]:
        return [Address(2, (f"10.0.0.{number}", port)) for number in range(len(self._errors))]

    async def connect(self, address: Address, *, send_buffer_bytes: int, receive_buffer_bytes: int) -> NoReturn:
        await trio.lowlevel.checkpoint()
        raise self._errors[int(address.host.rpartition(".")[2])]


@pytest.mark.parametrize(
    ("errors", "kind"),
    [
        ([REFUSED], NobodyListensError),
        ([REFUSED, REFUSED], NobodyListensError),
        ([REFUSED, UNREACHABLE], ConnectionFailedError),
        ([UNREACHABLE, REFUSED], ConnectionFailedError),
        ([trio.TooSlowError()], ConnectionFailedError),
        ([REFUSED, trio.BrokenResourceError()], NotABrokerError),
    ],
    ids=["refused", "by each address", "or not reached", "not reached first", "silent", "no TLS"],
)
def test_nobody_listens_only_where_every_address_says_so(errors: list[Exception], kind: type[ClientError]) -> None:
    network: Any = Refusing(errors)

    async def main() -> None:
        await connect_stream(network, "broker-1", 9092, SETTINGS, None, 1000)

    with pytest.raises(ConnectionFailedError) as failed:
        trio.run(main)

    assert type(failed.value) is kind
