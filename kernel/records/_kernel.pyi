"""Pure core: the compiled twins of functions in `scan.py`, `plain.py` and `record.py`; may be missing."""

from typing import TypeVar

from ..types import Buffer

_Record = TypeVar("_Record", bound=tuple[object, ...])

def decode_records(
    record_type: type[_Record],
    payload: bytes,
    position: int,
    count: int,
    base_offset: int,
    base_timestamp: int,
    append_time: int | None,
    /,
) -> tuple[list[_Record], int]: ...
def encode_record(
    timestamp_delta: int, offset_delta: int, key: Buffer | None, value: Buffer | None, headers: bytes | None, /
) -> bytes: ...
def scan_records(payload: Buffer, count: int, /) -> tuple[int, int, list[int], bool]: ...
def read_plain_batch(
    records: Buffer, now_ms: int, before_max_ms: int, after_max_ms: int, is_compacted: bool, /
) -> tuple[int, ...] | None: ...
