"""Pure core: remembers when the next record of each segment is to go, so that no segment is read for nothing.

Kept in memory: after a start of the broker each segment of a topic whose records expire is looked through once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from ..contracts.cleanup import CleanupSettings
    from ..types import TopicIdPartition


class DueTimes:
    """What passes found. Owned by the compactor."""

    def __init__(self) -> None:
        self._known: dict[TopicIdPartition, tuple[CleanupSettings, dict[int, int]]] = {}

    def of(
        self, partition: TopicIdPartition, settings: CleanupSettings, base_offsets: Iterable[int]
    ) -> Mapping[int, int]:
        """Return what is known of a log's segments, by base offset. Under other settings than before, nothing is.

        Args:
            partition: Whose log.
            settings: Its topic's.
            base_offsets: Of the segments that it has now; others are forgotten.
        """
        before, times = self._known.get(partition, (None, {}))
        if before != settings:
            times = {}
        times = {base_offset: times[base_offset] for base_offset in base_offsets if base_offset in times}
        self._known[partition] = (settings, times)
        return times

    def note(self, partition: TopicIdPartition, base_offsets: Sequence[int], due_ms: int) -> None:
        """Take note of a segment that was looked through, in the place of all those that it replaces.

        Args:
            partition: Whose log; `of` was called for it before.
            base_offsets: Of those that it replaces; it begins where the first does.
            due_ms: When its first record is to go.
        """
        times = self._known[partition][1]
        for base_offset in base_offsets:
            times.pop(base_offset, None)
        times[base_offsets[0]] = due_ms

    def keep_only(self, is_present: Callable[[TopicIdPartition], bool]) -> None:
        """Forget the logs that are not there any more."""
        for partition in [partition for partition in self._known if not is_present(partition)]:
            del self._known[partition]
