"""Pure core: what `odradek groups` reckons: how far a group lags behind, and which offsets a reset leads to.

*Lag* is how many records of a partition are still to be read: the end of the partition for the reader minus the offset
that the group committed. The end is the high watermark for `read_uncommitted` and the last stable offset for
`read_committed`: what an open transaction wrote cannot be read yet, and does not count. A topic's lag is the sum of its
partitions', and so is a member's. Where nothing was committed, or the partition is gone, there is no lag to tell.

*Source:* Kafka's ConsumerGroupCommand.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import attrs

from odradek.kernel.errors import ConfigError
from odradek.kernel.types import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from odradek.client.admin_group_values import GroupDescription, GroupMemberDescription


@attrs.frozen
class PartitionProgress:
    """How far a group is in one partition.

    Attributes:
        partition: Which.
        committed: The offset of the next record that the group wants; None when it committed nothing.
        end: Where the partition ends for its readers; None when it is gone, or nobody leads it.
        lag: How many records are left; None when that cannot be told.
        member: Who reads it; None for nobody.
        visible_lag: How many of these a consumer will be shown; None where nothing is hidden, or that is not known.
    """

    partition: TopicPartition
    committed: int | None
    end: int | None
    lag: int | None
    member: GroupMemberDescription | None
    visible_lag: int | None = None


def progress(
    group: GroupDescription, committed: Mapping[TopicPartition, int | None], ends: Mapping[TopicPartition, int]
) -> list[PartitionProgress]:
    """Return how far a group is in every partition that it reads or committed, by topic and partition.

    Args:
        group: The group.
        committed: What it committed.
        ends: Where partitions end for its readers; those that cannot be asked are left out.
    """
    readers = {
        TopicPartition(topic, number): member
        for member in group.members
        for topic, numbers in member.partitions.items()
        for number in numbers
    }
    return [
        PartitionProgress(
            partition,
            offset := committed.get(partition),
            end := ends.get(partition),
            _lag(offset, end),
            readers.get(partition),
        )
        for partition in sorted({*readers, *committed})
    ]


def _lag(committed: int | None, end: int | None) -> int | None:
    return None if committed is None or end is None else max(0, end - committed)


def total_lag(rows: Iterable[PartitionProgress]) -> int:
    """Return the sum of what is known."""
    return sum(row.lag for row in rows if row.lag is not None)


@attrs.frozen
class Reset:
    """Where a partition's committed offset goes.

    Attributes:
        partition: Which.
        before: What is committed now; None for nothing.
        after: What shall be.
        note: Why it is not what was asked for; empty when it is.
    """

    partition: TopicPartition
    before: int | None
    after: int
    note: str = ""

    def as_json(self) -> dict[str, Any]:
        """Return it as `--json` prints it."""
        return {
            "topic": self.partition.topic,
            "partition": self.partition.partition,
            "before": self.before,
            "after": self.after,
            "note": self.note,
        }


def within(partition: TopicPartition, before: int | None, wanted: int, *, start: int, end: int) -> Reset:
    """Return the reset to an offset, or to the nearest that the partition has.

    Args:
        partition: Which.
        before: What is committed.
        wanted: What is asked for.
        start: Its first offset.
        end: The offset behind its last record.
    """
    if wanted < start:
        return Reset(partition, before, start, f"it begins at {start}")
    if wanted > end:
        return Reset(partition, before, end, f"it ends at {end}")
    return Reset(partition, before, wanted)


def parse_partitions(text: str) -> tuple[str, tuple[int, ...]]:
    """Return a topic and its partitions of `orders` (all: none named), `orders:0` or `orders:0,3`.

    Raises:
        ConfigError: It is none.
    """
    topic, separator, numbers = text.partition(":")
    if not topic or (separator and not re.fullmatch(r"\d{1,9}(,\d{1,9})*", numbers, re.ASCII)):
        raise ConfigError(f"{text!r} names no partitions", hint="orders, orders:0 or orders:0,3")
    return topic, tuple(int(number) for number in numbers.split(",")) if numbers else ()


def parse_plan(lines: Iterable[str], source: str) -> dict[TopicPartition, int]:
    """Return the offsets of a file with `topic,partition,offset` in each line, as Kafka's tools write it.

    Raises:
        ConfigError: A line is something else, or a partition stands there twice.
    """
    plan: dict[TopicPartition, int] = {}
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        found = re.fullmatch(r'\s*"?([\w.-]+)"?\s*,\s*"?(\d{1,9})"?\s*,\s*"?(\d{1,18})"?\s*', line, re.ASCII)
        if found is None:
            raise ConfigError("expected topic,partition,offset", where=f"{source}, line {number}")
        partition = TopicPartition(found[1], int(found[2]))
        if partition in plan:
            raise ConfigError(f"{partition} is given twice", where=f"{source}, line {number}")
        plan[partition] = int(found[3])
    if not plan:
        raise ConfigError("there is nothing in it", where=source)
    return plan
