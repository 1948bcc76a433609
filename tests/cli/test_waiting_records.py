"""What `odradek delay` reads out of a log: the same as its broker knows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from odradek.cli.log_reads import LogPart
from odradek.cli.waiting_records import WaitingRecords
from tests.partitions.delayed_partition import DelayedPartition, Sent


@pytest.fixture
def partition(tmp_path: Path) -> Iterator[DelayedPartition]:
    partition = DelayedPartition(tmp_path)
    yield partition
    partition.close()


def read(partition: DelayedPartition) -> WaitingRecords:
    found = WaitingRecords(0)
    found.read(LogPart(b"".join(partition.batches())))
    return found


def test_what_an_open_transaction_holds_is_left_though_it_does_not_wait_yet(partition: DelayedPartition) -> None:
    """Who drains a topic before it goes elsewhere would lose it when the transaction is committed there."""
    partition.produce([Sent(b"later", 1_000), Sent(b"", cancels=b"n")], sequence=0, is_transactional=True)
    assert (read(partition).waiting(), read(partition).left_count) == ([], 1)

    partition.end_transaction(is_commit=True)
    assert [each.record.value for each in read(partition).waiting()] == [b"later"]
    assert read(partition).left_count == 1

    partition.pass_time(1_000)
    assert read(partition).left_count == 0


def test_what_was_delivered_waits_no_more_and_the_others_do(partition: DelayedPartition) -> None:
    partition.produce([Sent(b"%d" % after_ms, after_ms) for after_ms in (30, 10, 20, 40)])
    partition.pass_time(20)

    assert [each.record.value for each in read(partition).waiting()] == [b"30", b"40"]


def test_of_two_withdrawals_the_one_that_was_produced_later_counts(partition: DelayedPartition) -> None:
    partition.produce([Sent(b"", cancels=b"n")], sequence=0, is_transactional=True)
    partition.produce([Sent(b"gone", 1_000, name=b"n")])
    partition.produce([Sent(b"", cancels=b"n")])
    partition.end_transaction(is_commit=True)

    assert read(partition).waiting() == []
    partition.pass_time(1_000)
    assert partition.values() == []
