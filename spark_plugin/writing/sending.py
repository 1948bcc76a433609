"""Shell: sends what `produce` makes, over the client's connections: a few requests to each broker at a time.

.. versionadded:: 0.1
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

import attrs

from odradek.kernel.peers.errors import ClientError, ConnectionFailedError
from odradek.kernel.wire.messages.api_00_produce import ProduceRequest

from .produce import VERSION_MAX, VERSION_MAX_OF_TRANSACTIONS_1

if TYPE_CHECKING:
    from odradek.kernel.types import TopicPartition

    from ..client import Client
    from ..client.clock import PausingClock
    from ..client.connection import Connection
    from .produce import Batch, ProduceCore

WAITING_BYTES_MAX: Final = 8 * 1024 * 1024
"""How much may wait for its acknowledgement before the next rows are taken."""


@attrs.define(eq=False)
class _Link:
    """The conversation with one broker.

    Attributes:
        connection: Leased.
        in_flight: What each request that is not answered carries, and when it was sent: the oldest first.
    """

    connection: Connection
    in_flight: deque[tuple[list[Batch], int]] = attrs.field(factory=deque)


@attrs.define(kw_only=True, eq=False)
class BatchSender:
    """Sends one task's batches; one owner. `close` it, whatever happened.

    Attributes:
        client: The process's.
        core: What is to be sent.
        clock: Time.
        is_v2: Which version of transactions is spoken, if any.
    """

    client: Client
    core: ProduceCore
    clock: PausingClock
    is_v2: bool = True
    _links: dict[int, _Link] = attrs.field(factory=dict, init=False)

    def send(self) -> None:
        """Send what can be sent, and wait while too much is waiting.

        Raises:
            ClientError: A batch is refused for good, or could not be written in time.
        """
        self._send_ready()
        while self.core.waiting_bytes > WAITING_BYTES_MAX:
            self._turn()

    def flush(self) -> None:
        """Wait until everything is acknowledged; raises as `send`."""
        while self.core.has_unfinished:
            self._turn()

    def close(self) -> None:
        """Give connections back; on those with answers due the client hangs up."""
        for link in self._links.values():
            self.client.release(link.connection)
        self._links.clear()

    def _turn(self) -> None:
        """Send what is ready, and take the oldest answer; or wait until there is something to send."""
        self._send_ready()
        node_id = min(
            (node_id for node_id, link in self._links.items() if link.in_flight),
            key=lambda node_id: self._links[node_id].in_flight[0][1],
            default=None,
        )
        if node_id is not None:
            self._receive(node_id)
            return
        next_ms = self.core.next_ms()
        if next_ms is not None:
            self.clock.sleep_ms(max(next_ms - self.clock.monotonic_ms(), 1))

    def _send_ready(self) -> None:
        while True:
            by_node: dict[int, list[TopicPartition]] = {}
            for partition in self.core.ready(self.clock.monotonic_ms()):
                by_node.setdefault(self.client.leader_of(partition), []).append(partition)
            if not sum([self._send_to(node_id, partitions) for node_id, partitions in by_node.items()]):
                return

    def _send_to(self, node_id: int, partitions: list[TopicPartition]) -> bool:
        """Send one request to a broker, if it may take one; return whether it was sent."""
        link = self._links.get(node_id)
        if link is not None and len(link.in_flight) >= self.core.settings.in_flight_max:
            return False
        now_ms = self.clock.monotonic_ms()
        batches = self.core.take(partitions, now_ms)
        try:
            if link is None:
                link = self._links[node_id] = _Link(self.client.lease(node_id))
            version_max = VERSION_MAX if self.is_v2 else VERSION_MAX_OF_TRANSACTIONS_1
            link.connection.send(
                self.core.request(batches),
                timeout_ms=self.core.settings.request_timeout_ms,
                version=link.connection.version_of(ProduceRequest, version_max),
            )
        except ClientError as error:
            self._lose(node_id, batches, error)
            return False
        link.in_flight.append((batches, now_ms))
        return True

    def _receive(self, node_id: int) -> None:
        link = self._links[node_id]
        try:
            response = link.connection.receive(timeout_ms=self.core.settings.request_timeout_ms)
        except ConnectionFailedError as error:
            self._lose(node_id, [], error)
            return
        batches, _ = link.in_flight.popleft()
        if self.core.answered_all(batches, response, self.clock.monotonic_ms()):
            self.client.doubt_leaders()

    def _lose(self, node_id: int, batches: list[Batch], error: ClientError) -> None:
        """Give a connection up; what was on it is sent again."""
        link = self._links.pop(node_id, None)
        lost = batches
        if link is not None:
            lost = [batch for sent, _ in link.in_flight for batch in sent] + batches
            self.client.release(link.connection)
        self.client.doubt_leaders()
        for batch in lost:
            self.core.failed(batch, error, self.clock.monotonic_ms())
