"""Pure core: what a producer is told of the records that its batch is refused for (KIP-467).

Kafka gives a line to each wrong record, however many there are. Here the first `RECORD_ERRORS_MAX` get theirs, so that
a batch of a few kilobytes cannot make an answer of gigabytes; a client fails the other records of the batch with the
batch's own error.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from ..errors import ErrorCode
from .produced import InvalidBatchError

if TYPE_CHECKING:
    from ..types import TopicPartition
    from .batch import BatchHeader
    from .finding import FoundRecord, RefusedRecords

RECORD_ERRORS_MAX: Final = 1000
_SHOWN_IN_MESSAGE: Final = 3


class RefusedBatch(NamedTuple):
    """What the lines tell of the batch.

    Attributes:
        header: Its header.
        stamp: The timestamp of all its records, where the batch has one for them.
        is_misstamped: Whether that is what it is refused for.
        needs_keys: Whether a record without a key is refused.
        earliest: Least timestamp that is taken.
        latest: Greatest.
        partition_name: As in `orders-0`; made text only here.
    """

    header: BatchHeader
    stamp: int | None
    is_misstamped: bool
    needs_keys: bool
    earliest: int
    latest: int
    partition_name: TopicPartition | str


def refusal(refused: RefusedRecords, batch: RefusedBatch) -> InvalidBatchError:
    """Return the batch's error for its records' errors; a bad timestamp decides the code."""
    no_key = f"Compacted topic cannot accept message without key in topic partition {batch.partition_name}"
    errors = tuple(
        (record.position, no_key if batch.needs_keys and record.key_size < 0 else _timestamp_line(record, batch))
        for record in refused.first
    )
    if refused.mistimed_count:
        code = ErrorCode.INVALID_TIMESTAMP
        text = "One or more records have been rejected due to invalid timestamp"
    else:
        code = ErrorCode.INVALID_RECORD
        lines = (f"RecordError(batchIndex={index}, message='{line}')" for index, line in errors[:_SHOWN_IN_MESSAGE])
        text = (
            f"One or more records have been rejected due to {refused.total} record errors in total, "
            f"and only showing the first three errors at most: [{', '.join(lines)}]"
        )
    return InvalidBatchError(code, text, record_errors=errors, is_from_log=True)


def _timestamp_line(record: FoundRecord, batch: RefusedBatch) -> str:
    stamp = batch.stamp
    timestamp = batch.header.base_timestamp + record.timestamp_delta if stamp is None else stamp
    if not batch.is_misstamped:
        return (
            f"Timestamp {timestamp} of message with offset {record.offset_delta} is out of range. "
            f"The timestamp should be within [{batch.earliest}, {batch.latest}]"
        )
    kind, null_size = ("PartialDefaultRecord", -1) if batch.header.compression_id else ("DefaultRecord", 0)
    return (
        f"Invalid timestamp type in message {kind}(offset={record.offset_delta}, timestamp={timestamp}, "
        f"key={null_size if record.key_size < 0 else record.key_size} bytes, "
        f"value={null_size if record.value_size < 0 else record.value_size} bytes). "
        f"Producer should not set timestamp type to LogAppendTime."
    )
