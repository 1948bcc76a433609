"""Pure core: what a streaming query's progress says of topics: how far it has read, and how far behind the end it is.

A progress event is what Spark reports after each micro-batch, as JSON or as pyspark's objects. Of its sources only
those whose offsets look like ours, or those of Spark's Kafka connector, are looked at:

    {"orders": {"0": 120, "1": 77}}      topic to partition to the next offset to read
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import attrs

from .ranges import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from .ranges import Offsets

__all__ = ["OffsetsBehindLatest", "QueryLag", "behind_latest", "lag_of", "offsets_in"]

_RESERVED: Final = "@"
"""Begins what is no topic: no topic's name has it (the source notes the start of a first batch so)."""


@attrs.frozen
class OffsetsBehindLatest:
    """How many offsets the partitions of a query are behind the ends of their logs.

    Offsets, not records: gaps that compaction and transactions leave count too.
    """

    least: int
    most: int
    average: float

    def as_metrics(self) -> dict[str, str]:
        """Return the numbers under the names, and as the texts, that Spark's Kafka connector reports."""
        return {
            "minOffsetsBehindLatest": str(self.least),
            "maxOffsetsBehindLatest": str(self.most),
            "avgOffsetsBehindLatest": str(self.average),
        }


@attrs.frozen
class QueryLag:
    """Where a query stood after a micro-batch.

    Attributes:
        query_id: Of the query; the same after a restart from its checkpoint.
        name: The query's name, None if it has none.
        batch_id: The micro-batch that was done, >= 0.
        consumed: The next offset to read, of each partition.
        latest: Where the logs ended when the batch was planned; empty where Spark did not say.
    """

    query_id: str
    name: str | None
    batch_id: int
    consumed: Offsets
    latest: Offsets

    @property
    def behind(self) -> OffsetsBehindLatest | None:
        """How far it is behind; None where that is not known."""
        return behind_latest(self.consumed, self.latest)


def behind_latest(consumed: Offsets, latest: Offsets) -> OffsetsBehindLatest | None:
    """Return how far the partitions of both are behind; None if there are none.

    A log that is shorter than what was read of it (the topic was made anew) is 0 behind.
    """
    behind = [max(0, latest[partition] - offset) for partition, offset in consumed.items() if partition in latest]
    if not behind:
        return None
    return OffsetsBehindLatest(min(behind), max(behind), sum(behind) / len(behind))


def offsets_in(told: object) -> dict[TopicPartition, int] | None:
    """Return the offsets that a source told, as JSON or parsed; None if they are not those of topics."""
    if isinstance(told, str):
        try:
            told = json.loads(told)
        except ValueError:
            return None  # "None": pyspark's text for what Spark did not say
    if not isinstance(told, dict):
        return None
    found: dict[TopicPartition, int] = {}
    for topic, partitions in told.items():
        if topic.startswith(_RESERVED):
            continue
        if not isinstance(partitions, dict):
            return None
        for number, offset in partitions.items():
            if not number.isdecimal() or type(offset) is not int:
                return None
            found[TopicPartition(topic, int(number))] = offset
    return found


def lag_of(progress: Mapping[str, Any]) -> QueryLag | None:
    """Return what a progress event says of topics; None if no source of it reads any.

    Where two sources of a query read the same partition (a join of a topic with itself), the one that is behind counts:
    what is committed has been read by both.

    Args:
        progress: The event, with the members of Spark's JSON; offsets in it may be JSON or texts of JSON.
    """
    sources = progress["sources"]
    consumed = _merged((source["endOffset"] for source in sources), min)
    if not consumed:
        return None
    return QueryLag(
        str(progress["id"]),
        progress["name"],
        progress["batchId"],
        consumed,
        _merged((source.get("latestOffset") for source in sources), max),
    )


def _merged(told: Iterable[object], choose: Callable[[int, int], int]) -> dict[TopicPartition, int]:
    """Return the offsets of several sources as one."""
    merged: dict[TopicPartition, int] = {}
    for each in told:
        for partition, offset in (offsets_in(each) or {}).items():
            merged[partition] = choose(merged.get(partition, offset), offset)
    return merged
