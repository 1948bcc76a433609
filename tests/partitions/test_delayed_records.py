"""Delayed records of one partition: appended in two, delivered once, over crashes, truncations and retention."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest
import trio

from odradek.kernel.cleanup.retention import delete_segments, sparing_delayed
from odradek.kernel.contracts.api_handler import RequestContext
from odradek.kernel.contracts.cleanup import Deletion
from odradek.kernel.contracts.storage import LogConfig
from odradek.kernel.delay.headers import DELAYED_FROM, DELAYED_TIMESTAMP
from odradek.kernel.errors import KafkaError
from odradek.kernel.partitions.delay_delivery import PREPARED_AHEAD_MS
from odradek.kernel.partitions.delay_recovery import DELAY_KIND, is_worth_keeping, keep_delays
from odradek.kernel.partitions.delay_withdrawal import LOOKS_MAX
from odradek.kernel.partitions.following import append_as_follower, rebuild_after_cut, truncate
from odradek.kernel.records.batch import read_header
from odradek.kernel.records.compression import CompressionType
from odradek.kernel.wire.messages.api_21_delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from odradek.plugins.delay_wheel.waiting_index import WaitingIndex
from tests.dispatch.deleting import deleting_handler

from .delayed_partition import WAITS, DelayedPartition, Sent

LATER = Sent(b"later", 1_000)
NOW = Sent(b"now")


@pytest.fixture
def partition(tmp_path: Path) -> Iterator[DelayedPartition]:
    partition = DelayedPartition(tmp_path)
    yield partition
    partition.close()


@pytest.mark.parametrize("codec", [CompressionType.NONE, CompressionType.ZSTD])
def test_a_record_is_seen_when_it_is_due_and_not_before(partition: DelayedPartition, codec: CompressionType) -> None:
    produced_ms = partition.now_ms
    assert partition.produce([NOW, LATER], codec=codec) == 1

    partition.pass_time(999)
    assert partition.values() == [b"now"]
    partition.pass_time(1)
    partition.pass_time(10**9)

    (record,) = partition.delivered()
    assert partition.values() == [b"now", b"later"]
    assert record.timestamp == produced_ms + 1_000
    assert record.headers == ((DELAYED_FROM, b"0:2"), (DELAYED_TIMESTAMP, b"%d" % (produced_ms - 7)))


def test_what_is_all_delayed_ends_in_a_control_batch(partition: DelayedPartition) -> None:
    partition.produce([LATER])

    headers = [read_header(batch) for batch in partition.batches()]

    assert [(header.is_control, header.records_count) for header in headers] == [(True, 1), (False, 0), (True, 1)]
    assert [header.base_offset for header in headers] == [0, 1, 2]


def test_a_batch_that_is_sent_again_waits_once(partition: DelayedPartition) -> None:
    assert partition.produce([LATER], sequence=0) == 1
    assert partition.produce([LATER], sequence=0) is None

    partition.pass_time(5_000)

    assert partition.values() == [b"later"]


def test_records_are_delivered_by_due_time_and_then_by_offset(partition: DelayedPartition) -> None:
    partition.produce([Sent(b"c", 30), Sent(b"b", 20)])
    partition.produce([Sent(b"b2", 20), Sent(b"a", 10)])

    partition.pass_time(1_000)

    assert partition.values() == [b"a", b"b", b"b2", b"c"]


def test_a_name_withdraws_what_waits_under_it(partition: DelayedPartition) -> None:
    partition.produce([Sent(b"gone", 100, name=b"n"), Sent(b"stays", 100, name=b"m")])
    partition.produce([Sent(b"", cancels=b"n")])
    partition.produce([Sent(b"named again", 100, name=b"n")])

    partition.pass_time(1_000)

    assert partition.values() == [b"stays", b"named again"]


def test_what_is_all_withdrawn_waits_no_more(partition: DelayedPartition) -> None:
    partition.produce([Sent(b"gone", 100, name=b"n"), Sent(b"", cancels=b"n")])

    partition.pass_time(1_000)

    assert partition.values() == []
    assert partition.replica.delays is not None
    assert partition.replica.delays.queue.waiting_count == 0


@pytest.mark.parametrize("is_commit", [True, False])
def test_a_record_of_a_transaction_waits_from_its_commit_on(partition: DelayedPartition, is_commit: bool) -> None:
    partition.produce([LATER], sequence=0, is_transactional=True)
    partition.pass_time(5_000)
    assert partition.values() == []

    partition.end_transaction(is_commit=is_commit)
    partition.pass_time(0)

    assert partition.values() == [b"later"] * is_commit


@pytest.mark.parametrize("is_clean", [True, False])
def test_what_waits_outlives_the_broker(partition: DelayedPartition, is_clean: bool) -> None:
    partition.produce([LATER, Sent(b"first", 10), Sent(b"withdrawn", 500, name=b"n")])
    partition.pass_time(10)
    partition.produce([Sent(b"of a transaction", 700)], sequence=0, is_transactional=True)
    partition.produce([Sent(b"", cancels=b"n")])
    (partition.restart if is_clean else partition.kill)()
    partition.end_transaction(is_commit=True)

    partition.pass_time(5_000)

    assert partition.values() == [b"first", b"of a transaction", b"later"]


def test_what_was_kept_saves_the_reading_of_the_log(partition: DelayedPartition) -> None:
    partition.produce([LATER])
    partition.restart()

    assert list(partition.replica.log.sidecars(DELAY_KIND)) == [3]
    (damaged,) = (path for place in partition.hosted.dirs for path in Path(place).glob("t-0/*3.delay"))
    damaged.write_bytes(damaged.read_bytes()[:-1] + b"\0")
    partition.kill()
    partition.pass_time(5_000)

    assert partition.values() == [b"later"]


def test_much_that_waits_is_not_kept_for_a_little_that_is_new(partition: DelayedPartition) -> None:
    partition.produce([LATER] * 100)
    ledger = partition.replica.delays
    assert ledger is not None
    assert is_worth_keeping(partition.replica.log, ledger)
    keep_delays(partition.replica.log, ledger)

    partition.produce([NOW] * 10)
    assert not is_worth_keeping(partition.replica.log, ledger)
    partition.produce([NOW])
    assert is_worth_keeping(partition.replica.log, ledger)


def test_a_companion_whose_batch_was_lost_counts_for_nothing(partition: DelayedPartition, tmp_path: Path) -> None:
    partition.produce([LATER], sequence=0)
    companion, *_ = partition.batches()
    other = DelayedPartition(tmp_path / "other", leader=2)
    append_as_follower(other.replica, companion)
    other.replica.write()
    other.lead()

    assert other.produce([LATER], sequence=0) == 2
    other.pass_time(5_000)
    assert other.values() == [b"later"]
    other.kill()
    other.pass_time(5_000)
    assert other.values() == [b"later"]
    other.close()


def test_a_follower_goes_on_with_what_its_leader_had(partition: DelayedPartition, tmp_path: Path) -> None:
    partition.produce([LATER, Sent(b"first", 10)])
    partition.pass_time(10)
    follower = DelayedPartition(tmp_path / "follower", leader=2)
    for batch in partition.batches():
        append_as_follower(follower.replica, batch)
    follower.replica.write()
    follower.pass_time(5_000)
    assert follower.values() == [b"first"]

    follower.lead()
    follower.pass_time(0)

    assert follower.values() == [b"first", b"later"]
    follower.close()


def test_a_delivery_that_is_truncated_is_made_again(partition: DelayedPartition, tmp_path: Path) -> None:
    partition.produce([LATER])
    partition.pass_time(1_000)
    follower = DelayedPartition(tmp_path / "follower", leader=2)
    for batch in partition.batches():
        append_as_follower(follower.replica, batch)
    follower.replica.write()
    assert follower.values() == [b"later"]

    truncate(follower.replica, 3)
    trio.run(rebuild_after_cut, follower.hosted.lifecycle, follower.replica, follower.now_ms)
    assert follower.values() == []
    follower.lead()
    follower.pass_time(5_000)

    assert follower.values() == [b"later"]
    follower.close()


def test_a_delivery_without_its_records_counts_for_nothing(partition: DelayedPartition, tmp_path: Path) -> None:
    partition.produce([LATER])
    partition.pass_time(1_000)
    follower = DelayedPartition(tmp_path / "follower", leader=2)
    for batch in partition.batches()[:-1]:
        append_as_follower(follower.replica, batch)
    follower.replica.write()
    follower.lead()

    follower.pass_time(1_000)

    assert follower.values() == [b"later"]
    follower.close()


def test_a_segment_stays_while_something_in_it_waits(tmp_path: Path) -> None:
    partition = DelayedPartition(tmp_path, log_config=LogConfig(segment_bytes=200))
    for number in range(4):
        partition.produce([Sent(b"%d" % number), Sent(b"waits %d" % number, 1_000)])
    replica, end = partition.replica, partition.replica.high_watermark

    spared = sparing_delayed(replica, Deletion(end, "all is old"))
    assert delete_segments(replica, spared) == 0
    partition.pass_time(1_000)
    deletion = Deletion(replica.high_watermark, "all is old")
    assert sparing_delayed(replica, deletion).below == 0  # a loss of power may take what was delivered
    replica.log.flush()
    assert sparing_delayed(replica, deletion) == deletion

    assert partition.values()[-4:] == [b"waits %d" % number for number in range(4)]
    partition.close()


def test_a_segment_stays_until_what_was_delivered_is_committed(tmp_path: Path) -> None:
    """A leader that has not heard of the delivery would have neither it nor what was to be delivered."""
    partition = DelayedPartition(tmp_path, log_config=LogConfig(segment_bytes=200))
    partition.produce([NOW, LATER])
    partition.produce([NOW])
    replica, ledger = partition.replica, partition.replica.delays
    assert ledger is not None
    before = replica.high_watermark
    partition.pass_time(1_000)
    assert partition.values()[-1] == b"later"

    assert ledger.needed_from(before) == 0
    assert ledger.needed_from(replica.high_watermark - 1) == 0
    assert ledger.needed_from(replica.high_watermark) is None
    partition.close()


def test_times_that_count_no_more_take_no_memory(partition: DelayedPartition) -> None:
    """What is due far away is noted again behind whatever is due before it."""
    partition.produce([Sent(b"far", 10**9)])
    for _ in range(300):
        partition.produce([Sent(b"near", 10)])
        partition.pass_time(10)

    assert len(partition.delivered()) == 300
    assert len(partition.delivery._times) < 100


def test_deleted_records_do_not_wait(partition: DelayedPartition) -> None:
    partition.produce([LATER])
    partition.produce([Sent(b"stays", 1_000)])
    replica = partition.replica
    assert replica.delays is not None
    replica.log.advance_log_start(3)
    replica.delays.start_advanced(3)

    partition.pass_time(5_000)

    assert partition.values() == [b"stays"]


def test_nothing_of_a_batch_is_kept_that_asks_for_what_cannot_be(partition: DelayedPartition) -> None:
    with pytest.raises(KafkaError, match="negative"):
        partition.produce([NOW, LATER, Sent(b"bad", -5)])

    partition.pass_time(5_000)

    assert partition.values() == []


def test_a_follower_is_prepared_for_what_its_leader_will_deliver(
    partition: DelayedPartition, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else it would sort all that waits in one go, when it is told of the first delivery."""
    partition.produce([LATER])
    follower = DelayedPartition(tmp_path / "follower", leader=2)
    for batch in partition.batches():
        append_as_follower(follower.replica, batch)
    follower.replica.write()
    assert follower.replica.delays is not None
    asked: list[int] = []

    def prepare(now_ms: int) -> bool:
        asked.append(now_ms - follower.now_ms)
        return len(asked) == 3

    monkeypatch.setattr(follower.replica.delays.queue, "prepare", prepare)
    follower.delivery.look_around()
    while ledgers := follower.delivery.take_due():
        for ledger in ledgers:
            follower.delivery.deliver(ledger)

    assert asked == [PREPARED_AHEAD_MS] * 3
    follower.close()


