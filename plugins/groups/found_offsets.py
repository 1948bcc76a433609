"""Pure core: what a group has committed, as it was at one moment, and what is told of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from odradek.kernel.api import ZERO_ID, ErrorCode

if TYPE_CHECKING:
    import uuid
    from collections.abc import Iterator, Mapping, Sequence

    from odradek.kernel.wire.messages.data_group_records import OffsetCommitValue

    from .offsets import CommittedOffset


@attrs.frozen
class FoundOffset:
    """The answer about one partition; `value` is None where nothing is committed."""

    partition: int
    value: OffsetCommitValue | None
    code: ErrorCode = ErrorCode.NONE


@attrs.frozen
class OffsetsView:
    """The offsets of one group.

    Attributes:
        committed: By topic and partition.
        pending: The same of each open transaction that may change what is told; none where that does not matter.
    """

    committed: Mapping[str, Mapping[int, CommittedOffset]]
    pending: Sequence[Mapping[str, Mapping[int, CommittedOffset]]]

    def copied(self) -> OffsetsView:
        """Return the same, which stays as it is: the tables are copied, what is in them is shared."""
        committed, *pending = (
            {topic: {**partitions} for topic, partitions in topics.items()}
            for topics in (self.committed, *self.pending)
        )
        return OffsetsView(committed, pending)

    def find(self, topic: str, topic_id: uuid.UUID, partition: int) -> FoundOffset:
        """Return what is told of a partition; of a topic of this id, if it is not `ZERO_ID`."""
        if any(partition in topics.get(topic, ()) for topics in self.pending):
            return FoundOffset(partition, None, ErrorCode.UNSTABLE_OFFSET_COMMIT)
        found = self.committed.get(topic, {}).get(partition)
        if found is None:
            return FoundOffset(partition, None)
        committed_id = found.value.topic_id
        is_of_namesake = ZERO_ID not in (topic_id, committed_id) and committed_id != topic_id
        return FoundOffset(partition, None if is_of_namesake else found.value)

    def everything(self) -> Iterator[tuple[str, Iterator[FoundOffset]]]:
        """Iterate over all topics, each with what is told of its partitions."""
        for topic, partitions in self.committed.items():
            yield topic, self._all_of(topic, partitions)

    def _all_of(self, topic: str, partitions: Mapping[int, CommittedOffset]) -> Iterator[FoundOffset]:
        return (self.find(topic, ZERO_ID, partition) for partition in partitions)
