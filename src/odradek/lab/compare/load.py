"""Shell: the client's side of one run: produce at full speed, produce at a calm pace, read everything.

Runs in the process that compares, on one core of its own; the broker has another process.
"""

from __future__ import annotations

import functools
import time
from typing import TYPE_CHECKING, Final, Protocol

import attrs
import trio

from odradek.client import Admin, Consumer, NewTopic, Producer
from odradek.kernel.delay.headers import DELAYED_FROM, DELIVER_AFTER
from odradek.kernel.errors import OdradekError
from odradek.kernel.types import IsolationLevel, TopicPartition
from odradek.kernel.wire.special_timestamps import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP

from .ledger import Reading
from .samples import Samples
from .workload import INDEX_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from odradek.client import ClientError, ConsumerRecord, RecordMetadata
    from odradek.kernel.records.record import Headers

    from .ledger import Ledger
    from .workload import Workload

TOPIC: Final = "compared"
TRANSACTIONAL_ID: Final = "compare"
IDLE_S_MAX: Final = 30.0
"""How long a reader waits for a record that should be there."""

_POLL_MS: Final = 250
_POLL_RECORDS: Final = 10_000
_TELL_EVERY: Final = 256
_MILLISECONDS: Final = 1_000


class OnProgress(Protocol):
    """Takes what share of a phase is done, in `[0, 1]`."""

    def __call__(self, share: float, /) -> None:
        """Take it."""
        ...


@attrs.frozen
class Flow:
    """How much went through in how long."""

    records_count: int
    size_bytes: int
    seconds: float

    def per_second(self, amount: float) -> float | None:
        """Return an amount for each second; None when nothing went through."""
        return amount / self.seconds if self.seconds > 0 and self.records_count else None


@attrs.frozen
class Bounds:
    """Where the partitions of the topic begin and end for a reader: `[start, end)`."""

    starts: Mapping[int, int]
    ends: Mapping[int, int]


