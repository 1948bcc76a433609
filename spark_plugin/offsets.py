"""Pure core: offsets as texts: what users write into options, and what Spark keeps in a checkpoint.

| text | example |
| --- | --- |
| partitions (`assign`) | `{"orders":[0,1]}` |
| offsets (`startingOffsets`) | `{"orders":{"0":23,"1":-1}}`; -1 is the latest, -2 the earliest |
| timestamps (`startingOffsetsByTimestamp`) | `{"orders":{"0":1700000000000}}`, milliseconds |
| a checkpoint's offsets | `{"orders": {"0": 23, "1": 7}}`, the next offset of each partition |

The last is Kafka's form, as Spark's connector for Kafka keeps it: only the blanks differ, for Spark itself writes down
what a Python source returns. Spark compares such texts, so topics and partitions are always in one order: names by
their code points, partitions by their numbers.

Where a stream began may not be found again (the latest offset, an option that was changed), and Spark asks anew when
the first batch is repeated. So the end of the first batch carries where it began, under a name that no topic can have:

    {"orders": {"0": 23}, "@start": {"orders": {"0": 10}}}

*Source:* Spark's Kafka integration guide; `python_streaming_source_runner.py` of PySpark 4.3.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from .errors import OptionError
from .ranges import EARLIEST, LATEST, Offsets, TopicPartition

__all__ = [
    "START",
    "JsonOffsets",
    "compact_text",
    "from_json_object",
    "json_object",
    "json_object_with_start",
    "parse_offsets",
    "parse_partitions",
    "parse_timestamps",
    "start_in",
    "text",
]

START: Final = "@start"
"""What stands beside the topics in the end of a first batch: no topic's name has this character."""

JsonOffsets: TypeAlias = dict[str, Any]
"""Offsets as Spark hands them over: topic to partition (as a text) to offset; and perhaps `START`."""

OFFSET_MAX: Final = 2**63 - 1
PARTITION_MAX: Final = 2**31 - 1

_PARTITIONS_EXAMPLE: Final = '{"topicA":[0,1],"topicB":[0,1]}'
_OFFSETS_EXAMPLE: Final = '{"topicA":{"0":23,"1":-1},"topicB":{"0":-2}}'
_TIMESTAMPS_EXAMPLE: Final = '{"topicA":{"0":1000,"1":1000},"topicB":{"0":2000}}'
_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,19}", re.ASCII)
_PARTITION: Final = re.compile(r"[0-9]{1,10}", re.ASCII)


def parse_partitions(option: str, value: str) -> tuple[TopicPartition, ...]:
    """Return the partitions of an `assign`, in order.

    Raises:
        OptionError: The value is not of this form, or names no partition, or one twice.
    """

    def fail(what: str) -> OptionError:
        return _unexpected(option, value, _PARTITIONS_EXAMPLE, what)

    found: list[TopicPartition] = []
    for topic, numbers in _read_object(value, fail).items():
        if not isinstance(numbers, list):
            raise fail(f"the partitions of {topic!r} are no list")
        for number in numbers:
            if not isinstance(number, int) or isinstance(number, bool) or not 0 <= number <= PARTITION_MAX:
                raise fail(f"{number!r} is no partition of {topic!r}")
            found.append(TopicPartition(topic, number))
    if not found:
        raise fail("it names no partition")
    if len(set(found)) < len(found):
        raise fail("a partition is given twice")
    return tuple(sorted(found))


def parse_offsets(option: str, value: str) -> dict[TopicPartition, int]:
    """Return the offsets of a `startingOffsets` or `endingOffsets`, with -1 and -2 as they are.

    Raises:
        OptionError: The value is not of this form, or an offset is below -2.
    """
    return _parse_by_partition(option, value, _OFFSETS_EXAMPLE, EARLIEST)


def parse_timestamps(option: str, value: str) -> dict[TopicPartition, int]:
    """Return the timestamps of a `startingOffsetsByTimestamp`, in milliseconds since the Unix epoch.

    Raises:
        OptionError: The value is not of this form, or a timestamp is negative (-1 and -2 would be offsets for Kafka).
    """
    return _parse_by_partition(option, value, _TIMESTAMPS_EXAMPLE, 0)


