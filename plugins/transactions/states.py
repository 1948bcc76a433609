"""Pure core: the states of a transactional id, and the tables that say what may follow what.

```text
            +--------------------------- AddPartitions ---------------------------+
            v                                                                     |
Empty --> Ongoing --EndTxn--> PrepareCommit --all markers written--> CompleteCommit
  ^         |  |                                                                  |
  |         |  +------------> PrepareAbort  --all markers written--> CompleteAbort
  |         +---time-out, a second InitProducerId---^                             |
  +------------------------------- InitProducerId --------------------------------+
```

`Dead` and `PrepareEpochFence` are known by name, as clients may ask for them; here nothing is ever in them: an id that
expires is gone with its tombstone, and fencing a producer is one record, that of its transaction's abort.

*Source:* KIP-98; KIP-890 part 2; Kafka's TransactionState, and EndTxn as Apache Kafka 4.3.1 answers it.
"""

from __future__ import annotations

from enum import Enum, IntEnum
from typing import TYPE_CHECKING, Final

from odradek.kernel.api import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Mapping


class TransactionState(IntEnum):
    """One of Kafka's states, numbered as in the log.

    Attributes:
        text: Its name in DescribeTransactions and ListTransactions.
    """

    text: str

    def __new__(cls, value: int, text: str) -> TransactionState:
        """Make a member that is its number and knows its name."""
        member = int.__new__(cls, value)
        member._value_ = value
        member.text = text
        return member

    EMPTY = (0, "Empty")
    ONGOING = (1, "Ongoing")
    PREPARE_COMMIT = (2, "PrepareCommit")
    PREPARE_ABORT = (3, "PrepareAbort")
    COMPLETE_COMMIT = (4, "CompleteCommit")
    COMPLETE_ABORT = (5, "CompleteAbort")
    DEAD = (6, "Dead")
    PREPARE_EPOCH_FENCE = (7, "PrepareEpochFence")


_EMPTY, _ONGOING = TransactionState.EMPTY, TransactionState.ONGOING
_PREPARE_COMMIT, _PREPARE_ABORT = TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT
_COMPLETE_COMMIT, _COMPLETE_ABORT = TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT

AT_REST: Final = frozenset({_EMPTY, _COMPLETE_COMMIT, _COMPLETE_ABORT})
"""No transaction is open: another may begin, the producer may be replaced, the id may expire."""

PREPARED: Final = frozenset({_PREPARE_COMMIT, _PREPARE_ABORT})
"""The end is decided; markers are on their way."""

PREVIOUS_STATES: Final[Mapping[TransactionState, frozenset[TransactionState]]] = {
    _EMPTY: AT_REST,
    _ONGOING: AT_REST | {_ONGOING},
    _PREPARE_COMMIT: frozenset({_ONGOING}),
    _PREPARE_ABORT: AT_REST | {_ONGOING},
    _COMPLETE_COMMIT: frozenset({_PREPARE_COMMIT}),
    _COMPLETE_ABORT: frozenset({_PREPARE_ABORT}),
}
"""By state, from where it is reached. What is at rest may be aborted too: it raises the epoch (KIP-890)."""


class EndDecision(Enum):
    """What to do about an EndTxn."""

    PREPARE = "decide the end, and send markers"
    DONE = "answer that it is done: it was, by the same request"
    WAIT = "the end is decided, the markers are on their way"
    INVALID = "this end does not fit the state"
    FENCED = "the epoch is not the one that may ask this"


REFUSALS: Final[Mapping[EndDecision, ErrorCode]] = {
    EndDecision.WAIT: ErrorCode.CONCURRENT_TRANSACTIONS,
    EndDecision.INVALID: ErrorCode.INVALID_TXN_STATE,
    EndDecision.FENCED: ErrorCode.PRODUCER_FENCED,
}
"""What a client is told of a decision that changes nothing and is no success."""

_PREPARE, _DONE, _WAIT, _INVALID = EndDecision.PREPARE, EndDecision.DONE, EndDecision.WAIT, EndDecision.INVALID

END_DECISIONS_V1: Final[Mapping[TransactionState, tuple[EndDecision, EndDecision]]] = {
    _EMPTY: (_INVALID, _INVALID),
    _ONGOING: (_PREPARE, _PREPARE),
    _PREPARE_COMMIT: (_INVALID, _WAIT),
    _PREPARE_ABORT: (_WAIT, _INVALID),
    _COMPLETE_COMMIT: (_INVALID, _DONE),
    _COMPLETE_ABORT: (_DONE, _INVALID),
}
"""Transaction versions 0 and 1, when producer id and epoch are those of the state: what an abort and what a commit get.

The epoch stays from one transaction to the next, so a late EndTxn is not told from a new one: what made KIP-890.
"""

END_DECISIONS_V2: Final[Mapping[tuple[TransactionState, bool], tuple[EndDecision, EndDecision]]] = {
    (_EMPTY, False): (_PREPARE, _INVALID),
    (_ONGOING, False): (_PREPARE, _PREPARE),
    (_PREPARE_COMMIT, True): (_INVALID, _WAIT),
    (_PREPARE_COMMIT, False): (_WAIT, _WAIT),
    (_PREPARE_ABORT, True): (_WAIT, _INVALID),
    (_PREPARE_ABORT, False): (_WAIT, _WAIT),
    (_COMPLETE_COMMIT, True): (_INVALID, _DONE),
    (_COMPLETE_COMMIT, False): (_PREPARE, _INVALID),
    (_COMPLETE_ABORT, True): (_DONE, _INVALID),
    (_COMPLETE_ABORT, False): (_PREPARE, _INVALID),
}
"""Transaction version 2, by state and whether the request has the epoch from before the last end: abort, commit.

An end raises the epoch, so the one from before can only be a repetition of the request that made it. The new epoch ends
a transaction that no broker has heard of yet, maybe before the markers of the last one are written. What the table does
not have is fenced.
"""
