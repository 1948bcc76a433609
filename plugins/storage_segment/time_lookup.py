"""Shell: looks up a time on a worker thread, so that the log finds what it needs in memory when it looks itself.

After a start nothing is known of a closed segment but its size: the first question for a time opens and reads an index
and the end of every one. The thread does that on segments of its own, over the same files; the log takes over the
largest timestamps that were found, and the pages that the answer lies in are in memory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.kernel.api import frozen

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .segment import Segment


def may_wait(segments: Sequence[Segment], timestamp: int) -> bool:
    """Say whether a look-up of this time, `NO_LIMIT` for the largest, leaves the active segment, which is in memory."""
    if any(not segment.is_time_known for segment in segments):
        return True
    sought = min(timestamp, max(segment.max_timestamp for segment in segments))
    return any(segment.max_timestamp >= sought for segment in segments[:-1])


@frozen(eq=False)
class TimeLookup:
    """A look-up of a time under way. Takes copies of the log's segments; what they find is only kept by `finish`."""

    timestamp: int
    segments: Sequence[Segment]
    copies: Sequence[Segment]

    def run(self) -> None:
        """See `DiskWork.run`."""
        try:
            largest = max(copy.find_max_timestamp()[0] for copy in self.copies)
            sought = min(self.timestamp, largest)
            for copy in self.copies:
                if copy.max_timestamp >= sought:
                    self._read(copy, sought)
                    return
        finally:
            for copy in self.copies:
                copy.forget()

    @staticmethod
    def _read(segment: Segment, timestamp: int) -> None:
        first = segment.offset_before_timestamp(timestamp)
        for _, header, _ in segment.batches(segment.position_of(first)):
            if header.max_timestamp >= timestamp:
                return

    def finish(self, error: Exception | None) -> None:
        """See `DiskWork.finish`. An error is passed over: the log meets it itself, if the file matters by then."""
        for segment, copy in zip(self.segments, self.copies, strict=True):
            segment.learn_time(copy)