def test_who_comes_to_lead_delivers_at_once(partition: DelayedPartition) -> None:
    partition.produce([LATER])
    partition.leader, partition.epoch = 2, 1
    partition.take_state()
    partition.pass_time(1_000)
    assert partition.values() == []
    hosted = partition.hosted

    hosted.open("t", leader=1, epoch=2, log_config=partition.log_config, delay=WAITS)
    partition.deliver()

    assert partition.values() == [b"later"]


def test_what_is_not_served_any_more_is_not_watched(partition: DelayedPartition) -> None:
    assert len(partition.delivery._watched) == 1

    for _ in partition.hosted.lifecycle.delete_topic_in_steps("t", 1):
        pass
    partition.delivery.look_around()

    assert len(partition.delivery._watched) == 0


@pytest.mark.parametrize(("offset", "start_offset", "is_seen"), [(4, 3, True), (3, 3, True), (5, 5, False)])
def test_deleting_what_lies_below_a_batch_leaves_what_waits_of_it(
    partition: DelayedPartition, offset: int, start_offset: int, is_seen: bool
) -> None:
    """The producer was told 4, and what holds its delayed records is at 3."""
    partition.produce([NOW] * 3)
    assert partition.produce([LATER, NOW]) == 4
    handler = deleting_handler(partition.hosted.replicas, lambda _topic: True)
    wanted = DeleteRecordsTopic(name="t", partitions=[DeleteRecordsPartition(partition_index=0, offset=offset)])

    answer = handler.handle(DeleteRecordsRequest(topics=[wanted]), cast("RequestContext", None))
    partition.restart()
    partition.pass_time(1_000)

    assert isinstance(answer, DeleteRecordsResponse)
    assert answer.topics[0].partitions[0].low_watermark == start_offset
    assert partition.replica.log.log_start_offset == start_offset
    assert (b"later" in partition.values()) is is_seen


def test_queues_are_asked_so_often_by_a_request_whatever_it_names_and_by_the_next_one_again(
    partition: DelayedPartition, monkeypatch: pytest.MonkeyPatch
) -> None:
    partition.produce([LATER])
    offsets = [partition.produce([LATER, NOW]) for _ in range(4)]
    asked = []
    monkeypatch.setattr(WaitingIndex, "prepare", lambda _queue, now_ms: asked.append(now_ms))
    handler = deleting_handler(partition.hosted.replicas, lambda _topic: True)
    for begin in (0, 2):
        topics = [
            DeleteRecordsTopic(name="t", partitions=[DeleteRecordsPartition(partition_index=0, offset=offset)])
            for offset in offsets[begin : begin + 2]
            if offset is not None
        ]
        handler.handle(DeleteRecordsRequest(topics=topics), cast("RequestContext", None))

        assert len(asked) == LOOKS_MAX
        asked.clear()
