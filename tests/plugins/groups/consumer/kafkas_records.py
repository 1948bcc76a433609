"""What Apache Kafka wrote about groups of the consumer protocol, and the topics: `golden/consumer_offsets.txt`."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Final

from odradek.kernel.api import TopicView
from odradek.plugins.groups.records import decode_record

if TYPE_CHECKING:
    from odradek.plugins.groups.records import GroupRecord

_LINES: Final = (Path(__file__).parent / "golden/consumer_offsets.txt").read_text().splitlines()

RECORDS: Final = [
    (bytes.fromhex(key), None if value == "-" else bytes.fromhex(value))
    for key, value in (line.split() for line in _LINES if not line.startswith("#"))
]
"""Keys and values."""

GOLDEN_HASHES: Final = {
    ("orders",): 1099416671024868429,
    ("payments", "orders"): 1335422660173858189,
    ("wide", "payments"): -7871619213131214509,
}
"""By the topics that a group of `RECORDS` reads, the hash in its ConsumerGroupMetadata."""


def topic_views() -> list[TopicView]:
    """Return the topics."""
    rows = [line.split() for line in _LINES if line.startswith("# topic ")]
    return [
        TopicView(name, uuid.UUID(topic_id), int(partitions), (frozenset(),) * int(partitions))
        for _, _, name, topic_id, partitions in rows
    ]


def decoded(key: bytes, value: bytes | None) -> GroupRecord:
    """Return a record as the coordinator reads it."""
    record = decode_record(memoryview(key), None if value is None else memoryview(value))
    assert record is not None
    return record
