"""Shell: producer and consumer for programs without trio, and what a blocking admin is made of: a thread for each.

    with BlockingProducer({"bootstrap.servers": "127.0.0.1:9092"}) as producer:
        print(producer.send("greetings", "hello").offset)
    with BlockingConsumer({"bootstrap.servers": "127.0.0.1:9092", "auto.offset.reset": "earliest"}) as consumer:
        consumer.assign_topics("greetings")
        for record in consumer:
            print(record.value)

Every call hands its work to that thread and waits: about 0.1 ms. `BlockingProducer.enqueue` hands over without waiting,
so that a loop of it is as fast as the producer itself. Callbacks run on the client's thread. The methods may be called
from any number of threads; the errors are those of `errors.py`.

.. versionadded:: 0.1
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar, cast

import trio

from .consumer import Consumer
from .errors import ClientClosedError, ClientError, ClientUsageError
from .producer import Producer

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable, Mapping
    from contextlib import AbstractAsyncContextManager
    from types import TracebackType
    from typing import Self

    from ..types import TopicPartition
    from .admin import Admin
    from .cluster import TopicInfo
    from .delivery import Headers, OnDelivery, RecordMetadata
    from .fetched_records import ConsumerRecord
    from .offsets import OffsetAndTimestamp

_log = logging.getLogger(__name__)

T = TypeVar("T")
C = TypeVar("C", bound="Producer | Consumer | Admin")

_HANDED_OVER_MAX: Final = 10_000
"""Records that may wait to be handed over before `enqueue` waits too."""


class Blocking(Generic[C]):
    """A client on a thread of its own; the thread lives exactly as long as the `with` block."""

    def __init__(self, client: C) -> None:
        self._client = client
        self._token: trio.lowlevel.TrioToken | None = None
        self._is_ready = threading.Event()
        self._stop: trio.Event | None = None
        self._abort: trio.CancelScope | None = None
        self._failure: BaseException | None = None
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        name = f"odradek {type(self._client).__name__.lower()}"
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()
        self._is_ready.wait()
        if self._token is None:
            self._thread.join()
            assert self._failure is not None
            raise self._failure
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        token, thread, stop, abort = self._token, self._thread, self._stop, self._abort
        assert token is not None
        assert thread is not None
        assert stop is not None
        assert abort is not None
        if kind is None:
            self._finish()
        self._token = None
        with suppress(trio.RunFinishedError):  # it ended by itself; `_failure` says why
            token.run_sync_soon(stop.set if kind is None else abort.cancel)
        thread.join()
        if self._failure is not None and kind is None:
            raise self._failure

    def _finish(self) -> None:
        """Do what is left before a peaceful end."""

    def _run(self) -> None:
        try:
            trio.run(self._live)
        except BaseException as error:  # handed to the thread that opened the client, whatever it is
            self._failure = error
        finally:
            self._is_ready.set()

    async def _live(self) -> None:
        self._stop = trio.Event()
        with trio.CancelScope() as self._abort:
            client = cast("AbstractAsyncContextManager[object]", self._client)
            async with client, trio.open_nursery() as nursery:
                await nursery.start(self._serve)
                self._token = trio.lowlevel.current_trio_token()
                self._is_ready.set()
                await self._stop.wait()
                nursery.cancel_scope.cancel()

    async def _serve(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Do what the client's thread has to do beside calls; runs until cancelled."""
        task_status.started()

    def _call(self, function: Callable[..., Coroutine[Any, Any, T]], *args: Any, **named: Any) -> T:
        """Run an async function on the client's thread and return what it returns."""
        result: T = self._through(trio.from_thread.run, function, args, named)
        return result

    def _call_sync(self, function: Callable[..., T], *args: Any, **named: Any) -> T:
        """Run a plain function on the client's thread and return what it returns."""
        result: T = self._through(trio.from_thread.run_sync, function, args, named)
        return result

    def _through(self, run: Any, function: Callable[..., Any], args: tuple[Any, ...], named: dict[str, Any]) -> Any:
        if self._token is None:
            raise ClientClosedError("the client is not open: use it inside its `with`")
        try:
            return run(partial(function, *args, **named), trio_token=self._token)
        except (trio.RunFinishedError, trio.Cancelled):
            raise ClientClosedError("the client was closed") from None


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
        self._room = threading.Semaphore(_HANDED_OVER_MAX)
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

        Raises:
            ClientClosedError: The producer is not open.
        """
        token = self._token
        if token is None:
            raise ClientClosedError("the producer is not open: use it inside its `with`")
        self._room.acquire()
        self._handed_over.append((topic, value, key, headers, partition, timestamp, on_delivery))
        token.run_sync_soon(self._notify, idempotent=True)

    def _notify(self) -> None:
        self._arrived.set()

    async def _serve(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Give the producer what is handed over, in order."""
        task_status.started()
        while True:
            await self._arrived.wait()
            self._arrived = trio.Event()
            self._is_busy = True
            while self._handed_over:
                await self._take(*self._handed_over.popleft())
                self._room.release()
            self._is_busy = False
            self._rested.set()
            self._rested = trio.Event()

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
        except Exception as error:
            failure = error if isinstance(error, ClientError) else ClientUsageError(f"{type(error).__name__}: {error}")
            if on_delivery is None:
                _log.warning("a record for topic %r was dropped: %s", topic, failure)
                return
            try:
                on_delivery(None, failure)
            except Exception:
                _log.exception("on_delivery failed")

    def flush(self) -> None:
        """Wait until everything handed over before is acknowledged or given up."""
        self._call(self._flush)

    async def _flush(self) -> None:
        while self._handed_over or self._is_busy:
            await self._rested.wait()
        await self._client.flush()

    def _finish(self) -> None:
        self.flush()

    def partitions_for(self, topic: str) -> TopicInfo:
        """Return what is known of a topic, as `Producer.partitions_for`."""
        return self._call(self._client.partitions_for, topic)


