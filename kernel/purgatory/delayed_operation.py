"""Pure core: an operation that waits for a condition, but not for ever, and is completed exactly once.

*Source:* Kafka's DelayedOperation. There threads race for the completion; here one task owns all of it, and "once" is
a flag.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

import attrs

from ..classes import define
from .timing_wheel import TimerEntry

if TYPE_CHECKING:
    from collections.abc import Collection, Hashable

    from .purgatory import Purgatory


class Outcome(Enum):
    """How an operation ended."""

    READY = "ready"
    """Its condition held: answer."""
    EXPIRED = "expired"
    """Its time was over: answer with what there is."""
    CANCELLED = "cancelled"
    """Its owner is gone: let go of what is held, answer nobody."""


@define(eq=False)
class DelayedOperation(TimerEntry):
    """What waits in a `Purgatory`. A subclass gives `is_ready` and `finish`, and holds the request.

    Life: made, parked in one purgatory at most once, ended by `end`. Neither `is_ready` nor `finish` may raise; where
    one does, the purgatory reports it and goes on with the others.

    Attributes:
        deadline_ms: When it expires, on the wheel's clock.
        owner: Whose it is, for `Purgatory.cancel_for`, for example a connection; None for nobody's.
        outcome: How it ended; None while it waits.
        purgatory: The purgatory's own: where it is parked.
        keys: The purgatory's own: what it is watched under.
    """

    owner: Hashable = None
    outcome: Outcome | None = attrs.field(default=None, init=False)
    purgatory: Purgatory | None = attrs.field(default=None, init=False, repr=False)
    keys: Collection[Hashable] = attrs.field(default=(), init=False, repr=False)

    def is_ready(self) -> bool:
        """Return whether the condition holds now. Called often: must be cheap."""
        raise NotImplementedError

    def is_ready_for(self, key: Hashable) -> bool:
        """Return whether the condition holds now, where only what `key` stands for has changed since it was last asked.

        For operations under many keys, so that a check costs what one of them costs; asks `is_ready` by default.
        """
        return self.is_ready()

    def finish(self, outcome: Outcome) -> None:
        """Answer, or let go; called exactly once. May park other operations and check keys."""
        raise NotImplementedError

    def end(self, outcome: Outcome) -> bool:
        """End the wait and call `finish`, unless it has ended before.

        Returns:
            Whether this call ended it.
        """
        if self.outcome is not None:
            return False
        self.outcome = outcome
        slot = self.slot
        if slot is not None:
            del slot[self]
            self.slot = None
        purgatory = self.purgatory
        if purgatory is None:
            self.finish(outcome)
        else:
            purgatory.release(self)
            try:
                self.finish(outcome)
            except Exception as error:  # one operation's failure must not reach the append that completed it
                purgatory.report_error(self, error)
        return True

    def expire(self) -> None:
        """End it because its time is over; the wheel's call."""
        self.end(Outcome.EXPIRED)
