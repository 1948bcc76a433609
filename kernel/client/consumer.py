"""Shell: the consumer: partitions assigned by hand, positions moved by hand or by polling.

    async with Consumer({"bootstrap.servers": "127.0.0.1:9092", "auto.offset.reset": "earliest"}) as consumer:
        await consumer.assign_topics("greetings")
        for record in await consumer.poll(timeout_ms=1_000):
            print(record.offset, record.value)
        async for record in consumer:       # for ever
            print(record.offset, record.value)

While it is open, one task of its own fetches ahead: for each partition as much as one answer brings
(`max.partition.fetch.bytes`), and more when that was polled.

*Cancellation.* A cancelled `poll` took nothing: what it would have returned, the next one returns.

*Source:* `KafkaConsumer` of Kafka 4.3.

.. versionadded:: 0.1
"""

from __future__ import annotations

import logging
import random
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final

import attrs
import trio

from ..clock import SystemClock
from ..types import TopicPartition
from .backoff import Backoff
from .brokers import Brokers, now_ms, open_brokers
from .consumer_settings import ConsumerSettings
from .errors import (
    ClientClosedError,
    ClientError,
    ClientTimeoutError,
    ClientUsageError,
    UnsupportedVersionError,
)
from .fetched_records import ConsumerRecord
from .fetcher import Fetcher
from .lifetime import single_error
from .offsets import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP, OffsetAndTimestamp, list_offsets

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Mapping
    from contextlib import AbstractAsyncContextManager
    from types import TracebackType
    from typing import Self

    from ..clock import Clock
    from ..wire.messages.api_01_fetch import FetchResponse
    from .cluster import TopicInfo
    from .fetcher import Fetch

_log = logging.getLogger(__name__)

_VERSION_WITHOUT_IDS: Final = 12
"""The last version of Fetch that names topics."""


@attrs.frozen
class ConsumerStatistics:
    """How a consumer does.

    Attributes:
        fetches_count: Answered fetches.
        records_count: Records that polls returned.
        assigned_count: Partitions assigned.
    """

    fetches_count: int
    records_count: int
    assigned_count: int


