"""Shell: the demo's transactions: counts go into a topic together with the offsets of what was counted, or neither."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

import attrs

from odradek.client import Consumer, NewTopic, Producer
from odradek.kernel.types import IsolationLevel, TopicPartition

from ..cluster_calls import reach
from .client_work import POLL_MS, RECORDS_A_POLL, read_partition

if TYPE_CHECKING:
    from collections.abc import Callable

GROUP: Final = "counters"
RESULTS: Final = "changes-by-zone"
TRANSACTIONAL_ID: Final = "counter"
_RESULTS_PARTITION: Final = TopicPartition(RESULTS, 0)


class _FailureError(Exception):
    """What happens to the first attempt."""


@attrs.frozen
class Moment:
    """What can be seen of the results at one moment.

    Attributes:
        name: When.
        log_end_offset: Where the results' partition ends.
        last_stable_offset: How far transactions in it have ended.
        uncommitted: What a read_uncommitted reader sees: zones and counts, in order.
        committed: What a read_committed reader sees.
        offsets: What the group of the workers has committed, by partition of the topic that it counts.
    """

    name: str
    log_end_offset: int
    last_stable_offset: int
    uncommitted: tuple[tuple[bytes, int], ...]
    committed: tuple[tuple[bytes, int], ...]
    offsets: dict[int, int]


async def run_transactions(
    bootstrap: str, topic: str, records_count: int, on_progress: Callable[[int], None]
) -> tuple[Moment, Moment, Moment]:
    """Count a topic's records by key, first by a worker that fails half-way, then by one that does not.

    Args:
        bootstrap: Where the broker is.
        topic: The topic.
        records_count: How many records it has.
        on_progress: Called with how many records a worker has read.

    Returns:
        What can be seen while the first transaction is open, after it was aborted, and after the second was committed.
    """
    async with reach({"bootstrap.servers": bootstrap}) as calls:
        await calls.admin.create_topic(NewTopic(RESULTS, 1))
    moments: list[Moment] = []
    try:
        await _count(bootstrap, topic, records_count // 2, moments, on_progress)
    except _FailureError:
        moments.append(await look(bootstrap, "first, aborted"))
    await _count(bootstrap, topic, records_count, None, on_progress)
    moments.append(await look(bootstrap, "second, committed"))
    is_open, aborted, committed = moments
    return is_open, aborted, committed


async def _count(
    bootstrap: str, topic: str, wanted_count: int, failure: list[Moment] | None, on_progress: Callable[[int], None]
) -> None:
    """Consume, transform, produce: one worker's life.

    Args:
        bootstrap: Where the broker is.
        topic: What is counted.
        wanted_count: How many records, at least.
        failure: Where the worker shall put what can be seen before it fails; None for one that does not.
        on_progress: Called with how many records were read.
    """
    servers = {"bootstrap.servers": bootstrap}
    consumer_settings = {
        **servers,
        "group.id": GROUP,
        "group.protocol": "consumer",
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,  # the transaction does it
        "isolation.level": "read_committed",
        "max.poll.records": RECORDS_A_POLL,
    }
    async with (
        Producer({**servers, "transactional.id": TRANSACTIONAL_ID}) as producer,
        Consumer(consumer_settings) as consumer,
    ):
        consumer.subscribe([topic])
        async with producer.transaction():
            counts: Counter[bytes] = Counter()
            while counts.total() < wanted_count:
                counts.update(record.key or b"" for record in await consumer.poll(timeout_ms=POLL_MS))
                on_progress(counts.total())
            for zone, count in sorted(counts.items()):
                await producer.enqueue(RESULTS, str(count), key=zone, partition=0)
            await producer.send_offsets(consumer.consumed(), consumer.group_metadata)
            if failure is not None:
                await producer.flush()
                failure.append(await look(bootstrap, "first, open"))
                raise _FailureError


async def look(bootstrap: str, name: str) -> Moment:
    """Look at the results as both kinds of readers do."""
    async with reach({"bootstrap.servers": bootstrap}) as calls:
        ends = {
            level: (await calls.offsets([_RESULTS_PARTITION], level))[_RESULTS_PARTITION].end
            for level in IsolationLevel
        }
        offsets = await calls.admin.list_group_offsets(GROUP)
    return Moment(
        name,
        ends[IsolationLevel.READ_UNCOMMITTED],
        ends[IsolationLevel.READ_COMMITTED],
        await _read(bootstrap, "read_uncommitted"),
        await _read(bootstrap, "read_committed"),
        {partition.partition: found.offset for partition, found in offsets.items() if found is not None},
    )


async def _read(bootstrap: str, isolation_level: str) -> tuple[tuple[bytes, int], ...]:
    """Return what a reader sees of the results."""
    results = await read_partition(bootstrap, _RESULTS_PARTITION, isolation_level)
    return tuple((record.key or b"", int(record.value)) for record in results)
