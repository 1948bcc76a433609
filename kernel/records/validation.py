"""Pure core: what a leader checks of a produced batch before it appends it, and what it rewrites.

The order and the answers are Apache Kafka 4.3.1's, asked with hand-made frames (November 2026):

| found | answer |
| --- | --- |
| no whole batch, a second whole batch, magic 0 or 1 | INVALID_RECORD |
| length below 14, magic other than 0 to 2, length below a header's | CORRUPT_MESSAGE |
| zstd below Produce v7 | UNSUPPORTED_COMPRESSION_TYPE |
| more than `max.message.bytes`, as it came or recompressed | MESSAGE_TOO_LARGE |
| CRC | CORRUPT_MESSAGE |
| base offset other than 0 | INVALID_RECORD |
| codec 5 to 7; undecodable; offset gaps within a compressed batch that is kept as it is | UNKNOWN_SERVER_ERROR |
| count not last offset delta + 1, or none; control batch; producer id without a sequence | INVALID_RECORD |
| a record malformed; records fewer or more than counted | INVALID_RECORD |
| null key on a compacted topic | INVALID_RECORD with record errors |
| timestamp out of range | INVALID_TIMESTAMP with record errors |

Bytes after the batch that cannot be another one are dropped. Accepted, and kept: offset gaps in an uncompressed batch,
unknown attribute bits, a delete horizon, any producer epoch from -1 on, any leader epoch.

Two deliberate differences: a record whose length is wrong inside a compressed batch is refused (Kafka appends it, and
consumers stumble over it); a batch that decompresses beyond a bound is MESSAGE_TOO_LARGE.

With `odradek.produce.validation=headers` the header is taken at its word, records are not read. A header that would be
refused for its timestamps is not refused by it: then the records are walked all the same, and they decide.

*Source:* Kafka documentation, "Message Format" and topic configs; KIP-32, KIP-467 (record errors), KIP-937.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Final

import attrs
from crc32c import crc32c

from ..errors import ErrorCode, KafkaError
from ..types import NO_TIMESTAMP
from .batch import (
    ATTRIBUTES_POSITION,
    COMPRESSION_MASK,
    CONTROL_FLAG,
    HEADER_SIZE,
    TIMESTAMP_TYPE_FLAG,
    BatchHeader,
    CorruptRecordsError,
    TimestampType,
    patch_max_timestamp,
    read_header,
)
from .builder import BatchBuilder
from .compression import (
    DECOMPRESSED_BYTES_MAX,
    CompressionType,
    DecompressedTooLargeError,
    check_lz4_blocks,
)
from .produced import CODECS_COUNT, InvalidBatchError, framed_header
from .reader import read_payload
from .record import Record, decode_records
from .scan import RecordsScan, scan_records

if TYPE_CHECKING:
    from ..types import Buffer, TopicPartition

MAX_MESSAGE_BYTES: Final = 1_048_588
"""Kafka's default of `max.message.bytes`."""
SEGMENT_BYTES: Final = 1 << 30
"""Kafka's default of `segment.bytes`."""
TIMESTAMP_BEFORE_MAX_MS: Final = 2**63 - 1
"""Kafka's default of `message.timestamp.before.max.ms`: any past will do."""
TIMESTAMP_AFTER_MAX_MS: Final = 3_600_000
"""Kafka's default of `message.timestamp.after.max.ms`."""

_INT64_MAX: Final = 2**63 - 1


class ValidationMode(StrEnum):
    """`odradek.produce.validation`: how far the leader looks into a batch."""

    AUTO = "auto"
    FULL = "full"
    HEADERS = "headers"


def walks_records(mode: ValidationMode, *, is_compacted: bool, has_compiled_kernel: bool) -> bool:
    """Say whether every record is looked at; `auto` does where it must (null keys) or where it is cheap."""
    if mode is ValidationMode.AUTO:
        return is_compacted or has_compiled_kernel
    return mode is ValidationMode.FULL


def _plain_bytes_max(rules: ValidationRules) -> int:
    if not rules.walks_records or rules.compression or rules.timestamp_type:
        return -1
    return min(rules.max_message_bytes, rules.segment_bytes)


