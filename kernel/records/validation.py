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

Three deliberate differences: a record whose length is wrong inside a compressed batch is refused (Kafka appends it, and
consumers stumble over it); a batch that decompresses beyond a bound is MESSAGE_TOO_LARGE; of a batch's record errors
the first `RECORD_ERRORS_MAX` are told (Kafka tells all: 14 MB for 100,000 records; of 4.7 million, which 3 KB hold, a
heap of 1 GB dies).

**Brief or long.** Most batches are judged in well under a millisecond. One that may take more than some milliseconds of
its judge is left to another thread: `validate_briefly` refuses to begin, or to go on, with more than

| what | bound |
| --- | --- |
| bytes of a batch, and of its records decompressed | `BRIEF_BYTES_MAX` |
| of one that is built anew, decompressed | `BRIEF_REWRITE_BYTES_MAX`, as the slow levels of a codec make 2 MB/s |
| records that are walked without a compiled kernel | `BRIEF_RECORDS_MAX` |
| blocks of snappy, members of gzip | `BRIEF_PARTS_MAX` |

No walk makes an object of a record, and memory is bounded by `decompressed_bytes_max`.

With `odradek.produce.validation=headers` the header is taken at its word, records are not read. A header that would be
refused for its timestamps is not refused by it: then the records are walked all the same, and they decide.

*Source:* Kafka documentation, "Message Format" and topic configs; KIP-32, KIP-467 (record errors), KIP-937.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Final, NamedTuple

import attrs
from crc32c import crc32c

from ..classes import define, frozen
from ..errors import ErrorCode, KafkaError
from ..types import NO_EPOCH, NO_TIMESTAMP
from .batch import (
    ATTRIBUTES_POSITION,
    COMPRESSION_MASK,
    CONTROL_FLAG,
    HEADER_SIZE,
    TIMESTAMP_TYPE_FLAG,
    TRANSACTIONAL_FLAG,
    BatchHeader,
    CorruptRecordsError,
    TimestampType,
    encode_batch,
    patch_max_timestamp,
)
from .compression import (
    DECOMPRESSED_BYTES_MAX,
    CompressedTooLargeError,
    CompressionType,
    DecompressedTooLargeError,
    check_lz4_blocks,
    compress_pieces,
    decompress_uncopied,
    is_in_many_parts,
)
from .finding import INT64_MAX, INT64_MIN, Acceptable, refused_records
from .produced import CODECS_COUNT, InvalidBatchError, framed_header
from .record_errors import RECORD_ERRORS_MAX, RefusedBatch, refusal
from .renumbering import first_timestamp_delta, renumbered
from .scan import HAS_COMPILED_KERNEL, RecordsScan, scan_records

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

RECORD_BYTES_MIN: Final = 7
"""The least that a record takes: its length, attributes, two deltas, two sizes, the number of its headers."""
NO_BOUND: Final = 2**63 - 1
BRIEF_BYTES_MAX: Final = 2 << 20
"""How many bytes of records are judged briefly: 1 ms of a compiled walk, 2 to 6 ms of decompression."""
BRIEF_REWRITE_BYTES_MAX: Final = 16 << 10
"""How many bytes of records are built anew briefly."""
BRIEF_PARTS_MAX: Final = 500
"""In how many parts they may be packed: each costs some microseconds, empty or not. 2 MiB are 64 blocks as a rule."""
BRIEF_RECORDS_MAX: Final = BRIEF_BYTES_MAX if HAS_COMPILED_KERNEL else 2000
"""How many records are walked briefly."""


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
    return min(rules.max_message_bytes, rules.segment_bytes, BRIEF_BYTES_MAX)


@frozen(kw_only=True)
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
        plain_bytes_max: Of a plain batch up to this size one brief look tells all; -1 where records are not walked, or
            not kept as they come.
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


@define
class ValidatedBatch:
    """A batch that may be appended.

    Attributes:
        header: Its header as it stands now, after what was rewritten.
        rewritten: The whole batch where it had to be built anew (`compression.type`); None: it is
            `buffer[position : position + header.length_bytes]`, perhaps patched there.
        walked_bytes: How many bytes of records were walked to judge it.
    """

    header: BatchHeader
    rewritten: bytearray | None = None
    walked_bytes: int = attrs.field(default=0, eq=False)

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

    Constant in the number of records unless the rules walk them or want another codec; that may take long.

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
    return _validate(_Batch(buffer, position, header, rules, now_ms, partition_name, NO_BOUND))


