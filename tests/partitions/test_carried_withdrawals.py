"""What a transaction that is open may withdraw is not carried forward: no copy lies behind its withdrawal."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from odradek.kernel.contracts.storage import LogConfig
from odradek.kernel.delay import carrying
from odradek.kernel.machine.turnstile import run_at_once

from .delayed_partition import DelayedPartition, Sent

LATER = Sent(b"later", 1_000, b"name")


@pytest.fixture
def partition(tmp_path: Path) -> Iterator[DelayedPartition]:
    partition = DelayedPartition(tmp_path / "p", log_config=LogConfig(segment_bytes=1_000))
    yield partition
    partition.close()


@pytest.mark.parametrize("is_commit", [True, False])
def test_what_a_transaction_may_withdraw_stays_until_that_ends(
    partition: DelayedPartition, tmp_path: Path, is_commit: bool
) -> None:
    """A copy behind the withdrawal would wait again where the log begins between the two."""
    first = Sent(b"first", 1_000)
    partition.produce([first])
    named = partition.produce([LATER, Sent(b"beside", 1_000)])
    assert named is not None
    partition.produce([Sent(b"behind", 1_000)])
    end = partition.replica.log.log_end_offset
    partition.produce([Sent(b"", cancels=b"name")], 0, is_transactional=True)

    assert partition.carry(end) == 1
    assert partition.replica.log.log_start_offset == named - 1
    partition.end_transaction(is_commit=is_commit)
    assert partition.carry(partition.replica.log.log_end_offset) == 2 + (not is_commit)
    assert partition.replica.log.log_start_offset >= end
    late = partition.replicated(tmp_path / "late")
    kept = [b"behind", b"beside", b"first"] if is_commit else [b"behind", b"beside", b"first", b"later"]
    for each in (partition, late):
        each.pass_time(1_000)
        assert sorted(value or b"" for value in each.values()) == kept
    late.close()


def test_what_a_transaction_comes_to_withdraw_while_its_companion_is_carried_stays(
    partition: DelayedPartition, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(carrying, "CARRIED_RECORDS_MAX", 2)
    partition.produce([Sent(b"%d" % number, 1_000, b"name %d" % number) for number in range(6)])
    replica, end = partition.replica, partition.replica.log.log_end_offset
    piece = partition.delivery.carrying.begin(replica, replica.high_watermark)
    step = piece.step()
    while replica.log.log_end_offset == end:
        next(step)
    partition.produce([Sent(b"", cancels=b"name 3")], 0, is_transactional=True)

    run_at_once(step)
    assert piece.carried_count == 3
    while run_at_once(piece.step()):
        partition.write()
    assert replica.log.log_start_offset == 0
    partition.end_transaction(is_commit=True)
    assert partition.carry(replica.log.log_end_offset) == 2
    partition.pass_time(1_000)
    assert partition.values() == [b"0", b"1", b"2", b"4", b"5"]
