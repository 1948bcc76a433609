"""Shell: the producer for programs without trio; see `blocking`.

.. versionadded:: 0.1
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import trio

from odradek.kernel.peers.errors import ClientError

from .blocking import Blocking
from .errors import BufferExhaustedError, ClientClosedError, ClientUsageError
from .producer import Producer

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Mapping

    from odradek.kernel.types import TopicPartition

    from .cluster import TopicInfo
    from .delivery import Headers, OnDelivery, RecordMetadata
    from .group.committed import OffsetAndMetadata
    from .group.member import GroupMetadata

_log = logging.getLogger(__name__)

_HANDED_OVER_MAX: Final = 10_000
"""Records that may wait to be handed over before `enqueue` waits too."""
_CHUNK_RECORDS: Final = 200
"""So many are taken in one go, before the client's other tasks have their turn."""

_NOT_TAKEN: Final = "the producer was closed before it took this"


class BlockingProducer(Blocking[Producer]):
    """`Producer` for any thread.

    .. versionadded:: 0.1
    """

    def __init__(self, settings: Mapping[str, object]) -> None:
        """Read the settings; the thread starts with the `with` block.

        Args:
            settings: Kafka's producer keys.

        Raises:
            ConfigError: A setting is unknown, wrong, or contradicts another.
        """
        super().__init__(Producer(settings))
        self._handed_over: deque[tuple[Any, ...]] = deque()
        self._has_room = threading.Event()
        self._is_notified = False
        self._arrived = trio.Event()
        self._rested = trio.Event()
        self._is_busy = False

    def send(
        self,
        topic: str,
        value: Any = None,
        *,
        key: Any = None,
        headers: Headers = (),
        partition: int | None = None,
        timestamp: int | None = None,
    ) -> RecordMetadata:
        """Send a record and wait for its acknowledgement; arguments and errors as `Producer.send`."""
        return self._call(
            self._client.send, topic, value, key=key, headers=headers, partition=partition, timestamp=timestamp
        )

    def enqueue(
        self,
        topic: str,
        value: Any = None,
        *,
        key: Any = None,
        headers: Headers = (),
        partition: int | None = None,
        timestamp: int | None = None,
        on_delivery: OnDelivery | None = None,
    ) -> None:
        """Hand a record over, waiting only where too many are handed over already; arguments as `Producer.enqueue`.

        Whatever goes wrong later, also with the record itself, is told to `on_delivery`, on the client's thread.
        An open transaction that lacks a record by that is not committed, whether or not somebody listens.

        Raises:
            ClientClosedError: The producer is not open.
        """
        token = self._token
        if token is None:
            raise ClientClosedError("the producer is not open: use it inside its `with`")
        if len(self._handed_over) >= _HANDED_OVER_MAX:
            self._wait_room()
        self._handed_over.append((topic, value, key, headers, partition, timestamp, on_delivery))
        if not self._is_notified:  # once for all that comes before the other thread looks
            self._is_notified = True
            try:
                token.run_sync_soon(self._notify)
            except BaseException as error:  # nobody was told: the next record is to find that out, too
                self._is_notified = False
                if isinstance(error, trio.RunFinishedError):
                    raise ClientClosedError("the producer was closed") from self._failure
                raise

    def _notify(self) -> None:
        self._arrived.set()

    def _wait_room(self) -> None:
        """Wait until the client's thread has taken a good part of what waits, or has ended."""
        self._has_room.clear()
        if len(self._handed_over) >= _HANDED_OVER_MAX and self._is_alive:
            self._has_room.wait()

    def _ended(self) -> None:
        self._is_notified = False  # from now on `enqueue` finds out by itself
        self._has_room.set()
        unheard_count = 0
        while self._handed_over:
            topic, *_, on_delivery = self._handed_over.popleft()
            if on_delivery is None:
                unheard_count += 1
            else:
                self._refuse(topic, on_delivery, ClientClosedError(_NOT_TAKEN))
        if unheard_count:
            _log.warning("%d records were dropped: %s", unheard_count, _NOT_TAKEN)

    async def _serve(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Give the producer what is handed over, in order."""
        task_status.started()
        while True:
            await self._arrived.wait()
            self._arrived = trio.Event()
            self._is_notified = False
            self._is_busy = True
            while self._handed_over:
                await self._take_some()
                if len(self._handed_over) < _HANDED_OVER_MAX // 2:
                    self._has_room.set()
                await trio.lowlevel.checkpoint()
            self._is_busy = False
            self._rested.set()
            self._rested = trio.Event()

    async def _take_some(self) -> None:
        waiting = self._handed_over
        for _ in range(min(len(waiting), _CHUNK_RECORDS)):
            topic, value, key, headers, partition, timestamp, on_delivery = record = waiting.popleft()
            if self._client.has_interceptors:  # they see a record once: it is not tried first without waiting
                await self._take(*record)
                continue
            try:
                self._client.send_nowait(
                    topic,
                    value,
                    key=key,
                    headers=headers,
                    partition=partition,
                    timestamp=timestamp,
                    on_delivery=on_delivery,
                )
            except BufferExhaustedError:
                await self._take(*record)
            except Exception as error:
                self._refuse(topic, on_delivery, error)

    async def _take(
        self,
        topic: str,
        value: Any,
        key: Any,
        headers: Headers,
        partition: int | None,
        timestamp: int | None,
        on_delivery: OnDelivery | None,
    ) -> None:
        try:
            await self._client.enqueue(
                topic,
                value,
                key=key,
                headers=headers,
                partition=partition,
                timestamp=timestamp,
                on_delivery=on_delivery,
            )
        except trio.Cancelled:
            self._refuse(topic, on_delivery, ClientClosedError(_NOT_TAKEN))
            raise
        except Exception as error:
            self._refuse(topic, on_delivery, error)

    def _refuse(self, topic: str, on_delivery: OnDelivery | None, error: Exception) -> None:
        """Tell of a record that the producer did not take."""
        failure = error if isinstance(error, ClientError) else ClientUsageError(f"{type(error).__name__}: {error}")
        self._client.record_refused(failure)
        if on_delivery is None:
            _log.warning("a record for topic %r was dropped: %s", topic, failure)
            return
        try:
            on_delivery(None, failure)
        except Exception:
            _log.exception("on_delivery failed")

    def flush(self) -> None:
        """Wait until everything handed over before is acknowledged or given up."""
        self._call(self._at_rest, self._client.flush)

    async def _at_rest(self, work: Callable[[], Awaitable[None]]) -> None:
        """Do something once the producer has all that was handed over."""
        self._arrived.set()  # who handed something over may have been interrupted before that was told
        while self._handed_over or self._is_busy:
            await self._rested.wait()
        await work()

    def _finish(self) -> None:
        self.flush()

    def partitions_for(self, topic: str) -> TopicInfo:
        """Return what is known of a topic, as `Producer.partitions_for`."""
        return self._call(self._client.partitions_for, topic)

    # Transactions.

    def init_transactions(self) -> None:
        """Register the transactional id, as `Producer.init_transactions`."""
        self._call(self._client.init_transactions)

    def begin_transaction(self) -> None:
        """Begin a transaction, as `Producer.begin_transaction`."""
        self._call(self._client.begin_transaction)

    def send_offsets(self, offsets: Mapping[TopicPartition, OffsetAndMetadata], group_metadata: GroupMetadata) -> None:
        """Commit a consumer's offsets with the open transaction, as `Producer.send_offsets`."""
        self._call(self._client.send_offsets, offsets, group_metadata)

    def commit_transaction(self) -> None:
        """Commit the open transaction with all that was handed over, as `Producer.commit_transaction`."""
        self._call(self._at_rest, self._client.commit_transaction)

    def abort_transaction(self) -> None:
        """Abort the open transaction with all that was handed over, as `Producer.abort_transaction`."""
        self._call(self._at_rest, self._client.abort_transaction)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Keep a transaction open for the time of a `with`; ends and raises as `Producer.transaction`."""
        self.begin_transaction()
        try:
            yield
            self.commit_transaction()
        finally:
            self._call(self._at_rest, self._client.abort_unfinished)