@attrs.frozen(kw_only=True)
class ValidationRules:
    """What a topic asks of its batches; made once when its configs change.

    Attributes:
        max_message_bytes: `max.message.bytes`.
        segment_bytes: `segment.bytes`, which a batch has to fit into: `check_size`.
        timestamp_type: `message.timestamp.type`.
        timestamp_before_max_ms: `message.timestamp.before.max.ms`.
        timestamp_after_max_ms: `message.timestamp.after.max.ms`.
        compression: `compression.type`; None is `producer`: keep what came.
        compression_level: `compression.<codec>.level` of that codec.
        is_compacted: Whether `cleanup.policy` contains compact.
        walks_records: Whether to look at every record: see `walks_records`.
        decompressed_bytes_max: What a batch may decompress to.
        plain_bytes_max: Of a plain batch up to this size one look tells all; -1 where records are not walked, or not
            kept as they come.
    """

    max_message_bytes: int = MAX_MESSAGE_BYTES
    segment_bytes: int = SEGMENT_BYTES
    timestamp_type: TimestampType = TimestampType.CREATE_TIME
    timestamp_before_max_ms: int = TIMESTAMP_BEFORE_MAX_MS
    timestamp_after_max_ms: int = TIMESTAMP_AFTER_MAX_MS
    compression: CompressionType | None = None
    compression_level: int | None = None
    is_compacted: bool = False
    walks_records: bool = False
    decompressed_bytes_max: int = DECOMPRESSED_BYTES_MAX
    plain_bytes_max: int = attrs.field(init=False, default=attrs.Factory(_plain_bytes_max, takes_self=True))


@attrs.define
class ValidatedBatch:
    """A batch that may be appended.

    Attributes:
        header: Its header as it stands now, after what was rewritten.
        rewritten: The whole batch where it had to be built anew (`compression.type`); None: it is
            `buffer[position : position + header.length_bytes]`, perhaps patched there.
    """

    header: BatchHeader
    rewritten: bytearray | None = None

    @property
    def log_append_time_ms(self) -> int:
        """For the answer: the broker's time with LogAppendTime, else -1."""
        return self.header.max_timestamp if self.header.attributes & TIMESTAMP_TYPE_FLAG else NO_TIMESTAMP


def validate_batch(
    buffer: bytearray | memoryview,
    position: int,
    end: int,
    rules: ValidationRules,
    *,
    now_ms: int,
    produce_version: int,
    partition_name: TopicPartition | str = "",
) -> ValidatedBatch:
    """Check the records field of a Produce request for one partition, and rewrite what the topic wants rewritten.

    Constant in the number of records unless the rules walk them or want another codec; those may take long for a
    large batch (`needs_walk` tells), so a shell may do them elsewhere.

    Args:
        buffer: Writable; holds the field. Timestamps are patched in place where Kafka patches them.
        position: Where the field begins.
        end: Where it ends.
        rules: The topic's.
        now_ms: The wall clock.
        produce_version: API version of the request.
        partition_name: As in `orders-0`, for messages; made text only when one is written.

    Raises:
        InvalidBatchError: it is refused, with everything for the answer.
    """
    header = framed_header(buffer, position, end, produce_version)
    return validate_framed(buffer, position, header, rules, now_ms=now_ms, partition_name=partition_name)


def validate_framed(
    buffer: bytearray | memoryview,
    position: int,
    header: BatchHeader,
    rules: ValidationRules,
    *,
    now_ms: int,
    partition_name: TopicPartition | str = "",
) -> ValidatedBatch:
    """Do all of `validate_batch` but for what `framed_header` does.

    Raises:
        InvalidBatchError: it is refused.
    """
    _check_header(buffer, position, header, rules)
    if needs_walk(header, rules, now_ms):
        return _walk(buffer, position, header, rules, now_ms, partition_name)
    if rules.timestamp_type:
        patch_max_timestamp(buffer, position, header, rules.timestamp_type, now_ms)
    return ValidatedBatch(header)


def check_size(header: BatchHeader, rules: ValidationRules) -> None:
    """Refuse a valid batch that is larger than a segment.

    Raises:
        KafkaError: It is.
    """
    if header.length_bytes > rules.segment_bytes:
        raise KafkaError(ErrorCode.RECORD_LIST_TOO_LARGE)


