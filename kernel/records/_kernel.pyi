"""Pure core: the compiled twin of `scan.scan_records_in_python`; may be missing."""

from ..types import Buffer

def scan_records(payload: Buffer, count: int, /) -> tuple[int, int, list[int], bool]: ...
