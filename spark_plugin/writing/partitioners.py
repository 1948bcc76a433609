"""Pure core: which partition each row goes to, for whole columns at a time.

| partitioner | a row with a key | a row without |
| --- | --- | --- |
| `murmur2` (default) | as every Java client: `(murmur2(key) & 0x7fffffff) % partitions` | sticky |
| `crc32` | as librdkafka's default: `crc32(key) % partitions`; an empty key counts as none | sticky |
| `roundrobin` | the next partition in turn | the next partition in turn |

Sticky: one partition for a batch's worth of bytes, then the next, so that rows without keys travel in few large batches
(KIP-480). Kafka's clients pick the next one at random; here it is the next number, from another one on in each of
Spark's partitions, so that a task that is repeated does the same again.

No Python runs for a row: hashes are computed for a column, four bytes of all keys in each step.

*Source:* `Utils.murmur2`, `BuiltInPartitioner`; librdkafka `consistent_random`; KIP-480.

.. versionadded:: 0.1
"""

from __future__ import annotations

from typing import Any, Final, TypeAlias

import attrs
import numpy as np

__all__ = ["PARTITIONERS", "KeyColumn", "RowPartitioner", "crc32_hashes", "murmur2_hashes"]

PARTITIONERS: Final = ("murmur2", "roundrobin", "crc32")
"""What the option `partitioner` takes."""

Numbers: TypeAlias = "np.ndarray[Any, np.dtype[Any]]"

_SEED: Final = 0x9747B28C
_M: Final = np.uint32(0x5BD1E995)
_POSITIVE: Final = np.uint32(0x7FFFFFFF)
_ALL_BITS: Final = np.uint32(0xFFFFFFFF)
_POLYNOMIAL: Final = 0xEDB88320
_WORD_BYTES: Final = 4
_TAIL_MASKS: Final = np.array([0, 0xFF, 0xFFFF, 0xFFFFFF], np.uint32)


def _crc32_table() -> Numbers:
    """Return what each value of a byte does to a CRC-32."""
    values = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        values = values >> np.uint32(1) ^ np.where(values & np.uint32(1), np.uint32(_POLYNOMIAL), np.uint32(0))
    return values


_CRC32: Final = _crc32_table()


@attrs.frozen(eq=False)
class KeyColumn:
    """The keys of some rows.

    Attributes:
        starts: Where each key begins in `data`: int64.
        lengths: How long each is, 0 for a null: int64.
        data: The bytes: uint8.
        nulls: Which rows have no key; None where each has one.
    """

    starts: Numbers
    lengths: Numbers
    data: Numbers
    nulls: Numbers | None = None

    def take(self, rows: Numbers) -> KeyColumn:
        """Return the keys of some of the rows."""
        nulls = None if self.nulls is None else self.nulls[rows]
        return KeyColumn(self.starts[rows], self.lengths[rows], self.data, nulls)


def murmur2_hashes(starts: Numbers, lengths: Numbers, data: Numbers) -> Numbers:
    """Return the murmur2 hash of each key, as `odradek.client.partitioners.murmur2` has it.

    Args:
        starts: Where keys begin: int64.
        lengths: Their lengths, >= 0.
        data: uint8, in which they all lie.

    Returns:
        uint32, one a key.
    """
    hashes = (lengths ^ _SEED).astype(np.uint32)
    if not len(lengths):
        return hashes
    words = lengths >> 2
    words_min, words_max = int(words.min()), int(words.max())
    if len(data) < _WORD_BYTES:
        data = np.concatenate([data, np.zeros(_WORD_BYTES, np.uint8)])
    # Every place of the data as a little-endian word, without a copy: the view steps by one byte.
    view = np.ndarray((len(data) - _WORD_BYTES + 1,), "<u4", np.ascontiguousarray(data).data, strides=(1,))
    for number in range(words_max):
        rows: Any = slice(None) if number < words_min else np.flatnonzero(words > number)
        mixed = view[starts[rows] + number * _WORD_BYTES].astype(np.uint32, copy=False) * _M
        mixed = (mixed ^ mixed >> np.uint32(24)) * _M
        hashes[rows] = hashes[rows] * _M ^ mixed
    _mix_tails(hashes, starts + (words << 2), lengths & 3, view)
    hashes = (hashes ^ hashes >> np.uint32(13)) * _M
    return hashes ^ hashes >> np.uint32(15)


