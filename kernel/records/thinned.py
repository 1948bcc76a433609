"""Pure core: a batch with fewer records: what compaction leaves of it, or delayed records of a produced one.

Base and last offset, producer, sequence and transaction stay what they were, whatever goes, and records that stay keep
their offsets: whoever counts by the header counts as before.

*Source:* Kafka 4.3: MemoryRecords.filterTo, DefaultRecordBatch.writeEmptyHeader.

.. versionadded:: 0.1
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import attrs

from ..types import NO_TIMESTAMP
from .batch import (
    CONTROL_FLAG,
    KNOWN_ATTRIBUTES,
    TIMESTAMP_TYPE_FLAG,
    TRANSACTIONAL_FLAG,
    BatchHeader,
    TimestampType,
    encode_batch,
)
from .compression import compress

if TYPE_CHECKING:
    from .run import Kept

_EMPTY_ATTRIBUTES: Final = TIMESTAMP_TYPE_FLAG | TRANSACTIONAL_FLAG | CONTROL_FLAG


def emptied(header: BatchHeader) -> tuple[bytearray, BatchHeader]:
    """Return a batch in the place of that of `header`, without records, and its header."""
    empty = attrs.evolve(
        header,
        attributes=header.attributes & _EMPTY_ATTRIBUTES,
        base_timestamp=NO_TIMESTAMP,
        records_count=0,
    )
    return encode_batch(empty, b""), empty


def thinned_header(header: BatchHeader, kept: Kept) -> BatchHeader:
    """Return the header of a batch of which only those are kept; length and CRC are set by `encode_batch`."""
    fresh = attrs.evolve(header, attributes=header.attributes & KNOWN_ATTRIBUTES, records_count=kept.records_count)
    if header.timestamp_type is TimestampType.CREATE_TIME:
        fresh.max_timestamp = header.base_timestamp + kept.timestamp_delta_max
    return fresh


def thinned(header: BatchHeader, kept: Kept) -> tuple[bytearray, BatchHeader]:
    """Return a batch in the place of that of `header` with those that are kept, in its codec, and its header."""
    fresh = thinned_header(header, kept)
    return encode_batch(fresh, compress(header.compression_id, kept.payload)), fresh
