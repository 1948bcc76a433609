"""Shell: the producer: records in, batches out, an answer for each record.

    async with Producer({"bootstrap.servers": "127.0.0.1:9092"}) as producer:
        metadata = await producer.send("greetings", "hello", key="world")        # waits for the acknowledgement
        delivery = await producer.enqueue("greetings", "hello again")            # waits for room only
        await producer.enqueue("greetings", "and again", on_delivery=report)     # report(metadata, error)
        await producer.flush()

With a `transactional.id`, records belong to transactions, which consumers of `isolation.level=read_committed` see whole
or not at all; a consumer's offsets may be part of them:

    async with Producer({..., "transactional.id": "copier"}) as producer:
        async with producer.transaction():      # commits; aborts on an exception or a cancellation
            await producer.enqueue("copies", value)
            await producer.send_offsets(consumer.consumed(), consumer.group_metadata)

A record goes through interceptors, serializers and the partitioner, in this order, and then into a batch.

*Errors.* `send` raises, and `on_delivery` is called with, the same exceptions (`errors.py`): `error.retriable` tells
whether trying the record again is sensible. The producer has then already tried for `delivery.timeout.ms`. What is
wrong with a record itself (serializer, size) is raised by the call that brings it, in every form.

*Cancellation.* A cancelled `enqueue` or `send` that still waited for metadata or memory took nothing. A `send` that is
cancelled while it waits for its acknowledgement leaves the record on its way: it may be written. Leaving the `async
with` in peace flushes first; leaving it by an exception or a cancellation gives up what is not acknowledged
(`ClientClosedError`).

*Source:* `KafkaProducer` of Kafka 4.3.

.. versionadded:: 0.1
"""

from __future__ import annotations

import logging
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, NoReturn

import attrs
import trio

from odradek.kernel.machine.system.machine import real_machine
from odradek.kernel.peers.errors import ClientError
from odradek.kernel.peers.lifetime import open_crew
from odradek.kernel.types import TopicPartition

from .accumulator import Accumulator, record_size
from .brokers import Brokers, now_ms, open_brokers
from .delivery import Delivery, ProducerRecord, RecordMetadata, call_back, wait_done
from .errors import BufferExhaustedError, ClientClosedError, ClientTimeoutError, ClientUsageError, RecordTooLargeError
from .partition_choice import PartitionChoice
from .producer_settings import ProducerSettings
from .sender import Sender, SenderCounts
from .serializing import check_headers, check_place, check_timestamp, serialize
from .transactions.calls import TransactionCalls

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping
    from contextlib import AbstractAsyncContextManager
    from types import TracebackType
    from typing import Self, TypeAlias

    from odradek.kernel.machine.machine import Machine

    from .cluster import TopicInfo
    from .delivery import Headers, OnDelivery

    _Prepared: TypeAlias = tuple[TopicPartition, TopicInfo | None, bytes | None, bytes | None, Headers, int, int]

_log = logging.getLogger(__name__)


@attrs.frozen
class ProducerStatistics:
    """How a producer does.

    Attributes:
        sent: What was sent so far.
        buffered_bytes: Memory in use, of `buffer.memory`.
        unfinished_batches_count: Batches neither acknowledged nor given up.
    """

    sent: SenderCounts
    buffered_bytes: int
    unfinished_batches_count: int


