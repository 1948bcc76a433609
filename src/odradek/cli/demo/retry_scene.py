"""Shell: what the chapters about failed records share: the broker, the topic, its data, and what they check."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

import attrs

from odradek.kernel.retry.names import retry_topics

from .retry_work import GROUP
from .scene import Scene

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .data import DemoRecord
    from .retry_work import Attempt

TOPIC: Final = "clocks"
RETRY_TOPIC: Final = retry_topics(TOPIC, GROUP).retry
TOPICS: Final = (TOPIC, RETRY_TOPIC)
LEVELS_MS: Final = (500, 1_000, 1_500)
"""How long the first, second and third attempt waits; after the last a record is dead."""


@attrs.define
class RetryScene(Scene):
    """One run; each chapter finds here what those before it left.

    Attributes:
        poison: The record that can never be worked on; None before it is produced.
    """

    poison: DemoRecord | None = None

    def check_done(self, wanted: Mapping[bytes, int], attempts: Sequence[Attempt], what: str) -> None:
        """Check that each record was worked on, once, after it had been given back so often.

        Args:
            wanted: How often each record was to come back, by its value.
            attempts: What workers got.
            what: Of which records that is told.
        """
        done = Counter((attempt.value, attempt.number) for attempt in attempts if not attempt.reason)
        missing = sum((Counter(wanted.items()) - done).values())
        surplus = sum((done - Counter(wanted.items())).values())
        self.stage.check(
            f"{what}: none lost, none twice",
            holds=not missing and not surplus,
            detail=f"{missing} of {len(wanted)} were not done, {surplus} were done too often or at another attempt",
        )

    def check_waits(self, attempts: Sequence[Attempt]) -> None:
        """Check that no record came back before its level was over."""
        early = [
            (attempt.value, waited, LEVELS_MS[attempt.number - 1])
            for attempt, waited in waits(attempts)
            if waited < LEVELS_MS[attempt.number - 1]
        ]
        self.stage.check("none came back before its time", holds=not early, detail=f"{early[:3]}")


def waits(attempts: Sequence[Attempt]) -> list[tuple[Attempt, int]]:
    """Return each attempt at a record that had been given back, with how long after that, in milliseconds."""
    failed_ms = {(attempt.value, attempt.number): attempt.failed_ms for attempt in attempts}
    return [
        (attempt, attempt.seen_ms - failed_ms[attempt.value, attempt.number - 1])
        for attempt in attempts
        if (attempt.value, attempt.number - 1) in failed_ms
    ]