class Consumer:
    """A consumer without a group; open for the time of its `async with`, polled by one task at a time.

    .. versionadded:: 0.1
    """

    def __init__(
        self,
        settings: Mapping[str, object],
        *,
        clock: Clock | None = None,
        random_source: random.Random | None = None,
    ) -> None:
        """Read the settings; nothing is opened yet.

        Args:
            settings: Kafka's consumer keys.
            clock: For `auto.offset.reset=by_duration`; the system's when None.
            random_source: For jitter; the system's when None.

        Raises:
            ConfigError: A setting is unknown, unbuilt or wrong.
        """
        self._settings = ConsumerSettings.read(settings)
        self._clock: Clock = SystemClock() if clock is None else clock
        self._random = random.SystemRandom() if random_source is None else random_source
        connection = self._settings.connection
        self._backoff = Backoff(connection.retry_backoff_ms, connection.retry_backoff_max_ms, self._random)
        self._brokers: Brokers | None = None
        self._fetcher: Fetcher | None = None
        self._lifetime: AbstractAsyncContextManager[None] | None = None
        self._wake = trio.Event()
        self._arrived = trio.Event()
        self._failures_count = 0
        self._fetches_count = 0
        self._records_count = 0
        self._iterated: list[ConsumerRecord] = []

    # Life.

    async def __aenter__(self) -> Self:
        if self._lifetime is not None:
            raise ClientUsageError("a consumer is opened once")
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
        async with open_brokers(self._settings.connection, random_source=self._random) as brokers:
            brokers.create_topics_by_asking(self._settings.allows_topic_creation)
            brokers.on_change(self._look_again)
            self._fetcher = Fetcher(self._settings, brokers.cluster)
            self._brokers = brokers
            try:
                async with single_error(), trio.open_nursery() as nursery:
                    nursery.start_soon(self._run, brokers, self._fetcher)
                    try:
                        yield
                    finally:
                        nursery.cancel_scope.cancel()
            finally:
                self._brokers = None

    def _opened(self) -> tuple[Brokers, Fetcher]:
        if self._brokers is None or self._fetcher is None:
            raise ClientClosedError("the consumer is not open: use it inside its `async with`")
        return self._brokers, self._fetcher

    # Assignment and positions.

    def assign(self, partitions: Iterable[TopicPartition | tuple[str, int]]) -> None:
        """Read these partitions from now on, instead of those before; kept ones keep their positions."""
        brokers, fetcher = self._opened()
        wanted = [TopicPartition(*partition) for partition in partitions]
        fetcher.assign(wanted)
        brokers.want({partition.topic for partition in wanted})
        self._look_again()

    async def assign_topics(self, *topics: str) -> frozenset[TopicPartition]:
        """Assign every partition that these topics have now, and return them.

        Raises:
            ClientTimeoutError: A topic did not become known within `default.api.timeout.ms`.
        """
        found = [await self.partitions_for(topic) for topic in topics]
        self.assign([TopicPartition(info.name, number) for info in found for number in info.partitions])
        return self.assignment

    @property
    def assignment(self) -> frozenset[TopicPartition]:
        """The assigned partitions."""
        return self._opened()[1].assignment

    @property
    def paused(self) -> frozenset[TopicPartition]:
        """Those of them that polls pass over."""
        return self._opened()[1].paused

    def seek(self, partition: TopicPartition | tuple[str, int], offset: int) -> None:
        """Go on from this offset; if the log does not have it, `auto.offset.reset` decides when it is read.

        Raises:
            ClientUsageError: The partition is not assigned, or the offset negative.
        """
        wanted = TopicPartition(*partition)
        self._opened()[1].seek(wanted, offset)
        self._forget_iterated((wanted,))
        self._look_again()

    def seek_to_beginning(self, *partitions: TopicPartition | tuple[str, int]) -> None:
        """Go on from the first record; of all assigned partitions when none is named."""
        self._seek_to(partitions, EARLIEST_TIMESTAMP)

    def seek_to_end(self, *partitions: TopicPartition | tuple[str, int]) -> None:
        """Go on after the last record; of all assigned partitions when none is named."""
        self._seek_to(partitions, LATEST_TIMESTAMP)

    def _seek_to(self, partitions: Iterable[TopicPartition | tuple[str, int]], timestamp: int) -> None:
        fetcher = self._opened()[1]
        wanted = [TopicPartition(*partition) for partition in partitions] or list(fetcher.assignment)
        for partition in wanted:
            fetcher.seek_to(partition, timestamp)
        self._forget_iterated(wanted)
        self._look_again()

    def _forget_iterated(self, partitions: Iterable[TopicPartition]) -> None:
        sought = set(partitions)
        self._iterated = [record for record in self._iterated if record.topic_partition not in sought]

    def pause(self, *partitions: TopicPartition | tuple[str, int]) -> None:
        """Have polls pass these over."""
        for partition in partitions:
            self._opened()[1].pause(TopicPartition(*partition), True)

    def resume(self, *partitions: TopicPartition | tuple[str, int]) -> None:
        """Have polls return records of these again."""
        for partition in partitions:
            self._opened()[1].pause(TopicPartition(*partition), False)
        self._look_again()
        self._arrived.set()

    async def position(self, partition: TopicPartition | tuple[str, int]) -> int:
        """Return the offset of the next record to be polled, looking it up if need be.

        Raises:
            NoOffsetForPartitionError: There is none, and `auto.offset.reset` is `none`.
            ClientTimeoutError: It could not be looked up within `default.api.timeout.ms`.
        """
        fetcher = self._opened()[1]
        wanted = TopicPartition(*partition)
        with trio.move_on_after(self._settings.api_timeout_ms / 1_000):
            while True:
                fetcher.raise_error(wanted)
                found = fetcher.position(wanted)
                if found is not None:
                    await trio.lowlevel.checkpoint()
                    return found
                arrived = self._arrived
                self._look_again()
                await arrived.wait()
        raise ClientTimeoutError(f"no position of {wanted} within {self._settings.api_timeout_ms} ms")

    def high_watermark(self, partition: TopicPartition | tuple[str, int]) -> int:
        """Return up to where the partition could be read at the last fetch; -1 before the first."""
        return self._opened()[1].high_watermark(TopicPartition(*partition))

    # Offsets of any partition.

    async def beginning_offsets(
        self, partitions: Iterable[TopicPartition | tuple[str, int]]
    ) -> dict[TopicPartition, int]:
        """Return the offsets of the first records.

        Raises:
            ClientError: A leader refused, or none answered within `default.api.timeout.ms`.
        """
        return await self._special_offsets(partitions, EARLIEST_TIMESTAMP)

    async def end_offsets(self, partitions: Iterable[TopicPartition | tuple[str, int]]) -> dict[TopicPartition, int]:
        """Return the offsets after the last records that a consumer of this isolation level may read.

        Raises:
            ClientError: As `beginning_offsets`.
        """
        return await self._special_offsets(partitions, LATEST_TIMESTAMP)

    async def _special_offsets(
        self, partitions: Iterable[TopicPartition | tuple[str, int]], timestamp: int
    ) -> dict[TopicPartition, int]:
        wanted = {TopicPartition(*partition): timestamp for partition in partitions}
        found = await self._list(wanted)
        return {partition: found[partition].offset for partition in wanted}

    async def offsets_for_times(
        self, timestamps: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """Return the first record of each partition that is as late as a timestamp, or None where there is none.

        Args:
            timestamps: Milliseconds since the Unix epoch, >= 0.

        Raises:
            ClientError: As `beginning_offsets`.
        """
        if any(timestamp < 0 for timestamp in timestamps.values()):
            raise ClientUsageError("timestamps are not negative; see beginning_offsets and end_offsets")
        found = await self._list(timestamps)
        return {partition: found[partition] if found[partition].offset >= 0 else None for partition in timestamps}

    async def _list(self, timestamps: Mapping[TopicPartition, int]) -> dict[TopicPartition, OffsetAndTimestamp]:
        return await list_offsets(
            self._opened()[0],
            timestamps,
            isolation_level=self._settings.isolation_level,
            timeout_ms=self._settings.api_timeout_ms,
            backoff=self._backoff,
        )

    async def partitions_for(self, topic: str) -> TopicInfo:
        """Return what is known of a topic.

        Raises:
            ClientTimeoutError: It did not become known within `default.api.timeout.ms`.
        """
        return await self._opened()[0].topic(topic, timeout_ms=self._settings.api_timeout_ms)

    # Polling.

    async def poll(self, *, timeout_ms: int | None = None, records_max: int | None = None) -> list[ConsumerRecord]:
        """Return the next records, at once if there are any, and move the positions past them.

        Args:
            timeout_ms: How long to wait for the first record; None is for ever. Then the list is empty.
            records_max: At most so many; `max.poll.records` when None.

        Returns:
            Records, those of a partition in order of their offsets.

        Raises:
            ClientUsageError: Nothing is assigned.
            NoOffsetForPartitionError: A partition has no valid position, and `auto.offset.reset` is `none`.
            DeserializationError: A deserializer failed; seek past the record to go on.
            BrokerError: A broker refuses a partition for good, or a batch is corrupt.

        Cancelled, nothing was taken.
        """
        fetcher = self._opened()[1]
        if not fetcher.assignment:
            raise ClientUsageError("nothing is assigned: assign() first")
        limit = self._settings.poll_records_max if records_max is None else records_max
        await trio.lowlevel.checkpoint()
        with trio.move_on_after(float("inf") if timeout_ms is None else timeout_ms / 1_000):
            while True:
                records = fetcher.take(limit)
                self._look_again()
                if records:
                    self._records_count += len(records)
                    return self._intercepted(records)
                await self._arrived.wait()
                self._opened()
        return []

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> ConsumerRecord:
        """Return the next record, waiting for ever; positions are ahead, by what was polled for the iteration."""
        while not self._iterated:
            self._iterated = (await self.poll())[::-1]
        return self._iterated.pop()

    def _intercepted(self, records: list[ConsumerRecord]) -> list[ConsumerRecord]:
        for interceptor in self._settings.interceptors:
            on_consume: Any = getattr(interceptor, "on_consume", None)
            if on_consume is None:
                continue
            try:
                records = on_consume(records)
            except Exception:
                _log.exception("interceptor %r failed in on_consume", interceptor)
        return records

    # Fetching ahead.

    def _look_again(self) -> None:
        self._wake.set()

    async def _run(self, brokers: Brokers, fetcher: Fetcher) -> None:
        """Look up positions and fetch what is missing, until cancelled."""
        async with trio.open_nursery() as nursery:
            while True:
                self._wake = trio.Event()
                next_ms = self._turn(brokers, fetcher, nursery)
                with trio.move_on_at(next_ms / 1_000):
                    await self._wake.wait()

    def _turn(self, brokers: Brokers, fetcher: Fetcher, nursery: trio.Nursery) -> float:
        time_ms = now_ms()
        resets = fetcher.take_resets(time_ms, self._reset_timestamp())
        if resets:
            nursery.start_soon(self._reset, brokers, fetcher, resets)
        nodes, next_ms, is_leader_unknown = fetcher.fetchable(time_ms)
        if is_leader_unknown:
            brokers.request_update()
        for node_id, partitions in nodes.items():
            nursery.start_soon(self._fetch, brokers, fetcher, node_id, fetcher.begin_fetch(partitions))
        self._announce()  # an error may have shown
        return next_ms

    def _reset_timestamp(self) -> int | None:
        if self._settings.reset == "by_duration":
            return max(self._clock.now_ms() - self._settings.reset_duration_ms, 0)
        return {"earliest": EARLIEST_TIMESTAMP, "latest": LATEST_TIMESTAMP}.get(self._settings.reset)

    def _announce(self) -> None:
        self._arrived.set()
        self._arrived = trio.Event()

    async def _reset(self, brokers: Brokers, fetcher: Fetcher, resets: dict[TopicPartition, tuple[int, int]]) -> None:
        generations = {partition: generation for partition, (_, generation) in resets.items()}
        try:
            found = await self._list({partition: timestamp for partition, (timestamp, _) in resets.items()})
            late = [partition for partition, item in found.items() if item.offset < 0]
            if late:  # no record is as late as the timestamp: begin at the end, as Java does
                found |= await self._list(dict.fromkeys(late, LATEST_TIMESTAMP))
        except ClientError as error:
            retried = error.retriable
            fetcher.failed(generations, self._retry_at_ms(), None if retried else error)
        else:
            for partition, item in found.items():
                fetcher.reset(partition, generations[partition], item.offset)
        self._announce()
        self._look_again()

    async def _fetch(self, brokers: Brokers, fetcher: Fetcher, node_id: int, fetch: Fetch) -> None:
        timeout_ms = self._settings.connection.request_timeout_ms + self._settings.fetch_wait_ms_max
        version_max = None if fetch.has_topic_ids else _VERSION_WITHOUT_IDS
        try:
            response: FetchResponse = await brokers.request(
                node_id, fetch.request, timeout_ms=timeout_ms, version_max=version_max
            )
        except UnsupportedVersionError as error:
            fetcher.failed(fetch.generations, self._retry_at_ms(), error)
        except ClientError as error:
            _log.debug("fetching from broker %d failed: %s", node_id, error)
            fetcher.failed(fetch.generations, self._retry_at_ms())
            brokers.request_update()
        else:
            self._failures_count = 0
            self._fetches_count += 1
            retry_at_ms = now_ms() + self._backoff.pause_ms(1)
            if fetcher.finish_fetch(fetch, response, retry_at_ms):
                brokers.request_update()
        self._announce()
        self._look_again()

    def _retry_at_ms(self) -> int:
        self._failures_count += 1
        return now_ms() + self._backoff.pause_ms(self._failures_count)

    def statistics(self) -> ConsumerStatistics:
        """Return how the consumer does."""
        assigned = 0 if self._fetcher is None else len(self._fetcher.assignment)
        return ConsumerStatistics(self._fetches_count, self._records_count, assigned)

    def __repr__(self) -> str:
        state = "closed" if self._brokers is None else "open"
        return f"<Consumer {self._settings.connection.client_id} {state} {self.statistics()}>"
