"""Pure core: the history of the world's clocks, out of compiled time zone files (TZif).

A file holds the moments at which a zone's clocks were changed, and, as a rule in the POSIX notation, how it goes on
after the last of them: `EST5EDT,M3.2.0,M11.1.0` begins on the second Sunday of March and ends on the first of November.

    header (44 bytes) and data with 32-bit times, skipped | header | times | types | (offset, dst, name) | names | rule

*Source:* RFC 8536 (TZif); POSIX.1-2017, section 8.3 (`TZ`); the data is the IANA time zone database.
"""

from __future__ import annotations

import calendar
import re
import struct
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

_MAGIC: Final = b"TZif"
_COUNTS: Final = struct.Struct(">20x6l")
_TYPE: Final = struct.Struct(">lBB")
_NAME: Final = r"(?:<[^>]+>|[A-Za-z]{3,})"
_OFFSET: Final = r"[+-]?\d{1,3}(?::\d{2}){0,2}"
_DATE: Final = rf"M(\d+)\.(\d)\.(\d)(?:/({_OFFSET}))?"
_RULE: Final = re.compile(rf"({_NAME})({_OFFSET})(?:({_NAME})({_OFFSET})?,{_DATE},{_DATE})?")
_HOUR_S: Final = 3600
_TWO_O_CLOCK: Final = "2"
_LAST_WEEK: Final = 5


class Transition(NamedTuple):
    """One change of a zone's clocks.

    Attributes:
        zone: Its name, such as `Europe/Paris`.
        at: The moment, in seconds since the Unix epoch; negative before 1970.
        before_s: Offset from UTC until then, in seconds, positive east of Greenwich.
        after_s: Offset from then on.
        abbreviation: What the clocks' time is called from then on.
        is_dst: Whether it is summer time from then on.
    """

    zone: str
    at: int
    before_s: int
    after_s: int
    abbreviation: str
    is_dst: bool


class _Clock(NamedTuple):
    """What a zone's clocks show for a while."""

    offset_s: int
    is_dst: bool
    abbreviation: str


def all_transitions(files: Mapping[str, bytes], until: int) -> list[Transition]:
    """Return every change of every zone's clocks before `until`, in time order, zones by name within one moment.

    Args:
        files: Zone to its TZif file.
        until: Seconds since the Unix epoch.

    Raises:
        ValueError: A file is no TZif of version 2 or later, or its rule is of a form that the database does not use.
    """
    joined = [transition for zone, data in files.items() for transition in zone_transitions(zone, data, until)]
    joined.sort(key=lambda transition: (transition.at, transition.zone))
    return joined


def zone_transitions(zone: str, data: bytes, until: int) -> Iterator[Transition]:
    """Yield the changes of one zone's clocks before `until`, in time order; raises as `all_transitions` does."""
    first, changes, rule = _parse(data)
    last_at = changes[-1][0] if changes else None
    clock = first
    for at, after in (*changes, *_by_rule(rule, last_at, until)):
        if at >= until:
            return
        if after != clock:
            yield Transition(zone, at, clock.offset_s, after.offset_s, after.abbreviation, after.is_dst)
        clock = after


def _parse(data: bytes) -> tuple[_Clock, list[tuple[int, _Clock]], str]:
    """Return the zone's first clock, its stored changes, its rule."""
    if data[:4] != _MAGIC or data[4:5] < b"2":
        raise ValueError("not a TZif file of version 2 or later")
    utc, standard, leaps, times, types, characters = _COUNTS.unpack_from(data)
    start = _COUNTS.size + times * 5 + types * _TYPE.size + characters + leaps * 8 + standard + utc
    utc, standard, leaps, times, types, characters = _COUNTS.unpack_from(data, start)
    position = start + _COUNTS.size
    moments = struct.unpack_from(f">{times}q", data, position)
    chosen = data[position + times * 8 : position + times * 9]
    position += times * 9
    names = data[position + types * _TYPE.size :][:characters]
    clocks = [
        _Clock(offset_s, bool(is_dst), names[index : names.index(b"\0", index)].decode())
        for offset_s, is_dst, index in _TYPE.iter_unpack(data[position : position + types * _TYPE.size])
    ]
    rule = data[position + types * _TYPE.size + characters + leaps * 12 + standard + utc :].strip(b"\n").decode()
    return clocks[0], [(at, clocks[number]) for at, number in zip(moments, chosen, strict=True)], rule


def _by_rule(rule: str, last_at: int | None, until: int) -> Iterable[tuple[int, _Clock]]:
    """Return the changes after the last stored one, as the rule has them."""
    match = _RULE.fullmatch(rule)
    if rule and match is None:
        raise ValueError(f"the rule {rule!r} is of no form that is known here")
    if match is None or last_at is None or match[3] is None:
        return []
    standard = _Clock(-_seconds(match[2]), False, match[1].strip("<>"))
    summer_s = -_seconds(match[4]) if match[4] else standard.offset_s + _HOUR_S
    summer = _Clock(summer_s, True, match[3].strip("<>"))
    changes = []
    for year in range(datetime.fromtimestamp(last_at, UTC).year, datetime.fromtimestamp(until, UTC).year + 1):
        changes.append((_moment(year, match.groups()[4:8]) - standard.offset_s, summer))
        changes.append((_moment(year, match.groups()[8:12]) - summer.offset_s, standard))
    return sorted((at, clock) for at, clock in changes if at > last_at)


def _moment(year: int, date: tuple[str, ...]) -> int:
    """Return when "the n-th weekday of a month, at a time" is in a year, by the clocks of the place."""
    month, week, weekday = (int(part) for part in date[:3])  # weekday 0 is Sunday
    first_weekday, days_count = calendar.monthrange(year, month)  # weekday 0 is Monday
    day = 1 + (weekday - 1 - first_weekday) % 7 + (week - 1) * 7
    if week == _LAST_WEEK and day > days_count:
        day -= 7
    moment = datetime(year, month, day, tzinfo=UTC) + timedelta(seconds=_seconds(date[3] or _TWO_O_CLOCK))
    return int(moment.timestamp())


def _seconds(text: str) -> int:
    """Return `[+-]hh[:mm[:ss]]` in seconds."""
    sign = -1 if text.startswith("-") else 1
    parts = [int(part) for part in text.lstrip("+-").split(":")]
    return sign * sum(part * unit for part, unit in zip(parts, (_HOUR_S, 60, 1), strict=False))


def offset_text(offset_s: int) -> str:
    """Return an offset from UTC as `+hh:mm`, with seconds where there are some."""
    sign = "-" if offset_s < 0 else "+"
    minutes, seconds = divmod(abs(offset_s), 60)
    text = f"{sign}{minutes // 60:02d}:{minutes % 60:02d}"
    return f"{text}:{seconds:02d}" if seconds else text


def moment_text(at: int) -> str:
    """Return a moment in ISO 8601; the database begins in the 19th century."""
    return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=at)).strftime("%Y-%m-%dT%H:%M:%SZ")
