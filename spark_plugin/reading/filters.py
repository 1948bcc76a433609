"""Pure core: what filters leave to read: which partitions, which offsets, from which time on.

Spark hands filters over when `spark.sql.python.filterPushdown.enabled` is on, and applies every one of them again: here
they only take away what cannot match.

| column | what is used |
| --- | --- |
| `topic`, `partition` | any comparison: they are constants of a range, so that it is kept or dropped |
| `offset` | `=`, `<`, `<=`, `>`, `>=`, `IN`: the range is cut |
| `timestamp` | `=`, `>`, `>=`, `IN`: the range begins at the first record of that time or later |

An upper bound of time is not used: records need not be in the order of their times.

Spark's own classes of filters are read by their names and attributes, so that nothing here needs pyspark.

*Source:* `pyspark.sql.datasource`, filters of PySpark 4.3.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

import attrs

from ..ranges import OffsetRange, TopicPartition

__all__ = ["Filter", "Pushed", "push"]

_NEVER_NULL: Final = frozenset({"topic", "partition", "offset", "timestamp", "timestampType"})
_OFFSET_MAX: Final = 2**63 - 1
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECONDS: Final = 1_000_000

_COMPARISONS: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "EqualTo": operator.eq,
    "EqualNullSafe": operator.eq,
    "GreaterThan": operator.gt,
    "GreaterThanOrEqual": operator.ge,
    "LessThan": operator.lt,
    "LessThanOrEqual": operator.le,
    "In": lambda have, wanted: have in wanted,
    "StringStartsWith": str.startswith,
    "StringEndsWith": str.endswith,
    "StringContains": lambda have, wanted: wanted in have,
}
"""What is true of a value, by the name of pyspark's class."""


@attrs.frozen
class Filter:
    """A filter on one column, as a plain value.

    Attributes:
        name: Of pyspark's class: `EqualTo`, `In`, `IsNull`, ...
        column: The column's name.
        value: What it is compared with; a tuple for `In`, None for `IsNull` and `IsNotNull`.
        is_negated: Whether it stands in a `Not`.
    """

    name: str
    column: str
    value: Any = None
    is_negated: bool = False

    @classmethod
    def of(cls, given: object) -> Filter | None:
        """Return one of pyspark's filters as a plain value; None for one that nothing can be made of."""
        is_negated = type(given).__name__ == "Not"
        inner = getattr(given, "child", None) if is_negated else given
        path: Any = getattr(inner, "attribute", ())
        name = type(inner).__name__
        if len(path) != 1 or name not in {*_COMPARISONS, "IsNull", "IsNotNull"}:
            return None
        return cls(name, path[0], getattr(inner, "value", None), is_negated)


@attrs.frozen
class Pushed:
    """What some filters leave.

    Attributes:
        is_nothing: Whether no record can match.
        on_range: Filters on the topic and the partition.
        offset_low: The first offset that can match.
        offset_high: The first one that cannot any more.
        timestamp_low_ms: The earliest time that can match; None without a bound.
    """

    is_nothing: bool = False
    on_range: tuple[Filter, ...] = ()
    offset_low: int = 0
    offset_high: int = _OFFSET_MAX
    timestamp_low_ms: int | None = None

    def keeps(self, partition: TopicPartition) -> bool:
        """Say whether a record of a partition can match."""
        have: dict[str, str | int] = {"topic": partition.topic, "partition": partition.partition}
        return not self.is_nothing and all(_is_true(one, have[one.column]) for one in self.on_range)

    def applied(
        self, ranges: Iterable[OffsetRange], from_timestamp: Mapping[TopicPartition, int] | None = None
    ) -> list[OffsetRange]:
        """Return what of some ranges can match, without what is empty.

        Args:
            ranges: What would be read.
            from_timestamp: By partition the first offset of `timestamp_low_ms` or later, below 0 where there is none;
                looked up after the ends of the ranges were, or records between the two would be missed.
        """
        found = []
        for one in ranges:
            if not self.keeps(one.topic_partition):
                continue
            low = self.offset_low
            if from_timestamp is not None:
                first = from_timestamp.get(one.topic_partition, 0)
                low = max(low, first if first >= 0 else one.end)
            cut = one.intersection(low, self.offset_high)
            if cut.size:
                found.append(cut)
        return found


def push(filters: Sequence[Filter | None]) -> Pushed:
    """Return what filters leave that all have to be true. What cannot be used is not: Spark applies it."""
    pushed = Pushed()
    for one in filters:
        if one is not None:
            pushed = _with(pushed, one)
    return pushed


def _with(pushed: Pushed, one: Filter) -> Pushed:
    if one.name in {"IsNull", "IsNotNull"}:
        is_false = (one.name == "IsNull") is not one.is_negated
        return attrs.evolve(pushed, is_nothing=True) if is_false and one.column in _NEVER_NULL else pushed
    if one.column in {"topic", "partition"}:
        return attrs.evolve(pushed, on_range=(*pushed.on_range, one))
    if one.is_negated:
        return pushed
    if one.column == "offset":
        low, high = _offsets(one)
        return attrs.evolve(pushed, offset_low=max(pushed.offset_low, low), offset_high=min(pushed.offset_high, high))
    if one.column == "timestamp":
        low_ms = _timestamp_low(one)
        if low_ms is not None:
            known = pushed.timestamp_low_ms
            return attrs.evolve(pushed, timestamp_low_ms=low_ms if known is None else max(known, low_ms))
    return pushed


def _is_true(one: Filter, have: Any) -> bool:
    """Say whether a filter may be true of a constant; one that cannot be told may."""
    values = one.value if one.name == "In" else (one.value,)
    if not isinstance(values, Sequence) or not all(type(value) is type(have) for value in values):
        return True
    return _COMPARISONS[one.name](have, one.value) is not one.is_negated


def _offsets(one: Filter) -> tuple[int, int]:
    """Return the offsets `[low, high)` that a filter leaves."""
    values = one.value if one.name == "In" else (one.value,)
    if not isinstance(values, Sequence) or not values or not all(type(value) is int for value in values):
        return 0, _OFFSET_MAX
    least, most = min(values), max(values)
    bounds = {
        "EqualTo": (least, most + 1),
        "EqualNullSafe": (least, most + 1),
        "In": (least, most + 1),
        "GreaterThan": (least + 1, _OFFSET_MAX),
        "GreaterThanOrEqual": (least, _OFFSET_MAX),
        "LessThan": (0, least),
        "LessThanOrEqual": (0, least + 1),
    }
    return bounds.get(one.name, (0, _OFFSET_MAX))


def _timestamp_low(one: Filter) -> int | None:
    """Return the earliest time in milliseconds that a filter leaves; None for no bound."""
    values = one.value if one.name == "In" else (one.value,)
    if not isinstance(values, Sequence) or not values or not all(isinstance(value, datetime) for value in values):
        return None
    if any(value.tzinfo is None for value in values):
        return None  # a time of day of who knows where
    least = min(_microseconds(value) for value in values)
    lows = {
        # A record's time is a whole number of milliseconds.
        "EqualTo": -(-least // 1000),
        "EqualNullSafe": -(-least // 1000),
        "In": -(-least // 1000),
        "GreaterThanOrEqual": -(-least // 1000),
        "GreaterThan": least // 1000 + 1,
    }
    low = lows.get(one.name)
    return None if low is None or low <= 0 else low


def _microseconds(time: datetime) -> int:
    since = time - _EPOCH
    return (since.days * 86_400 + since.seconds) * _MICROSECONDS + since.microseconds