@attrs.define
class Load:
    """The clients of one run. One owner.

    Attributes:
        workload: What is done.
        ledger: What was acknowledged is noted here.
        bootstrap: Where the broker serves; another after it was restarted.
    """

    workload: Workload
    ledger: Ledger
    bootstrap: str
    _failures: list[ClientError] = attrs.field(factory=list, init=False)

    @property
    def _isolation(self) -> IsolationLevel:
        is_committed = bool(self.workload.transaction_records)
        return IsolationLevel.READ_COMMITTED if is_committed else IsolationLevel.READ_UNCOMMITTED

    def new_producer(self, **more: str) -> Producer:
        """Return a producer of the workload's settings; `more` has others, with `_` for each `.`."""
        transactional = {"transactional.id": TRANSACTIONAL_ID} if self.workload.transaction_records else {}
        named = {key.replace("_", "."): value for key, value in more.items()}
        return Producer({"bootstrap.servers": self.bootstrap, **named, **transactional, **self.workload.producer})

    def _consumer(self) -> Consumer:
        return Consumer(
            {
                "bootstrap.servers": self.bootstrap,
                "isolation.level": self._isolation.name.lower(),
                "max.poll.records": _POLL_RECORDS,
            }
        )

    async def create_topic(self, configs: Mapping[str, str], *, replicas: int = 1) -> None:
        """Create the topic that everything is done with."""
        async with Admin({"bootstrap.servers": self.bootstrap}) as admin:
            await admin.create_topic(NewTopic(TOPIC, self.workload.partitions, replicas, dict(configs)))

    # ---------------------------------------------------------------------------------------------------- producing

    async def flood(self, on_progress: OnProgress) -> Flow:
        """Produce the records of full speed.

        Raises:
            ClientError: A record was not acknowledged.
        """
        count = self.workload.records
        async with self.new_producer() as producer:
            await producer.partitions_for(TOPIC)
            began_s = time.perf_counter()
            if self.workload.transaction_records:
                size_bytes = await self._flood_transactions(producer, on_progress)
            else:
                size_bytes = 0
                for index in range(count):
                    size_bytes += await self._enqueue(producer, index)
                    if not index % _TELL_EVERY:
                        on_progress(index / count)
                await producer.flush()
            self._check()
            return Flow(count, size_bytes, time.perf_counter() - began_s)

    async def _flood_transactions(self, producer: Producer, on_progress: OnProgress) -> int:
        plan, size_bytes = self.ledger.plan, 0
        for number in range(plan.transactions_count):
            await producer.begin_transaction()
            indexes = plan.transaction(number)
            for index in indexes:
                size_bytes += await self._enqueue(producer, index)
            if plan.is_aborted(number):
                self.ledger.abort(indexes)
                await producer.flush()  # so that it is the broker that has something to hide
                await producer.abort_transaction()
            else:
                await producer.commit_transaction()
            self._check()
            on_progress(number / plan.transactions_count)
        return size_bytes

    async def flood_for(self, seconds: float) -> int:
        """Produce at full speed for a time, and return how many records that were; nothing is noted."""
        plan, index = self.ledger.plan, 0
        async with self.new_producer() as producer:
            await producer.partitions_for(TOPIC)
            end_s = time.perf_counter() + seconds
            while time.perf_counter() < end_s:
                if self.workload.transaction_records:
                    await producer.begin_transaction()
                for _ in range(self.workload.transaction_records or 1):
                    number = index % self.workload.records
                    record, headers = plan.record(number), self.headers(number)
                    await producer.enqueue(
                        TOPIC, record.value, key=record.key, partition=record.partition, headers=headers
                    )
                    index += 1
                if self.workload.transaction_records:
                    await producer.commit_transaction()
            if not self.workload.transaction_records:
                await producer.flush()
        return index

    async def _enqueue(self, producer: Producer, index: int) -> int:
        """Give the producer a record; return its size."""
        partition, key, value = self.ledger.plan.record(index)
        on_delivery = functools.partial(self.note_delivery, index)
        headers = self.headers(index)
        await producer.enqueue(TOPIC, value, key=key, partition=partition, headers=headers, on_delivery=on_delivery)
        return len(key or b"") + len(value or b"")

    def headers(self, index: int) -> Headers:
        """Return what a record asks for."""
        delay_ms = self.ledger.plan.delay_ms(index)
        return ((DELIVER_AFTER, b"%d" % delay_ms),) if delay_ms else ()

    def note_delivery(self, index: int, metadata: RecordMetadata | None, error: ClientError | None) -> None:
        """Note what became of a record."""
        if metadata is not None:
            self.ledger.acknowledge(index, metadata.partition, metadata.offset)
        elif error is not None:
            self._failures.append(error)

    def _check(self) -> None:
        if self._failures:
            raise self._failures[0]

    # ------------------------------------------------------------------------------------------------------ latencies

    async def pace(self, on_progress: OnProgress) -> tuple[Samples, Samples, int]:
        """Produce the paced records, each when it is due, while a consumer waits for them.

        Returns:
            Latencies to the acknowledgement, latencies to the consumer, and the bytes produced.

        Raises:
            ClientError: A record was not acknowledged.
            OdradekError: One did not reach the consumer.
        """
        pacer = _Pacer(self, on_progress)
        if self.workload.paced_records:
            async with self.new_producer(linger_ms="0") as producer, self._consumer() as consumer:
                await pacer.run(producer, consumer)
            self._check()
        return pacer.acknowledged, pacer.arrived, pacer.size_bytes

    # -------------------------------------------------------------------------------------------------------- reading

    async def wait_until_seen(self) -> None:
        """Wait until consumers see all that was acknowledged: what was delayed they see later.

        Raises:
            OdradekError: They do not, and nothing came for `IDLE_S_MAX`.
        """
        reading, starts = Reading(self.ledger), (await self.bounds()).starts
        async with self._consumer() as consumer:
            consumer.assign([TopicPartition(TOPIC, number) for number in starts])
            for number, start in starts.items():
                consumer.seek(TopicPartition(TOPIC, number), start)
            came_s = time.perf_counter()
            while left := self.ledger.acknowledged - len(reading.there):
                records = await consumer.poll(timeout_ms=_POLL_MS)
                now_s = time.perf_counter()
                for record in records:
                    reading.take(record.partition, offset_sent(record), record.key, record.value)
                came_s = now_s if records else came_s
                if now_s - came_s > IDLE_S_MAX:
                    raise OdradekError(f"{left} records were acknowledged and are not seen after {IDLE_S_MAX:.0f} s")

    async def bounds(self) -> Bounds:
        """Ask the broker where the partitions begin and end."""
        partitions = [TopicPartition(TOPIC, number) for number in range(self.workload.partitions)]
        async with Admin({"bootstrap.servers": self.bootstrap}) as admin:
            starts = await admin.list_offsets(dict.fromkeys(partitions, EARLIEST_TIMESTAMP))
            ends = await admin.list_offsets(
                dict.fromkeys(partitions, LATEST_TIMESTAMP), isolation_level=self._isolation
            )
        return Bounds(
            {partition.partition: found.offset for partition, found in starts.items()},
            {partition.partition: found.offset for partition, found in ends.items()},
        )

    async def read(self, take: Callable[[Sequence[ConsumerRecord]], None] | None = None) -> Flow:
        """Read the topic once, from its beginning to what is its end now.

        Args:
            take: Gets the records; None to count them only.

        Raises:
            OdradekError: Nothing came for `IDLE_S_MAX`.
        """
        bounds = await self.bounds()
        left = {
            TopicPartition(TOPIC, number): end for number, end in bounds.ends.items() if end > bounds.starts[number]
        }
        count = size_bytes = 0
        async with self._consumer() as consumer:
            began_s = last_s = time.perf_counter()
            consumer.assign(list(left))
            for partition in left:
                consumer.seek(partition, bounds.starts[partition.partition])
            while left:
                records = await consumer.poll(timeout_ms=_POLL_MS)
                now_s = time.perf_counter()
                if records:
                    last_s = now_s
                    count += len(records)
                    size_bytes += sum(len(record.key or b"") + len(record.value or b"") for record in records)
                    if take is not None:
                        take(records)
                elif now_s - last_s > IDLE_S_MAX:
                    raise OdradekError(
                        f"no record came for {IDLE_S_MAX:.0f} s: {_places(left)} cannot be read to its end"
                    )
                for partition in [one for one, end in left.items() if await consumer.position(one) >= end]:
                    del left[partition]
            return Flow(count, size_bytes, time.perf_counter() - began_s)

    async def read_for(self, seconds: float, on_progress: OnProgress) -> Flow:
        """Read the topic as often as fits into a time, at least once."""
        total = Flow(0, 0, 0.0)
        while total.seconds < seconds or not total.seconds:
            one = await self.read()
            total = Flow(
                total.records_count + one.records_count,
                total.size_bytes + one.size_bytes,
                total.seconds + one.seconds,
            )
            on_progress(min(total.seconds / seconds, 1.0) if seconds else 1.0)
        return total


