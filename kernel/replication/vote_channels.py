"""Shell: how elections' messages come to other brokers, and the answers back: one request a broker and kind at a time.

    elections ── PeerMessage ──> `send` ──> a broker's outbox ──> one request ──> answer ──> `on_answer`

A message may be lost: its election asks again. Of a partition and kind the newest counts. What gathers while a broker
answers goes in the next request, so that two hundred partitions cost as many round trips as one.
"""

from __future__ import annotations

import logging
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

import trio

from ..errors import KafkaError
from ..peers.errors import ClientError
from .vote_messages import gathered

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from uuid import UUID

    from ..types import TopicIdPartition
    from ..wire.message import Message
    from .fetcher import BrokerRequests

log = logging.getLogger(__name__)

PURPOSE: Final = "votes"
PARTITIONS_MAX: Final = 200
"""So many a request has at most: a broker that is slow answers for some of them in time, where it would for none."""


class VoteChannels:
    """Life: made, `send` by any task of the run, `run` as a task. Owned by `VotingReplicas`."""

    def __init__(
        self,
        brokers: BrokerRequests,
        *,
        cluster_id: Callable[[], str],
        timeout_ms: Callable[[], int],
        on_answer: Callable[[int, Message], Awaitable[None]],
    ) -> None:
        """Make it with nothing to send.

        Args:
            brokers: The way to other brokers.
            cluster_id: Returns the cluster's id, which requests name.
            timeout_ms: Returns how long an answer may take.
            on_answer: Takes a broker's answer. Does not raise.
        """
        self._brokers, self._cluster_id, self._timeout_ms = brokers, cluster_id, timeout_ms
        self._on_answer = on_answer
        self._outboxes: dict[int, _Outbox] = {}
        self._send, self._receive = trio.open_memory_channel[int](float("inf"))

    def __repr__(self) -> str:
        return f"<VoteChannels to {sorted(self._outboxes)}>"

    def send(self, broker_id: int, partition: TopicIdPartition, message: Message) -> None:
        """Have a request sent soon, or never, in the place of one of its kind and partition that was not sent yet."""
        outbox = self._outboxes.get(broker_id)
        if outbox is None:
            outbox = self._outboxes[broker_id] = _Outbox()
            self._send.send_nowait(broker_id)
        outbox.put(partition, message)

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Send until cancelled; what was not sent is sent when it runs again."""
        served: set[int] = set()
        async with trio.open_nursery() as nursery:
            task_status.started()
            for broker_id, outbox in self._outboxes.items():
                served.add(broker_id)
                nursery.start_soon(self._serve, broker_id, outbox)
            async for broker_id in self._receive:
                if broker_id not in served:
                    served.add(broker_id)
                    nursery.start_soon(self._serve, broker_id, self._outboxes[broker_id])

    async def _serve(self, broker_id: int, outbox: _Outbox) -> None:
        while True:
            request: Any = await outbox.take()
            request.cluster_id = self._cluster_id()
            try:
                answer = await self._brokers.request(broker_id, request, timeout_ms=self._timeout_ms(), purpose=PURPOSE)
            except (ClientError, KafkaError) as error:
                log.debug("broker %d does not hear of elections: %s", broker_id, error)
            else:
                await self._on_answer(broker_id, answer)


class _Outbox:
    """What is to be told one broker, by kind and partition."""

    def __init__(self) -> None:
        self._waiting: dict[type[Message], dict[tuple[UUID, int], Message]] = {}
        self._has_any = trio.Event()

    def put(self, partition: TopicIdPartition, message: Message) -> None:
        self._waiting.setdefault(type(message), {})[partition.topic_id, partition.partition] = message
        self._has_any.set()

    async def take(self) -> Message:
        """Wait for something, and return what waits longest of the kind that does, as one request."""
        await self._has_any.wait()
        kind, waiting = next(iter(self._waiting.items()))
        taken = list(islice(waiting, PARTITIONS_MAX))
        messages = [(topic_id, waiting.pop((topic_id, index))) for topic_id, index in taken]
        del self._waiting[kind]
        if waiting:
            self._waiting[kind] = waiting  # behind the other kinds
        if not self._waiting:
            self._has_any = trio.Event()
        return gathered(messages)
