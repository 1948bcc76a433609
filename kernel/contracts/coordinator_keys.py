"""Pure core: which partition of an internal topic coordinates a key."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

REMEMBERED_LENGTH_MAX: Final = 255
"""Hashes of longer keys are not kept: an id may have 32 KiB, and what is kept is to stay small."""
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


@lru_cache(maxsize=4096)
def _remembered_hash(key: str) -> int:
    """Return `java_hash`, which takes 0.25 us for each letter: members of a group ask with the same id all the time."""
    return java_hash(key)


def coordinator_partition(key: str, partitions_count: int) -> int:
    """Return the partition of a group id, a transactional id, ...

    Args:
        key: The id.
        partitions_count: At least 1.

    *Source:* Kafka's `Utils.abs(key.hashCode()) % partitions`, where the smallest integer, which has no positive twin,
    becomes 0.
    """
    value = _remembered_hash(key) if len(key) <= REMEMBERED_LENGTH_MAX else java_hash(key)
    return (0 if value == _MIN_INT else abs(value)) % partitions_count
