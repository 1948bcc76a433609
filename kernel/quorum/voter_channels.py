"""Shell: how the election's messages come to the other voters, and their answers back.

    election ── Ready.messages ──> send ──> a voter's outbox ──> its channel ──> answer ──> step(PeerMessage)
                                                                            └─> nobody listens: step(PeerRefused)

A message may be lost: the election asks again. Of each kind the newest counts, so an outbox holds one of each kind, and
for as long as an answer to it would be waited for. A voter whose machine refuses the connection is gone, and what was
to be sent to it with it; one that is silent may live, and nothing is said of it.

.. versionadded:: 0.1
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

import attrs
import trio

from ..cluster.metadata_fetches import endpoints_of
from ..cluster.peer_channel import PeerChannel
from ..cluster.peer_settings import QUORUM_REQUEST_TIMEOUT, controller_tls, quorum_settings
from ..contracts.election import PeerMessage, PeerRefused
from ..errors import KafkaError
from ..peers.errors import ClientError, NobodyListensError
from .voter_messages import addressed, answer_of_older, leader_in

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Collection, Sequence

    from ..cluster.controller_nodes import ControllerNodes
    from ..config.broker import BrokerConfig
    from ..contracts.election import ElectionInput
    from ..machine.machine import Machine
    from ..peers.connection import Connection
    from ..wire.message import Message

log = logging.getLogger(__name__)

RECONNECT_MS_MAX: Final = 100


class VoterChannel(PeerChannel):
    """What goes to one voter. Life: made, `run_outbox` as a task, which runs the channel, too."""

    def __init__(
        self,
        voter_id: int,
        *,
        config: BrokerConfig,
        machine: Machine,
        nodes: ControllerNodes,
        step: Callable[[ElectionInput], object],
        tls: ssl.SSLContext | None,
    ) -> None:
        """Make it without a connection; see `VoterChannels` for what it is given."""
        super().__init__(
            f"voter {voter_id}",
            address=lambda: nodes.address_of(voter_id),
            settings=quorum_settings(config),
            network=machine.network,
            random_source=machine.random,
            tls=tls,
            reconnect_ms_max=RECONNECT_MS_MAX,
        )
        self._voter_id = voter_id
        self._nodes = nodes
        self._step = step
        self._timeout_ms = config.get_int(QUORUM_REQUEST_TIMEOUT)
        self._outbox: dict[type[Message], tuple[Message, float]] = {}
        self._has_output = trio.Event()
        self._scope = trio.CancelScope()
        self.on_failure = self._not_reached

    def put(self, message: Message) -> None:
        """Have a message sent in the place of the one of its kind that was not sent yet."""
        self._outbox[type(message)] = (message, trio.current_time() + self._timeout_ms / 1000)
        self._has_output.set()

    def end(self) -> None:
        """Have `run_outbox` end: the voter is none any more."""
        self._scope.cancel()

    async def run_outbox(self) -> None:
        """Send what there is, one after the other, until `end` or cancelled."""
        with self._scope:
            async with trio.open_nursery() as nursery:
                await nursery.start(self.run)
                while True:
                    if not self._outbox:
                        self._has_output = trio.Event()
                    await self._has_output.wait()
                    connection = await self._connected_for_output()
                    if connection is not None:
                        await self._exchange(connection, self._outbox.pop(next(iter(self._outbox)))[0])

    async def _connected_for_output(self) -> Connection | None:
        """Return a connection over which there is something to be sent, None when there is nothing any more."""
        while True:
            now_s = trio.current_time()
            self._outbox = {kind: each for kind, each in self._outbox.items() if now_s < each[1]}
            if not self._outbox:
                return None
            if (connection := self._connection) is not None and connection.is_open:
                return connection
            self._wanted.set()
            await self._changed.wait()

    async def _exchange(self, connection: Connection, message: Message) -> None:
        """Ask the voter, and give its answer to the election."""
        try:
            answer = answer_of_older(message, connection.version_of(type(message)))
            if answer is None:
                answer = await self._request_over(connection, message, self._timeout_ms)
        except (ClientError, KafkaError) as error:
            log.debug("%s: %s", self.name, error)
            return
        leader_id, leader_epoch = leader_in(answer)
        self._nodes.learn(leader_id, leader_epoch, endpoints_of(answer))
        self._step(PeerMessage(self._voter_id, answer))

    def _not_reached(self, _where: tuple[str, int], error: ClientError) -> bool:
        if isinstance(error, NobodyListensError):
            self._outbox.clear()
            self._step(PeerRefused(self._voter_id))
        return True


@attrs.frozen(kw_only=True)
class OwnNode:
    """What a controller says of itself in its messages.

    Attributes:
        cluster_id: The cluster's.
        endpoints: Name, host and port of its listeners.
    """

    cluster_id: str
    endpoints: Sequence[tuple[str, str, int]]


class VoterChannels:
    """Life: made, `run` as a task beside the election's; `send` and `retain` by any task of the same trio run."""

    def __init__(
        self,
        config: BrokerConfig,
        machine: Machine,
        *,
        nodes: ControllerNodes,
        own: OwnNode,
        step: Callable[[ElectionInput], object],
    ) -> None:
        """Make it without a channel.

        Args:
            config: Times, and how the controllers' listener is spoken to.
            machine: Network and chance.
            nodes: Where voters are; told who leads as answers say it.
            own: Said of this controller.
            step: Has the election take an input.

        Raises:
            ConfigError: A certificate cannot be used.
        """
        self._config, self._machine = config, machine
        self._nodes, self._own, self._step = nodes, own, step
        self._tls = controller_tls(config)
        self._channels: dict[int, VoterChannel] = {}
        self._send, self._receive = trio.open_memory_channel[VoterChannel](float("inf"))

    def __repr__(self) -> str:
        return f"VoterChannels({sorted(self._channels)})"

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Send what is to be sent until cancelled; what was not is lost then."""
        async with trio.open_nursery() as nursery:
            task_status.started()
            async for channel in self._receive:
                nursery.start_soon(channel.run_outbox)

    def send(self, messages: Sequence[PeerMessage]) -> None:
        """Have requests sent to voters, soon, or never."""
        for each in messages:
            message = addressed(each.message, self._own.cluster_id, self._own.endpoints)
            self._channel_of(each.broker_id).put(message)

    def _channel_of(self, voter_id: int) -> VoterChannel:
        channel = self._channels.get(voter_id)
        if channel is None:
            channel = self._channels[voter_id] = VoterChannel(
                voter_id,
                config=self._config,
                machine=self._machine,
                nodes=self._nodes,
                step=self._step,
                tls=self._tls,
            )
            self._send.send_nowait(channel)
        return channel

    def retain(self, voter_ids: Collection[int]) -> None:
        """End the channels to all but these, as others vote no more."""
        for voter_id in set(self._channels) - set(voter_ids):
            self._channels.pop(voter_id).end()
