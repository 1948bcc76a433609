"""Pure core: which partition of an internal topic coordinates a key."""

from __future__ import annotations

from typing import Final

_MIN_INT: Final = -(1 << 31)


def java_hash(text: str) -> int:
    """Return Java's `String.hashCode`, a signed 32-bit number, over the text's UTF-16 units.

    Lone surrogates, which Python's UTF-8 decoding can leave in a text, count as the units that they are.
    """
    units = memoryview(text.encode("utf-16-le", "surrogatepass")).cast("H")
    value = 0
    for unit in units:
        value = (31 * value + unit) & 0xFFFF_FFFF
    return value - (1 << 32) if value >= 1 << 31 else value


def partition_of_key(key: str, partitions_count: int) -> int:
    """Return the partition of a group id, a transactional id, ...

    Args:
        key: The id.
        partitions_count: At least 1.

    *Source:* Kafka's `Utils.abs(key.hashCode()) % partitions`, where the smallest integer, which has no positive twin,
    becomes 0.
    """
    value = java_hash(key)
    return (0 if value == _MIN_INT else abs(value)) % partitions_count
