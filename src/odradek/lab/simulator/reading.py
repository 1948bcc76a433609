"""Shell: reading a topic from its beginning: on and on, or to its end when nothing happens to it any more."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NoReturn

from odradek.kernel.types import TopicPartition

from .world import SimulationError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from odradek.client.fetched_records import ConsumerRecord

    from .cluster import Cluster

POLL_MS: Final = 1_000
POLLS_WITHOUT_RECORDS_MAX: Final = 60


async def read_on(
    cluster: Cluster,
    reader: str,
    topic: str,
    partitions_count: int,
    settings: Mapping[str, object],
    on_record: Callable[[ConsumerRecord], object],
) -> NoReturn:
    """Read every partition from its beginning on, until cancelled.

    Args:
        cluster: Where.
        reader: Who reads: the name of a host.
        topic: Which.
        partitions_count: How many it has.
        settings: The consumer's, besides where to begin and how long to wait for an answer.
        on_record: Given each record.

    Raises:
        ClientError: A poll failed.
    """
    common = {"auto.offset.reset": "earliest", "request.timeout.ms": 5_000}
    async with cluster.consumer(reader, {**common, **settings}) as consumer:
        consumer.assign([TopicPartition(topic, number) for number in range(partitions_count)])
        while True:
            for record in await consumer.poll(timeout_ms=POLL_MS):
                on_record(record)


async def read_records(
    cluster: Cluster, reader: str, topic: str, partitions_count: int, settings: Mapping[str, object]
) -> tuple[dict[int, int], dict[int, list[ConsumerRecord]]]:
    """Return up to where every partition could be read at first, and what it held up to there, if not further.

    Args:
        cluster: Where.
        reader: Who reads: the name of a host.
        topic: Which.
        partitions_count: How many it has.
        settings: The consumer's, besides where to begin.

    Raises:
        ClientError: Somebody is not to be reached, which is tried again for a while.
        SimulationError: The end is not reached although nothing more comes.
    """
    partitions = [TopicPartition(topic, number) for number in range(partitions_count)]
    found: dict[int, list[ConsumerRecord]] = {number: [] for number in range(partitions_count)}
    async with cluster.consumer(reader, {"auto.offset.reset": "earliest", **settings}) as consumer:
        consumer.assign(partitions)
        ends = await consumer.end_offsets(partitions)
        polls_without_records = 0
        while [place for place in partitions if await consumer.position(place) < ends[place]]:
            records = await consumer.poll(timeout_ms=POLL_MS)
            polls_without_records = 0 if records else polls_without_records + 1
            if polls_without_records == POLLS_WITHOUT_RECORDS_MAX:
                raise SimulationError(f"{topic} is not read to its end: {ends}, and nothing more comes")
            for record in records:
                found[record.partition].append(record)
    return {place.partition: end for place, end in ends.items()}, found


async def read_logs(
    cluster: Cluster, topic: str, partitions_count: int, settings: Mapping[str, object]
) -> dict[int, list[tuple[int, str]]]:
    """Return what every partition holds: offsets and texts; see `read_records`."""
    _, found = await read_records(cluster, "reader", topic, partitions_count, settings)
    return {number: [(record.offset, text_of(record.value)) for record in records] for number, records in found.items()}


async def read_ends(
    cluster: Cluster, topic: str, partitions_count: int, settings: Mapping[str, object] | None = None
) -> dict[int, int]:
    """Return where every partition ends, for a consumer with these settings."""
    partitions = [TopicPartition(topic, number) for number in range(partitions_count)]
    async with cluster.consumer("reader", settings or {}) as consumer:
        ends = await consumer.end_offsets(partitions)
    return {place.partition: end for place, end in ends.items()}


def text_of(value: object) -> str:
    """Return what a record says, without its filler; all of it where the filler is not what was sent."""
    assert isinstance(value, bytes), "values come as bytes"
    text, _, filler = value.partition(b" ")
    return repr(value) if filler.strip(b"x") else text.decode(errors="replace")
