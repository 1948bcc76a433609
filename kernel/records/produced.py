"""Pure core: the records field of a Produce: what is refused before anybody looks at its partition.

*Source:* Kafka's ProduceRequest.validateRecords and ByteBufferLogInputStream, asked with hand-made frames.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ..errors import ErrorCode, KafkaError
from .batch import (
    ATTRIBUTES_POSITION,
    COMPRESSION_MASK,
    HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC,
    MAGIC_POSITION,
    TRANSACTIONAL_FLAG,
    BatchHeader,
    read_header,
)
from .compression import CODECS, CompressionType

if TYPE_CHECKING:
    from ..types import Buffer

CODECS_COUNT: Final = len(CODECS)
FLAGS_POSITION: Final = ATTRIBUTES_POSITION + 1
"""The byte of the attributes that holds `TRANSACTIONAL_FLAG`."""
_RECORD_SIZE_MIN: Final = 14
_ZSTD: Final = int(CompressionType.ZSTD)
_ZSTD_PRODUCE_VERSION: Final = 7


class InvalidBatchError(KafkaError):
    """A produced batch is refused.

    Attributes:
        error_message: For the partition's `error_message`; None where Kafka sends none.
        record_errors: `(index of the record, message)` for the partition's `record_errors`.
        is_from_log: Whether the answer carries the log start offset: Kafka's does for what it finds in the records
            and not for what it finds in the frame, the size or the CRC, where it is -1.
    """

    def __init__(
        self,
        code: ErrorCode,
        error_message: str | None = None,
        *,
        record_errors: tuple[tuple[int, str], ...] = (),
        is_from_log: bool = False,
    ) -> None:
        super().__init__(code, error_message or "")
        self.error_message = error_message
        self.record_errors = record_errors
        self.is_from_log = is_from_log


def framed_header(buffer: Buffer, position: int, end: int, produce_version: int) -> BatchHeader:
    """Return the header of a field that is exactly one batch of format v2, in a codec that the version knows.

    Raises:
        InvalidBatchError: it is not.
    """
    header = read_header(buffer, position) if end - position >= HEADER_SIZE else None
    if header is None or header.magic != MAGIC or header.length_bytes != end - position:
        return _odd_header(buffer, position, end, produce_version)
    _check_codec(header.attributes, produce_version)
    return header


def is_transactional(records: Buffer) -> bool:
    """Return whether the first batch in a field is of a transaction.

    Raises:
        InvalidBatchError: no batch can begin so. Kafka refuses the whole request then.
    """
    has_batch = _next_batch_size(records, 0, len(records)) is not None
    return has_batch and records[MAGIC_POSITION] == MAGIC and bool(records[FLAGS_POSITION] & TRANSACTIONAL_FLAG)


def _check_codec(attributes: int, produce_version: int) -> None:
    codec = attributes & COMPRESSION_MASK
    if codec >= _ZSTD and produce_version < _ZSTD_PRODUCE_VERSION:
        is_zstd = codec == _ZSTD
        raise InvalidBatchError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE if is_zstd else ErrorCode.UNKNOWN_SERVER_ERROR)


def _odd_header(buffer: Buffer, position: int, end: int, produce_version: int) -> BatchHeader:
    """Return the header of what is no plain field, judged as Kafka's own walk over it judges."""
    size = _next_batch_size(buffer, position, end)
    if size is None or buffer[position + MAGIC_POSITION] != MAGIC:
        raise InvalidBatchError(ErrorCode.INVALID_RECORD)
    _check_codec(buffer[position + FLAGS_POSITION], produce_version)
    try:
        is_alone = _next_batch_size(buffer, position + size, end) is None
    except InvalidBatchError as error:
        raise InvalidBatchError(error.code) from None  # Kafka tells no reason when it is what follows the batch
    if not is_alone:
        raise InvalidBatchError(ErrorCode.INVALID_RECORD)
    if size < HEADER_SIZE:
        raise InvalidBatchError(ErrorCode.CORRUPT_MESSAGE)
    return read_header(buffer, position)


def _next_batch_size(buffer: Buffer, position: int, end: int) -> int | None:
    """Return the size of the batch of whatever format at `position`; None when none fits before `end`.

    Raises:
        InvalidBatchError: what stands there cannot be a batch.
    """
    remaining = end - position
    if remaining < LOG_OVERHEAD:
        return None
    record_size = int.from_bytes(buffer[position + 8 : position + LOG_OVERHEAD], "big", signed=True)
    if record_size < _RECORD_SIZE_MIN:
        raise InvalidBatchError(
            ErrorCode.CORRUPT_MESSAGE,
            f"Record size {record_size} is less than the minimum record overhead ({_RECORD_SIZE_MIN})",
        )
    if remaining <= MAGIC_POSITION:
        return None
    magic = buffer[position + MAGIC_POSITION]
    if magic > MAGIC:
        shown = magic - 256 if magic > 127 else magic
        raise InvalidBatchError(ErrorCode.CORRUPT_MESSAGE, f"Invalid magic found in record: {shown}")
    return record_size + LOG_OVERHEAD if record_size + LOG_OVERHEAD <= remaining else None
