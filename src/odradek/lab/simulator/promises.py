"""Pure core: what is promised of a record after a crash: the table of `docs/explanation/durability.md`.

The oracles ask it, and a test compares it with the page.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

ELECTION: Final = "odradek.election"
INTERNAL_ELECTION: Final = "odradek.internal.election"
QUORUM: Final = "quorum"


class Promise(Enum):
    """What becomes of acknowledged records."""

    NOTHING = "nothing"
    PREFIX = "a prefix is kept"
    KEPT = "kept"


class Row(NamedTuple):
    """One row of the table.

    Attributes:
        acks: The producer's settings that it is for.
        is_flushed: Whether it is for topics with `flush.messages=1`.
        after_death: What is promised when the process dies.
        after_power_loss: What is promised when the machine loses its power.
    """

    acks: tuple[str, ...]
    is_flushed: bool
    after_death: Promise
    after_power_loss: Promise


TABLE: Final = (
    Row(("0",), False, Promise.NOTHING, Promise.NOTHING),
    Row(("1",), False, Promise.KEPT, Promise.PREFIX),
    Row(("all",), False, Promise.KEPT, Promise.PREFIX),
    Row(("1", "all"), True, Promise.KEPT, Promise.KEPT),
)
"""With `acks=0` no record is acknowledged: nothing is promised of any."""


class Replicated(NamedTuple):
    """One row of the table of three replicas.

    Attributes:
        acks: The producer's setting that it is for.
        min_isr: The `min.insync.replicas` that it is for; None for any.
        is_flushed: Whether it is for topics with `flush.messages=1`.
        deaths_max: Of how many brokers the processes may die at once when all are in sync, and nothing acknowledged
            is lost.
        power_losses_max: How many may lose their power at once when all are in sync.
        while_one_is_away_max: How many of the others may lose their power while one stands still.
        while_two_are_away_max: Whether the third may lose its power while two stand still: 1 if it may, else 0.
    """

    acks: str
    min_isr: int | None
    is_flushed: bool
    deaths_max: int
    power_losses_max: int
    while_one_is_away_max: int
    while_two_are_away_max: int


REPLICATED_TABLE: Final = (
    Replicated("1", None, False, 0, 0, 0, 0),
    Replicated("all", 1, False, 3, 2, 1, 0),
    Replicated("all", 2, False, 3, 2, 1, 1),
    Replicated("all", 3, False, 3, 2, 2, 1),
    Replicated("all", None, True, 3, 3, 2, 1),
)
"""With `acks=1` what was acknowledged may go with its leader; what a consumer has read is kept, as with `all`."""

VOTED_TABLE: Final = (
    Replicated("1", None, False, 0, 0, 0, 0),
    Replicated("all", None, False, 3, 1, 1, 1),
    Replicated("all", None, True, 3, 3, 2, 1),
)
"""The same where replicas vote: a record is acknowledged when two of three have it, whatever `min.insync.replicas`."""

IN_SYNC: Final = Row(("all",), False, Promise.KEPT, Promise.KEPT)
"""What becomes of records while no more is lost at once than `REPLICATED_TABLE` says, and all catch up in between."""


class DiskAccident(Enum):
    """What a disk does that goes on."""

    ERROR = "an operation fails"
    FULL = "it is full for a while"
    SLOW = "it is slow for a while"
    ROT = "a bit of a batch turns round"
    ROT_OF_HEADER = "a bit of a batch's header turns round"
    ROT_BESIDE = "a bit of an index, a checkpoint or a snapshot turns round"


DISK_TABLE: Final = {
    DiskAccident.ERROR: Promise.KEPT,
    DiskAccident.FULL: Promise.KEPT,
    DiskAccident.SLOW: Promise.KEPT,
    DiskAccident.ROT: Promise.PREFIX,
    DiskAccident.ROT_OF_HEADER: Promise.PREFIX,
    DiskAccident.ROT_BESIDE: Promise.KEPT,
}
"""What becomes of records that were acknowledged, whatever `acks` was; after rot only of the partition that it hits,
and what is not kept is found broken and never read as something else."""


def votes_in(settings: Mapping[str, str]) -> bool:
    """Return whether replicas of any topic vote, by what brokers are set to."""
    return QUORUM in {settings.get(key) for key in (ELECTION, INTERNAL_ELECTION)}


def losses_of(min_isr: int, *, is_flushed: bool, votes: bool) -> Replicated:
    """Return how many of three brokers may be lost at once with `acks=all`.

    Args:
        min_isr: The topic's `min.insync.replicas`, 1 to 3.
        is_flushed: Whether it has `flush.messages=1`.
        votes: Whether its replicas vote.
    """
    return next(
        row
        for row in (VOTED_TABLE if votes else REPLICATED_TABLE)
        if row.acks == "all" and row.min_isr in {None, min_isr} and row.is_flushed == is_flushed
    )


def promises_of(acks: str, flush_messages: int) -> Row:
    """Return what is promised.

    Args:
        acks: `0`, `1` or `all`.
        flush_messages: After how many records a topic is forced to disk; 0 for never.
    """
    is_flushed = flush_messages == 1
    for row in TABLE:
        if acks in row.acks and row.is_flushed == is_flushed:
            return row
    return TABLE[0]
