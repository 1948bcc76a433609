"""Delayed records that a disk forgot, and queues that have a bug: their partition is served, all else is delivered."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from odradek.kernel.api import WaitingRecord

from .delayed_partition import DelayedPartition, Sent
from .test_upkeep import do

LATER = Sent(b"later", 1_000)


@pytest.fixture
def partition(tmp_path: Path) -> Iterator[DelayedPartition]:
    partition = DelayedPartition(tmp_path)
    yield partition
    partition.close()


def broken(*_args: object) -> bytes:
    raise ZeroDivisionError("a bug")


@pytest.mark.parametrize("is_read_again", [False, True])
def test_what_a_disk_forgot_is_passed_over_and_all_else_is_delivered(
    partition: DelayedPartition, is_read_again: bool
) -> None:
    """Nobody can read it any more, and a partition that is offline for it would be so for ever."""
    partition.produce([Sent(b"first", 10)])
    partition.produce([Sent(b"forgotten", 10), Sent(b"with it", 30)])
    partition.produce([Sent(b"last", 20)])
    partition.rot(3)
    if is_read_again:
        partition.read_again()

    partition.pass_time(1_000)

    assert partition.values() == [b"first", b"last"]
    assert partition.delivery.statistics.unreadable_count == 1
    assert partition.replica.offline_reason is None
    assert partition.replica.delays is not None
    assert partition.replica.delays.queue.waiting_count == 0
    assert partition.produce([LATER]) is not None


def test_nothing_is_delivered_of_records_that_are_not_as_many_as_wait(partition: DelayedPartition) -> None:
    partition.produce([LATER])
    ledger = partition.replica.delays
    assert ledger is not None
    ledger.queue.waits(WaitingRecord(partition.now_ms, 77, 0))
    ledger.queue.waits(WaitingRecord(partition.now_ms, 78, 1))  # where there is no companion
    ledger.on_due(partition.now_ms)

    partition.pass_time(1_000)

    assert partition.delivery.statistics.unreadable_count == 2
    assert partition.produce([LATER]) is not None


def test_what_cannot_be_kept_keeps_no_log_from_being_closed(
    partition: DelayedPartition, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A delay queue is a plugin's, and may have a bug."""
    partition.produce([LATER])
    ledger = partition.replica.delays
    assert ledger is not None
    monkeypatch.setattr(ledger.queue, "encode", broken)
    do(partition.hosted, lambda upkeep: upkeep.keep_producers)
    partition.restart()

    partition.pass_time(5_000)

    assert partition.values() == [b"later"]
    assert partition.replica.log.was_clean
