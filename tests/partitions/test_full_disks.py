"""Replicas whose disk is full: cleaned while nobody is served, and served again when there is room."""

from __future__ import annotations

import errno
from pathlib import Path

import attrs
import pytest
import trio

from odradek.kernel.api import LogConfig
from odradek.kernel.cleanup.log_states import Policies
from odradek.kernel.contracts.cleanup import CleanupSettings
from odradek.kernel.errors import ErrorCode, KafkaError
from odradek.kernel.machine.files import disk_error
from odradek.kernel.machine.turnstile import run_at_once
from odradek.kernel.partitions.replica import Replica
from odradek.plugins.cleanup.delete import DeletePolicy
from tests.cleanup.compacted import retention_on
from tests.plugins.storage_segment.full_disk import FullDisk

from .hosted import Hosted

SEGMENTS_OF_TWO = LogConfig(segment_bytes=200)


class Filling:
    """A partition with acknowledged batches, on a disk that is full now: it has just gone offline."""

    def __init__(self, directory: Path) -> None:
        self.files = FullDisk("*.log")
        self.hosted = Hosted(directory, files=self.files)
        self.hosted.open("t", log_config=SEGMENTS_OF_TWO)
        for sequence in range(7):
            self.hosted.produce("t", sequence)
        self.files.is_full = True
        self.hosted.produce("t", 7)

    @property
    def replica(self) -> Replica:
        return self.hosted.replicas.get("t", 0)

    def clean(self, **settings: int) -> None:
        topic = self.hosted.replicas.topics["t"]
        topic.plan = attrs.evolve(topic.plan, cleanup=CleanupSettings(**settings))  # type: ignore[arg-type] # by name
        trio.run(retention_on(self.hosted, Policies({"delete": DeletePolicy()})).clean)


@pytest.fixture
def full(tmp_path: Path) -> Filling:
    return Filling(tmp_path)


def test_a_partition_is_served_again_once_its_disk_has_room(full: Filling) -> None:
    assert full.replica.lacks_room
    trio.run(full.hosted.lifecycle.retry_failed_logs)
    with pytest.raises(KafkaError) as refused:
        full.hosted.produce("t", 7)
    assert refused.value.code == ErrorCode.KAFKA_STORAGE_ERROR

    full.files.is_full = False
    trio.run(full.hosted.lifecycle.retry_failed_logs)

    assert (full.replica.offline_reason, full.replica.is_leader, full.replica.high_watermark) == (None, True, 7)
    full.hosted.produce("t", 7)  # the sequence that was not acknowledged is the next one
    assert full.replica.high_watermark == 8
    full.hosted.lifecycle.close()


def test_retention_deletes_from_a_partition_that_waits_for_room(full: Filling) -> None:
    trio.run(full.hosted.lifecycle.retry_failed_logs)
    full.clean(retention_bytes=200)

    full.files.is_full = False
    trio.run(full.hosted.lifecycle.retry_failed_logs)
    assert (full.replica.log.log_start_offset, full.replica.log.log_end_offset) == (4, 7)
    full.hosted.lifecycle.close()


def test_what_waits_for_room_is_opened_once(full: Filling) -> None:
    trio.run(full.hosted.lifecycle.retry_failed_logs)
    (waiting,) = full.hosted.lifecycle.full_disks.waiting(full.hosted.replicas.topics["t"])
    trio.run(full.hosted.lifecycle.retry_failed_logs)

    assert [*full.hosted.lifecycle.full_disks.waiting(full.hosted.replicas.topics["t"])] == [waiting]
    full.hosted.lifecycle.close()


def test_an_election_among_replicas_goes_on_when_its_replica_is_served_again(full: Filling) -> None:
    """While it waited for room nobody looked at it: it has no ticks before somebody is told."""
    trio.run(full.hosted.lifecycle.retry_failed_logs)
    (waiting,) = full.hosted.lifecycle.full_disks.waiting(full.hosted.replicas.topics["t"])
    noted: list[tuple[Replica, bool]] = []

    class Voting:
        def note(self, replica: Replica) -> None:
            noted.append((replica, full.replica is replica))

    waiting.voting = Voting()  # type: ignore[assignment] # no more is asked of it here
    full.files.is_full = False
    trio.run(full.hosted.lifecycle.retry_failed_logs)

    assert noted == [(waiting, True)]
    full.hosted.lifecycle.close()