class Producer(TransactionCalls):
    """A producer; open for the time of its `async with`, usable by any number of tasks of that trio run.

    .. versionadded:: 0.1
    """

    def __init__(
        self,
        settings: Mapping[str, object],
        *,
        machine: Machine | None = None,
    ) -> None:
        """Read the settings; nothing is opened yet.

        Args:
            settings: Kafka's producer keys.
            machine: What it takes of the host; the real one when None.

        Raises:
            ConfigError: A setting is unknown, wrong, or contradicts another.
        """
        self._settings = ProducerSettings.read(settings)
        super().__init__(self._settings.transactional_id)
        self._host = machine or real_machine()
        self._clock, self._random = self._host.clock, self._host.random
        self._accumulator = Accumulator(
            self._settings.batch_size_bytes,
            self._settings.linger_ms,
            self._settings.buffer_memory_bytes,
            self._settings.compression,
            self._settings.compression_level,
        )
        self._choice = PartitionChoice.of(self._settings, self._accumulator, self._random, now_ms)
        self._brokers: Brokers | None = None
        self._sender: Sender | None = None
        self._flushes_count = 0
        self._waiters_count = 0
        self._lifetime: AbstractAsyncContextManager[None] | None = None

    # Life.

    async def __aenter__(self) -> Self:
        if self._lifetime is not None:
            raise ClientUsageError("a producer is opened once")
        self._lifetime = self._live()
        await self._lifetime.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool | None:
        assert self._lifetime is not None
        return await self._lifetime.__aexit__(kind, error, traceback)

    @asynccontextmanager
    async def _live(self) -> AsyncIterator[None]:
        async with open_brokers(self._settings.connection, machine=self._host) as brokers:
            brokers.topic_idle_ms_max = self._settings.metadata_max_idle_ms
            self._sender = Sender(self._settings, brokers, self._accumulator, self._random, self._machine)
            self._open_transactions(self._settings, brokers, self._sender, self._random)
            self._brokers = brokers
            try:
                async with open_crew() as crew:
                    crew.start_soon(self._sender.run)
                    if self._transactions is not None:
                        crew.start_soon(self._transactions.run)
                    try:
                        yield
                        await self._finish()
                    finally:
                        await self.abort_unfinished()
                        self._brokers = None
            finally:
                self._brokers = None

    async def _finish(self) -> None:
        """Have all records acknowledged; those of a transaction that nobody ended are aborted instead."""
        if self._machine is None:
            await self.flush()

    def _opened(self) -> Brokers:
        if self._brokers is None:
            raise ClientClosedError("the producer is not open: use it inside its `async with`")
        return self._brokers

    # Sending.

    async def send(
        self,
        topic: str,
        value: Any = None,
        *,
        key: Any = None,
        headers: Headers = (),
        partition: int | None = None,
        timestamp: int | None = None,
    ) -> RecordMetadata:
        """Send a record and wait until it is acknowledged as `acks` demands.

        Args:
            topic: Where to; it may be created by asking for it, if the broker does so.
            value: For the serializer; without one bytes, text or None.
            key: Likewise.
            headers: Names and values, in order.
            partition: Where exactly; the partitioner decides when None.
            timestamp: Milliseconds since the Unix epoch; now when None.

        Raises:
            ClientError: One of `errors.py`; `retriable` tells whether to try again.

        Cancelled after the record was taken, it may be written all the same.
        """
        delivery = await self.enqueue(topic, value, key=key, headers=headers, partition=partition, timestamp=timestamp)
        return await delivery.wait()

    async def enqueue(
        self,
        topic: str,
        value: Any = None,
        *,
        key: Any = None,
        headers: Headers = (),
        partition: int | None = None,
        timestamp: int | None = None,
        on_delivery: OnDelivery | None = None,
    ) -> Delivery:
        """Take a record, waiting at most `max.block.ms` for metadata and memory; its fate comes later.

        Args:
            topic: As for `send`.
            value: As for `send`.
            key: As for `send`.
            headers: As for `send`.
            partition: As for `send`.
            timestamp: As for `send`.
            on_delivery: Called once, with where the record is and None, or with None and the error. It must not block.

        Raises:
            ClientTimeoutError, BufferExhaustedError: No metadata or no memory in time.
            SerializationError, RecordTooLargeError: The record cannot be sent at all.

        Cancelled, nothing was taken.
        """
        if self._sender is not None and self._sender.is_turn_due:  # once a batch; and the place to be cancelled at
            await trio.lowlevel.checkpoint()
        if self._settings.interceptors:
            record = self._intercepted(ProducerRecord(topic, value, key, headers, partition, timestamp))
            topic, value, key, headers = record.topic, record.value, record.key, record.headers
            partition, timestamp = record.partition, record.timestamp
            on_delivery = self._with_interceptors(on_delivery)
        deadline_ms = 0
        try:
            prepared = self._prepare(topic, value, key, headers, partition, timestamp)
            if prepared is None:
                deadline_ms = now_ms() + self._settings.max_block_ms
                await self._wait_partition(self._opened(), topic, partition, self._settings.max_block_ms)
                prepared = self._prepare(topic, value, key, headers, partition, timestamp)
                assert prepared is not None, "the topic is known, and nothing was awaited since"
            delivery = self._append(prepared, on_delivery)
            if delivery is None:
                delivery = await self._append_slowly(
                    prepared, on_delivery, deadline_ms or now_ms() + self._settings.max_block_ms
                )
        except (Exception, trio.Cancelled) as error:
            self._tell_refused(error)
            raise
        return delivery

    def send_nowait(
        self,
        topic: str,
        value: Any = None,
        *,
        key: Any = None,
        headers: Headers = (),
        partition: int | None = None,
        timestamp: int | None = None,
        on_delivery: OnDelivery | None = None,
    ) -> Delivery:
        """Take a record as `enqueue` does, or raise at once where that would wait.

        Raises:
            BufferExhaustedError: There is no memory left, or no metadata of the topic yet: await something, then try
            again.
            SerializationError, RecordTooLargeError: The record cannot be sent at all.
        """
        brokers = self._opened()
        info = brokers.cluster.topics.get(topic)
        if info is None or (partition is not None and partition not in info.partitions):
            check_place(topic, partition)
        if info is None or not info.partitions:
            brokers.want((topic,))
            raise BufferExhaustedError(f"nothing is known of topic {topic!r} yet; its metadata was asked for")
        if self._settings.interceptors:
            record = self._intercepted(ProducerRecord(topic, value, key, headers, partition, timestamp))
            topic, value, key, headers = record.topic, record.value, record.key, record.headers
            partition, timestamp = record.partition, record.timestamp
            on_delivery = self._with_interceptors(on_delivery)
        try:
            prepared = self._prepare(topic, value, key, headers, partition, timestamp)
            delivery = None if prepared is None else self._append(prepared, on_delivery)
        except Exception as error:
            self._tell_refused(error)
            raise
        if delivery is None:
            full = BufferExhaustedError(
                f"buffer.memory={self._settings.buffer_memory_bytes} is in use"
                if prepared is not None
                else f"nothing is known of partition {partition} of topic {topic!r} yet"
            )
            self._tell_refused(full)
            raise full
        return delivery

    async def _append_slowly(self, prepared: _Prepared, on_delivery: OnDelivery | None, deadline_ms: int) -> Delivery:
        """Wait until there is memory for a record."""
        self._waiters_count += 1
        try:
            with trio.move_on_at(deadline_ms / 1_000):
                while True:
                    self._opened()
                    assert self._sender is not None
                    self._accumulator.is_pressed = True
                    self._sender.wake()
                    await self._sender.wait_released()
                    delivery = self._append(prepared, on_delivery)
                    if delivery is not None:
                        return delivery
        finally:
            self._waiters_count -= 1
            self._accumulator.is_pressed = self._waiters_count > 0
        raise BufferExhaustedError(
            f"buffer.memory={self._settings.buffer_memory_bytes} stayed in use for "
            f"max.block.ms={self._settings.max_block_ms}"
        )

    async def _wait_partition(self, brokers: Brokers, topic: str, partition: int | None, timeout_ms: int) -> None:
        """Wait until the topic is known, and has the partition if one was named."""
        check_place(topic, partition)
        deadline_ms = now_ms() + timeout_ms
        while True:
            info = await brokers.topic(topic, timeout_ms=max(deadline_ms - now_ms(), 0))
            if partition is None or partition in info.partitions:
                return
            try:
                await brokers.update(timeout_ms=max(deadline_ms - now_ms(), 0))
            except ClientTimeoutError:
                raise ClientTimeoutError(
                    f"topic {topic!r} got no partition {partition} within max.block.ms={timeout_ms}: "
                    f"it has {len(info.partitions)}"
                ) from None

    def _prepare(
        self, topic: str, value: Any, key: Any, headers: Headers, partition: int | None, timestamp: int | None
    ) -> _Prepared | None:
        """Serialize a record and choose its partition; None where too little is known of the topic."""
        cluster = self._opened().cluster
        settings = self._settings
        info = cluster.topics.get(topic)
        if info is None or not info.partitions:
            return None
        key_bytes = None
        if key is not None or settings.key_serializer is not None:
            key_bytes = serialize("key", settings.key_serializer, topic, key)
        value_bytes = serialize("value", settings.value_serializer, topic, value)
        if headers != ():
            check_headers(headers)
        size_bytes = record_size(key_bytes, value_bytes, headers)
        if size_bytes > settings.request_size_bytes_max or size_bytes > settings.buffer_memory_bytes:
            self._refuse_size(size_bytes)
        if partition is None:
            is_sticky = self._choice.is_sticky(key_bytes)
            number = self._choice.choose(info, key, key_bytes, value, value_bytes, cluster)
        elif partition in info.partitions:
            is_sticky, number = False, partition
        else:
            return None
        if timestamp is None:
            timestamp = self._clock.now_ms()
        else:
            check_timestamp(timestamp)
        where = TopicPartition(topic, number)
        return where, info if is_sticky else None, key_bytes, value_bytes, headers, timestamp, size_bytes

    def _append(self, prepared: _Prepared, on_delivery: OnDelivery | None) -> Delivery | None:
        """Put a record into a batch; None where memory is short."""
        where, sticky_info, key_bytes, value_bytes, headers, timestamp, size_bytes = prepared
        if self._transactions is not None:
            self._transactions.machine.check_open()
            self._transactions.use(where)
        batch = self._accumulator.open_batch(where, size_bytes)
        if batch is not None:
            index = batch.append(key_bytes, value_bytes, timestamp, headers, size_bytes)
        else:
            appended = self._accumulator.append(where, key_bytes, value_bytes, headers, timestamp, now_ms(), size_bytes)
            if appended is None:
                return None
            batch, index = appended
        # How it would be with one more record of this size.
        ends_batch = batch.reserved_bytes + size_bytes > self._settings.batch_size_bytes
        if sticky_info is not None:
            self._choice.appended(sticky_info, size_bytes, ends_batch=ends_batch, begins_batch=not index)
        if not index:
            self._opened().want((where.topic,))  # once a batch is enough for metadata.max.idle.ms
        if not index or (ends_batch and batch.reserved_bytes >= self._settings.batch_size_bytes):
            assert self._sender is not None
            self._sender.batch_changed()
        delivery = Delivery(
            batch,
            index,
            timestamp,
            -1 if key_bytes is None else len(key_bytes),
            -1 if value_bytes is None else len(value_bytes),
        )
        if on_delivery is not None:
            batch.on_done.append(lambda _: call_back(on_delivery, delivery))
        return delivery

    def _refuse_size(self, size_bytes: int) -> NoReturn:
        settings = self._settings
        limit = f"max.request.size={settings.request_size_bytes_max}"
        if size_bytes <= settings.request_size_bytes_max:
            limit = f"buffer.memory={settings.buffer_memory_bytes}"
        raise RecordTooLargeError(f"a record of {size_bytes} bytes, above {limit}")

    # Interceptors.

    @property
    def has_interceptors(self) -> bool:
        """Whether somebody sees each record before it is taken, at each attempt of `send_nowait` anew."""
        return bool(self._settings.interceptors)

    def _intercepted(self, record: ProducerRecord) -> ProducerRecord:
        """Return the record as the interceptors make it; one that fails is passed over, as in Java."""
        for interceptor in self._settings.interceptors:
            on_send = getattr(interceptor, "on_send", None)
            if on_send is None:
                continue
            try:
                record = on_send(record)
            except Exception:
                _log.exception("interceptor %r failed in on_send", interceptor)
        return record

    def _with_interceptors(self, on_delivery: OnDelivery | None) -> OnDelivery:
        def tell(metadata: RecordMetadata | None, error: ClientError | None) -> None:
            self._acknowledge(metadata, error)
            if on_delivery is not None:
                on_delivery(metadata, error)

        return tell

    def _tell_refused(self, error: BaseException) -> None:
        """Have interceptors hear of a record that they saw and that was not taken; *Source:* `onSendError` in Java."""
        is_cancelled = isinstance(error, trio.Cancelled)
        self._acknowledge(None, ClientError("cancelled before the record was taken") if is_cancelled else error)

    def _acknowledge(self, metadata: RecordMetadata | None, error: BaseException | None) -> None:
        for interceptor in self._settings.interceptors:
            on_acknowledgement = getattr(interceptor, "on_acknowledgement", None)
            if on_acknowledgement is None:
                continue
            try:
                on_acknowledgement(metadata, error)
            except Exception:
                _log.exception("interceptor %r failed in on_acknowledgement", interceptor)

    # The rest.

    async def flush(self) -> None:
        """Send everything at once and wait until all that was taken before is acknowledged or given up.

        Cancelled, the records stay on their way.
        """
        self._opened()
        assert self._sender is not None
        self._flushes_count += 1
        self._accumulator.is_flushing = True
        try:
            for batch in self._accumulator.unfinished:
                self._sender.wake()
                await wait_done(batch)
        finally:
            self._flushes_count -= 1
            self._accumulator.is_flushing = self._flushes_count > 0
        await trio.lowlevel.checkpoint()

    async def partitions_for(self, topic: str) -> TopicInfo:
        """Return what is known of a topic, waiting at most `max.block.ms`.

        Raises:
            ClientTimeoutError: Nothing became known in time.
        """
        return await self._opened().topic(topic, timeout_ms=self._settings.max_block_ms)

    def statistics(self) -> ProducerStatistics:
        """Return how the producer does."""
        counts = SenderCounts() if self._sender is None else attrs.evolve(self._sender.counts)
        return ProducerStatistics(counts, self._accumulator.used_bytes, len(self._accumulator.unfinished))

    def __repr__(self) -> str:
        state = "closed" if self._brokers is None else "open"
        return f"<Producer {self._settings.connection.client_id} {state} {self._accumulator!r}>"
