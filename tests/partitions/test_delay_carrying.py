"""What waits in segments that retention takes is carried forward: what is, what is not, when the log starts later."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import attrs
import pytest
import trio

from odradek.cli.log_reads import LogPart
from odradek.cli.waiting_records import WaitingRecords
from odradek.kernel.cleanup.log_states import Policies
from odradek.kernel.cleanup.retention import delete_segments, sparing_delayed
from odradek.kernel.contracts.cleanup import CleanupSettings, Deletion
from odradek.kernel.contracts.storage import LogConfig
from odradek.kernel.delay import carrying
from odradek.kernel.delay.companion import read_companion
from odradek.kernel.errors import KafkaError
from odradek.kernel.machine.turnstile import SLICE_STEPS, run_at_once
from odradek.kernel.partitions import delay_carrying, delay_pieces
from odradek.kernel.partitions.delay_pieces import AGAIN_MS
from odradek.kernel.partitions.delay_recovery import start_with_companion
from odradek.kernel.partitions.delay_withdrawal import LOOKS_MAX, Looks, may_withdraw, withdraw_below
from odradek.kernel.partitions.following import append_as_follower, note_leader
from odradek.kernel.records.batch import read_header
from odradek.plugins.cleanup.delete import DeletePolicy
from odradek.plugins.delay_wheel.waiting_index import WaitingIndex
from tests.cleanup.compacted import retention_on

from .delayed_partition import DelayedPartition, Sent

LATER = Sent(b"later", 1_000, b"name")
NOW = Sent(b"now")
FAR_MS = 10 * AGAIN_MS


@pytest.fixture
def partition(tmp_path: Path) -> Iterator[DelayedPartition]:
    partition = DelayedPartition(tmp_path / "p", log_config=LogConfig(segment_bytes=1_000))
    yield partition
    partition.close()


def carried_from(partition: DelayedPartition) -> list[int]:
    """Return the offsets of the companions that something was carried forward from, in the log's order."""
    found = []
    for batch in partition.batches():
        companion = read_companion(batch, read_header(batch))
        if companion is not None and companion.is_carried:
            found.append(companion.carried_from)
    return found


def test_what_waits_is_carried_and_the_log_starts_behind_it(partition: DelayedPartition) -> None:
    partition.produce([NOW, LATER])
    end = partition.replica.high_watermark

    assert partition.carry(end) == 1
    assert partition.replica.log.log_start_offset == end
    assert carried_from(partition) == [0]
    partition.deliver()
    assert partition.ledger.queue.waiting_count == 1
    partition.pass_time(1_000)
    assert partition.values() == [b"now", b"later"]


def test_what_was_delivered_or_withdrawn_is_not_carried(partition: DelayedPartition) -> None:
    partition.produce([Sent(b"soon", 10), LATER, Sent(b"far", 2_000)])
    partition.produce([Sent(b"", cancels=b"name")])
    partition.pass_time(10)

    assert partition.carry(partition.replica.high_watermark) == 1
    partition.pass_time(5_000)
    assert partition.values() == [b"soon", b"far"]


def test_what_waits_for_its_transaction_stays_and_so_does_all_behind_it(partition: DelayedPartition) -> None:
    partition.produce([LATER])
    begin = partition.produce([Sent(b"of a transaction", 1_000)], 0, is_transactional=True)
    partition.produce([Sent(b"behind", 1_000)])
    end = partition.replica.log.log_end_offset
    assert begin is not None

    assert partition.carry(end) == 1
    assert partition.replica.log.log_start_offset == begin - 1
    partition.end_transaction(is_commit=True)
    assert partition.carry(end) == 2
    assert partition.replica.log.log_start_offset == end
    partition.pass_time(1_000)
    assert sorted(value or b"" for value in partition.values()) == [b"behind", b"later", b"of a transaction"]


@pytest.mark.parametrize("behind", [0, 1 << 12])
def test_what_begins_to_wait_while_others_are_carried_stays(tmp_path: Path, behind: int) -> None:
    """Its transaction was open as it was passed, and is committed before the log may start behind the others."""
    partition = DelayedPartition(tmp_path)
    partition.produce([LATER], 0, is_transactional=True)
    if behind:
        partition.produce([NOW] * behind)
        partition.produce([Sent(b"behind", 1_000)])
    replica = partition.replica
    carrying = partition.delivery.carrying.begin(replica, replica.high_watermark)

    run_at_once(carrying.step())
    partition.end_transaction(is_commit=True)
    while run_at_once(carrying.step()):
        partition.write()
    assert replica.log.log_start_offset == 0
    partition.pass_time(1_000)
    assert b"later" in partition.values()
    partition.close()


