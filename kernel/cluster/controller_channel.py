"""Shell: a channel to the active controller, wherever that is: answers say whether it was asked.

| what happens | whom it asks next |
| --- | --- |
| another controller leads, as `ControllerNodes` learns | that one, at once |
| nobody listens there, it cannot be reached, or is of no cluster yet | the next address, at once |
| a request is not answered in time | the next address |
| nothing that was asked is answered for `silence_ms`, whoever still waits for it | the next address |
| NOT_CONTROLLER of who leads, as far as that is known | the same one: it may be about to begin |
| NOT_CONTROLLER of anybody else | the next address |
| a fetch of the metadata is answered by one that does not lead | the next address |
| the connection ends | the same address: if its node has ended too, nobody listens there |

Once all have been tried it rests, longer from round to round.

.. versionadded:: 0.1
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import trio

from ..errors import ErrorCode, KafkaError
from ..peers.errors import ConnectionFailedError, NobodyListensError, RequestTimeoutError, UnsupportedVersionError
from ..wire.messages.api_01_fetch import FetchRequest
from .controller_nodes import NOBODY, ControllerRoute
from .peer_channel import PeerChannel
from .peer_settings import controller_tls, quorum_settings

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..config.broker import BrokerConfig
    from ..machine.machine import Machine
    from ..peers.connection import Connection
    from ..peers.errors import ClientError
    from ..wire.message import Message
    from .controller_nodes import ControllerNodes

REST_MS_MAX: Final = 50
"""How long is rested at most once all controllers were asked in vain: an election takes little longer."""


class ControllerChannel(PeerChannel):
    """Life: as `PeerChannel`. Whom it is connected to is the active controller, or is asked who that is.

    Attributes:
        asked: Who has answered last; for a channel on which one task asks.
        on_refused: Told of an address at which nobody listens.
    """

    def __init__(
        self,
        name: str,
        *,
        config: BrokerConfig,
        machine: Machine,
        nodes: ControllerNodes,
        but: int = NOBODY,
        silence_ms: int | None = None,
    ) -> None:
        """Make a channel without a connection.

        Args:
            name: What it is for.
            config: Times, and how the controllers' listener is spoken to.
            machine: Network and chance.
            nodes: Where controllers are.
            but: A controller that is not asked: who asks.
            silence_ms: How long no answer at all may come to what is due, for a channel on which each waits as long
                as he likes: the first to wait long enough might be nobody. None where whoever asks sees to it.

        Raises:
            ConfigError: A certificate cannot be used.
        """
        route = ControllerRoute(nodes, self.move, but=but)
        super().__init__(
            f"{name} to the controller",
            address=route.address,
            settings=quorum_settings(config),
            network=machine.network,
            random_source=machine.random,
            tls=controller_tls(config),
            reconnect_ms_max=REST_MS_MAX,
        )
        self.asked: tuple[str, int] | None = None
        self.on_refused: Callable[[tuple[str, int]], object] = lambda _where: None
        self._route = route
        self._rounds_count = 0
        self._silence_ms = silence_ms
        self.on_failure = self._not_reached

    async def request(self, message: Message, *, timeout_ms: int) -> Any:
        """Ask what the active controller alone answers; see `PeerChannel.request`.

        Raises:
            ConnectionFailedError: There is no connection in time, it broke, or another controller leads by now: the
                request may or may not be done.
            KafkaError: UNSUPPORTED_VERSION; NOT_CONTROLLER: so it is not done.
        """
        answer = await self.request_of_any(message, timeout_ms=timeout_ms)
        if getattr(answer, "error_code", ErrorCode.NONE) != ErrorCode.NOT_CONTROLLER:
            self.confirm()
            return answer
        if self._route.is_led_elsewhere:
            self.leave(self.asked)
        else:
            self.confirm()
        raise KafkaError(ErrorCode.NOT_CONTROLLER)

    async def request_of_any(self, message: Message, *, timeout_ms: int) -> Any:
        """Ask what any controller answers; `confirm` or `leave` is to follow. Raises as `request`."""
        connection = await self._reached(timeout_ms)
        where = self.asked = self._where
        try:
            return await self._request_over(connection, message, timeout_ms)
        except RequestTimeoutError:
            self.leave(where)
            raise

    def _check(self, connection: Connection) -> None:
        """See whether it is a controller: one whose cluster is not founded yet answers nobody's Fetch."""
        try:
            connection.version_of(FetchRequest)
        except UnsupportedVersionError as error:
            raise ConnectionFailedError("the controller there is of no cluster yet") from error

    async def _stay(self, connection: Connection) -> None:
        """See `PeerChannel._stay`: a connection that the network has forgotten ends by nothing else."""
        where = self._where
        while self._silence_ms is not None and connection.is_open:
            due_s = connection.silent_since_s + self._silence_ms / 1000
            if due_s <= trio.current_time():
                connection.close(RequestTimeoutError(f"{self.name}: no answer for {self._silence_ms} ms"))
                self.leave(where)
            with trio.move_on_at(due_s):
                await connection.wait_closed()
        await connection.wait_closed()

    def confirm(self) -> None:
        """Stay with who is asked: the others are worth a try again, should it fail."""
        self._route.answered(self.asked)
        self._rounds_count = 0

    def leave(self, where: tuple[str, int] | None) -> None:
        """Go on to the next address, unless another one than this is asked already."""
        self._fail(where)
        self.move()

    @property
    def rest_ms(self) -> int:
        """How long to wait before what failed is asked again: not at all where somebody else is to be asked."""
        return self._backoff.pause_ms(max(self._rounds_count, 1)) if self._route.is_round_over else 0

    async def rest(self) -> None:
        """Wait so long. Cancelled: nothing happens."""
        await trio.sleep(self.rest_ms / 1000)

    def _not_reached(self, where: tuple[str, int], error: ClientError) -> bool:
        if isinstance(error, NobodyListensError):
            self.on_refused(where)
        self._fail(where)
        return self._route.is_round_over

    def _fail(self, where: tuple[str, int] | None) -> None:
        self._route.failed(where)
        if self._route.is_round_over:
            self._rounds_count += 1
