"""Pure core: the five states of a classic group, and which may follow which.

::

                  +------------------------------ nobody is left ------------------------------+
                  v                                                                            |
    (new) --> EMPTY --- a member joins ---> PREPARING_REBALANCE --- all have joined ---> COMPLETING_REBALANCE
                                                   ^  ^                                     |        |
                                                   |  +--------- a member comes or goes ----+        | the leader
                                                   |                                                 v has synced
                                                   +------------- a member comes or goes -------- STABLE

Every state leads to DEAD: the group is deleted, has become one of the consumer protocol, or is coordinated elsewhere.

*Source:* Kafka's ClassicGroupState.
"""

from __future__ import annotations

from enum import Enum
from typing import Final


class ClassicState(Enum):
    """The states, by the names that DescribeGroups and ListGroups give them."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


EMPTY: Final = ClassicState.EMPTY
PREPARING: Final = ClassicState.PREPARING_REBALANCE
COMPLETING: Final = ClassicState.COMPLETING_REBALANCE
STABLE: Final = ClassicState.STABLE
DEAD: Final = ClassicState.DEAD

MAY_BECOME: Final = {
    EMPTY: frozenset({PREPARING, DEAD}),
    PREPARING: frozenset({EMPTY, COMPLETING, DEAD}),
    COMPLETING: frozenset({PREPARING, STABLE, DEAD}),
    STABLE: frozenset({PREPARING, DEAD}),
    DEAD: frozenset({DEAD}),
}
"""What may follow each state."""
