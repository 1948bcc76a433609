"""Pure core: finds the record that a timestamp means, for ListOffsets.

A log finds the batch by its max timestamp; the record may be anywhere inside it, or, when the batch began below the
offset that is looked from, not in it at all::

    looked for: timestamp 200 from offset 2      batch 0..2: 100 300 200     batch 3..4: 250 300
                                                 offset 2 (200)

Records need not be in the order of their timestamps: the answer is the first one at or above, by offset. Only a batch
of CreateTime is looked into; with LogAppendTime all its records have the batch's timestamp.

A batch may hold millions of records, so the searches are generators: they yield each batch that is to be looked
through, and whoever runs them does that where it holds up nobody (`BatchSearch.is_brief`), and sends back what was
found.

*Source:* KIP-79, KIP-734 (max timestamp); answers compared with Apache Kafka 4.3.1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from ..records.batch import HEADER_SIZE, BatchHeader, TimestampType, read_header
from ..records.compression import decompress_uncopied
from ..records.finding import HAS_COMPILED_FINDING, INT64_MIN, find_record
from ..types import NO_TIMESTAMP

if TYPE_CHECKING:
    from collections.abc import Generator

    from ..contracts.storage import PartitionLog
    from ..types import Buffer


class TimestampOffset(NamedTuple):
    """A record: its timestamp, its offset, and the leader epoch of its batch."""

    timestamp: int
    offset: int
    leader_epoch: int


BRIEF_SEARCH_BYTES: Final = 256 * 1024 if HAS_COMPILED_FINDING else 16 * 1024
"""Up to this size a plain batch is looked through in well under a millisecond."""


class BatchSearch(NamedTuple):
    """A batch to be looked through.

    Attributes:
        batch: One whole batch.
        timestamp: Milliseconds since the Unix epoch.
        start_offset: Records below it are passed over.
    """

    batch: Buffer
    timestamp: int
    start_offset: int

    def is_brief(self) -> bool:
        """Return whether `find_in_batch` is sure not to take long: what is packed may be of any size."""
        header = read_header(self.batch)
        return _answers_alone(header, self.start_offset) or (
            header.length_bytes <= BRIEF_SEARCH_BYTES and not header.compression_id
        )


Search: TypeAlias = "Generator[BatchSearch, TimestampOffset | None, TimestampOffset | None]"


def _answers_alone(header: BatchHeader, start_offset: int) -> bool:
    return header.timestamp_type is TimestampType.LOG_APPEND_TIME and start_offset <= header.base_offset


def find_in_batch(batch: Buffer, timestamp: int, start_offset: int) -> TimestampOffset | None:
    """Return the first record of a batch at or above `timestamp` and `start_offset`.

    No record is made an object; memory is that of the batch's records, decompressed.

    Args:
        batch: One whole batch.
        timestamp: Milliseconds since the Unix epoch.
        start_offset: Records below it are passed over.

    Returns:
        None when the batch has no such record.

    Raises:
        CorruptRecordsError: The batch cannot be read.
    """
    header = read_header(batch)
    if header.max_timestamp < timestamp or header.last_offset < start_offset:
        return None
    if _answers_alone(header, start_offset):
        return TimestampOffset(header.max_timestamp, header.base_offset, header.partition_leader_epoch)
    packed = memoryview(batch)[HEADER_SIZE : header.length_bytes]
    payload = decompress_uncopied(header.compression_id, packed) if header.compression_id and packed else packed
    by_broker = header.timestamp_type is TimestampType.LOG_APPEND_TIME
    delta_min = INT64_MIN if by_broker else timestamp - header.base_timestamp
    found = find_record(payload, header.records_count, delta_min, start_offset - header.base_offset)
    if found is None:
        return None
    timestamp_delta, offset_delta = found
    return TimestampOffset(
        header.max_timestamp if by_broker else header.base_timestamp + timestamp_delta,
        header.base_offset + offset_delta,
        header.partition_leader_epoch,
    )


def search_by_timestamp(log: PartitionLog, timestamp: int, start_offset: int) -> Search:
    """Search a log for its first record at or above `timestamp` and `start_offset`; returns None when there is none.

    May read cold pages.

    Raises:
        StorageError: The log cannot be read.
    """
    batch = log.batch_for_timestamp(timestamp, start_offset)
    while batch is not None:
        found = yield BatchSearch(batch, timestamp, start_offset)
        if found is not None:
            return found
        # The record that gave the batch its max timestamp lies below the start: look on behind the batch.
        start_offset = read_header(batch).next_offset
        batch = log.batch_for_timestamp(timestamp, start_offset)
    return None


def search_max_timestamp(log: PartitionLog) -> Search:
    """Search for the first record with the largest timestamp of its batch, of the batch that has the log's largest.

    As in Kafka it may lie below the log start offset, while its segment is still there.

    Raises:
        StorageError: The log cannot be read.
    """
    timestamp, last_offset = log.max_timestamp()
    if timestamp == NO_TIMESTAMP:
        return None
    batch = next(iter(log.batches(last_offset)), None)
    if batch is None:
        return None
    return (yield BatchSearch(batch, timestamp, 0))
