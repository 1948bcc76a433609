"""Pure core: the compiled twins of `column_walk.py`; may be missing."""

from ..types import Buffer
from .column_walk import BinarySource, HeadersSource, TakenColumns

class ColumnBuilder:
    def __new__(cls, wanted: int, rows_max: int, bytes_max: int, /) -> ColumnBuilder: ...
    @property
    def rows(self) -> int: ...
    def add(
        self,
        payload: Buffer,
        position: int,
        index: int,
        count: int,
        base_offset: int,
        base_timestamp: int,
        timestamp_type: int,
        start: int,
        end: int,
        /,
    ) -> tuple[int, int, int]: ...
    def add_run(
        self, run: Buffer, place: int, checks_crc: bool, is_read_committed: bool, start: int, end: int, /
    ) -> tuple[int, int]: ...
    def take(self) -> TakenColumns: ...
    def clear(self) -> None: ...

def checksums(data: Buffer, /) -> tuple[int, int]: ...
def encode_rows(
    rows_count: int,
    keys: BinarySource | None,
    values: BinarySource | None,
    timestamps: Buffer | None,
    headers: HeadersSource | None,
    rows: Buffer | None,
    position: int,
    bytes_max: int,
    timestamp_ms: int,
    /,
) -> tuple[bytearray, int, int, int]: ...
def follow_batches(run: Buffer, next_offset: int, end_offset: int, /) -> tuple[int, int, bool]: ...
