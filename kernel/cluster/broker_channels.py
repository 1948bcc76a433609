"""Shell: channels to the other brokers of the cluster: one for each broker and purpose, made when first asked for.

Requests of one channel are answered one after the other, so what waits (a follower's Fetch) has a purpose of its own.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import trio

from ..config.listeners import inter_broker_listener
from ..peers.errors import NobodyListensError
from .peer_channel import PeerChannel
from .peer_settings import listener_tls, peer_settings

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..config.broker import BrokerConfig
    from ..machine.machine import Machine
    from ..metadata.published_image import PublishedImage
    from ..peers.errors import ClientError
    from ..wire.message import Message


class BrokerChannels:
    """Life: made, `run` as a service; `request` by any task of the same trio run.

    Attributes:
        on_refused: Told of a broker whose machine says that nobody listens there. Does not raise.
    """

    def __init__(self, config: BrokerConfig, machine: Machine, published: PublishedImage) -> None:
        """Make it without a channel.

        Args:
            config: How brokers reach each other: `inter.broker.listener.name`, `ssl.*`.
            machine: The network.
            published: Says where brokers are.
        """
        self.on_refused: Callable[[int], object] = _nothing
        self._config = config
        self._machine = machine
        self._published = published
        self._listener = inter_broker_listener(config)
        self._channels: dict[tuple[int, str], PeerChannel] = {}
        self._send, self._receive = trio.open_memory_channel[PeerChannel](float("inf"))

    def __repr__(self) -> str:
        return f"BrokerChannels({sorted(self._channels)})"

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Keep the connections that are wanted, until cancelled: then nobody is answered any more.

        It may run again: channels that were made before are kept up as well.
        """
        self._send, self._receive = trio.open_memory_channel[PeerChannel](float("inf"))
        for channel in self._channels.values():
            self._send.send_nowait(channel)
        async with trio.open_nursery() as nursery:
            task_status.started()
            async for channel in self._receive:
                nursery.start_soon(channel.run, name=f"channel {channel.name}")

    def address_of(self, node_id: int) -> tuple[str, int] | None:
        """Return where a broker is reached by other brokers; None where that is not known."""
        broker = self._published.image.brokers.get(node_id)
        listener = broker.listeners.get(self._listener) if broker is not None else None
        return (listener.host, listener.port) if listener is not None else None

    async def request(self, node_id: int, message: Message, *, timeout_ms: int, purpose: str = "") -> Any:
        """Ask a broker and return its answer. Cancelled, the answer is dropped.

        Args:
            node_id: Which.
            message: The request.
            timeout_ms: How long it may take, with the time until there is a connection.
            purpose: Requests of one purpose wait for each other.

        Raises:
            ConnectionFailedError: It was not reached, or did not answer: the request may or may not be done.
            KafkaError: UNSUPPORTED_VERSION.
        """
        channel = self._channels.get((node_id, purpose))
        if channel is None:
            channel = self._channels[node_id, purpose] = self._new(node_id, purpose)
            self._send.send_nowait(channel)
        return await channel.request(message, timeout_ms=timeout_ms)

    def _new(self, node_id: int, purpose: str) -> PeerChannel:
        channel = PeerChannel(
            f"broker {node_id}{f', {purpose}' if purpose else ''}",
            address=lambda: self.address_of(node_id),
            settings=peer_settings(self._config),
            network=self._machine.network,
            random_source=self._machine.random,
            tls=listener_tls(self._config, self._listener),
        )
        channel.on_failure = partial(self._not_reached, node_id)
        return channel

    def _not_reached(self, node_id: int, _where: tuple[str, int], error: ClientError) -> bool:
        if isinstance(error, NobodyListensError):
            self.on_refused(node_id)
        return True


def _nothing(_node_id: int) -> None:
    """Do nothing: nobody has asked to be told."""
