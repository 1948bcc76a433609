"""Pure core: what a producer asks for in a record's headers: later delivery, a name to withdraw it by, a withdrawal.

| header | value | means |
| --- | --- | --- |
| `odradek.deliver.after` | milliseconds, decimal text | consumers see the record so much later |
| `odradek.deliver.at` | epoch milliseconds, decimal text | not before then |
| `odradek.delay.id` | text or bytes, not empty | a name for a delayed record |
| `odradek.delay.cancel` | such a name | the record is no record: what waits under the name is withdrawn |

A time gone by is none, and a name without a time names nothing: such a record is like any other. Of a header that is
there twice the last one counts, as Kafka's clients take it. What is delivered says where it comes from, in two headers
of its own (`delivered_headers`).

.. versionadded:: 0.1
"""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, Final

from ..classes import frozen
from ..errors import OdradekError

if TYPE_CHECKING:
    from ..records.record import Headers, Record

PREFIX: Final = b"odradek.del"
"""What all names below begin with: a record whose bytes have it nowhere asks for nothing."""
DELIVER_AFTER: Final = "odradek.deliver.after"
DELIVER_AT: Final = "odradek.deliver.at"
DELAY_ID: Final = "odradek.delay.id"
DELAY_CANCEL: Final = "odradek.delay.cancel"
DELAYED_FROM: Final = "odradek.delayed.from"
DELAYED_TIMESTAMP: Final = "odradek.delayed.timestamp"

_ASKED: Final = frozenset({DELIVER_AFTER, DELIVER_AT, DELAY_ID, DELAY_CANCEL})
DELAY_HEADERS: Final = _ASKED | {DELAYED_FROM, DELAYED_TIMESTAMP}
"""What no record has that is delivered, but for the two that say where it comes from."""
_DIGITS_MAX: Final = 19
_NUMBER: Final = re.compile(rb"-?[0-9]+")
_SHOWN_BYTES_MAX: Final = 40
INT64_MAX: Final = 2**63 - 1
ID_DIGEST_BYTES: Final = 16


class DelayHeaderError(OdradekError):
    """What a record's headers ask for cannot be done; the text is for the producer."""


@frozen
class Delay:
    """What one record asks for.

    Attributes:
        due_ms: When it is to be seen, epoch milliseconds; None for a canceller.
        id_digest: Of the name that it can be withdrawn by, or that it withdraws; None without one.
    """

    due_ms: int | None
    id_digest: bytes | None

    @property
    def is_canceller(self) -> bool:
        """Whether it withdraws another record and is none itself."""
        return self.due_ms is None


def digest_of(name: bytes) -> bytes:
    """Return what a name is kept as: as long for every name, and no two names share one by chance."""
    return hashlib.blake2b(name, digest_size=ID_DIGEST_BYTES).digest()


def parse_delay(headers: Headers, now_ms: int, delay_ms_max: int) -> Delay | None:
    """Return what a record asks for; None for one that is like any other.

    Args:
        headers: The record's.
        now_ms: The wall clock: what a delay counts from.
        delay_ms_max: The topic's `odradek.delay.max.ms`.

    Raises:
        DelayHeaderError: No number, a negative one, both ways to say it, a delay above the maximum, an empty name, a
            canceller that is delayed or named itself.
    """
    asked = {name: value for name, value in headers if name in _ASKED}
    if not asked:
        return None
    is_delayed = DELIVER_AFTER in asked or DELIVER_AT in asked
    if DELAY_CANCEL in asked:
        if is_delayed or DELAY_ID in asked:
            raise DelayHeaderError(f"{DELAY_CANCEL} stands alone: such a record is never delivered")
        return Delay(None, digest_of(_name(DELAY_CANCEL, asked[DELAY_CANCEL])))
    if not is_delayed:
        return None
    id_digest = digest_of(_name(DELAY_ID, asked[DELAY_ID])) if DELAY_ID in asked else None
    due_ms = _due_ms(asked, now_ms)
    if due_ms - now_ms > delay_ms_max:
        raise DelayHeaderError(
            f"a delay of {due_ms - now_ms} ms is longer than the topic's odradek.delay.max.ms of {delay_ms_max}"
        )
    return Delay(due_ms, id_digest) if due_ms > now_ms else None


def delivered_headers(record: Record, leader_epoch: int) -> list[tuple[str, bytes | None]]:
    """Return the headers that a delayed record is delivered with: the producer's, then where it comes from.

    Args:
        record: As it was produced, its offset that of the origin.
        leader_epoch: Of the batch that it was produced in.
    """
    kept = [header for header in record.headers if header[0] not in DELAY_HEADERS]
    origin = b"%d:%d" % (leader_epoch, record.offset)
    return [*kept, (DELAYED_FROM, origin), (DELAYED_TIMESTAMP, b"%d" % record.timestamp)]


def _due_ms(asked: dict[str, bytes | None], now_ms: int) -> int:
    if DELIVER_AFTER in asked and DELIVER_AT in asked:
        raise DelayHeaderError(f"{DELIVER_AFTER} and {DELIVER_AT}: only one can be")
    if DELIVER_AT in asked:
        return _number(DELIVER_AT, asked[DELIVER_AT])
    due_ms = now_ms + _number(DELIVER_AFTER, asked[DELIVER_AFTER])
    if due_ms > INT64_MAX:
        raise DelayHeaderError(f"{DELIVER_AFTER}: {due_ms - now_ms} ms from now there is no time any more")
    return due_ms


def _number(name: str, value: bytes | None) -> int:
    if value is None or not _NUMBER.fullmatch(value):
        raise DelayHeaderError(f"{name}: {_shown(value)} is no number of milliseconds in decimal digits")
    if value.startswith(b"-"):
        raise DelayHeaderError(f"{name}: {_shown(value)} is negative")
    if len(value) > _DIGITS_MAX or int(value) > INT64_MAX:
        raise DelayHeaderError(f"{name}: {_shown(value)} is more than {INT64_MAX}")
    return int(value)


def _name(header: str, value: bytes | None) -> bytes:
    if not value:
        raise DelayHeaderError(f"{header}: an empty name names nothing")
    return value


def _shown(value: bytes | None) -> str:
    if value is None:
        return "null"
    cut = value[:_SHOWN_BYTES_MAX].decode(errors="backslashreplace")
    return repr(cut) + ("..." if len(value) > _SHOWN_BYTES_MAX else "")