def _check_header(buffer: Buffer, position: int, header: BatchHeader, rules: ValidationRules) -> None:
    """Check all that the header alone can be refused for, and the CRC."""
    length_bytes = header.length_bytes
    attributes = header.attributes
    codec = attributes & COMPRESSION_MASK
    if length_bytes > rules.max_message_bytes:
        raise InvalidBatchError(ErrorCode.MESSAGE_TOO_LARGE)
    if crc32c(memoryview(buffer)[position + ATTRIBUTES_POSITION : position + length_bytes]) != header.crc:
        raise InvalidBatchError(ErrorCode.CORRUPT_MESSAGE)
    count = header.records_count
    if (
        header.base_offset
        or codec >= CODECS_COUNT
        or count <= 0
        or count != header.last_offset_delta + 1
        or attributes & CONTROL_FLAG
        or (header.base_sequence < 0 and header.producer_id >= 0)
    ):
        is_codec = codec >= CODECS_COUNT and not header.base_offset
        code = ErrorCode.UNKNOWN_SERVER_ERROR if is_codec else ErrorCode.INVALID_RECORD
        raise InvalidBatchError(code, is_from_log=True)


def needs_walk(header: BatchHeader, rules: ValidationRules, now_ms: int) -> bool:
    """Say whether a valid header does not settle it: the records must be read to judge or to rewrite them."""
    if rules.walks_records or header.attributes & TIMESTAMP_TYPE_FLAG:
        return True
    if rules.compression is not None and rules.compression != header.attributes & COMPRESSION_MASK:
        return True
    if rules.timestamp_type:
        return False
    return not (
        now_ms - rules.timestamp_before_max_ms
        <= header.base_timestamp
        <= header.max_timestamp
        <= now_ms + rules.timestamp_after_max_ms
    )


def _walk(
    buffer: bytearray | memoryview,
    position: int,
    header: BatchHeader,
    rules: ValidationRules,
    now_ms: int,
    partition_name: TopicPartition | str,
) -> ValidatedBatch:
    """Check every record, then set the max timestamp or build the batch anew."""
    payload = _payload(buffer, position, header, rules)
    try:
        scan = scan_records(payload, header.records_count)
    except CorruptRecordsError as exc:
        raise InvalidBatchError(ErrorCode.INVALID_RECORD, is_from_log=True) from exc
    if header.base_timestamp + scan.timestamp_delta_max > _INT64_MAX:
        raise InvalidBatchError(ErrorCode.INVALID_TIMESTAMP, is_from_log=True)
    if _is_suspicious(scan, header, rules, now_ms):
        _check_records(payload, header, rules, now_ms, partition_name)
    if rules.compression is not None and rules.compression != header.attributes & COMPRESSION_MASK:
        return _rebuild(payload, header, rules, now_ms)
    attributes = header.attributes
    if scan.has_offset_gaps and attributes & COMPRESSION_MASK:
        raise InvalidBatchError(ErrorCode.UNKNOWN_SERVER_ERROR, is_from_log=True)
    is_stamped = attributes & TIMESTAMP_TYPE_FLAG
    if rules.timestamp_type:
        patch_max_timestamp(buffer, position, header, rules.timestamp_type, now_ms)
        return ValidatedBatch(header)
    max_timestamp = header.max_timestamp if is_stamped else header.base_timestamp + scan.timestamp_delta_max
    if max_timestamp < NO_TIMESTAMP:
        max_timestamp = NO_TIMESTAMP
    if is_stamped or max_timestamp != header.max_timestamp:
        patch_max_timestamp(buffer, position, header, TimestampType.CREATE_TIME, max_timestamp)
    return ValidatedBatch(header)


def _payload(buffer: Buffer, position: int, header: BatchHeader, rules: ValidationRules) -> Buffer:
    """Return the records' bytes, borrowed where they are not compressed."""
    if not header.attributes & COMPRESSION_MASK:
        return memoryview(buffer)[position + HEADER_SIZE : position + header.length_bytes]
    try:
        if header.compression_id == CompressionType.LZ4:
            check_lz4_blocks(memoryview(buffer)[position + HEADER_SIZE : position + header.length_bytes])
        return read_payload(buffer, position, header, decompressed_bytes_max=rules.decompressed_bytes_max)
    except DecompressedTooLargeError as exc:
        raise InvalidBatchError(ErrorCode.MESSAGE_TOO_LARGE, str(exc)) from exc
    except CorruptRecordsError as exc:
        raise InvalidBatchError(ErrorCode.UNKNOWN_SERVER_ERROR, is_from_log=True) from exc


