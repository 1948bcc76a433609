"""What every remembered data directory holds; a later format may hold more, never less."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from odradek.kernel.records.batch import iterate_batches
from odradek.kernel.records.builder import BatchBuilder
from odradek.kernel.records.compression import CompressionType
from odradek.kernel.records.reader import read_batch
from odradek.kernel.wire.messages.api_00_produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from odradek.kernel.wire.messages.api_01_fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic

if TYPE_CHECKING:
    from ..broker.broker_process import Client

TIMESTAMP_MS = 4_102_444_800_000
"""The year 2100: a producer whose last record is older than a day is forgotten, as in Apache Kafka."""

FROM_THE_FUTURE = {"message.timestamp.after.max.ms": "9223372036854775807"}
PRODUCER_ID = 77
"""An idempotent producer's id, which no broker gave out: a broker accepts any."""

TOPICS: dict[str, tuple[int, dict[str, str]]] = {
    "plain": (3, FROM_THE_FUTURE),
    "configured": (
        1,
        {"retention.ms": "-1", "max.message.bytes": "65536", "segment.bytes": "1048576", **FROM_THE_FUTURE},
    ),
    "codecs": (1, FROM_THE_FUTURE),
    "idempotent": (1, FROM_THE_FUTURE),
}
"""Topic to its number of partitions and the configs of its own."""

DELETED = "deleted"
BROKER_CONFIG = {"log.cleaner.threads": "2"}
"""A cluster-wide dynamic setting."""


@attrs.frozen
class KeptBatch:
    """One batch: where it is, and what is in it."""

    topic: str
    partition: int
    base_offset: int
    values: tuple[bytes, ...]
    codec: CompressionType = CompressionType.NONE
    base_sequence: int = -1


BATCHES = (
    KeptBatch("plain", 0, 0, (b"one", b"two")),
    KeptBatch("plain", 0, 2, (b"three",)),
    KeptBatch("plain", 2, 0, (b"elsewhere",)),
    KeptBatch("configured", 0, 0, (b"kept for ever",)),
    *(
        KeptBatch("codecs", 0, 10 * codec, tuple(b"%d" % number * 50 for number in range(10)), codec)
        for codec in CompressionType
    ),
    *(KeptBatch("idempotent", 0, number, (b"%d" % number,), base_sequence=number) for number in range(7)),
)


def batch_bytes(batch: KeptBatch) -> bytes:
    """Return the batch as a producer sends it."""
    is_idempotent = batch.base_sequence >= 0
    builder = BatchBuilder(
        compression=batch.codec,
        producer_id=PRODUCER_ID if is_idempotent else -1,
        producer_epoch=0 if is_idempotent else -1,
        base_sequence=batch.base_sequence,
    )
    for number, value in enumerate(batch.values):
        builder.append(b"key", value, timestamp=TIMESTAMP_MS + number, headers=[("h", b"v")])
    return bytes(builder.build())


def produce(client: Client, topic: str, partition: int, batch: bytes) -> tuple[int, int]:
    """Produce one batch; return error code and base offset."""
    data = [TopicProduceData(name=topic, partition_data=[PartitionProduceData(index=partition, records=batch)])]
    response = client.ask(ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=data), 9)
    assert isinstance(response, ProduceResponse)
    (part,) = response.responses[0].partition_responses
    return part.error_code, part.base_offset


def consume(client: Client, topic: str, partition: int) -> dict[int, bytes]:
    """Return the values of a partition by offset."""
    values: dict[int, bytes] = {}
    while True:
        offset = max(values, default=-1) + 1
        wanted = FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=1 << 20)
        request = FetchRequest(max_wait_ms=0, min_bytes=0, topics=[FetchTopic(topic=topic, partitions=[wanted])])
        response = client.ask(request, 11)
        assert isinstance(response, FetchResponse)
        (part,) = response.responses[0].partitions
        assert part.error_code == 0, part
        records = part.records
        if not records:
            return values
        assert isinstance(records, memoryview)
        data = records.tobytes()
        for position, header in iterate_batches(data):
            for record in read_batch(data, position, header):
                values[record.offset] = bytes(record.value or b"")