def validate_briefly(
    buffer: bytearray | memoryview,
    position: int,
    header: BatchHeader,
    rules: ValidationRules,
    *,
    now_ms: int,
    partition_name: TopicPartition | str = "",
    bytes_max: int = BRIEF_BYTES_MAX,
) -> ValidatedBatch | None:
    """Do as `validate_framed`, unless that may take long.

    Args:
        buffer: As there.
        position: As there.
        header: As there.
        rules: As there.
        now_ms: As there.
        partition_name: As there.
        bytes_max: How many bytes of records may be walked.

    Returns:
        None when it would take long: nothing was changed.

    Raises:
        InvalidBatchError: it is refused.
    """
    try:
        return _validate(_Batch(buffer, position, header, rules, now_ms, partition_name, bytes_max))
    except _TakesLongError:
        return None


class _TakesLongError(Exception):
    """A batch cannot be judged briefly."""


class _Batch(NamedTuple):
    """A batch that is judged, with all that it is judged by.

    `bytes_max` is how many bytes of records may be walked, `NO_BOUND` for as many as there are.
    """

    buffer: bytearray | memoryview
    position: int
    header: BatchHeader
    rules: ValidationRules
    now_ms: int
    partition_name: TopicPartition | str
    bytes_max: int

    @property
    def is_rewritten(self) -> bool:
        compression = self.rules.compression
        return compression is not None and compression != self.header.attributes & COMPRESSION_MASK


def _validate(batch: _Batch) -> ValidatedBatch:
    buffer, position, header, rules, now_ms = batch[:5]
    if header.length_bytes > batch.bytes_max and header.length_bytes <= rules.max_message_bytes:
        raise _TakesLongError
    _check_header(buffer, position, header, rules)
    if needs_walk(header, rules, now_ms):
        return _walk(batch)
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


def _walk(batch: _Batch) -> ValidatedBatch:
    """Check every record, then set the max timestamp or build the batch anew."""
    buffer, position, header, rules, now_ms = batch[:5]
    payload = _payload(batch)
    try:
        scan = scan_records(payload, header.records_count)
    except CorruptRecordsError as exc:
        raise InvalidBatchError(ErrorCode.INVALID_RECORD, is_from_log=True) from exc
    if header.base_timestamp + scan.timestamp_delta_max > INT64_MAX:
        raise InvalidBatchError(ErrorCode.INVALID_TIMESTAMP, is_from_log=True)
    if _is_suspicious(scan, header, rules, now_ms):
        _check_records(payload, batch)
    if batch.is_rewritten:
        return _rebuild(payload, scan, batch)
    attributes = header.attributes
    if scan.has_offset_gaps and attributes & COMPRESSION_MASK:
        raise InvalidBatchError(ErrorCode.UNKNOWN_SERVER_ERROR, is_from_log=True)
    is_stamped = attributes & TIMESTAMP_TYPE_FLAG
    if rules.timestamp_type:
        patch_max_timestamp(buffer, position, header, rules.timestamp_type, now_ms)
        return ValidatedBatch(header, walked_bytes=len(payload))
    max_timestamp = header.max_timestamp if is_stamped else header.base_timestamp + scan.timestamp_delta_max
    if max_timestamp < NO_TIMESTAMP:
        max_timestamp = NO_TIMESTAMP
    if is_stamped or max_timestamp != header.max_timestamp:
        patch_max_timestamp(buffer, position, header, TimestampType.CREATE_TIME, max_timestamp)
    return ValidatedBatch(header, walked_bytes=len(payload))


def _payload(batch: _Batch) -> Buffer:
    """Return the records' bytes, borrowed where they are not compressed.

    Raises:
        _TakesLongError: there are more than may be walked, or they are packed in many parts.
        InvalidBatchError: they cannot be decompressed, or are too many.
    """
    header, rules = batch.header, batch.rules
    walked_max = min(batch.bytes_max, BRIEF_REWRITE_BYTES_MAX) if batch.is_rewritten else batch.bytes_max
    if batch.bytes_max == NO_BOUND:
        walked_max = rules.decompressed_bytes_max
    elif RECORD_BYTES_MIN * header.records_count > walked_max or header.records_count > BRIEF_RECORDS_MAX:
        # Not even begun. The header may lie, upwards: then the batch is refused elsewhere.
        raise _TakesLongError
    packed = memoryview(batch.buffer)[batch.position + HEADER_SIZE : batch.position + header.length_bytes]
    if not header.attributes & COMPRESSION_MASK:
        if batch.bytes_max != NO_BOUND and len(packed) > walked_max:
            raise _TakesLongError
        return packed
    limit = min(walked_max, rules.decompressed_bytes_max)
    try:
        if header.compression_id == CompressionType.LZ4:
            check_lz4_blocks(packed)
        if batch.bytes_max != NO_BOUND and is_in_many_parts(header.compression_id, packed, BRIEF_PARTS_MAX):
            raise _TakesLongError
        return decompress_uncopied(header.compression_id, packed, limit) if packed else packed
    except DecompressedTooLargeError as exc:
        if limit < rules.decompressed_bytes_max:
            raise _TakesLongError from exc
        raise InvalidBatchError(ErrorCode.MESSAGE_TOO_LARGE, str(exc)) from exc
    except CorruptRecordsError as exc:
        raise InvalidBatchError(ErrorCode.UNKNOWN_SERVER_ERROR, is_from_log=True) from exc


