"""Shell: what the chapters about Spark share: the broker, the data set, the job's folder, and what the job told."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import attrs

from .scene import PARTITIONS, Scene

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .data import DemoRecord

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
BATCHES: Final = 8
"""Into how many micro-batches the data set is cut."""


@attrs.define
class SparkScene(Scene):
    """One run; each chapter finds here what those before it left.

    Attributes:
        folder: Where the job works.
        batches: The micro-batches that were done, by the job's own account, of all its runs.
        proof: What the batch query found; empty until it has run.
    """

    folder: Path = attrs.field(factory=Path)
    batches: list[dict[str, Any]] = attrs.field(factory=list)
    proof: dict[str, Any] = attrs.field(factory=dict)

    @property
    def checkpoint(self) -> Path:
        """The streaming query's checkpoint."""
        return self.folder / "checkpoint"

    @property
    def job_arguments(self) -> list[str]:
        """The same for every run of the job: only so does it go on."""
        records_a_batch = -(-len(self.records) // BATCHES) + PARTITIONS  # shares of partitions are rounded down
        return [self.bootstrap, str(self.checkpoint), str(records_a_batch)]

    def planned_and_done(self) -> tuple[int, int]:
        """Return how many micro-batches the checkpoint says were planned, and how many done."""
        planned, done = (
            sum(path.name.isdecimal() for path in folder.iterdir()) if folder.exists() else 0
            for folder in (self.checkpoint / "offsets", self.checkpoint / "commits")
        )
        return planned, done


def weeks_until(records: Iterable[DemoRecord], last: str) -> dict[str, int]:
    """Return how many changes of clocks since 1970 each week had: its Monday to a number, up to a last one."""
    weeks: Counter[str] = Counter()
    for record in records:
        at = datetime.fromisoformat(record.change["at"])
        if at >= EPOCH:
            weeks[str(at.date() - timedelta(days=at.weekday()))] += 1
    return {week: count for week, count in weeks.items() if week <= last}
