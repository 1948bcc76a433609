"""Pure core: the compiled twins of functions in `scan.py`, `plain.py`, `record.py`, `finding.py`, `renumbering.py`."""

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
def scan_records(payload: Buffer, count: int, /) -> tuple[int, int, int, bool]: ...
def read_plain_batch(
    records: Buffer, now_ms: int, before_max_ms: int, after_max_ms: int, is_compacted: bool, /
) -> tuple[int, ...] | None: ...
def refused_records(
    payload: Buffer,
    count: int,
    base_timestamp: int,
    earliest: int,
    latest: int,
    takes_no_timestamp: bool,
    needs_keys: bool,
    limit: int,
    /,
) -> tuple[list[tuple[int, int, int, int, int]], int, int]: ...
def find_record(
    payload: Buffer, count: int, timestamp_delta_min: int, offset_delta_min: int, /
) -> tuple[int, int] | None: ...
def renumber_records(
    payload: Buffer, position: int, index: int, timestamp_shift: int, is_stamped: bool, bytes_max: int, /
) -> tuple[bytes, int, int]: ...
