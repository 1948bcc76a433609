"""Pure core: what a broker found when it started."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..classes import frozen

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .replica import Replica


@frozen
class StartReport:
    """The logs that were there before the start.

    Attributes:
        topics_count: Topics with a replica here.
        partitions_count: Replicas that could be opened.
        recovered_count: Those whose log was not closed cleanly, so that it was checked and cut where it was torn.
    """

    topics_count: int = 0
    partitions_count: int = 0
    recovered_count: int = 0

    @classmethod
    def of(cls, replicas: Iterable[Replica]) -> StartReport:
        """Count what was opened."""
        topics: set[str] = set()
        partitions_count = recovered_count = 0
        for replica in replicas:
            topics.add(replica.partition.topic)
            partitions_count += 1
            recovered_count += not replica.log.was_clean
        return cls(len(topics), partitions_count, recovered_count)

    def __str__(self) -> str:
        if not self.partitions_count:
            return "no topic was found"
        if self.recovered_count:
            whole = f"{self.recovered_count} of {self.partitions_count} logs"
            return f"the last run did not end cleanly: {whole} were checked and recovered"
        return "every log was closed cleanly"