def _is_suspicious(scan: RecordsScan, header: BatchHeader, rules: ValidationRules, now_ms: int) -> bool:
    """Say whether some record may have to be refused."""
    if rules.is_compacted and scan.null_keys_count:
        return True
    if header.attributes & TIMESTAMP_TYPE_FLAG:
        return True
    if rules.timestamp_type:
        return False
    return (
        header.base_timestamp + scan.timestamp_delta_min < now_ms - rules.timestamp_before_max_ms
        or header.base_timestamp + scan.timestamp_delta_max > now_ms + rules.timestamp_after_max_ms
    )


def _check_records(payload: Buffer, batch: _Batch) -> None:
    """Refuse a batch for its records, with a line for each of the first that are wrong.

    Raises:
        InvalidBatchError: at least one is.
    """
    header, rules = batch.header, batch.rules
    stamp = header.max_timestamp if header.attributes & TIMESTAMP_TYPE_FLAG else None
    is_misstamped = bool(rules.timestamp_type) and stamp is not None
    earliest = batch.now_ms - rules.timestamp_before_max_ms
    latest = batch.now_ms + rules.timestamp_after_max_ms
    if rules.timestamp_type or stamp is not None:
        is_good = bool(rules.timestamp_type) or stamp == NO_TIMESTAMP or earliest <= (stamp or 0) <= latest
        is_good = is_good and not is_misstamped  # what one is all are, whatever their own deltas
        least, greatest = (INT64_MIN, INT64_MAX) if is_good else (1, 0)
        acceptable = Acceptable(0, least, greatest, takes_no_timestamp=False, needs_keys=rules.is_compacted)
    else:
        acceptable = Acceptable(
            header.base_timestamp, earliest, latest, takes_no_timestamp=True, needs_keys=rules.is_compacted
        )
    refused = refused_records(payload, header.records_count, acceptable, RECORD_ERRORS_MAX)
    if refused.total:
        about = RefusedBatch(header, stamp, is_misstamped, rules.is_compacted, earliest, latest, batch.partition_name)
        raise refusal(refused, about)


def _rebuild(payload: Buffer, scan: RecordsScan, batch: _Batch) -> ValidatedBatch:
    """Build the batch anew with the topic's codec: gaps close, the horizon and unknown attribute bits go."""
    header, rules = batch.header, batch.rules
    assert rules.compression is not None
    stamp = header.max_timestamp if header.attributes & TIMESTAMP_TYPE_FLAG else None
    shift = first_timestamp_delta(payload)
    pieces = renumbered(payload, header.records_count, shift, is_stamped=stamp is not None)
    try:
        packed = compress_pieces(
            rules.compression, pieces, rules.compression_level, limit=rules.max_message_bytes - HEADER_SIZE
        )
    except CompressedTooLargeError as exc:
        raise InvalidBatchError(ErrorCode.MESSAGE_TOO_LARGE) from exc
    except CorruptRecordsError as exc:  # all else a scan has seen before: their distance is beyond an int64
        raise InvalidBatchError(ErrorCode.INVALID_TIMESTAMP, is_from_log=True) from exc
    rebuilt = attrs.evolve(
        header,
        attributes=int(rules.compression) | header.attributes & TRANSACTIONAL_FLAG,
        partition_leader_epoch=NO_EPOCH,
        base_timestamp=header.base_timestamp + shift if stamp is None else stamp,
        max_timestamp=max(header.base_timestamp + scan.timestamp_delta_max if stamp is None else stamp, NO_TIMESTAMP),
    )
    rewritten = encode_batch(rebuilt, packed)
    if rules.timestamp_type:
        patch_max_timestamp(rewritten, 0, rebuilt, rules.timestamp_type, batch.now_ms)
    return ValidatedBatch(rebuilt, rewritten, len(payload))
