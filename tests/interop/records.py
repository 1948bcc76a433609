"""What the tests produce, and a look at a partition without any client: through Fetch, batch by batch."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any, Final

import attrs

from odradek.kernel.errors import ErrorCode
from odradek.kernel.records.batch import BatchHeader, iterate_batches
from odradek.kernel.records.reader import read_batch
from odradek.kernel.wire.messages.api_01_fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from odradek.kernel.wire.messages.api_19_create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)

from ..broker.broker_process import Client as Connection
from .drivers.json_lines import record_of, to_text

if TYPE_CHECKING:
    from collections.abc import Container, Mapping

FIRST_TIMESTAMP: Final = 1_750_000_000_000
"""In ms. Later than this, so that no retention takes the records away."""

MEBIBYTE: Final = 1 << 20

PRODUCE: Final[Mapping[str, Any]] = {
    "compression": "none",
    "acks": "all",
    "idempotent": False,
    "max_request_bytes": MEBIBYTE,
}
"""The settings of an ordinary produce."""


def record(
    number: int, value: bytes | None, key: bytes | None = None, headers: tuple[tuple[str, bytes | None], ...] = ()
) -> dict[str, Any]:
    """Return a record as drivers take it; timestamps are 10 ms apart."""
    return {
        "key": to_text(key),
        "value": to_text(value),
        "headers": [[name, to_text(item)] for name, item in headers],
        "timestamp": FIRST_TIMESTAMP + 10 * number,
    }


def plain_records(count: int, seed: int = 0) -> list[dict[str, Any]]:
    """Return records with keys and binary values that still compress."""
    source = random.Random(seed)
    return [
        record(number, source.randbytes(4) * source.randrange(1, 60), b"key-%d" % number) for number in range(count)
    ]


def odd_records(cannot: frozenset[str] = frozenset()) -> list[dict[str, Any]]:
    """Return records with everything that may be missing, empty or doubled, but for what a client cannot produce."""
    records = {
        "plain": record(0, b"value", b"key"),
        "null_keys": record(1, b"no key"),
        "null_values": record(2, None, b"tombstone"),
        "empty": record(3, b"", b""),
        "binary": record(4, bytes(range(256)), b"\x00\xff"),
        "headers": record(5, b"headers", b"h", (("name", b"text"), ("other", b"more"))),
        "doubled_headers": record(6, b"headers", b"h", (("name", b"1"), ("name", b"2"))),
        "binary_headers": record(7, b"headers", b"h", (("empty", b""), ("bytes", b"\x00\xfe"))),
        "null_headers": record(8, b"null header", b"n", (("null", None),)),
        "unicode": record(9, "Größe 🧵".encode(), "ключ".encode(), (("schlüssel", b"1"),)),
    }
    return [each for capability, each in records.items() if capability not in cannot]


def without_offsets(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return records as they were before the broker gave them offsets."""
    return without("offset", records)


def without(part: str, records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return records without one of their parts."""
    return [{key: value for key, value in each.items() if key != part} for each in records]


def are_as_sent(found: list[dict[str, Any]], sent: list[dict[str, Any]], cannot: Container[str]) -> bool:
    """Say whether records came back in order and unchanged, but for timestamps that the client cannot set."""
    if "timestamps" in cannot:
        found, sent = without("timestamp", found), without("timestamp", sent)
    return without_offsets(found) == sent


def create_topic(address: str, topic: str, *, partitions: int = 1, **configs: str) -> None:
    """Create a topic; dots in config names are written as underscores."""
    wanted = CreatableTopic(
        name=topic,
        num_partitions=partitions,
        replication_factor=1,
        configs=[CreatableTopicConfig(name=key.replace("_", "."), value=value) for key, value in configs.items()],
    )
    with Connection(address) as connection:
        response = connection.ask(CreateTopicsRequest(topics=[wanted]), 7)

    assert isinstance(response, CreateTopicsResponse)
    assert response.topics[0].error_code == ErrorCode.NONE, response.topics[0].error_message


def end_offset(connection: Connection, topic: str) -> int:
    """Return the high watermark of partition 0."""
    return ask_fetch(connection, topic, 0, size_bytes=0).high_watermark


def ask_fetch(connection: Connection, topic: str, offset: int, *, size_bytes: int) -> PartitionData:
    """Fetch once from partition 0, without waiting."""
    wanted = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=size_bytes)
    request = FetchRequest(max_wait_ms=0, min_bytes=0, topics=[FetchTopic(topic=topic, partitions=[wanted])])
    response = connection.ask(request, 12)
    assert isinstance(response, FetchResponse)
    (part,) = response.responses[0].partitions
    assert part.error_code == ErrorCode.NONE
    return part


@attrs.frozen
class Partition:
    """What partition 0 of a topic holds.

    Attributes:
        batches: The batches' headers, in order.
        records: The records, in order, as drivers give them.
    """

    batches: list[BatchHeader]
    records: list[dict[str, Any]]


def read_partition(address: str, topic: str) -> Partition:
    """Read partition 0 from the beginning to the high watermark."""
    batches: list[BatchHeader] = []
    records: list[dict[str, Any]] = []
    offset = 0
    with Connection(address) as connection:
        while True:
            part = ask_fetch(connection, topic, offset, size_bytes=MEBIBYTE)
            if not part.records:
                return Partition(batches, records)
            data = bytes(part.records)  # type: ignore[arg-type] # a decoded response holds bytes
            for position, header in iterate_batches(data):
                batches.append(header)
                records += [
                    record_of(found.offset, found.timestamp, found.key, found.value, found.headers)
                    for found in read_batch(data, position, header)
                ]
                offset = header.next_offset