def _is_suspicious(scan: RecordsScan, header: BatchHeader, rules: ValidationRules, now_ms: int) -> bool:
    """Say whether some record may have to be refused."""
    if rules.is_compacted and scan.null_keys:
        return True
    if header.attributes & TIMESTAMP_TYPE_FLAG:
        return True
    if rules.timestamp_type:
        return False
    return (
        header.base_timestamp + scan.timestamp_delta_min < now_ms - rules.timestamp_before_max_ms
        or header.base_timestamp + scan.timestamp_delta_max > now_ms + rules.timestamp_after_max_ms
    )


def _decode(payload: Buffer, header: BatchHeader) -> list[Record]:
    """Return the records, which a scan has already found well formed."""
    return list(
        decode_records(
            bytes(payload),
            header.records_count,
            base_timestamp=header.base_timestamp,
            log_append_time=header.max_timestamp if header.attributes & TIMESTAMP_TYPE_FLAG else None,
        )
    )


def _check_records(
    payload: Buffer, header: BatchHeader, rules: ValidationRules, now_ms: int, partition_name: TopicPartition | str
) -> None:
    """Refuse a batch for its records, with a line for each that is wrong.

    Raises:
        InvalidBatchError: at least one is.
    """
    no_key = f"Compacted topic cannot accept message without key in topic partition {partition_name}"
    earliest = now_ms - rules.timestamp_before_max_ms
    latest = now_ms + rules.timestamp_after_max_ms
    is_misstamped = bool(rules.timestamp_type and header.attributes & TIMESTAMP_TYPE_FLAG)
    kind, null_size = ("PartialDefaultRecord", -1) if header.compression_id else ("DefaultRecord", 0)
    errors: list[tuple[int, str]] = []
    has_bad_timestamp = False
    for index, record in enumerate(_decode(payload, header)):
        if rules.is_compacted and record.key is None:
            errors.append((index, no_key))
            continue
        if is_misstamped:
            text = (
                f"Invalid timestamp type in message {kind}(offset={record.offset}, timestamp={record.timestamp}, "
                f"key={null_size if record.key is None else len(record.key)} bytes, "
                f"value={null_size if record.value is None else len(record.value)} bytes). "
                f"Producer should not set timestamp type to LogAppendTime."
            )
        elif rules.timestamp_type or record.timestamp == NO_TIMESTAMP or earliest <= record.timestamp <= latest:
            continue
        else:
            text = (
                f"Timestamp {record.timestamp} of message with offset {record.offset} is out of range. "
                f"The timestamp should be within [{earliest}, {latest}]"
            )
        has_bad_timestamp = True
        errors.append((index, text))
    if errors:
        raise _records_error(errors, has_bad_timestamp=has_bad_timestamp)


def _records_error(errors: list[tuple[int, str]], *, has_bad_timestamp: bool) -> InvalidBatchError:
    """Return the batch's error for its records' errors; a bad timestamp decides the code."""
    if has_bad_timestamp:
        code = ErrorCode.INVALID_TIMESTAMP
        text = "One or more records have been rejected due to invalid timestamp"
    else:
        code = ErrorCode.INVALID_RECORD
        shown = ", ".join(f"RecordError(batchIndex={index}, message='{line}')" for index, line in errors[:3])
        text = (
            f"One or more records have been rejected due to {len(errors)} record errors in total, "
            f"and only showing the first three errors at most: [{shown}]"
        )
    return InvalidBatchError(code, text, record_errors=tuple(errors), is_from_log=True)


def _rebuild(payload: Buffer, header: BatchHeader, rules: ValidationRules, now_ms: int) -> ValidatedBatch:
    """Build the batch anew with the topic's codec: gaps close, the horizon and unknown attribute bits go."""
    assert rules.compression is not None
    builder = BatchBuilder(
        compression=rules.compression,
        compression_level=rules.compression_level,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
        is_transactional=header.is_transactional,
    )
    for record in _decode(payload, header):
        builder.append(record.key, record.value, timestamp=record.timestamp, headers=record.headers)
    rewritten = builder.build()
    rebuilt = read_header(rewritten)
    if rules.timestamp_type:
        patch_max_timestamp(rewritten, 0, rebuilt, rules.timestamp_type, now_ms)
    if rebuilt.length_bytes > rules.max_message_bytes:
        raise InvalidBatchError(ErrorCode.MESSAGE_TOO_LARGE)
    return ValidatedBatch(rebuilt, rewritten)