class BlockingConsumer(Blocking[Consumer]):
    """`Consumer` for any thread; iterating it waits for records for ever.

    .. versionadded:: 0.1
    """

    def __init__(self, settings: Mapping[str, object]) -> None:
        """Read the settings; the thread starts with the `with` block.

        Args:
            settings: Kafka's consumer keys.

        Raises:
            ConfigError: A setting is unknown, unbuilt or wrong.
        """
        super().__init__(Consumer(settings))
        self._iterated: list[ConsumerRecord] = []

    def assign(self, partitions: Iterable[TopicPartition | tuple[str, int]]) -> None:
        """Read these partitions from now on, as `Consumer.assign`."""
        self._call_sync(self._client.assign, partitions)

    def assign_topics(self, *topics: str) -> frozenset[TopicPartition]:
        """Assign every partition of these topics, as `Consumer.assign_topics`."""
        return self._call(self._client.assign_topics, *topics)

    @property
    def assignment(self) -> frozenset[TopicPartition]:
        """The assigned partitions."""
        return self._call_sync(lambda: self._client.assignment)

    def seek(self, partition: TopicPartition | tuple[str, int], offset: int) -> None:
        """Go on from this offset, as `Consumer.seek`."""
        self._iterated.clear()
        self._call_sync(self._client.seek, partition, offset)

    def seek_to_beginning(self, *partitions: TopicPartition | tuple[str, int]) -> None:
        """Go on from the first record, as `Consumer.seek_to_beginning`."""
        self._iterated.clear()
        self._call_sync(self._client.seek_to_beginning, *partitions)

    def seek_to_end(self, *partitions: TopicPartition | tuple[str, int]) -> None:
        """Go on after the last record, as `Consumer.seek_to_end`."""
        self._iterated.clear()
        self._call_sync(self._client.seek_to_end, *partitions)

    def pause(self, *partitions: TopicPartition | tuple[str, int]) -> None:
        """Have polls pass these over, as `Consumer.pause`."""
        self._call_sync(self._client.pause, *partitions)

    def resume(self, *partitions: TopicPartition | tuple[str, int]) -> None:
        """Have polls return records of these again, as `Consumer.resume`."""
        self._call_sync(self._client.resume, *partitions)

    def position(self, partition: TopicPartition | tuple[str, int]) -> int:
        """Return the offset of the next record to be polled, as `Consumer.position`."""
        return self._call(self._client.position, partition)

    def beginning_offsets(self, partitions: Iterable[TopicPartition | tuple[str, int]]) -> dict[TopicPartition, int]:
        """Return the offsets of the first records, as `Consumer.beginning_offsets`."""
        return self._call(self._client.beginning_offsets, partitions)

    def end_offsets(self, partitions: Iterable[TopicPartition | tuple[str, int]]) -> dict[TopicPartition, int]:
        """Return the offsets after the last records, as `Consumer.end_offsets`."""
        return self._call(self._client.end_offsets, partitions)

    def offsets_for_times(
        self, timestamps: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """Return the first records as late as these timestamps, as `Consumer.offsets_for_times`."""
        return self._call(self._client.offsets_for_times, timestamps)

    def poll(self, *, timeout_ms: int | None = None, records_max: int | None = None) -> list[ConsumerRecord]:
        """Return the next records, as `Consumer.poll`."""
        return self._call(self._client.poll, timeout_ms=timeout_ms, records_max=records_max)

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> ConsumerRecord:
        """Return the next record, waiting for ever; positions are ahead, by what was polled for the iteration."""
        while not self._iterated:
            self._iterated = self.poll()[::-1]
        return self._iterated.pop()
