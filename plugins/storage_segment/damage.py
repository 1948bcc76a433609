"""Shell: tells a torn tail, which a crash leaves, from damage that only a failing disk or a person does.

Recovery cuts a log before the first batch that is not sound. For a partition this is Kafka's way, and right: replicas
have the rest, and one partition that is served shortened is better than one that is not served. On the metadata log all
partitions depend, and each of its batches was flushed before anybody was answered and before the next was written:

    | sound, flushed .............. | the last flush: whole, torn or missing |
    0                      recovery point                                  end

So what a crash spoils is the last batch. A sound batch behind the spoiled one, or a spoiled one below what is known to
have been flushed, are something else: to cut there would forget what was acknowledged.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.kernel.api import CorruptionError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .segment import Segment


def refuse_loss(segments: Sequence[Segment], known_end: int) -> None:
    """See that recovery of these segments, a log's last ones, would cut off no more than a torn tail. Changes nothing.

    Args:
        segments: At least one, in order; their bytes are read.
        known_end: The offset below which everything is known to have been flushed.

    Raises:
        CorruptionError: It would.
        OSError: The disk fails.
    """
    for number, segment in enumerate(segments):
        following = segments[number + 1 :]
        position, next_offset = 0, segment.base_offset
        for start, header in segment.sound_batches():
            position, next_offset = start + header.length_bytes, header.next_offset
        if position == segment.size_bytes and following and following[0].base_offset == next_offset:
            continue
        where = f"{segment.path}: not sound at byte {position} (offset {next_offset})"
        if next_offset < known_end:
            raise CorruptionError(f"{where}, and the log was flushed up to offset {known_end}")
        if segment.has_batch_behind(position) or any(other.has_batch_behind(0) for other in following):
            raise CorruptionError(f"{where}, with sound batches behind, which no crash leaves")
        return
