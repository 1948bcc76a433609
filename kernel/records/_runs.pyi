"""Pure core: the compiled twins of `run.py`, `key_table.py` and `header_due.py`; may be missing."""

from ..types import Buffer

def copy_kept(payload: bytes, flags: bytes, /) -> tuple[bytes, int, int, bool]: ...
def header_numbers(payload: bytes, count: int, name: bytes, takes_binary: bool, missing: int, /) -> bytes: ...
def keep_keys(
    table: bytearray,
    slot_bytes: int,
    payload: bytes,
    count: int,
    base_offset: int,
    end_offset: int,
    versions: Buffer | None,
    keeps_tombstones: bool,
    /,
) -> bytes: ...
def note_keys(
    table: bytearray,
    slot_bytes: int,
    keys_count: int,
    keys_max: int,
    payload: bytes,
    count: int,
    base_offset: int,
    start_offset: int,
    versions: Buffer | None,
    /,
) -> tuple[int, int]: ...
def record_times(payload: bytes, count: int, base_timestamp: int, /) -> bytes: ...
def weigh_keys(
    table: bytearray,
    slot_bytes: int,
    payload: bytes,
    count: int,
    base_offset: int,
    end_offset: int,
    versions: Buffer | None,
    /,
) -> None: ...
