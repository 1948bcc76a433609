"""Pure core: which logs are not compacted for now, why, and when they are tried again.

| what happened | tried again |
| --- | --- |
| a disk refused, a segment went meanwhile | after a pause that doubles, from `log.cleaner.backoff.ms` to 5 minutes |
| a worker died | likewise; after three in a row *uncleanable*: in an hour |
| a damaged batch, a bug | *uncleanable*: in an hour |
| the topic's cleanup settings were changed, or the log begins elsewhere | at once |

Uncleanable logs are counted by a metric and named in the log. (Kafka tries them when it starts again.)
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Final

from ..classes import frozen

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ..contracts.cleanup import CleanupSettings
    from ..types import TopicIdPartition

DEATHS_MAX: Final = 3
PAUSE_MS_MIN: Final = 50
PAUSE_MS_MAX: Final = 300_000
RETRY_MS: Final = 3_600_000


class Failure(Enum):
    """How a compaction ended that failed."""

    PUT_OFF = "put off"
    DEATH = "death"
    LASTING = "lasting"


@frozen
class Circumstances:
    """What may have changed when a log is looked at again: its topic's settings, where it begins, the table of keys."""

    settings: CleanupSettings
    log_start_offset: int
    table_bytes: int
    load_factor: float


@frozen
class _Setback:
    circumstances: Circumstances
    reason: str
    tries: int
    until_ms: int
    is_uncleanable: bool


class Setbacks:
    """The logs whose last compaction failed. Owned by the compactor."""

    def __init__(self) -> None:
        self._known: dict[TopicIdPartition, _Setback] = {}

    @property
    def uncleanable(self) -> Mapping[TopicIdPartition, str]:
        """Return the logs that are given up for now, with the reasons."""
        return {partition: known.reason for partition, known in self._known.items() if known.is_uncleanable}

    def is_resting(self, partition: TopicIdPartition, circumstances: Circumstances, now_ms: int) -> bool:
        """Say whether a log is left alone now.

        Args:
            partition: Whose log.
            circumstances: As they are now; others than at the last failure are a reason to try.
            now_ms: A monotonic clock.
        """
        known = self._known.get(partition)
        return known is not None and known.circumstances == circumstances and now_ms < known.until_ms

    def note(
        self,
        partition: TopicIdPartition,
        circumstances: Circumstances,
        failure: Failure,
        reason: str,
        *,
        now_ms: int,
        pause_ms: int,
    ) -> bool:
        """Take note of a failure.

        Args:
            partition: Whose log.
            circumstances: As they were.
            failure: Of which kind.
            reason: One line.
            now_ms: A monotonic clock.
            pause_ms: The first pause.

        Returns:
            Whether the log is uncleanable now and was not before.
        """
        before = self._known.get(partition)
        tries = before.tries + 1 if before is not None else 1
        is_uncleanable = failure is Failure.LASTING or (failure is Failure.DEATH and tries >= DEATHS_MAX)
        pause_ms = min(max(pause_ms, PAUSE_MS_MIN) << min(tries - 1, 16), PAUSE_MS_MAX)
        rest_ms = RETRY_MS if is_uncleanable else pause_ms
        self._known[partition] = _Setback(circumstances, reason, tries, now_ms + rest_ms, is_uncleanable)
        return is_uncleanable and not (before is not None and before.is_uncleanable)

    def forget(self, partition: TopicIdPartition) -> None:
        """Take note that a compaction succeeded."""
        self._known.pop(partition, None)

    def keep_only(self, is_present: Callable[[TopicIdPartition], bool]) -> None:
        """Forget the logs that are not there any more."""
        for partition in [partition for partition in self._known if not is_present(partition)]:
            del self._known[partition]
