"""Shell: leaders that were voted for go back to the preferred replicas from time to time.

What the controller does where there are in-sync sets (`controller/leader_balance.py`) each broker does for what it
leads: nobody but a leader can hand over. A preferred replica that lacks records is refused, and has its turn again when
the next interval is over.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

import trio

from ..errors import ErrorCode

if TYPE_CHECKING:
    from .hand_overs import HandOvers

log = logging.getLogger(__name__)

HAND_OVERS_AT_ONCE: Final = 100
"""Each is an election of some milliseconds, in which its partition takes no records."""


class VotedBalance:
    """Life: made, `run` as a service of a broker."""

    def __init__(self, broker_id: int, hand_overs: HandOvers, *, interval_s: float, timeout_ms: int) -> None:
        """Balance what a broker leads by vote, once in each interval.

        Args:
            broker_id: This broker.
            hand_overs: How its leaders make way.
            interval_s: `leader.imbalance.check.interval.seconds`.
            timeout_ms: How long some that hand over at once are waited for.
        """
        self._broker_id = broker_id
        self._hand_overs = hand_overs
        self._interval_s = interval_s
        self._timeout_ms = timeout_ms

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Hand over whenever the interval is over, until cancelled; leaders that were asked may have resigned then."""
        task_status.started()
        while True:
            await trio.sleep(self._interval_s)
            wanted = await self._hand_overs.led_for_others(self._broker_id)
            for begin in range(0, len(wanted), HAND_OVERS_AT_ONCE):
                outcomes = await self._hand_overs.elect(wanted[begin : begin + HAND_OVERS_AT_ONCE], self._timeout_ms)
                returned = sum(outcome.code is ErrorCode.NONE for outcome in outcomes.values())
                if returned:
                    log.info("the leaders of %d partitions went back to preferred replicas", returned)
