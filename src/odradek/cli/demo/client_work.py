"""Shell: what the demo does with this project's own client: create a topic, produce, consume, look up by time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from odradek.client import Consumer, NewTopic, Producer

from ..cluster_calls import reach
from .data import DemoRecord

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from odradek.client import ClientError, ConsumerRecord, RecordMetadata
    from odradek.kernel.types import TopicPartition

    from ..cluster_calls import Offsets

POLL_MS: Final = 1_000
RECORDS_A_POLL: Final = 5_000
READ_MS: Final = 20  # what a reader may not see moves its position, and ends no poll


async def create_topic(bootstrap: str, topic: str, partitions: int, configs: Mapping[str, str]) -> None:
    """Create the demo's topic."""
    async with reach({"bootstrap.servers": bootstrap}) as calls:
        await calls.admin.create_topic(NewTopic(topic, partitions, 1, configs))


async def produce(
    bootstrap: str, topic: str, records: Sequence[DemoRecord], on_progress: Callable[[int], None]
) -> dict[int, int]:
    """Produce records, each acknowledged, and return how many went to each partition.

    Raises:
        ClientError: One could not be written.
    """
    counts: dict[int, int] = {}
    failures: list[ClientError] = []

    def on_delivery(metadata: RecordMetadata | None, error: ClientError | None) -> None:
        if error is not None:
            failures.append(error)
        elif metadata is not None:
            counts[metadata.partition] = counts.get(metadata.partition, 0) + 1

    async with Producer({"bootstrap.servers": bootstrap}) as producer:
        for number, record in enumerate(records):
            await producer.enqueue(
                topic, record.value, key=record.key, timestamp=record.timestamp, on_delivery=on_delivery
            )
            if number % 500 == 0:
                on_progress(sum(counts.values()))
        await producer.flush()
    if failures:
        raise failures[0]
    return counts


async def offsets(bootstrap: str, topic: str) -> dict[TopicPartition, Offsets]:
    """Return where each partition of a topic begins and ends."""
    async with reach({"bootstrap.servers": bootstrap}) as calls:
        return await calls.offsets(calls.partitions(topic))


async def consume(bootstrap: str, topic: str, on_progress: Callable[[int], None]) -> dict[int, list[DemoRecord]]:
    """Read a whole topic and return its records by partition."""
    ends = {partition: found.end for partition, found in (await offsets(bootstrap, topic)).items()}
    read: dict[int, list[DemoRecord]] = {partition.partition: [] for partition in ends}
    settings = {"bootstrap.servers": bootstrap, "max.poll.records": RECORDS_A_POLL}
    async with Consumer(settings) as consumer:
        consumer.assign(list(ends))
        for partition in ends:
            consumer.seek(partition, 0)
        while any(len(read[partition.partition]) < end for partition, end in ends.items()):
            for record in await consumer.poll(timeout_ms=POLL_MS):
                kept = DemoRecord(record.key or b"", record.value or b"", record.timestamp)
                read[record.partition].append(kept)
            on_progress(sum(map(len, read.values())))
    return read


async def read_partition(bootstrap: str, partition: TopicPartition, isolation_level: str) -> list[ConsumerRecord]:
    """Return what a reader of this isolation level sees of a partition."""
    found: list[ConsumerRecord] = []
    async with Consumer({"bootstrap.servers": bootstrap, "isolation.level": isolation_level}) as consumer:
        consumer.assign([partition])
        consumer.seek(partition, 0)
        end = (await consumer.end_offsets([partition]))[partition]
        while await consumer.position(partition) < end:
            found += await consumer.poll(timeout_ms=READ_MS)
    return found


async def look_up(bootstrap: str, topic: str, timestamp: int) -> dict[int, tuple[int, DemoRecord]]:
    """Return the first record at or after a time in each partition that has one, with its offset."""
    async with reach({"bootstrap.servers": bootstrap}) as calls:
        places = await calls.offsets_at(calls.partitions(topic), timestamp)
    found: dict[int, tuple[int, DemoRecord]] = {}
    wanted = {partition: offset for partition, offset in places.items() if offset is not None}
    async with Consumer({"bootstrap.servers": bootstrap}) as consumer:
        consumer.assign(list(wanted))
        for partition, offset in wanted.items():
            consumer.seek(partition, offset)
        while len(found) < len(wanted):
            for record in await consumer.poll(timeout_ms=POLL_MS):
                kept = DemoRecord(record.key or b"", record.value or b"", record.timestamp)
                found.setdefault(record.partition, (record.offset, kept))
    return dict(sorted(found.items()))