def offset_sent(record: ConsumerRecord) -> int:
    """Return the offset that a record's producer was told: what was delayed comes at another one, and says so."""
    origin = dict(record.headers).get(DELAYED_FROM) if record.headers else None
    return record.offset if origin is None else int(origin.partition(b":")[2])


def _places(partitions: Mapping[TopicPartition, int]) -> str:
    return ", ".join(f"{partition.topic}-{partition.partition}" for partition in partitions)


class _Pacer:
    """Sends one record at a time, and measures when it is acknowledged and when it arrives."""

    def __init__(self, load: Load, on_progress: OnProgress) -> None:
        self.acknowledged, self.arrived = Samples(), Samples()
        self.size_bytes = 0
        self._load = load
        self._on_progress = on_progress
        self._due_s: dict[int, float] = {}
        self._all_arrived = trio.Event()

    async def run(self, producer: Producer, consumer: Consumer) -> None:
        ends = (await self._load.bounds()).ends
        consumer.assign([TopicPartition(TOPIC, number) for number in ends])
        for number, end in ends.items():
            consumer.seek(TopicPartition(TOPIC, number), end)
        await consumer.poll(timeout_ms=1)  # so that its connections stand
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._receive, consumer)
            await self._send(producer)
            with trio.move_on_after(IDLE_S_MAX):
                await self._all_arrived.wait()
            nursery.cancel_scope.cancel()
        if not self._all_arrived.is_set():
            missing = self._load.workload.paced_records - self.arrived.count
            raise OdradekError(f"{missing} records were acknowledged and did not reach a waiting consumer")

    async def _send(self, producer: Producer) -> None:
        workload = self._load.workload
        interval_s = 1 / workload.paced_rate
        began_s = trio.current_time()
        for number in range(workload.paced_records):
            await trio.sleep_until(began_s + number * interval_s)
            await self._send_one(producer, workload.records + number)
            self._on_progress(number / workload.paced_records)
        await producer.flush()

    async def _send_one(self, producer: Producer, index: int) -> None:
        partition, key, value = self._load.ledger.plan.record(index)
        self.size_bytes += len(key or b"") + len(value or b"")
        headers = self._load.headers(index)
        called_s = time.perf_counter()
        self._due_s[index] = called_s + self._load.ledger.plan.delay_ms(index) / _MILLISECONDS
        if self._load.workload.transaction_records:
            async with producer.transaction():
                metadata = await producer.send(TOPIC, value, key=key, partition=partition, headers=headers)
            self._note(index, called_s, metadata, None)
        else:
            told = functools.partial(self._note, index, called_s)
            await producer.enqueue(TOPIC, value, key=key, partition=partition, headers=headers, on_delivery=told)

    def _note(self, index: int, called_s: float, metadata: RecordMetadata | None, error: ClientError | None) -> None:
        self.acknowledged.add((time.perf_counter() - called_s) * _MILLISECONDS)
        self._load.note_delivery(index, metadata, error)

    async def _receive(self, consumer: Consumer) -> None:
        while self.arrived.count < self._load.workload.paced_records:
            records = await consumer.poll(timeout_ms=_POLL_MS)
            now_s = time.perf_counter()
            for record in records:
                due_s = self._due_s.pop(int.from_bytes(record.value[:INDEX_BYTES], "big"), None)
                if due_s is not None:
                    self.arrived.add((now_s - due_s) * _MILLISECONDS)
        self._all_arrived.set()
