"""Pure core: how many records of a log consumers are shown, of a topic whose records may wait.

A delayed or failed record has an offset at which no consumer sees it, and another one at which it is delivered. Of an
aborted transaction who reads what is committed sees nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.kernel.records.reader import read_records

if TYPE_CHECKING:
    from odradek.kernel.types import Buffer

    from .log_reads import LogPart


class VisibleRecords:
    """A count of the records that are shown from an offset on.

    Attributes:
        next_offset: From where on the log is to be fetched.
        count: How many there are below.
    """

    def __init__(self, start_offset: int, end_offset: int) -> None:
        """Begin at an offset; what lies at `end_offset` or behind is not counted."""
        self.next_offset, self._end_offset = start_offset, end_offset
        self.count = 0

    def read(self, part: LogPart) -> None:
        """See `LogReader.read`."""
        for position, header, is_shown in part.batches():
            if header.next_offset <= self.next_offset or header.base_offset >= self._end_offset:
                continue
            if is_shown:
                is_whole = self.next_offset <= header.base_offset and header.next_offset <= self._end_offset
                batch = part.records[position : position + header.length_bytes]
                self.count += header.records_count if is_whole else self._count_of(batch)
            self.next_offset = header.next_offset

    def _count_of(self, batch: Buffer) -> int:
        offsets = (record.offset for record in read_records(batch, check_crc=False))
        return sum(self.next_offset <= offset < self._end_offset for offset in offsets)
