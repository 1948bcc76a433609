"""Pure core: the compiled twin of `scan.scan_records_in_python`; may be missing."""

from ..types import Buffer

def scan_records(payload: Buffer, count: int, /) -> tuple[int, int, list[int], bool]: ...
def read_plain_batch(
    records: Buffer, now_ms: int, before_max_ms: int, after_max_ms: int, is_compacted: bool, /
) -> tuple[int, ...] | None: ...
