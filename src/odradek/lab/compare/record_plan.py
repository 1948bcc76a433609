"""Pure core: the records of a workload: each follows from a seed and its number, so that any can be made again.

    value   number (8 bytes, big-endian), then words: it compresses as text does
    key     b"key-00000042"; None in a workload without keys

The partition follows from the key, or from the number where there is none: every combination gets the same logs.
"""

from __future__ import annotations

from array import array
from itertools import accumulate
from typing import TYPE_CHECKING, Final, NamedTuple

from .workload import INDEX_BYTES, Workload

if TYPE_CHECKING:
    import random

_WORDS_COUNT: Final = 400
_TEXT_BYTES: Final = 65_536
_STEP: Final = 7_919  # a prime: neighbours have other texts


class PlannedRecord(NamedTuple):
    """One record: where it goes and what it holds; a tombstone has no value."""

    partition: int
    key: bytes | None
    value: bytes | None


class RecordPlan:
    """All records of one workload, as a random source chose them. Immutable once made.

    Numbers below `workload.records` are produced at full speed, those from there to `workload.records_all` at the pace
    that latencies are measured at; these hold no tombstones.
    """

    def __init__(self, workload: Workload, source: random.Random) -> None:
        self.workload = workload
        self._keys = _choose_keys(workload, source)
        self._tombstones = bytes(source.random() < workload.tombstones for _ in range(workload.records))
        self._text = _words(source, workload.value_bytes)
        self._aborts = bytes(source.random() < workload.aborted for _ in range(self.transactions_count))

    @property
    def transactions_count(self) -> int:
        """How many transactions the records of full speed make; 0 where there are none."""
        size = self.workload.transaction_records
        return -(-self.workload.records // size) if size else 0

    def record(self, index: int) -> PlannedRecord:
        """Return a record by its number, in `[0, workload.records_all)`."""
        workload = self.workload
        number = self._keys[index] if self._keys else index
        key = b"key-%08d" % number if self._keys else None
        if index < workload.records and self._tombstones[index]:
            return PlannedRecord(number % workload.partitions, key, None)
        begin = index * _STEP % _TEXT_BYTES
        value = index.to_bytes(INDEX_BYTES, "big") + self._text[begin : begin + workload.value_bytes - INDEX_BYTES]
        return PlannedRecord(number % workload.partitions, key, value)

    def delay_ms(self, index: int) -> int:
        """Return how much later than it is produced a record asks to be seen; 0 for at once."""
        delay_ms_max = self.workload.delay_ms
        return 1 + index * _STEP % delay_ms_max if delay_ms_max else 0

    def transaction(self, number: int) -> range:
        """Return the numbers of the records of a transaction."""
        size = self.workload.transaction_records
        return range(number * size, min((number + 1) * size, self.workload.records))

    def is_aborted(self, transaction: int) -> bool:
        """Whether a transaction is aborted."""
        return bool(self._aborts[transaction])


def _choose_keys(workload: Workload, source: random.Random) -> array[int]:
    if not workload.keys:
        return array("L")
    weights = None
    if workload.key_skew:
        weights = list(accumulate((rank + 1) ** -workload.key_skew for rank in range(workload.keys)))
    return array("L", source.choices(range(workload.keys), cum_weights=weights, k=workload.records_all))


def _words(source: random.Random, extra_bytes: int) -> bytes:
    """Return a text that is long enough for a value to begin anywhere in its first `_TEXT_BYTES`."""
    letters = "abcdefghijklmnopqrstuvwxyz"
    words = ["".join(source.choices(letters, k=source.randint(2, 10))) for _ in range(_WORDS_COUNT)]
    text = " ".join(source.choices(words, k=_TEXT_BYTES // 3))[:_TEXT_BYTES]
    return (text * (2 + extra_bytes // len(text))).encode()
