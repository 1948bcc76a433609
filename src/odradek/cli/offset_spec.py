"""Pure core: what a person may say for "where": `earliest`, `latest`, `1234`, `-10`, `@2007-03-11T07:00`.

| text | offset |
| --- | --- |
| `beginning` or `earliest` | the first that is there |
| `end` or `latest` | the next that will be |
| `1234` | this one |
| `-10` | ten before the end, in each partition |
| `@1173596400000`, `@2007-03-11T07:00` | the first record at or after this moment; UTC if it names no zone |
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from enum import Enum
from typing import Final

import attrs

from odradek.kernel.errors import ConfigError


class Where(Enum):
    """What the number of an `OffsetSpec` counts."""

    BEGINNING = "beginning"
    END = "end"
    ABSOLUTE = "absolute"
    BEFORE_END = "before end"
    TIMESTAMP = "timestamp"


_NAMED: Final = {
    "beginning": Where.BEGINNING,
    "earliest": Where.BEGINNING,
    "end": Where.END,
    "latest": Where.END,
}
"""kcat's words and those of Kafka's `auto.offset.reset`."""


@attrs.frozen
class OffsetSpec:
    """A place in every partition: `number` is an offset, a count or milliseconds since 1970, as `where` says."""

    where: Where
    number: int = 0


def parse_offset(text: str) -> OffsetSpec:
    """Read a place.

    Raises:
        ConfigError: It is none.
    """
    if text in _NAMED:
        return OffsetSpec(_NAMED[text])
    if text.startswith("@"):
        return OffsetSpec(Where.TIMESTAMP, parse_moment(text[1:]))
    if re.fullmatch(r"-?[0-9]{1,18}", text):
        return OffsetSpec(Where.BEFORE_END if text.startswith("-") else Where.ABSOLUTE, abs(int(text)))
    raise ConfigError(f"{text!r} is no offset", hint="earliest, latest, 1234, -10 or @2007-03-11T07:00")


def parse_moment(text: str) -> int:
    """Return milliseconds since 1970 for a number of them or a date in ISO 8601, UTC if it names no zone.

    Raises:
        ConfigError: It is neither.
    """
    if re.fullmatch(r"[0-9]{1,15}", text):
        return int(text)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ConfigError(
            f"{text!r} is no moment", hint="milliseconds since 1970, or a date such as 2007-03-11T07:00:00Z"
        ) from None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return round(moment.timestamp() * 1000)


def place(spec: OffsetSpec, *, start: int, end: int, by_timestamp: int | None = None) -> int:
    """Return the offset that a place means in one partition.

    Args:
        spec: The place.
        start: The first offset that is there.
        end: The next offset that will be.
        by_timestamp: For a timestamp, the offset that the broker found; None when nothing is so late.

    Returns:
        An offset in `[start, end]`.
    """
    match spec.where:
        case Where.BEGINNING:
            return start
        case Where.END:
            return end
        case Where.ABSOLUTE:
            return min(max(spec.number, start), end)
        case Where.BEFORE_END:
            return max(end - spec.number, start)
        case Where.TIMESTAMP:
            return end if by_timestamp is None else by_timestamp
