"""Batches made of columns, given to Apache Kafka: it takes every codec, packs them anew, and gives the rows back."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING

import pytest

from odradek.kernel.records.columns import ALL_COLUMNS, BinaryColumn, ColumnReader, Columns, HeadersColumn, encode_batch
from odradek.kernel.records.compression import CompressionType
from odradek.kernel.types import TopicPartition
from odradek.kernel.wire.messages.api_00_produce import PartitionProduceData, ProduceRequest, TopicProduceData
from odradek.kernel.wire.messages.api_22_init_producer_id import InitProducerIdRequest
from odradek.spark_plugin.client import Client
from odradek.spark_plugin.ranges import OffsetRange

from ..records.column_rows import rows_of
from ..spark_plugin.client.test_against_our_broker import settings
from ..spark_plugin.topic_kit import open_kit
from .brokers import kafka_at

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.interop

ROWS = 500
NOW = 1_700_000_000_000


def binary(values: list[bytes | None]) -> BinaryColumn:
    ends = array("i", [0])
    bits = bytearray(len(values) // 8 + 1)
    for index, value in enumerate(values):
        ends.append(ends[-1] + len(value or b""))
        bits[index >> 3] |= (value is not None) << (index & 7)
    return BinaryColumn(ends.tobytes(), b"".join(value or b"" for value in values), bytes(bits))


def some_columns() -> Columns:
    """Return rows with and without keys, values and headers, their times rising and falling."""
    keys = binary([None if row % 5 == 0 else b"key-%d" % row for row in range(ROWS)])
    values = binary([None if row % 7 == 0 else b"value %d " % row * (row % 40) for row in range(ROWS)])
    lists = array("i", [0, *(row + 1 for row in range(ROWS))])
    some = bytes(0b10110101 for _ in range(ROWS // 8 + 1))
    headers = HeadersColumn(
        lists.tobytes(), binary([b"name-%d" % (row % 3) for row in range(ROWS)]), keys, validity=some
    )
    times = array("q", [(NOW + row % 13) * 1000 for row in range(ROWS)])
    return Columns(ROWS, keys, values, timestamps=times.tobytes(), headers=headers)


def produce(client: Client, where: TopicPartition, batch: bytes) -> None:
    data = TopicProduceData(name=where.topic, partition_data=[PartitionProduceData(index=0, records=batch)])
    request = ProduceRequest(acks=-1, timeout_ms=10_000, topic_data=[data])
    answer = client.call_leader(where, request, version_max=12)
    (partition,) = answer.responses[0].partition_responses
    assert (partition.error_code, partition.error_message) == (0, None)


def test_kafka_takes_every_codec_and_gives_the_rows_back(tmp_path: Path) -> None:
    columns = some_columns()
    expected = [(key, value, time, headers) for key, value, _, time, _, headers in rows_of(columns)]
    with kafka_at(tmp_path) as kafka, open_kit(kafka.address) as kit, Client(settings(kafka.address)) as client:
        for compression in CompressionType:
            # A topic of another codec has Kafka decompress and look at every record; one of the producer's has not.
            for kept_as in ("producer", "gzip" if compression is not CompressionType.GZIP else "lz4"):
                where = TopicPartition(kit.new_topic(1, compression_type=kept_as, internal_segment_bytes="1048576"), 0)
                ids = client.call_any(
                    InitProducerIdRequest(
                        transactional_id=None, transaction_timeout_ms=1, producer_id=-1, producer_epoch=-1
                    )
                )
                position = 0
                while position < ROWS:
                    batch, following = encode_batch(
                        columns,
                        None,
                        position,
                        timestamp_ms=NOW,
                        bytes_max=20_000,
                        compression=compression,
                        producer_id=ids.producer_id,
                        producer_epoch=ids.producer_epoch,
                        base_sequence=position,
                    )
                    produce(client, where, bytes(batch))
                    position = following
                found = []
                reader = ColumnReader(0, ROWS, ALL_COLUMNS, is_read_committed=True)
                for fetched in client.fetch(OffsetRange(where.topic, 0, 0, ROWS), is_read_committed=True):
                    for piece in reader.feed(fetched.data, fetched.aborted):
                        found += [(key, value, time, headers) for key, value, _, time, _, headers in rows_of(piece)]

                assert expected == found, f"{compression.name} kept as {kept_as}"
