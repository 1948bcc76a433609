"""Pure core: what a failed record's headers say, and those that it is given back with, or is dead with.

| header | value | from |
| --- | --- | --- |
| `odradek.retry.attempt` | how often the record was given back, decimal text | the broker; consumers leave it |
| `odradek.retry.reason` | why it failed, text | the consumer, as it likes |
| `odradek.retry.origin` | TOPIC/PARTITION/OFFSET of where it was first read | the consumer, as it likes |
| `odradek.retry.dead` | `1` or `true`: do not give it back | the consumer |
| `odradek.retry.behind` | until when it is held behind another of its key, epoch milliseconds | the consumer |
| `odradek.retry.spared` | how often it was spared: its attempts are over, and too many others' are, too | the broker |
| `odradek.dead.timestamp` | when it died, epoch milliseconds | the broker |
| `odradek.dead.from` | PARTITION:OFFSET of the retry topic that it was failed at last | the broker |
| `__dlq.errors.*` | where a dead letter came from, how often it was seen, why it failed | the broker (KIP-1191) |

What cannot be read counts as not there: whoever fails a record is not to be refused for it. A record that is put
*behind* another has not failed: no attempt is counted (`odradek.retry.order=key`).

*Source:* KIP-1191; Kafka 4.4 ShareGroupDLQStateManager, for the names.

.. versionadded:: 0.1
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from ..classes import frozen
from ..delay.headers import DELAY_HEADERS

if TYPE_CHECKING:
    from ..records.record import Headers

ATTEMPT: Final = "odradek.retry.attempt"
REASON: Final = "odradek.retry.reason"
ORIGIN: Final = "odradek.retry.origin"
DEAD: Final = "odradek.retry.dead"
BEHIND: Final = "odradek.retry.behind"
SPARED: Final = "odradek.retry.spared"
DEAD_TIMESTAMP: Final = "odradek.dead.timestamp"
DEAD_FROM: Final = "odradek.dead.from"
DLQ_TOPIC: Final = "__dlq.errors.topic"
DLQ_PARTITION: Final = "__dlq.errors.partition"
DLQ_OFFSET: Final = "__dlq.errors.offset"
DLQ_GROUP: Final = "__dlq.errors.group"
DLQ_DELIVERY_COUNT: Final = "__dlq.errors.delivery.count"
DLQ_MESSAGE: Final = "__dlq.errors.message"

_RETRY: Final = frozenset({ATTEMPT, REASON, ORIGIN, DEAD, BEHIND, SPARED})
_DLQ: Final = frozenset({DLQ_TOPIC, DLQ_PARTITION, DLQ_OFFSET, DLQ_GROUP, DLQ_DELIVERY_COUNT, DLQ_MESSAGE})
_OURS: Final = _RETRY | _DLQ | DELAY_HEADERS | {DEAD_TIMESTAMP, DEAD_FROM}
_NUMBER: Final = re.compile(rb"[0-9]{1,9}")
_COUNT_MAX: Final = 10**9 - 2
"""One more can still be read: who makes up a longer number than there ever is does not begin again."""
_TIME: Final = re.compile(rb"[0-9]{1,18}")
_ORIGIN: Final = re.compile(rb"([a-zA-Z0-9._-]{1,249})/([0-9]{1,9})/([0-9]{1,18})")
_YES: Final = (b"1", b"true")


class Origin(NamedTuple):
    """Where a record was first read."""

    topic: str
    partition: int
    offset: int

    def encode(self) -> bytes:
        """Return it as a header's value."""
        return b"%b/%d/%d" % (self.topic.encode(), self.partition, self.offset)


@frozen
class Failure:
    """What a record in a retry topic says of itself.

    Attributes:
        attempts: How often it was given back so far.
        reason: Why it failed; None where that was not said.
        origin: Where it was first read; None where that was not said.
        is_dead: Whether its consumer wants it no more.
        behind_ms: Until when it is held because another of its key waits, epoch milliseconds; None where it failed.
        spared_times: How often it was spared.
    """

    attempts: int
    reason: bytes | None
    origin: Origin | None
    is_dead: bool
    behind_ms: int | None = None
    spared_times: int = 0


def read_failure(headers: Headers) -> Failure:
    """Return what the headers say; of one that is there twice the last counts, as clients take it."""
    said = {name: value for name, value in headers if name in _RETRY}
    behind = said.get(BEHIND)
    is_behind = behind is not None and _TIME.fullmatch(behind)
    return Failure(
        attempts=_count_in(said.get(ATTEMPT)),
        reason=said.get(REASON),
        origin=parse_origin(said.get(ORIGIN)),
        is_dead=(said.get(DEAD) or b"").lower() in _YES,
        behind_ms=int(behind) if behind is not None and is_behind else None,
        spared_times=_count_in(said.get(SPARED)),
    )


def _count_in(value: bytes | None) -> int:
    return min(int(value), _COUNT_MAX) if value is not None and _NUMBER.fullmatch(value) else 0


def parse_origin(value: bytes | None) -> Origin | None:
    """Return what TOPIC/PARTITION/OFFSET says, None for anything else."""
    found = _ORIGIN.fullmatch(value) if value is not None else None
    return None if found is None else Origin(found[1].decode(), int(found[2]), int(found[3]))


def own_headers(headers: Headers) -> list[tuple[str, bytes | None]]:
    """Return the headers that are the record's own: neither retry's, nor a dead letter's, nor of delays."""
    return [header for header in headers if header[0] not in _OURS]


def first_failed_headers(headers: Headers, origin: Origin) -> list[tuple[str, bytes | None]]:
    """Return the headers of a record that fails, or is put behind another, for the first time: no attempt counts yet.

    Args:
        headers: As it was read; what a copy has of another life is left out.
        origin: Where it was read.
    """
    return [*own_headers(headers), (ORIGIN, origin.encode())]


def retried_headers(
    headers: Headers, failure: Failure, attempt: int, *, spared_times: int = 0
) -> list[tuple[str, bytes | None]]:
    """Return the headers that a record is given back with for this attempt, or spared with for so many times."""
    kept: list[tuple[str, bytes | None]] = own_headers(headers)
    kept.append((ATTEMPT, b"%d" % attempt))
    if failure.origin is not None:
        kept.append((ORIGIN, failure.origin.encode()))
    if failure.reason is not None:
        kept.append((REASON, failure.reason))
    if spared_times:
        kept.append((SPARED, b"%d" % spared_times))
    return kept


def dead_headers(
    headers: Headers, failure: Failure, *, topic: str, group: str, now_ms: int
) -> list[tuple[str, bytes | None]]:
    """Return the headers of a dead letter, but for where it was taken from.

    Args:
        headers: As it was failed.
        failure: What they say.
        topic: What the group reads: counts where the record does not say where it was first read.
        group: Whose dead letter it is.
        now_ms: The wall clock.
    """
    origin = failure.origin
    kept: list[tuple[str, bytes | None]] = own_headers(headers)
    kept.append((DLQ_TOPIC, (topic if origin is None else origin.topic).encode()))
    if origin is not None:
        kept += [(DLQ_PARTITION, b"%d" % origin.partition), (DLQ_OFFSET, b"%d" % origin.offset)]
    kept += [(DLQ_GROUP, group.encode()), (DLQ_DELIVERY_COUNT, b"%d" % (failure.attempts + 1))]
    if failure.reason is not None:
        kept.append((DLQ_MESSAGE, failure.reason))
    return [*kept, (ATTEMPT, b"%d" % failure.attempts), (DEAD_TIMESTAMP, b"%d" % now_ms)]
