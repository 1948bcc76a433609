"""Shell: what the chapters about delayed records share: the broker, the topic, and how far it was read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import attrs

from ..running import run_interruptible
from . import delay_work
from .scene import Scene

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .delay_work import Reminder, Seen

TOPIC: Final = "reminders"


@attrs.define
class DelayScene(Scene):
    """One run; each chapter finds here what those before it left.

    Attributes:
        position: Up to where the topic was read.
    """

    position: int = 0

    def see(self, count: int, what: str) -> list[Seen]:
        """Read on until so many records were seen, and a little longer, so that one too many is seen, too."""
        with self.stage.progress(what, count) as on_progress:
            seen, self.position = run_interruptible(
                delay_work.see, self.bootstrap, TOPIC, self.position, count, on_progress
            )
        return seen

    def check_seen(self, wanted: Sequence[Reminder], seen: Sequence[Seen], what: str) -> None:
        """Check that what was to be seen was: each once, none early, in the order in which it was due."""
        stage = self.stage
        expected = sorted((reminder.due_ms, reminder.value) for reminder in wanted)
        stage.check(
            f"{what}: none lost, none twice",
            holds=sorted((each.due_ms, each.value) for each in seen) == expected,
            detail=f"{len(seen)} were seen of {len(wanted)}",
        )
        early = [each for each in seen if each.seen_ms < each.due_ms]
        dues = [each.due_ms for each in seen]
        stage.check(
            "none before its time, and in the order of their times",
            holds=not early and dues == sorted(dues),
            detail=f"{early[:3]} came early" if early else f"{dues[:10]}...",
        )
