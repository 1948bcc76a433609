"""Pure core: looks for some records of a batch without making objects of them: those to refuse, the one a time means.

Of a batch of millions no more than a bounded number is given out. The compiled functions (`_finding.h`) are used where
they were built, else those written here. Both give the same answers; only the words of an error differ.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from ..types import NO_TIMESTAMP
from .batch import CorruptRecordsError
from .record import VARINT_BYTES_MAX, VARLONG_BYTES_MAX, decode_varint, long_varint

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ..types import Buffer
    from . import _kernel
else:
    try:
        from . import _kernel
    except ImportError:  # there was no compiler when the package was built
        _kernel = None

HAS_COMPILED_FINDING: Final = _kernel is not None
INT64_MAX: Final = 2**63 - 1
INT64_MIN: Final = -(2**63)


class FoundRecord(NamedTuple):
    """A record that was looked for: its place in the batch, from 0 on; sizes are negative for null."""

    position: int
    offset_delta: int
    timestamp_delta: int
    key_size: int
    value_size: int


class RefusedRecords(NamedTuple):
    """What is to be refused of a batch.

    Attributes:
        first: The first ones, at most as many as were asked for.
        total: How many there are.
        mistimed_count: How many of them for their timestamp.
    """

    first: list[FoundRecord]
    total: int
    mistimed_count: int


class Acceptable(NamedTuple):
    """What records must be like: see `refused_records`.

    Attributes:
        base_timestamp: The batch's.
        earliest: Least timestamp.
        latest: Greatest; below `earliest` no timestamp will do.
        takes_no_timestamp: Whether -1 will do all the same.
        needs_keys: Whether a null key will not.
    """

    base_timestamp: int
    earliest: int
    latest: int
    takes_no_timestamp: bool
    needs_keys: bool


def refused_records_compiled(payload: Buffer, count: int, acceptable: Acceptable, limit: int) -> RefusedRecords:
    """Do as `refused_records`, by the compiled function."""
    base_timestamp, earliest, latest, takes_no_timestamp, needs_keys = acceptable
    try:
        first, refused_count, mistimed_count = _kernel.refused_records(
            payload,
            count,
            base_timestamp,
            min(max(earliest, INT64_MIN), INT64_MAX),
            min(max(latest, INT64_MIN), INT64_MAX),
            takes_no_timestamp,
            needs_keys,
            limit,
        )
    except ValueError as exc:
        raise CorruptRecordsError(str(exc)) from exc
    return RefusedRecords([FoundRecord(*found) for found in first], refused_count, mistimed_count)


def refused_records_in_python(payload: Buffer, count: int, acceptable: Acceptable, limit: int) -> RefusedRecords:
    """Do as `refused_records`, in Python."""
    base_timestamp, earliest, latest, takes_no_timestamp, needs_keys = acceptable
    earliest, latest = max(earliest, INT64_MIN), min(latest, INT64_MAX)
    first: list[FoundRecord] = []
    refused_count = mistimed_count = 0
    for record in _walk(payload, count):
        timestamp = base_timestamp + record.timestamp_delta
        is_keyless = needs_keys and record.key_size < 0
        is_in_time = earliest <= timestamp <= latest or (takes_no_timestamp and timestamp == NO_TIMESTAMP)
        if not is_keyless and is_in_time:
            continue
        if refused_count < limit:
            first.append(record)
        refused_count += 1
        mistimed_count += not is_keyless
    return RefusedRecords(first, refused_count, mistimed_count)


def find_record_compiled(
    payload: Buffer, count: int, timestamp_delta_min: int, offset_delta_min: int
) -> tuple[int, int] | None:
    """Do as `find_record`, by the compiled function."""
    if timestamp_delta_min > INT64_MAX or offset_delta_min > INT64_MAX:
        return None
    try:
        return _kernel.find_record(
            payload, count, max(timestamp_delta_min, INT64_MIN), max(offset_delta_min, INT64_MIN)
        )
    except ValueError as exc:
        raise CorruptRecordsError(str(exc)) from exc


def find_record_in_python(
    payload: Buffer, count: int, timestamp_delta_min: int, offset_delta_min: int
) -> tuple[int, int] | None:
    """Do as `find_record`, in Python."""
    for record in _walk(payload, count):
        if record.timestamp_delta >= timestamp_delta_min and record.offset_delta >= offset_delta_min:
            return record.timestamp_delta, record.offset_delta
    return None


def _walk(payload: Buffer, count: int) -> Iterator[FoundRecord]:
    """Yield the records, each by the length that it tells; headers are not looked at."""
    payload = bytes(payload)  # bytes are indexed faster than views
    position = 0
    for index in range(count):
        length, start = decode_varint(payload, position)
        end = start + length
        if length <= 0 or end > len(payload):
            raise CorruptRecordsError("record cut off", position=position)
        record = payload[start:end]
        try:
            first = record[1]
            if first < 0x80:
                timestamp_delta, at = (first >> 1) ^ -(first & 1), 2
            else:
                timestamp_delta, at = long_varint(record, 2, first, VARLONG_BYTES_MAX)
            offset_delta, at = decode_varint(record, at)
            key_size, at = _skip_bytes(record, at)
            value_size, at = _skip_bytes(record, at)
        except IndexError as exc:
            raise CorruptRecordsError("record cut off", position=position) from exc
        yield FoundRecord(index, offset_delta, timestamp_delta, key_size, value_size)
        position = end


def _skip_bytes(record: bytes, position: int) -> tuple[int, int]:
    """Return the size of the nullable bytes at `position` and the position after them, which is within the record."""
    first = record[position]
    size, after = (
        ((first >> 1) ^ -(first & 1), position + 1)
        if first < 0x80
        else long_varint(record, position + 1, first, VARINT_BYTES_MAX)
    )
    if size > len(record) - after:
        raise CorruptRecordsError("record cut off", position=position)
    return size, after + max(size, 0)


refused_records: Final[Callable[[Buffer, int, Acceptable, int], RefusedRecords]] = (
    refused_records_compiled if HAS_COMPILED_FINDING else refused_records_in_python
)
"""Return the first `limit` records of a payload that are not acceptable, and how many there are.

Who has no key is refused for that, whatever its timestamp.

Raises:
    CorruptRecordsError: a record is malformed, so far as it is looked at.
"""

find_record: Final[Callable[[Buffer, int, int, int], tuple[int, int] | None]] = (
    find_record_compiled if HAS_COMPILED_FINDING else find_record_in_python
)
"""Return timestamp delta and offset delta of the first record at or above both of the given ones; None without one.

Raises:
    CorruptRecordsError: a record before it is malformed, so far as it is looked at.
"""