def json_object(offsets: Offsets) -> JsonOffsets:
    """Return what a stream reader hands to Spark: its `json.dumps` is the canonical text."""
    grouped: JsonOffsets = {}
    for partition in sorted(offsets):
        grouped.setdefault(partition.topic, {})[str(partition.partition)] = offsets[partition]
    return grouped


def json_object_with_start(end: Offsets, start: Offsets) -> JsonOffsets:
    """Return the end of a stream's first batch, which carries where the batch began."""
    return {**json_object(end), START: json_object(start)}


def from_json_object(value: Mapping[str, Any]) -> dict[TopicPartition, int]:
    """Return the offsets in what Spark hands over, without `START`: ours, or those of Spark's Kafka connector.

    Raises:
        OptionError: This is no such value: the checkpoint belongs to another source.
    """
    found: dict[TopicPartition, int] = {}
    for topic, by_partition in value.items():
        if topic == START:
            continue
        if not isinstance(by_partition, Mapping):
            raise _not_ours(value)
        for number, offset in by_partition.items():
            is_offset = isinstance(offset, int) and not isinstance(offset, bool) and 0 <= offset <= OFFSET_MAX
            if not is_offset or not _PARTITION.fullmatch(str(number)):
                raise _not_ours(value)
            found[TopicPartition(topic, int(number))] = offset
    return found


def start_in(value: Mapping[str, Any]) -> dict[TopicPartition, int] | None:
    """Return where the first batch began, when the value is the end of it; else None."""
    start = value.get(START)
    return None if start is None else from_json_object(start)


def text(offsets: Offsets) -> str:
    """Return the canonical text, byte for byte as Spark writes it into a checkpoint for this source."""
    return json.dumps(json_object(offsets))


def compact_text(offsets: Offsets) -> str:
    """Return Kafka's text without blanks, as Spark's Kafka connector writes it, for options and errors."""
    return json.dumps(json_object(offsets), separators=(",", ":"))


def _parse_by_partition(option: str, value: str, example: str, least: int) -> dict[TopicPartition, int]:
    def fail(what: str) -> OptionError:
        return _unexpected(option, value, example, what)

    found: dict[TopicPartition, int] = {}
    for topic, by_partition in _read_object(value, fail).items():
        if not isinstance(by_partition, dict):
            raise fail(f"what stands for {topic!r} is no object")
        for number, raw in by_partition.items():
            if not _PARTITION.fullmatch(number) or int(number) > PARTITION_MAX:
                raise fail(f"{number!r} is no partition of {topic!r}")
            partition = TopicPartition(topic, int(number))
            if partition in found:
                raise fail(f"{partition} is given twice")
            found[partition] = _whole_number(raw, least, partition, fail)
    if not found:
        raise fail("it names no partition")
    return found


def _whole_number(raw: object, least: int, partition: TopicPartition, fail: Callable[[str], OptionError]) -> int:
    # A number in quotes is one for Spark's connector too.
    is_number = isinstance(raw, int) and not isinstance(raw, bool)
    if not is_number and not (isinstance(raw, str) and _INTEGER.fullmatch(raw)):
        raise fail(f"{json.dumps(raw)} of {partition} is no whole number")
    number = int(str(raw))
    if not least <= number <= OFFSET_MAX:
        also = f", {LATEST} (latest) and {EARLIEST} (earliest)" if least == EARLIEST else ""
        raise fail(f"{number} of {partition} is out of range: allowed are 0 and more{also}")
    return number


def _read_object(value: str, fail: Callable[[str], OptionError]) -> dict[str, Any]:
    def no_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        whole = dict(pairs)
        if len(whole) < len(pairs):
            raise fail("a name is given twice")
        return whole

    try:
        parsed = json.loads(value, object_pairs_hook=no_doubles)
    except (ValueError, RecursionError) as error:
        if isinstance(error, OptionError):
            raise
        raise fail(f"it is no JSON: {error}") from None
    if not isinstance(parsed, dict):
        raise fail("it is no JSON object")
    return parsed


def _unexpected(option: str, value: str, example: str, what: str) -> OptionError:
    return OptionError(option, f"option '{option}': Expected e.g. {example}, got {value} ({what})")


def _not_ours(value: Mapping[str, Any]) -> OptionError:
    return OptionError(
        "checkpointLocation",
        f"the checkpoint holds offsets of another source: {json.dumps(value, default=str)}; expected topic to partition"
        f" to next offset, e.g. {_OFFSETS_EXAMPLE}; use a new checkpointLocation",
    )
