"""Shell: the append stage of retry topics: has every record that is produced wait, or be dead, as the policy says."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from ..delay.stage import diverted, is_small
from ..errors import ErrorCode
from ..records.batch import CorruptRecordsError, read_header
from ..records.produced import InvalidBatchError
from .return_counts import ReturnCounts
from .rewriting import take_failed

if TYPE_CHECKING:
    import random
    from collections.abc import Callable

    from ..contracts.append_stage import Diverted
    from ..contracts.retry_policy import RetryPolicy
    from ..records.record import Record
    from .breaker import Breaker
    from .rewriting import Owner

log = logging.getLogger(__name__)

TOLD: Final = (
    "records of topic %r that group %r fails come back without their headers: one failed for the first time %d times, "
    "and such a record is never dead"
)


OPENED: Final = (
    "dead letters of topic %r and group %r are paused in %s: within %d s the attempts of %d records were over, and %d "
    "failed for the first time; what would be dead waits for so long, and is given back"
)
CLOSED: Final = "dead letters of topic %r and group %r are paused no more in %s; %d records were spared since the start"


class RetryStage:
    """An `AppendStage`. Nothing depends on what it keeps: how often a record failed its headers say.

    So any thread may ask it. It counts records that come as if they had never failed, and tells of one that does so
    more often than it would be given back.
    """

    def __init__(
        self,
        owner: Owner,
        policy: RetryPolicy,
        *,
        now_ms: Callable[[], int],
        chance: random.Random,
        breaker: Breaker | None,
        place: object,
    ) -> None:
        """Make it.

        Args:
            owner: Whose failed records they are.
            policy: When they are given back.
            now_ms: The wall clock.
            chance: What policies that scatter are given of it.
            breaker: Has records wait that would die, where too many would; None where each of them does.
            place: The partition, for the log.
        """
        self._breaker = breaker
        self._place = place
        self._owner = owner
        self._policy = policy
        self._now_ms = now_ms
        self._chance = chance
        self._returns = ReturnCounts()
        self._has_told = False

    def is_brief(self, batch: memoryview) -> bool:
        """Return whether `accept` takes no time to speak of: every record is written anew."""
        return is_small(batch)

    def accept(self, batch: memoryview) -> Diverted:
        """Take out all of it.

        Raises:
            InvalidBatchError: It cannot be read, or is too large.
            Exception: The policy has a bug.
        """
        try:
            spare = None if self._breaker is None else self._spare
            return diverted(take_failed(batch, read_header(batch), self._owner, self._decide, self._now_ms(), spare))
        except CorruptRecordsError as error:
            raise InvalidBatchError(ErrorCode.INVALID_RECORD, str(error)) from error
        finally:
            if self._breaker is not None:
                self._tell(self._breaker)

    def _spare(self, spared_times: int) -> int | None:
        assert self._breaker is not None, "it is asked where there is one"
        return self._breaker.spare_ms(self._now_ms(), spared_times)

    def _tell(self, breaker: Breaker) -> None:
        """Say it when the breaker has opened or closed."""
        now_ms = self._now_ms()
        is_open = breaker.is_open(now_ms)
        if is_open == breaker.is_told_open:
            return
        breaker.is_told_open = is_open
        owner = self._owner
        if is_open:
            first, deaths = breaker.counts(now_ms)
            window_s = breaker.settings.window_ms // 1000
            log.warning(OPENED, owner.topic, owner.group, self._place, window_s, deaths, first)
        else:
            log.warning(CLOSED, owner.topic, owner.group, self._place, breaker.spared_count)

    def _decide(self, attempt: int, record: Record) -> int | None:
        if attempt == 1 and self._breaker is not None:
            self._breaker.note_first(self._now_ms())
        if attempt == 1 and not self._has_told:
            count = self._returns.note(record)
            if count > 1 and self._policy.delay_ms(count, 0.5) is None:
                self._has_told = True
                log.warning(TOLD, self._owner.topic, self._owner.group, count)
        return self._policy.delay_ms(attempt, self._chance.random())
