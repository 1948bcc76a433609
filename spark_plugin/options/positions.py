"""Pure core: where a query begins and ends: as its options say, and as offsets once the brokers have been asked.

| options, the first that is given counts | position |
| --- | --- |
| `startingTimestamp`, `endingTimestamp` | `AtTimestamp` |
| `startingOffsetsByTimestamp`, `endingOffsetsByTimestamp` | `EachTimestamp` |
| `startingOffsets`, `endingOffsets` as a word | `Everywhere` |
| the same as JSON | `EachOffset` |

A timestamp stands for the first offset whose record has this timestamp or a later one, as ListOffsets finds it.

*Source:* Spark's Kafka integration guide; what its connector 4.2.0 refuses was seen by running it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TypeAlias

import attrs

from ..errors import AssignmentError, OptionError
from ..ranges import EARLIEST, LATEST, Offsets, TopicPartition

__all__ = [
    "AtTimestamp",
    "EachOffset",
    "EachTimestamp",
    "Everywhere",
    "LogEnds",
    "Position",
    "resolve",
    "timestamps_to_ask",
]

NAMES_MAX = 20
"""How many partitions a message names."""


@attrs.frozen
class Everywhere:
    """The same for every partition: EARLIEST or LATEST."""

    offset: int


@attrs.frozen
class EachOffset:
    """An offset for each partition, or EARLIEST or LATEST."""

    offsets: Offsets


@attrs.frozen
class AtTimestamp:
    """The same time for every partition, in milliseconds since the Unix epoch."""

    timestamp_ms: int


@attrs.frozen
class EachTimestamp:
    """A time for each partition, in milliseconds since the Unix epoch."""

    timestamps_ms: Mapping[TopicPartition, int]


Position: TypeAlias = Everywhere | EachOffset | AtTimestamp | EachTimestamp


@attrs.frozen
class LogEnds:
    """Where the logs of some partitions begin and end, as the brokers say at one moment.

    Attributes:
        earliest: Log start offsets.
        latest: The next offset to be read: the high watermark, or under read_committed the last stable offset. Of the
            same partitions.
    """

    earliest: Offsets
    latest: Offsets

    def __attrs_post_init__(self) -> None:
        assert self.earliest.keys() == self.latest.keys(), "a log has two ends"


def timestamps_to_ask(
    position: Position, assigned: Collection[TopicPartition], option: str
) -> dict[TopicPartition, int]:
    """Return the timestamps to look up for a position; empty when there are none.

    Args:
        position: Where to begin or to end.
        assigned: The partitions of the query.
        option: The name of the option that gave the position, for errors.

    Raises:
        AssignmentError: The position names other partitions than those.
    """
    if isinstance(position, AtTimestamp):
        return dict.fromkeys(sorted(assigned), position.timestamp_ms)
    if isinstance(position, EachTimestamp):
        _check_same(option, position.timestamps_ms, assigned)
        return dict(position.timestamps_ms)
    return {}


def resolve(
    position: Position, ends: LogEnds, found: Offsets, option: str, *, fails_without_match: bool = False
) -> dict[TopicPartition, int]:
    """Return the offset of each partition; explicit ones as they are, whether they are there or not.

    Args:
        position: Where to begin or to end.
        ends: Of every partition of the query.
        found: What the look-up of `timestamps_to_ask` found; below 0 where nothing is that late.
        option: The name of the option that gave the position, for errors.
        fails_without_match: Whether a timestamp that nothing matches is an error; else it stands for the latest.

    Raises:
        AssignmentError: The position names other partitions than the query has.
        OptionError: Nothing matches a timestamp, and it has to.
    """
    # A log may lose its beginning between the two questions for its ends.
    earliest = {one: min(offset, ends.latest[one]) for one, offset in ends.earliest.items()}
    if isinstance(position, Everywhere):
        return dict(earliest if position.offset == EARLIEST else ends.latest)
    if isinstance(position, EachOffset):
        _check_same(option, position.offsets, ends.latest)
        words = {EARLIEST: earliest, LATEST: ends.latest}
        return {one: words[offset][one] if offset in words else offset for one, offset in position.offsets.items()}
    resolved = {}
    for one, timestamp in timestamps_to_ask(position, ends.latest, option).items():
        offset = found[one]
        if offset < 0 and fails_without_match:
            raise OptionError(
                option,
                f"option '{option}': No offset matched from request of topic-partition {one} and timestamp {timestamp}:"
                f" all its records (log end {ends.latest[one]}) are earlier; with"
                " startingOffsetsByTimestampStrategy=latest such a partition begins at its end",
            )
        resolved[one] = offset if offset >= 0 else ends.latest[one]
    return resolved


def _check_same(option: str, specified: Collection[TopicPartition], assigned: Collection[TopicPartition]) -> None:
    missing = sorted(set(assigned) - set(specified))
    strange = sorted(set(specified) - set(assigned))
    if not missing and not strange:
        return
    wrong = [f"missing: {_names(missing)}"] if missing else []
    wrong += [f"not assigned: {_names(strange)}"] if strange else []
    raise AssignmentError(
        f"option '{option}': Partitions specified don't match what are assigned ({'; '.join(wrong)}). Name every"
        " partition; for offsets, -1 stands for latest and -2 for earliest."
        f" Specified: {_names(sorted(specified))} Assigned: {_names(sorted(assigned))}"
    )


def _names(partitions: list[TopicPartition]) -> str:
    shown = ", ".join(str(one) for one in partitions[:NAMES_MAX])
    return f"{shown} and {len(partitions) - NAMES_MAX} more" if len(partitions) > NAMES_MAX else shown or "none"
