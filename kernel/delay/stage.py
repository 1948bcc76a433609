"""Shell: the append stage of topics whose records may wait: has each batch split, and nothing done where none waits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ..contracts.append_stage import Diverted
from ..errors import ErrorCode
from ..records.batch import CorruptRecordsError, read_header
from ..records.compression import CompressionType
from ..records.control import ControlRecordType, EndTransactionMarker, build_control_batch
from ..records.produced import InvalidBatchError
from .headers import PREFIX
from .splitting import split_batch

if TYPE_CHECKING:
    from collections.abc import Callable

    from .splitting import Split

_BARE_MARKER: Final = EndTransactionMarker(ControlRecordType.COMMIT, 0)


BRIEF_BYTES_MAX: Final = 1 << 16
BRIEF_RECORDS_MAX: Final = 500
"""Larger batches in which something waits, and those of more records, take milliseconds to split."""


class DelayStage:
    """An `AppendStage`. It keeps nothing: what waits is what the log says. So any thread may ask it."""

    def __init__(
        self, now_ms: Callable[[], int], delay_ms_max: int, rounding: Callable[[int, int], int] | None = None
    ) -> None:
        """Make it.

        Args:
            now_ms: The wall clock.
            delay_ms_max: The topic's `odradek.delay.max.ms`.
            rounding: The queue's; see `DelayQueueFactory.rounding`.
        """
        self._now_ms = now_ms
        self._delay_ms_max = delay_ms_max
        self._rounding = rounding

    def is_brief(self, batch: memoryview) -> bool:
        """Return whether `accept` takes no time to speak of: the batch is small, or nothing in it asks for anything."""
        if is_small(batch):
            return True
        return read_header(batch).compression_id == CompressionType.NONE and PREFIX not in bytes(batch)

    def accept(self, batch: memoryview) -> memoryview | Diverted:
        """Take out what is to be seen later.

        Raises:
            InvalidBatchError: A record asks for what cannot be done.
        """
        try:
            split = split_batch(batch, read_header(batch), self._now_ms(), self._delay_ms_max, self._rounding)
        except CorruptRecordsError as error:
            raise InvalidBatchError(ErrorCode.INVALID_RECORD, str(error)) from error
        return batch if split is None else diverted(split)


def is_small(batch: memoryview) -> bool:
    """Return whether a valid batch may be walked record by record where others wait for that."""
    return len(batch) <= BRIEF_BYTES_MAX and read_header(batch).records_count <= BRIEF_RECORDS_MAX


def diverted(split: Split) -> Diverted:
    """Return what a stage gives back of a batch that was split; nothing of it changes any more."""
    behind = None
    if not split.header.records_count:  # kafkajs does not move past an end that is an empty data batch
        behind = build_control_batch([_BARE_MARKER], timestamp=max(split.header.max_timestamp, 0))
    return Diverted(split.sealed(), split.rest, behind)
