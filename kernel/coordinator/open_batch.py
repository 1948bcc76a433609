"""Pure core: the batch that a shard's results are gathered in until the turn of the reactor ends."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from ..contracts.coordinator import NO_PRODUCER, ProducerIdentity
from ..partitions.append_check import NOT_NEEDED, Verification
from ..records.batch import HEADER_SIZE
from ..records.builder import BatchBuilder

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..records.compression import CompressionType

Encoded = tuple[bytes, "bytes | None"]
"""A record's key and value."""

_OVERHEAD_BYTES_MAX: Final = 5 + 1 + 5 + 5 + 5 + 5 + 1
"""Of a record: size, attributes, timestamp delta (a turn is short), offset delta, sizes of key and value, headers."""


class Sender(NamedTuple):
    """For whose transaction records are written, and what the transaction's coordinator has agreed to."""

    producer: ProducerIdentity
    verified: Verification | None


NOBODY: Final = Sender(NO_PRODUCER, NOT_NEEDED)


def record_size_max(encoded: Encoded) -> int:
    """Return how many bytes a record takes in a batch, at most; some more than it will."""
    key, value = encoded
    return _OVERHEAD_BYTES_MAX + len(key) + (len(value) if value is not None else 0)


class OpenBatch:
    """Records that are replayed but not appended yet. One owner; empty again after `build`.

    Sizes are counted before compression: what is promised to fit does.
    """

    __slots__ = ("_builder", "_size_bytes")

    def __init__(self) -> None:
        self._builder: BatchBuilder | None = None
        self._size_bytes = HEADER_SIZE

    @property
    def records_count(self) -> int:
        """How many records it holds."""
        return self._builder.records_count if self._builder is not None else 0

    def has_room(self, size_bytes: int, batch_bytes_max: int) -> bool:
        """Return whether records of so many bytes more fit into a batch of at most `batch_bytes_max`."""
        return self._size_bytes + size_bytes <= batch_bytes_max

    def append(
        self, encoded: Encoded, size_bytes: int, now_ms: int, compression: CompressionType, base_sequence: int
    ) -> None:
        """Add a record of `record_size_max` so many bytes; the first one's compression and sequence count."""
        if self._builder is None:
            self._builder = BatchBuilder(compression=compression, base_sequence=base_sequence)
        key, value = encoded
        self._builder.append(key, value, timestamp=now_ms)
        self._size_bytes += size_bytes

    def build(self) -> bytearray:
        """Return the batch and be empty again; there must be a record."""
        assert self._builder is not None, "an empty batch is not appended"
        batch = self._builder.build()
        self.clear()
        return batch

    def clear(self) -> None:
        """Drop the records."""
        self._builder = None
        self._size_bytes = HEADER_SIZE


def transactional_batch(
    records: Iterable[Encoded],
    producer: ProducerIdentity,
    now_ms: int,
    compression: CompressionType,
    base_sequence: int,
) -> bytearray:
    """Return a batch of a producer's transaction.

    Every such batch has the same base sequence: the request that brought it is not the producer's Produce.
    """
    builder = BatchBuilder(
        compression=compression,
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        base_sequence=base_sequence,
        is_transactional=True,
    )
    for key, value in records:
        builder.append(key, value, timestamp=now_ms)
    return builder.build()
