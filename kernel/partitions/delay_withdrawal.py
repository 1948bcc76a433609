"""Shell: what a DeleteRecords means for what waits: all that was produced below is withdrawn, wherever it lies now.

What waits below the log's start goes with it. What was carried forward lies behind, and every replica has to hear that
it waits no more: so the leader appends a note, which also says how many records went.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ..classes import define
from ..delay.companion import UNCOUNTED, Withdrawn, build_withdrawal
from .leading import advance_log_start, append_companion

if TYPE_CHECKING:
    from ..delay.ledger import DelayLedger
    from .replica import Replica

LOOKS_MAX: Final = 8
"""How often queues are asked to work, some thousand records each time, to count what one request withdraws."""
_BEFORE_ALL_MS: Final = -1


@define
class Looks:
    """What a request, or a piece of it, may have queues do: those that are not ready may be asked `left` times."""

    left: int = LOOKS_MAX


def may_withdraw(ledger: DelayLedger, offset: int) -> bool:
    """Return whether something waits that was produced below an offset, perhaps: there, or carried forward from there.

    The log may start behind the offset by then; where another leader had it start there, its note may be lost.
    """
    return ledger.queue.waiting_count > 0 and (offset > ledger.start_offset or ledger.has_carried)


def withdraw_below(replica: Replica, offset: int, looks: Looks) -> int | None:
    """Have a log start at an offset, unless it starts behind it, and withdraw what was produced below it.

    Args:
        replica: It leads, and has a ledger that `may_withdraw`.
        offset: At most its high watermark.
        looks: The request's.

    Returns:
        Where the note ends that has to be committed; None where nothing hangs on it.

    Raises:
        KafkaError: It leads no more, or its disk failed.
    """
    ledger = replica.delays
    assert ledger is not None, "something waits"
    before, has_carried = _counted(ledger, looks), ledger.has_carried
    if offset > replica.log.log_start_offset:
        advance_log_start(replica, offset)
    after = _counted(ledger, looks)
    count = UNCOUNTED if UNCOUNTED in (before, after) else before - after
    if offset > ledger.withdrawn_below:
        append_companion(replica, build_withdrawal(Withdrawn(offset, count)))
    return replica.log.log_end_offset if has_carried else None


def _counted(ledger: DelayLedger, looks: Looks) -> int:
    """Return how many records wait, where that is known soon."""
    while looks.left > 0:
        if ledger.queue.prepare(_BEFORE_ALL_MS):
            return ledger.queue.waiting_count
        looks.left -= 1
    return UNCOUNTED
