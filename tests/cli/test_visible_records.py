"""What of a log consumers are shown: counted as they would be shown it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from odradek.cli.log_reads import LogPart
from odradek.cli.visible_records import VisibleRecords
from tests.partitions.delayed_partition import DelayedPartition, Sent


@pytest.fixture
def partition(tmp_path: Path) -> Iterator[DelayedPartition]:
    partition = DelayedPartition(tmp_path)
    yield partition
    partition.close()


def visible(partition: DelayedPartition, start: int, end: int = 10**6) -> int:
    found = VisibleRecords(start, end)
    found.read(LogPart(memoryview(b"".join(partition.batches()))))
    return found.count


def test_what_waits_is_not_counted_and_what_was_delivered_is_once(partition: DelayedPartition) -> None:
    partition.produce([Sent(b"now"), Sent(b"later", 1_000), Sent(b"too"), Sent(b"much later", 10**6)])

    assert visible(partition, 0) == 2
    partition.pass_time(1_000)
    assert (visible(partition, 0), len(partition.values())) == (3, 3)


def test_of_a_batch_that_was_read_in_part_the_rest_counts(partition: DelayedPartition) -> None:
    first = partition.produce([Sent(b"a"), Sent(b"later", 1_000), Sent(b"b"), Sent(b"c")])
    assert first is not None

    assert [visible(partition, first + place) for place in range(5)] == [3, 2, 2, 1, 0]
    assert [visible(partition, 0, first + place) for place in range(5)] == [0, 1, 1, 2, 3]
    assert visible(partition, first + 1, first + 3) == 1
