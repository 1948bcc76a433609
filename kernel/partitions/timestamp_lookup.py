"""Pure core: finds the record that a timestamp means, for ListOffsets.

A log finds the batch by its max timestamp; the record may be anywhere inside it, or, when the batch began below the
offset that is looked from, not in it at all::

    looked for: timestamp 200 from offset 2      batch 0..2: 100 300 200     batch 3..4: 250 300
                                                 offset 2 (200)

Records need not be in the order of their timestamps: the answer is the first one at or above, by offset. Only a batch
of CreateTime is looked into; with LogAppendTime all its records have the batch's timestamp.

*Source:* KIP-79, KIP-734 (max timestamp); answers compared with Apache Kafka 4.3.1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ..records.batch import TimestampType, read_header
from ..records.reader import read_batch
from ..types import NO_TIMESTAMP

if TYPE_CHECKING:
    from ..contracts.storage import PartitionLog
    from ..types import Buffer


class TimestampOffset(NamedTuple):
    """A record: its timestamp, its offset, and the leader epoch of its batch."""

    timestamp: int
    offset: int
    leader_epoch: int


def find_in_batch(batch: Buffer, timestamp: int, start_offset: int) -> TimestampOffset | None:
    """Return the first record of a batch at or above `timestamp` and `start_offset`.

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
    if header.timestamp_type is TimestampType.LOG_APPEND_TIME and start_offset <= header.base_offset:
        return TimestampOffset(header.max_timestamp, header.base_offset, header.partition_leader_epoch)
    for record in read_batch(batch, 0, header):
        if record.timestamp >= timestamp and record.offset >= start_offset:
            return TimestampOffset(record.timestamp, record.offset, header.partition_leader_epoch)
    return None


def find_by_timestamp(log: PartitionLog, timestamp: int, start_offset: int) -> TimestampOffset | None:
    """Return the first record of a log at or above `timestamp` and `start_offset`; None when there is none.

    May read cold pages; decompresses one batch, rarely more.

    Raises:
        StorageError: The log, or a batch, cannot be read.
    """
    batch = log.batch_for_timestamp(timestamp, start_offset)
    while batch is not None:
        found = find_in_batch(batch, timestamp, start_offset)
        if found is not None:
            return found
        # The record that gave the batch its max timestamp lies below the start: look on behind the batch.
        start_offset = read_header(batch).next_offset
        batch = log.batch_for_timestamp(timestamp, start_offset)
    return None


def find_max_timestamp(log: PartitionLog) -> TimestampOffset | None:
    """Return the first record with the largest timestamp of its batch, of the batch that has the log's largest.

    As in Kafka it may lie below the log start offset, while its segment is still there.

    Raises:
        StorageError: The log, or the batch, cannot be read.
    """
    timestamp, last_offset = log.max_timestamp()
    if timestamp == NO_TIMESTAMP:
        return None
    batch = next(iter(log.batches(last_offset)), None)
    return None if batch is None else find_in_batch(batch, timestamp, 0)
