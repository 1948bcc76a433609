"""Shell: one connection to another node, made again as often as it ends, while anybody wants it.

A node answers one request of a connection at a time, so whoever must not wait for others has a channel of his own.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final

import trio

from ..errors import ErrorCode, KafkaError
from ..peers.backoff import Backoff
from ..peers.connection import open_connection
from ..peers.errors import ClientError, ConnectionFailedError, UnsupportedVersionError

if TYPE_CHECKING:
    import random
    import ssl
    from collections.abc import Callable, Mapping

    from ..machine.network import Network
    from ..peers.connection import Connection
    from ..peers.settings import ConnectionSettings
    from ..wire.message import Message

log = logging.getLogger(__name__)

RECONNECT_MS_MAX: Final = 1000
LATE_ANSWERS_S: Final = 0.05
"""How long a channel that is to go elsewhere waits for the answers to what it asked before: as they come by themselves
from a node that lives, and never from one that does not."""


class PeerChannel:
    """Life: made, `run` as a task; `request` and `move` by any task of the same trio run.

    Attributes:
        name: What it is for, for the log.
        on_failure: Told of an address that was not reached, and how; returns whether to rest before the next attempt.
    """

    def __init__(
        self,
        name: str,
        *,
        address: Callable[[], tuple[str, int] | None],
        settings: ConnectionSettings,
        network: Network,
        random_source: random.Random,
        tls: ssl.SSLContext | None = None,
        reconnect_ms_max: int = RECONNECT_MS_MAX,
    ) -> None:
        """Make a channel without a connection.

        Args:
            name: What it is for.
            address: Returns where the node listens now; None while that is not known.
            settings: Times and buffers.
            network: By which it is reached.
            random_source: Of the pauses between attempts.
            tls: How it is spoken to; None in the clear.
            reconnect_ms_max: The longest pause between two attempts.
        """
        self.name = name
        self.on_failure: Callable[[tuple[str, int], ClientError], bool] = _rest
        self._address = address
        self._settings = settings
        self._network = network
        self._tls = tls
        self._backoff = Backoff(settings.retry_backoff_ms, reconnect_ms_max, random_source)
        self._rests_count = 0
        self._wanted = trio.Event()
        self._changed = trio.Event()
        self._attempt = trio.CancelScope()
        self._where: tuple[str, int] | None = None
        self._connection: Connection | None = None
        self._error = "nobody has tried yet"
        self._told: set[str] = set()  # what has failed since somebody was reached: each is told once, also in turns

    def __repr__(self) -> str:
        return f"PeerChannel({self.name}, {'connected' if self._connection is not None else self._error})"

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Keep a connection while somebody wants one, until cancelled: then who waits for an answer waits in vain."""
        task_status.started()
        while True:
            await self._wanted.wait()
            with trio.CancelScope() as self._attempt:
                pause_ms = await self._attempt_once()
                await trio.sleep(pause_ms / 1000)

    async def _attempt_once(self) -> int:
        """Have a connection until it ends; return how long to rest."""
        where = self._where = self._address()
        if where is None:
            self._note_failure("its address is not known")
            return self._rest_ms()
        try:
            await self._connect(*where)
        except ClientError as error:
            self._note_failure(str(error))
            return self._rest_ms() if self.on_failure(where, error) else 0
        finally:
            self._where = None
        return 0

    def move(self) -> None:
        """Go to the address that is wanted now; what was asked at another one has `LATE_ANSWERS_S` to be answered.

        Whoever does not get an answer there any more gets a `ConnectionFailedError`.
        """
        if self._where is not None and self._where == self._address():
            return
        connection, self._connection = self._connection, None
        if connection is None:
            self._attempt.cancel()
        else:
            self._attempt.deadline = trio.current_time() + LATE_ANSWERS_S
            connection.retire()

    def abandon(self) -> None:
        """End the connection: nobody wants an answer any more to what was asked over it, and others are not to wait."""
        self._connection = None
        self._attempt.cancel()

    async def _connect(self, host: str, port: int) -> None:
        try:
            async with open_connection(
                host, port, self._settings, network=self._network, context=self._tls
            ) as connection:
                self._check(connection)
                self._rests_count = 0
                self._told.clear()
                self._connection = connection
                self._tell()
                await self._stay(connection)
                self._error = str(connection.error)
        finally:
            self._connection = None
            self._wanted = trio.Event()
            self._tell()

    def _check(self, connection: Connection) -> None:
        """See whether who is reached is who was meant.

        Raises:
            ConnectionFailedError: He is not.
        """

    async def _stay(self, connection: Connection) -> None:
        """Wait until the connection has ended, or end it."""
        await connection.wait_closed()

    def _note_failure(self, error: str) -> None:
        if error not in self._told:
            log.info("channel for %s: %s", self.name, error)
        self._told.add(error)
        self._error = error

    def _rest_ms(self) -> int:
        self._rests_count += 1
        return self._backoff.pause_ms(self._rests_count)

    def _tell(self) -> None:
        self._changed.set()
        self._changed = trio.Event()

    async def _connected(self) -> Connection:
        while (connection := self._connection) is None or not connection.is_open:
            self._wanted.set()
            await self._changed.wait()
        return connection

    async def features(self) -> Mapping[str, int]:
        """Return the finalized features as the node told them when it was connected to. Cancelled: nothing happens."""
        return (await self._connected()).features

    async def request(self, message: Message, *, timeout_ms: int) -> Any:
        """Send a request over the connection that there is, or comes, and return the answer.

        If it is cancelled the answer is dropped; whether the node does the request is unknown.

        Raises:
            ConnectionFailedError: There is no connection in time, or it broke: the request may or may not be done.
            KafkaError: UNSUPPORTED_VERSION: the node does not know the request.
        """
        return await self._request_over(await self._reached(timeout_ms), message, timeout_ms)

    @staticmethod
    async def _request_over(connection: Connection, message: Message, timeout_ms: int) -> Any:
        try:
            return await connection.request(message, timeout_ms=timeout_ms)
        except UnsupportedVersionError as error:
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, str(error)) from error

    async def version_of(self, message: type[Message], *, timeout_ms: int) -> int:
        """Return the newest version of an API that the node knows, too: of what goes to it in an envelope.

        Raises:
            ConnectionFailedError: There is no connection in time.
            KafkaError: UNSUPPORTED_VERSION: there is none that both know.
        """
        connection = await self._reached(timeout_ms)
        try:
            return connection.version_of(message)
        except UnsupportedVersionError as error:
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, str(error)) from error

    async def _reached(self, timeout_ms: int) -> Connection:
        connection: Connection | None = None
        with trio.move_on_after(timeout_ms / 1000):
            connection = await self._connected()
        if connection is None:
            raise ConnectionFailedError(f"no connection for {self.name} within {timeout_ms} ms: {self._error}")
        return connection


def _rest(_address: tuple[str, int], _error: ClientError) -> bool:
    """Rest after each failure: there is no other address to try."""
    return True
