"""Pure core: the partition of the metadata log where no plugin offers a storage: in memory, and gone at the end.

Such a broker has no topics, so what is forgotten is what was set on it while it ran; each change keeps some bytes until
then. Nobody is elected, for nothing outlives the one who leads.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..records.builder import BatchBuilder
from .local_log import FIRST_EPOCH, LoggedRecord

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Sequence
    from pathlib import Path


class VolatileLog:
    """`ReplicatedLog` without a log."""

    def __init__(self) -> None:
        self._values: list[bytes] = []

    def __repr__(self) -> str:
        return f"VolatileLog([0, {self.end_offset}))"

    @property
    def directory(self) -> Path | None:
        """None: there is no disk."""
        return None

    @property
    def start_offset(self) -> int:
        """The first offset that is still there."""
        return 0

    @property
    def end_offset(self) -> int:
        """The next offset."""
        return len(self._values)

    @property
    def leader_epoch(self) -> int:
        """The epoch that appended records get."""
        return FIRST_EPOCH

    def append_in_steps(self, values: Sequence[bytes], now_ms: int) -> Generator[None, None, int]:
        """Append records and return the first one's offset."""
        yield
        base_offset = self.end_offset
        self._values += values
        return base_offset

    async def commit(self) -> None:
        """Do nothing: what is appended is committed."""

    def records(self, start_offset: int) -> Iterator[LoggedRecord]:
        """Iterate over the records from `start_offset` on."""
        for offset, value in enumerate(self._values[start_offset:], start_offset):
            yield LoggedRecord(offset, FIRST_EPOCH, value)

    def drop_below(self, offset: int) -> None:
        """Keep all: without a disk there are no snapshots that would stand for what is dropped."""

    def batches(self, start_offset: int, end_offset: int, max_bytes: int) -> bytes:
        """Return the records of `[start_offset, end_offset)` as one batch: there is no log in which they stand."""
        builder = BatchBuilder(base_offset=start_offset, partition_leader_epoch=FIRST_EPOCH)
        for value in self._values[start_offset:end_offset]:
            builder.append(None, value, timestamp=0)
            if builder.size_bytes >= max_bytes:
                break
        return bytes(builder.build())

    def end_of_epoch(self, epoch: int) -> tuple[int, int]:
        """Return the only epoch, and where the log ends."""
        return (FIRST_EPOCH, self.end_offset) if epoch >= FIRST_EPOCH else (-1, -1)