def _mix_tails(hashes: Numbers, places: Numbers, sizes: Numbers, view: Numbers) -> None:
    """Mix in the one to three bytes after the last whole word."""
    rows: Any = slice(None) if sizes.all() else np.flatnonzero(sizes)
    places, sizes = places[rows], sizes[rows]
    readable = np.minimum(places, len(view) - 1)  # at the end of the data the word is read that ends there
    words = view[readable].astype(np.uint32, copy=False) >> ((places - readable) << 3).astype(np.uint32)
    hashes[rows] = (hashes[rows] ^ words & _TAIL_MASKS[sizes]) * _M


def crc32_hashes(starts: Numbers, lengths: Numbers, data: Numbers) -> Numbers:
    """Return the CRC-32 (zlib's) of each key; arguments and result as for `murmur2_hashes`."""
    values = np.full(len(lengths), _ALL_BITS, np.uint32)
    lengths_min, lengths_max = (int(lengths.min()), int(lengths.max())) if len(lengths) else (0, 0)
    for number in range(lengths_max):
        rows: Any = slice(None) if number < lengths_min else np.flatnonzero(lengths > number)
        here = values[rows]
        values[rows] = here >> np.uint32(8) ^ _CRC32[(here ^ data[starts[rows] + number]) & np.uint32(0xFF)]
    return values ^ _ALL_BITS


@attrs.define
class _TopicTurns:
    """How far the turns of one topic have come: rows given by turns, and bytes of rows without a key."""

    rows_count: int = 0
    keyless_bytes: int = 0


@attrs.define
class RowPartitioner:
    """Chooses partitions for the rows of one task; one owner.

    Attributes:
        name: One of `PARTITIONERS`.
        first: Where turns begin: Spark's partition, so that tasks do not all begin with the same one.
        batch_bytes: How many bytes of rows without a key go to one partition before it is the next one's turn, > 0.
    """

    name: str
    first: int
    batch_bytes: int
    _turns: dict[str, _TopicTurns] = attrs.field(factory=dict, init=False)

    def choose(self, topic: str, partitions_count: int, keys: KeyColumn | None, sizes: Numbers) -> Numbers:
        """Return a partition for each of some rows of one topic.

        Args:
            topic: The topic.
            partitions_count: How many partitions it has, > 0.
            keys: The rows' keys; None where no row has one.
            sizes: The rows' sizes in bytes, from which their number is taken too.

        Returns:
            int32, one a row.
        """
        turns = self._turns.setdefault(topic, _TopicTurns())
        rows_count = len(sizes)
        if self.name == "roundrobin":
            begin = self.first + turns.rows_count
            turns.rows_count += rows_count
            return ((begin + np.arange(rows_count, dtype=np.int64)) % partitions_count).astype(np.int32)
        if keys is None:
            return self._stick(turns, partitions_count, sizes)
        hashes = self._hashes(keys) % np.uint32(partitions_count)
        chosen = hashes.astype(np.int32)
        keyless = self._keyless(keys)
        if keyless is not None and keyless.any():
            chosen[keyless] = self._stick(turns, partitions_count, sizes[keyless])
        return chosen

    def _hashes(self, keys: KeyColumn) -> Numbers:
        if self.name == "crc32":
            return crc32_hashes(keys.starts, keys.lengths, keys.data)
        return murmur2_hashes(keys.starts, keys.lengths, keys.data) & _POSITIVE

    def _keyless(self, keys: KeyColumn) -> Numbers | None:
        if self.name == "crc32":
            found: Numbers = keys.lengths == 0
            return found
        return keys.nulls

    def _stick(self, turns: _TopicTurns, partitions_count: int, sizes: Numbers) -> Numbers:
        """Give rows without a key to one partition after the other, a batch's worth to each."""
        before = turns.keyless_bytes + np.cumsum(sizes, dtype=np.int64) - sizes
        turns.keyless_bytes += int(sizes.sum())
        return ((self.first + before // self.batch_bytes) % partitions_count).astype(np.int32)
