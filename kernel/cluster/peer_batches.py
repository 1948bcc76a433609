"""Shell: what gathers for other brokers: one request a broker is on its way, what comes meanwhile goes with the next.

So a broker that is slow is asked in fewer, larger requests, and one that is gone holds up nobody else.
"""

from __future__ import annotations

import logging
from collections import deque
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

import trio

from ..errors import ErrorCode, KafkaError
from ..peers.errors import ClientError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..metadata.image import MetadataImage
    from ..wire.message import Message

log = logging.getLogger(__name__)

Item = TypeVar("Item")


class BrokerRequests(Protocol):
    """Who brings requests to other brokers: `broker_channels.BrokerChannels`."""

    async def request(self, node_id: int, message: Message, *, timeout_ms: int, purpose: str = "") -> Any:
        """Ask a broker and return its answer; requests of one purpose wait for each other.

        Raises:
            ClientError: It was not reached, or did not answer.
            KafkaError: UNSUPPORTED_VERSION.
        """
        ...


class Exchange(Protocol[Item]):
    """What is asked of brokers: pure, from items to a request and from its answer to what each item is told.

    Attributes:
        purpose: Names the channel: requests of one purpose wait for each other.
    """

    purpose: str

    def take(self, queue: deque[Item]) -> list[Item]:
        """Take items for one request off the front of a queue; at least one."""
        ...

    def request(self, items: Sequence[Item]) -> Message:
        """Return the request that asks for all of them."""
        ...

    def answered(self, items: Sequence[Item], response: Any) -> None:
        """Tell each item what became of it."""
        ...

    def failed(self, items: Sequence[Item], code: ErrorCode) -> None:
        """Tell each item that it is not known what became of it."""
        ...


class PeerBatches(Generic[Item]):
    """Life: made, `put` at any time, `run` as a service. Owned by one task's thread; an exchange is told on it."""

    def __init__(self, exchange: Exchange[Item], brokers: BrokerRequests, timeout_ms: Callable[[], int]) -> None:
        """Make it with nothing to ask.

        Args:
            exchange: What is asked.
            brokers: The way to them.
            timeout_ms: Returns how long a request may take.
        """
        self._exchange = exchange
        self._brokers = brokers
        self._timeout_ms = timeout_ms
        self._queues: dict[int, deque[Item]] = {}
        self._asking: dict[int, trio.CancelScope] = {}
        self._send, self._receive = trio.open_memory_channel[int](float("inf"))

    def __repr__(self) -> str:
        return f"PeerBatches({self._exchange.purpose}, { {node: len(queue) for node, queue in self._queues.items()} })"

    @property
    def purpose(self) -> str:
        """What is asked."""
        return self._exchange.purpose

    def put(self, node_id: int, item: Item) -> None:
        """Have an item asked of a broker; its exchange tells it what became of it, never before this returns."""
        queue = self._queues.get(node_id)
        if queue is None:
            queue = self._queues[node_id] = deque()
            self._send.send_nowait(node_id)
        queue.append(item)

    def image_changed(self, image: MetadataImage) -> None:
        """Wait no longer for brokers that are fenced, nor ask them what is queued: others have taken over from them."""
        for node_id in list(self._asking):
            broker = image.brokers.get(node_id)
            if broker is None or broker.is_fenced:
                self._asking[node_id].cancel()

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Ask, until cancelled: then nobody is told anything any more.

        It may run again: what is queued is asked then.
        """
        self._send, self._receive = trio.open_memory_channel[int](float("inf"))
        for node_id in self._queues:
            self._send.send_nowait(node_id)
        async with trio.open_nursery() as nursery:
            task_status.started()
            async for node_id in self._receive:
                nursery.start_soon(self._drain, node_id, name=f"{self._exchange.purpose} of broker {node_id}")

    async def _drain(self, node_id: int) -> None:
        queue = self._queues[node_id]
        while queue:
            if await self._ask(node_id, self._exchange.take(queue)):
                while queue:
                    await trio.lowlevel.checkpoint()  # thousands may have gathered
                    self._tell(node_id, self._exchange.take(queue), ErrorCode.NETWORK_EXCEPTION, None)
        del self._queues[node_id]

    async def _ask(self, node_id: int, items: Sequence[Item]) -> bool:
        """Ask, tell, and return whether the broker was fenced meanwhile."""
        exchange = self._exchange
        code, response = ErrorCode.NETWORK_EXCEPTION, None
        with trio.CancelScope() as scope:
            self._asking[node_id] = scope
            try:
                response = await self._brokers.request(
                    node_id, exchange.request(items), timeout_ms=self._timeout_ms(), purpose=exchange.purpose
                )
            except ClientError as error:
                log.debug("%s: broker %d: %s", exchange.purpose, node_id, error)
            except KafkaError as error:
                log.warning("%s: broker %d: %s", exchange.purpose, node_id, error)
                code = error.code
            except Exception:
                log.exception("%s: broker %d cannot be asked", exchange.purpose, node_id)
                code = ErrorCode.UNKNOWN_SERVER_ERROR
            finally:
                del self._asking[node_id]
        self._tell(node_id, items, code, response)
        return scope.cancel_called

    def _tell(self, node_id: int, items: Sequence[Item], code: ErrorCode, response: Any) -> None:
        """Tell items the response, or where there is none the code."""
        exchange = self._exchange
        try:
            if response is None:
                exchange.failed(items, code)
            else:
                exchange.answered(items, response)
        except Exception:  # of one item: it must not keep the others from being asked
            log.exception("%s: what became of it at broker %d is not told to all", exchange.purpose, node_id)