def test_what_was_aborted_is_not_carried(partition: DelayedPartition) -> None:
    partition.produce([LATER], 0, is_transactional=True)
    partition.end_transaction(is_commit=False)
    partition.produce([Sent(b"other", 1_000)])

    assert partition.carry(partition.replica.high_watermark) == 1
    partition.pass_time(1_000)
    assert partition.values() == [b"other"]


def test_a_log_of_which_all_waits_is_not_written_again_and_again(partition: DelayedPartition) -> None:
    for number in range(3):
        partition.produce([Sent(b"%d" % number, FAR_MS)])
    assert partition.carry(partition.replica.high_watermark) == 3
    start = partition.replica.log.log_start_offset

    assert partition.carry(partition.replica.high_watermark) == 0
    assert partition.replica.log.log_start_offset == start
    partition.pass_time(AGAIN_MS)
    assert partition.carry(partition.replica.high_watermark) == 3


def test_what_was_carried_is_carried_again_once_much_came_behind_it(partition: DelayedPartition) -> None:
    partition.produce([Sent(b"far", FAR_MS)])
    partition.carry(partition.replica.high_watermark)
    partition.produce([NOW])
    partition.deliver()

    assert partition.carry(partition.replica.high_watermark) == 1


def test_the_log_starts_later_only_when_what_was_carried_is_committed_and_durable(tmp_path: Path) -> None:
    """What waits may have been on the disk for years: a loss of power takes it neither there nor here."""
    partition = DelayedPartition(tmp_path)
    partition.produce([LATER])
    replica = partition.replica
    carrying = partition.delivery.carrying.begin(replica, replica.high_watermark)

    assert run_at_once(carrying.step())
    assert replica.log.log_end_offset > replica.high_watermark  # nothing was written yet
    assert run_at_once(carrying.step())
    partition.hosted.writes.write_staged()
    for _ in range(2):
        assert run_at_once(carrying.step())
    assert replica.log.log_start_offset == 0
    assert len(partition.hosted.writes.flush_queue) == 1
    partition.write()
    assert not run_at_once(carrying.step())
    assert replica.log.log_start_offset > 0
    assert replica.log.recovery_point == replica.log.log_end_offset
    partition.close()


def test_who_leads_no_more_carries_no_more(tmp_path: Path) -> None:
    partition = DelayedPartition(tmp_path)
    partition.produce([LATER])
    replica = partition.replica
    carrying = partition.delivery.carrying.begin(replica, replica.high_watermark)
    partition.leader, partition.epoch = 2, 1
    partition.take_state()
    assert not run_at_once(carrying.step())

    partition.leader, partition.epoch = 1, 2
    partition.take_state()
    assert not run_at_once(carrying.step())
    assert not carried_from(partition)
    partition.close()


def test_a_follower_counts_what_its_leader_carried(partition: DelayedPartition, tmp_path: Path) -> None:
    partition.produce([NOW, LATER])
    partition.carry(partition.replica.high_watermark)
    follower = DelayedPartition(tmp_path / "follower", leader=2)
    for batch in partition.batches():
        append_as_follower(follower.replica, batch)
    follower.replica.write()
    start = partition.replica.log.log_start_offset
    note_leader(follower.replica, partition.replica.high_watermark, start)
    follower.lead()

    assert follower.replica.log.log_start_offset == start
    follower.pass_time(1_000)
    assert follower.values() == [b"now", b"later"]
    follower.close()


def test_pieces_are_bounded(partition: DelayedPartition, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delay_pieces, "PIECE_BYTES", 500)
    for number in range(20):
        partition.produce([Sent(b"%d" % number, 1_000)])
    end = partition.replica.high_watermark
    carrying = partition.delivery.carrying.begin(partition.replica, end)
    counts = [0]
    while run_at_once(carrying.step()):
        partition.write()
        counts.append(carrying.carried_count)

    assert counts[-1] == 20
    assert max(after - before for before, after in pairwise(counts)) < 5
    assert partition.replica.log.log_start_offset == end


def test_what_counts_elsewhere_is_not_carried_again_where_a_kill_has_put_the_logs_start_back(
    partition: DelayedPartition,
) -> None:
    """Where a log starts is kept now and then; what is kept of what waits may be of a later start."""
    partition.produce([LATER])
    partition.carry(partition.replica.high_watermark)
    partition.restart()
    partition.replica.log.log_start_offset = 0  # type: ignore[misc] # as the checkpoint of a minute ago has it

    partition.carry(3)
    assert carried_from(partition) == [0]
    partition.pass_time(1_000)
    assert partition.values() == [b"later"]


