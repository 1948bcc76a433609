"""A topic gets `odradek.delay.enable` while it serves: its log is read in slices, whatever becomes of it meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from unittest import mock

import pytest
import trio
import trio.testing

from odradek.kernel.cleanup.retention import sparing_delayed
from odradek.kernel.contracts.cleanup import Deletion
from odradek.kernel.errors import StorageError
from odradek.kernel.machine.turnstile import SLICE_STEPS
from odradek.kernel.partitions.delay_beginnings import AGAIN_S, fill_in_steps
from odradek.kernel.partitions.following import append_as_follower, truncate
from odradek.kernel.partitions.full_disks import Reopened
from odradek.plugins.storage_segment.log import SegmentLog

from .delayed_partition import DelayedPartition, Sent

LATER = Sent(b"later", 1_000)
NOW = Sent(b"now")


@pytest.fixture
def partition(tmp_path: Path) -> Iterator[DelayedPartition]:
    partition = DelayedPartition(tmp_path, settings=None)
    partition.produce([NOW] * 3)
    yield partition
    partition.close()


def fill(partition: DelayedPartition) -> bool:
    return trio.run(partition.delivery.beginnings.fill, partition.replica)


def test_records_wait_as_soon_as_the_key_is_set_and_are_delivered_once_the_log_was_read(
    partition: DelayedPartition,
) -> None:
    partition.produce([Sent(b"before", 1_000)])  # a header like any other
    partition.set_key()
    partition.produce([LATER])
    partition.pass_time(5_000)
    assert partition.values() == [b"now"] * 3 + [b"before"]

    assert fill(partition)
    partition.deliver()
    partition.produce([Sent(b"next", 10)])
    partition.pass_time(10)

    assert partition.values()[4:] == [b"later", b"next"]
    assert partition.replica.delay_beginning is None


def test_nothing_is_deleted_before_it_is_known_what_waits(partition: DelayedPartition) -> None:
    partition.set_key()
    partition.produce([LATER])
    deletion = Deletion(partition.replica.high_watermark, "all is old")

    assert sparing_delayed(partition.replica, deletion).below == 0
    assert fill(partition)
    assert sparing_delayed(partition.replica, deletion).below == 0
    partition.pass_time(1_000)
    partition.replica.log.flush()
    assert sparing_delayed(partition.replica, deletion) == deletion


def test_what_is_appended_while_the_log_is_read_is_read_too(partition: DelayedPartition) -> None:
    partition.set_key()
    partition.produce([LATER])
    assert partition.replica.delay_beginning is not None
    steps = fill_in_steps(partition.replica, partition.replica.delay_beginning)
    next(steps)
    partition.produce([Sent(b"meanwhile", 500)])
    for _ in steps:
        assert partition.replica.delays is None
    partition.delivery.watch(partition.replica)

    partition.pass_time(1_000)

    assert partition.values()[3:] == [b"meanwhile", b"later"]


def test_who_comes_upon_what_is_staged_lets_those_come_who_write_it(partition: DelayedPartition) -> None:
    """What is staged is no one's to read: a broker that went round until it is written would stand for ever."""
    partition.set_key()
    beginning, log = partition.replica.delay_beginning, partition.replica.log
    assert beginning is not None
    with mock.patch.object(partition, "write_staged"):  # the turn's end is to come
        partition.produce([LATER])
    assert partition.replica.is_dirty
    steps = fill_in_steps(partition.replica, beginning)

    with mock.patch.object(log, "batches", side_effect=log.batches) as read:
        slice_count = sum(1 for _ in islice(steps, SLICE_STEPS))

    assert slice_count == SLICE_STEPS
    assert read.call_count <= 3, "the rest of the slice is given away"
    assert partition.replica.delays is None
    partition.write_staged()
    for _ in steps:
        assert partition.replica.delays is None
    partition.delivery.watch(partition.replica)
    partition.pass_time(1_000)
    assert partition.values()[3:] == [b"later"]


def test_a_log_that_was_cut_meanwhile_is_read_again(partition: DelayedPartition, tmp_path: Path) -> None:
    """What was cut would be delivered by one that has read it before."""
    follower = DelayedPartition(tmp_path / "follower", leader=2, settings=None)
    partition.set_key()
    partition.produce([LATER])
    for batch in partition.batches():
        append_as_follower(follower.replica, batch)
    follower.replica.write()
    follower.set_key()
    beginning = follower.replica.delay_beginning
    assert beginning is not None
    steps = fill_in_steps(follower.replica, beginning)
    while beginning.ledger.queue.waiting_count == 0:
        next(steps)
    truncate(follower.replica, 3)
    with pytest.raises(StopIteration) as ended:
        next(steps)
    assert ended.value.value is False

    assert fill(follower)

    assert follower.replica.delays is not None
    assert follower.replica.delays.queue.waiting_count == 0
    follower.close()


def test_a_replica_that_is_paused_is_read_later(partition: DelayedPartition) -> None:
    partition.set_key()
    partition.produce([LATER])
    partition.replica.pause("its log moves")
    assert not fill(partition)

    partition.hosted.lifecycle.end_pause(partition.replica, "its log moves", None)
    assert fill(partition)
    partition.pass_time(1_000)

    assert partition.values()[3:] == [b"later"]


def test_a_log_that_cannot_be_read_is_served_and_tried_again(
    partition: DelayedPartition, monkeypatch: pytest.MonkeyPatch
) -> None:
    partition.set_key()
    partition.produce([LATER])

    def broken(_offset: int) -> Iterator[memoryview]:
        raise StorageError("the disk is asleep")

    async def main() -> None:
        async with trio.open_nursery() as nursery:
            with monkeypatch.context() as patched:
                patched.setattr(partition.replica.log, "batches", broken)
                nursery.start_soon(partition.delivery.beginnings.run)
                await trio.testing.wait_all_tasks_blocked()
            assert partition.replica.offline_reason is None
            assert partition.replica.delays is None
            await trio.sleep(4 * AGAIN_S)
            nursery.cancel_scope.cancel()

    trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0.01))
    partition.pass_time(1_000)

    assert partition.values()[3:] == [b"later"]


def test_a_topic_that_is_deleted_meanwhile_gets_nothing(partition: DelayedPartition) -> None:
    partition.set_key()
    replica = partition.replica
    for _ in partition.hosted.lifecycle.delete_topic_in_steps("t", 1):
        pass

    assert trio.run(partition.delivery.beginnings.fill, replica)
    assert replica.delays is None


def test_a_companion_of_many_records_takes_as_many_steps(partition: DelayedPartition) -> None:
    partition.set_key()
    partition.produce([LATER] * 1_000)
    assert partition.replica.delay_beginning is not None

    steps_count = sum(1 for _ in fill_in_steps(partition.replica, partition.replica.delay_beginning))

    assert steps_count > 500


def test_who_waited_for_room_gets_what_its_topic_was_given_meanwhile(partition: DelayedPartition) -> None:
    """It was opened before the key was set, and takes the place of the one that got it."""
    hosted = partition.hosted
    topic, old = hosted.replicas.topics["t"], partition.replica
    assert isinstance(old.log, SegmentLog)
    old.log.set_offline("the disk is full")
    fresh = hosted.lifecycle._opener.open(old.partition, topic.plan)
    assert old.state is not None
    fresh.become(old.state)
    partition.set_key()

    hosted.lifecycle._serve_again(Reopened(topic, old, fresh))
    assert fill(partition)
    partition.produce([LATER])
    partition.pass_time(1_000)

    assert partition.values()[3:] == [b"later"]
