"""Shell: what the chapters about Spark share: the broker, the data set, the job's folder, and what the job told."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import attrs

from .scene import Scene

if TYPE_CHECKING:
    from .data import DemoRecord

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
        return [self.bootstrap, str(self.checkpoint), str(-(-len(self.records) // BATCHES))]

    def planned_and_done(self) -> tuple[int, int]:
        """Return how many micro-batches the checkpoint says were planned, and how many done."""
        planned, done = (
            sum(path.name.isdecimal() for path in folder.iterdir()) if folder.exists() else 0
            for folder in (self.checkpoint / "offsets", self.checkpoint / "commits")
        )
        return planned, done


def week_of(record: DemoRecord) -> str:
    """Return the Monday of the week in which a change of clocks was."""
    day = datetime.fromisoformat(record.change["at"]).date()
    return str(day - timedelta(days=day.weekday()))