def test_what_is_read_is_read_in_steps(partition: DelayedPartition) -> None:
    """Between two steps others come: one step is one batch, or so much of a large one as a thousand bytes."""
    partition.produce([Sent(b"%d" % number, 1_000) for number in range(400)])
    carrying = partition.delivery.carrying.begin(partition.replica, partition.replica.high_watermark)

    assert sum(1 for _ in carrying.step()) > 300
    assert SLICE_STEPS == 1_000


def test_much_of_one_companion_is_carried_in_slices_and_what_is_delivered_between_two_is_not(
    partition: DelayedPartition, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(carrying, "CARRIED_RECORDS_MAX", 4)
    sent = [b"%d" % number for number in range(12)]
    partition.produce([Sent(value, 1_000 + number // 6) for number, value in enumerate(sent)])
    replica = partition.replica
    end = replica.log.log_end_offset
    step = partition.delivery.carrying.begin(replica, replica.high_watermark).step()
    while replica.log.log_end_offset == end:
        next(step)
    partition.write()
    partition.pass_time(1_000)

    assert sum(1 for _ in step) > SLICE_STEPS
    partition.write()
    assert len(carried_from(partition)) == 3  # four; of the next four two; the last four
    partition.pass_time(1_000)
    assert partition.values() == sent


def test_a_piece_has_so_many_records_at_most(partition: DelayedPartition, monkeypatch: pytest.MonkeyPatch) -> None:
    """All of it comes to count in one go, as the log starts later."""
    monkeypatch.setattr(delay_pieces, "PIECE_RECORDS", 5)
    for number in range(20):
        partition.produce([Sent(b"%d" % number, 1_000)])
    replica = partition.replica
    piece = partition.delivery.carrying.begin(replica, replica.high_watermark)

    run_at_once(piece.step())
    assert piece.carried_count == 5


def test_what_cannot_be_read_is_told_and_left_behind(partition: DelayedPartition) -> None:
    partition.produce([Sent(b"rotten", 1_000)])
    partition.produce([LATER])
    end = partition.replica.high_watermark
    partition.rot(0)

    assert partition.carry(end) == 1
    assert partition.replica.log.log_start_offset == end
    partition.pass_time(1_000)
    assert partition.values() == [b"later"]


def test_retention_has_it_carried_and_takes_the_segments_the_next_time(partition: DelayedPartition) -> None:
    hosted, replica = partition.hosted, partition.replica
    for number in range(30):
        partition.produce([Sent(b"%d" % number), Sent(b"waits %d" % number, 10_000)])
    hosted.replicas.topics["t"].plan = attrs.evolve(
        hosted.replicas.topics["t"].plan, cleanup=CleanupSettings(retention_ms=5_000)
    )
    retention = retention_on(hosted, Policies({"delete": DeletePolicy()}), partition.delivery.carrying.ask)
    end = replica.high_watermark
    partition.pass_time(5_500)

    async def retain() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(partition.delivery.carrying.run)
            await retention.clean()
            while replica.log.log_start_offset < end:
                partition.write_staged()
                await trio.sleep(delay_carrying.PAUSE_S / 10)
            nursery.cancel_scope.cancel()

    trio.run(retain)
    assert replica.log.log_start_offset == end
    assert partition.delivery.carrying.carried_count == 30
    partition.deliver()
    assert partition.ledger.queue.waiting_count == 30
    replica.log.delete_segments_below(end)
    partition.pass_time(5_000)
    assert [value for value in partition.values() if value and value.startswith(b"waits")] == [
        b"waits %d" % number for number in range(30)
    ]


def test_segments_go_of_which_nothing_waits_however_near_something_does(partition: DelayedPartition) -> None:
    """What has to stay is known in stretches of offsets; a stretch of large records is a large part of a log."""
    for number in range(30):
        partition.produce([Sent(b"%d" % number), Sent(b"waits %d" % number, 10_000)])
    replica, end = partition.replica, partition.replica.high_watermark
    partition.carry(end)
    start = replica.log.log_start_offset

    spared = sparing_delayed(replica, Deletion(start, "all is old"))
    assert delete_segments(replica, spared) > 0
    assert read_header(partition.batches()[0]).base_offset > 0
    partition.pass_time(10_000)
    assert [value for value in partition.values() if value and value.startswith(b"waits")] == [
        b"waits %d" % number for number in range(30)
    ]


def test_a_disk_that_fails_takes_its_partition_and_nobody_else(
    partition: DelayedPartition, monkeypatch: pytest.MonkeyPatch
) -> None:
    partition.produce([LATER])
    carrying = partition.delivery.carrying

    def fail(*_asked: object) -> None:
        raise OSError("the disk is gone")

    monkeypatch.setattr(delay_pieces.Carrying, "_carry_piece", fail)

    async def carry() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(carrying.run)
            carrying.ask(partition.replica, partition.replica.high_watermark)
            with trio.fail_after(5):
                while partition.replica.offline_reason is None:  # noqa: ASYNC110 - nobody tells
                    await trio.sleep(0.01)
            nursery.cancel_scope.cancel()

    trio.run(carry)
    with pytest.raises(KafkaError):
        partition.replica.check_leader(-1)


def delete_below(partition: DelayedPartition, offset: int, looks: Looks | None = None) -> int | None:
    """Do what a DeleteRecords does; return where what has to be committed ends."""
    looks = looks or Looks()
    replica = partition.replica
    target = start_with_companion(replica.log, offset)
    committed_at = withdraw_below(replica, target, looks) if may_withdraw(partition.ledger, target) else None
    partition.write()
    return committed_at


def read_as_a_client(partition: DelayedPartition) -> WaitingRecords:
    start = partition.replica.log.log_start_offset
    found = WaitingRecords(start)
    batches = [batch for batch in partition.batches() if read_header(batch).next_offset > start]
    found.read(LogPart(b"".join(batches)))
    return found


def test_what_a_delete_records_withdraws_is_counted(partition: DelayedPartition) -> None:
    partition.produce([Sent(b"a", 1_000), Sent(b"b", 2_000)])
    offset = partition.produce([Sent(b"c", 1_000)])
    assert offset is not None

    assert delete_below(partition, offset) is None
    assert partition.replica.log.log_start_offset == offset - 1
    read = read_as_a_client(partition)
    assert (read.withdrawn_count, read.left_count) == (2, 1)
    partition.pass_time(5_000)
    assert partition.values() == [b"c"]


@pytest.mark.parametrize("is_known", [False, True])
def test_delete_records_withdraws_what_was_carried_forward_too(partition: DelayedPartition, is_known: bool) -> None:
    """Also what is carried, and not committed: there it waits where it was, and behind the offset."""
    partition.produce([Sent(b"a", 1_000), Sent(b"b", 2_000)])
    end = partition.replica.high_watermark
    if is_known:
        partition.carry(end)
    else:
        run_at_once(partition.delivery.carrying.begin(partition.replica, end).step())
        partition.write()
    offset = partition.produce([Sent(b"c", 1_000)])
    assert offset is not None

    assert delete_below(partition, offset) == partition.replica.log.log_end_offset  # other replicas have to hear it
    read = read_as_a_client(partition)
    assert (read.withdrawn_count, read.left_count) == (2, 1)
    for begin in (partition.restart, partition.read_again):
        begin()
        assert partition.carry(partition.replica.high_watermark) <= 1  # c, of that what was withdrawn nothing
    partition.pass_time(5_000)
    assert partition.values() == [b"c"]


def test_delete_records_below_where_the_log_starts_withdraws_what_was_carried(partition: DelayedPartition) -> None:
    """It is there for whoever asks as it was; and a leader may have heard where the log starts, and not of the note."""
    partition.produce([Sent(b"a", 1_000)])
    offset = partition.produce([Sent(b"b", 1_000)])
    assert offset is not None
    partition.carry(partition.replica.high_watermark)
    start = partition.replica.log.log_start_offset
    assert start > offset

    assert delete_below(partition, offset) == partition.replica.log.log_end_offset
    read = read_as_a_client(partition)
    assert (read.withdrawn_count, read.left_count) == (1, 1)
    end = partition.replica.log.log_end_offset
    assert delete_below(partition, offset) == end  # once more: it is said already, and perhaps not committed
    assert (partition.replica.log.log_start_offset, partition.replica.log.log_end_offset) == (start, end)
    partition.read_again()
    partition.pass_time(1_000)
    assert partition.values() == [b"b"]
    assert not may_withdraw(partition.ledger, offset)


def test_what_one_request_withdraws_is_counted_only_where_that_is_soon_known(
    partition: DelayedPartition, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many partitions it names, with however much waiting in each: queues work only so often."""
    partition.produce([Sent(b"a", 1_000)])
    offsets = [partition.produce([Sent(b"b", 1_000)]) for _ in range(3)]
    asked = []
    monkeypatch.setattr(WaitingIndex, "prepare", lambda _queue, now_ms: asked.append(now_ms))
    looks = Looks()
    for offset in offsets:
        assert offset is not None
        delete_below(partition, offset, looks)

    assert len(asked) == LOOKS_MAX
    monkeypatch.undo()
    assert partition.ledger.withdrawn_below == (offsets[-1] or 0) - 1
    partition.pass_time(1_000)
    assert partition.values() == [b"b"]
