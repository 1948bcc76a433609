"""Pure core: one look at what most produced batches are: uncompressed, well formed, in time, to be kept as they came.

`validation.py` judges every batch and says exactly what is wrong with one. Most have nothing wrong and nothing odd: for
these the compiled kernel (`_kernel.c`) reads the header and walks the records in one call. `None` means no more than
that the batch is to be looked at closely.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import attrs
from crc32c import crc32c

from ..types import NO_TIMESTAMP
from .batch import (
    ATTRIBUTES_POSITION,
    COMPRESSION_MASK,
    CONTROL_FLAG,
    HEADER_SIZE,
    MAGIC,
    TIMESTAMP_TYPE_FLAG,
    BatchHeader,
    CorruptRecordsError,
    is_crc_valid,
    read_header,
)
from .scan import scan_records_in_python

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..types import Buffer
    from .validation import ValidationRules

    PlainReader = Callable[[Buffer, int, int, int, bool], tuple[int, ...] | None]

_ODD_ATTRIBUTES: Final = COMPRESSION_MASK | TIMESTAMP_TYPE_FLAG | CONTROL_FLAG
_INT64_MAX: Final = 2**63 - 1
CHECKED_BYTES_MAX: Final = 4096
"""As `_kernel.c` has it."""


def _load_kernel() -> PlainReader | None:
    try:
        from . import _kernel
    except ImportError:
        return None
    return _kernel.read_plain_batch


def read_plain_in_python(
    records: Buffer, now_ms: int, before_max_ms: int, after_max_ms: int, is_compacted: bool
) -> tuple[int, ...] | None:
    """Return the fields of the header, as `BatchHeader` takes them, of a batch that is plain.

    The CRC is looked at up to `CHECKED_BYTES_MAX`: there a call of its own would cost more than the sum.

    Args:
        records: The records field of a Produce request.
        now_ms: The wall clock.
        before_max_ms: `message.timestamp.before.max.ms`.
        after_max_ms: `message.timestamp.after.max.ms`.
        is_compacted: Whether every record must have a key.

    Returns:
        None when it is not plain.
    """
    if len(records) < HEADER_SIZE:
        return None
    header = read_header(records)
    if (
        header.base_offset
        or header.length_bytes != len(records)
        or header.magic != MAGIC
        or header.attributes & _ODD_ATTRIBUTES
        or header.records_count <= 0
        or header.records_count != header.last_offset_delta + 1
        or (header.base_sequence < 0 <= header.producer_id)
    ):
        return None
    if len(records) <= CHECKED_BYTES_MAX and not is_crc_valid(records, 0, header):
        return None
    try:
        scan = scan_records_in_python(memoryview(records)[HEADER_SIZE:], header.records_count)
    except CorruptRecordsError:
        return None
    least, greatest = header.base_timestamp + scan.timestamp_delta_min, header.base_timestamp + scan.timestamp_delta_max
    if (
        (is_compacted and scan.null_keys_count)
        or least < max(now_ms - before_max_ms, -_INT64_MAX - 1)
        or greatest > min(now_ms + after_max_ms, _INT64_MAX)
        or header.max_timestamp != max(greatest, NO_TIMESTAMP)
    ):
        return None
    return attrs.astuple(header, recurse=False)


_read_plain: Final[PlainReader] = _load_kernel() or read_plain_in_python


def take_plain(records: memoryview, rules: ValidationRules, now_ms: int) -> BatchHeader | None:
    """Return the header of a batch that may be appended as it is, seen at one look; else None: `validate_batch` tells.

    Hot. See `read_plain_in_python`.

    Args:
        records: The records field of a Produce request.
        rules: The topic's.
        now_ms: The wall clock.
    """
    size_bytes = len(records)
    if size_bytes > rules.plain_bytes_max:
        return None
    fields = _read_plain(
        records, now_ms, rules.timestamp_before_max_ms, rules.timestamp_after_max_ms, rules.is_compacted
    )
    if fields is None or (size_bytes > CHECKED_BYTES_MAX and crc32c(records[ATTRIBUTES_POSITION:]) != fields[4]):
        return None
    return BatchHeader(*fields)