@pytest.mark.parametrize("what_comes", ["an error", "a deletion"])
def test_what_waits_for_room_no_more_lets_its_files_go(
    full: Filling, what_comes: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    trio.run(full.hosted.lifecycle.retry_failed_logs)
    (waiting,) = full.hosted.lifecycle.full_disks.waiting(full.hosted.replicas.topics["t"])
    closed: list[Replica] = []
    close = Replica.close

    def close_and_tell(self: Replica) -> None:
        closed.append(self)
        close(self)

    monkeypatch.setattr(Replica, "close", close_and_tell)

    if what_comes == "an error":
        waiting.offline_reason = "the disk is full"
    else:
        run_at_once(full.hosted.lifecycle.delete_topic_in_steps("t", 1))
    trio.run(full.hosted.lifecycle.retry_failed_logs)

    assert waiting in closed
    full.hosted.lifecycle.close()


def test_a_topic_that_is_deleted_waits_no_more(full: Filling) -> None:
    trio.run(full.hosted.lifecycle.retry_failed_logs)
    run_at_once(full.hosted.lifecycle.delete_topic_in_steps("t", 1))
    full.files.is_full = False
    trio.run(full.hosted.lifecycle.retry_failed_logs)

    assert full.hosted.replicas.find("t", 0) is None
    full.hosted.lifecycle.close()


def test_a_topic_that_is_deleted_while_its_log_is_opened_again_is_left_alone(full: Filling) -> None:
    async def main() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(full.hosted.lifecycle.retry_failed_logs)
            await trio.lowlevel.checkpoint()  # its log is open, its producers wait for their turn
            run_at_once(full.hosted.lifecycle.delete_topic_in_steps("t", 1))

    full.files.is_full = False
    trio.run(main)

    assert full.hosted.replicas.find("t", 0) is None
    assert not [path for folder in full.hosted.dirs for path in Path(folder).glob("t-0")]
    full.hosted.lifecycle.close()


@pytest.mark.parametrize("batches_per_turn", [1, 1000])
def test_a_disk_that_is_full_inside_an_append_is_told_at_the_end_of_the_turn(
    tmp_path: Path, batches_per_turn: int
) -> None:
    """Requests of earlier turns wait, and others in sync may lead. Not at once: who appends may be one who is told."""
    files = FullDisk("*.index")
    told: list[Replica | str] = []
    hosted = Hosted(tmp_path, told.extend, files)
    hosted.on_staged = lambda: told.append("a turn is to end")
    hosted.replicas.on_room_changed = lambda: told.append("room")
    hosted.open("t", log_config=LogConfig(index_interval_bytes=100))
    replica = hosted.produce("t", 0)
    files.is_full = True

    def fill() -> None:
        for _ in range(1000):
            hosted.writes.write_staged()
            told.clear()
            for _ in range(batches_per_turn):
                hosted.stage("t")

    with pytest.raises(KafkaError):
        fill()
    assert (replica.lacks_room, told) == (True, ["a turn is to end"])
    hosted.writes.write_staged()

    assert told == ["a turn is to end", replica, "room"]
    assert not replica.is_dirty
    hosted.lifecycle.close()


@pytest.mark.parametrize("full_for", [["*.log"], ["*.log", "*.snapshot"]], ids=["for records", "for snapshots, too"])
def test_a_stop_while_a_partition_waits_for_room_forgets_no_open_transaction(
    tmp_path: Path, full_for: list[str]
) -> None:
    """As of an operator who makes room; with the producers gone, what was not committed would be read."""
    files = FullDisk(*full_for)
    hosted = Hosted(tmp_path, files=files)
    hosted.open("t")
    for sequence in range(7):
        hosted.produce("t", sequence, txn=True)
    files.is_full = True
    hosted.produce("t", 7, txn=True)
    trio.run(hosted.lifecycle.retry_failed_logs)
    assert [*hosted.lifecycle.full_disks.waiting(hosted.replicas.topics["t"])]
    hosted.lifecycle.close()
    files.is_full = False
    hosted.begin()
    hosted.open("t")
    replica = hosted.replicas.get("t", 0)

    assert (len(replica.producers), replica.last_stable_offset, replica.high_watermark) == (1, 0, 7)
    hosted.lifecycle.close()


@pytest.mark.parametrize("full_for", [["vote"], ["*.snapshot"]], ids=["for votes", "for snapshots"])
def test_a_log_that_is_closed_and_opened_because_something_else_found_no_room_forgets_no_producer(
    tmp_path: Path, full_for: list[str]
) -> None:
    files = FullDisk(*full_for)
    hosted = Hosted(tmp_path, files=files)
    hosted.open("t")
    old = hosted.produce("t", 0, txn=True)
    files.is_full = True
    hosted.replicas.fail(old, disk_error(OSError(errno.ENOSPC, "no room"), "write", "the vote"))
    trio.run(hosted.lifecycle.retry_failed_logs)
    files.is_full = False
    trio.run(hosted.lifecycle.retry_failed_logs)
    fresh = hosted.replicas.get("t", 0)

    assert (fresh is old, fresh.offline_reason, len(fresh.producers)) == (False, None, 1)
    assert (fresh.last_stable_offset, fresh.high_watermark) == (0, 1)
    hosted.lifecycle.close()
