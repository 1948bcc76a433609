"""Reads Kafka's segments and the records of its internal topics, by their published schemas, with `struct` alone.

Shares nothing with the code that writes them: what both agree on is the format.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

_CONTROL = 1 << 5
_COMPRESSED = 0x07


class Cursor:
    """Takes fields from the front of some bytes."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.position = 0

    def take(self, form: str) -> Any:
        """Take one big-endian number."""
        (value,) = struct.unpack_from(">" + form, self.data, self.position)
        self.position += struct.calcsize(">" + form)
        return value

    def raw(self, count: int) -> bytes:
        """Take bytes."""
        assert count <= len(self.data) - self.position, "the record ends before its field"
        self.position += count
        return self.data[self.position - count : self.position]

    def unsigned(self) -> int:
        """Take a varint."""
        value = shift = 0
        while True:
            byte = self.raw(1)[0]
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    def signed(self) -> int:
        """Take a zigzag varint."""
        value = self.unsigned()
        return (value >> 1) ^ -(value & 1)

    def text(self) -> str | None:
        """Take a string of a version that is not flexible."""
        size = self.take("h")
        return None if size < 0 else self.raw(size).decode()

    def compact_text(self) -> str | None:
        """Take a string of a flexible version."""
        size = self.unsigned() - 1
        return None if size < 0 else self.raw(size).decode()

    def tags(self) -> dict[int, bytes]:
        """Take the tagged fields that end a structure of a flexible version."""
        return {self.unsigned(): self.raw(self.unsigned()) for _ in range(self.unsigned())}

    def end(self) -> None:
        """See that nothing is left."""
        assert self.position == len(self.data), "the record goes on behind its last field"


def records_of(segment: Path) -> list[tuple[bytes, bytes | None]]:
    """Return keys and values of a segment, without control records."""
    found = []
    log = Cursor(segment.read_bytes())
    while log.position < len(log.data):
        log.take("q")
        batch = Cursor(log.raw(log.take("i")))
        batch.take("i")
        assert batch.take("b") == 2
        batch.take("I")
        attributes = batch.take("h")
        assert not attributes & _COMPRESSED
        for form in "iqqqhi":
            batch.take(form)
        for _ in range(batch.take("i")):
            record = Cursor(batch.raw(batch.signed()))
            record.take("b")
            record.signed()
            record.signed()
            key = record.raw(record.signed())
            size = record.signed()
            value = None if size < 0 else record.raw(size)
            assert record.signed() == 0
            record.end()
            if not attributes & _CONTROL:
                found.append((key, value))
        batch.end()
    return found


def offset_commit(key: bytes, value: bytes) -> tuple[tuple[str | None, str | None, int], dict[str, Any]]:
    """Read an OffsetCommitKey 1 and OffsetCommitValue 3 or 4."""
    cursor = Cursor(key)
    assert cursor.take("h") == 1
    where = cursor.text(), cursor.text(), cursor.take("i")
    cursor.end()
    cursor = Cursor(value)
    version = cursor.take("h")
    assert version in (3, 4)
    told = {
        "offset": cursor.take("q"),
        "leader_epoch": cursor.take("i"),
        "metadata": cursor.compact_text() if version == 4 else cursor.text(),
        "commit_timestamp": cursor.take("q"),
        "tags": cursor.tags() if version == 4 else {},
    }
    cursor.end()
    return where, told


def group_metadata(key: bytes, value: bytes) -> tuple[str | None, dict[str, Any]]:
    """Read a GroupMetadataKey 2 and GroupMetadataValue 3."""
    cursor = Cursor(key)
    assert cursor.take("h") == 2
    group_id = cursor.text()
    cursor.end()
    cursor = Cursor(value)
    assert cursor.take("h") == 3
    told: dict[str, Any] = {
        "protocol_type": cursor.text(),
        "generation": cursor.take("i"),
        "protocol": cursor.text(),
        "leader": cursor.text(),
        "state_timestamp": cursor.take("q"),
    }
    told["members"] = [
        {
            "member_id": cursor.text(),
            "instance_id": cursor.text(),
            "client_id": cursor.text(),
            "client_host": cursor.text(),
            "rebalance_timeout": cursor.take("i"),
            "session_timeout": cursor.take("i"),
            "subscription": cursor.raw(cursor.take("i")),
            "assignment": cursor.raw(cursor.take("i")),
        }
        for _ in range(cursor.take("i"))
    ]
    cursor.end()
    return group_id, told


def transaction_state(key: bytes, value: bytes) -> tuple[str | None, dict[str, Any]]:
    """Read a TransactionLogKey 0 and TransactionLogValue 1."""
    cursor = Cursor(key)
    assert cursor.take("h") == 0
    transactional_id = cursor.text()
    cursor.end()
    cursor = Cursor(value)
    assert cursor.take("h") == 1
    told: dict[str, Any] = {
        "producer_id": cursor.take("q"),
        "producer_epoch": cursor.take("h"),
        "timeout": cursor.take("i"),
        "status": cursor.take("b"),
    }
    partitions = {}
    for _ in range(max(cursor.unsigned() - 1, 0)):
        topic = cursor.compact_text()
        partitions[topic] = [cursor.take("i") for _ in range(cursor.unsigned() - 1)]
        assert cursor.tags() == {}
    told["partitions"] = partitions
    told["updated"], told["started"] = cursor.take("q"), cursor.take("q")
    told["tags"] = cursor.tags()
    cursor.end()
    return transactional_id, told
