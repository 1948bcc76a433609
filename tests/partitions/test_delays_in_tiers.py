"""Delayed records in two tiers: what waits is local, whatever leaves the disk for the store, and whoever leads next."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from odradek.kernel.partitions.dead_letter_batches import note_of, position_in
from odradek.kernel.partitions.following import truncate
from odradek.kernel.partitions.leading import append_companion
from odradek.kernel.retry.dead_reader import Position
from odradek.plugins.storage_tiered.beginnings import NotInStoreError
from odradek.testing.far_tier import FarTier
from odradek.testing.object_stores import MemoryObjectStore

from .delayed_partition import Sent
from .test_dead_letters import RETRY, DeadPartition, Source, copy, died
from .tiered_delays import EVERYTHING_LOCAL, NOTHING_LOCAL, TieredDelays

WAIT_MS = 10_000


@pytest.fixture
def store() -> MemoryObjectStore:
    return MemoryObjectStore()


@pytest.fixture
def partition(tmp_path: Path, store: MemoryObjectStore) -> Iterator[TieredDelays]:
    partition = TieredDelays(tmp_path / "p", store)
    yield partition
    partition.close()


def fill(partition: TieredDelays, count: int = 12) -> list[bytes]:
    """Produce so many records that wait, each beside one that does not, over several segments."""
    waiting = [b"%d" % (1_000 + number) for number in range(count)]
    for number, value in enumerate(waiting):
        partition.produce([Sent(b"%d" % number), Sent(value, WAIT_MS, b"name of " + value)])
    return waiting


def waits(partition: TieredDelays) -> int:
    partition.deliver()  # by now the queue has forgotten what is gone
    return partition.ledger.queue.waiting_count


def delivered(partition: TieredDelays) -> list[bytes | None]:
    partition.pass_time(WAIT_MS)
    return [record.value for record in partition.delivered()]


def test_what_waits_is_carried_before_its_segment_leaves_the_disk(partition: TieredDelays) -> None:
    waiting = fill(partition)

    partition.visit()
    assert partition.log.tiered_end_offset > 0
    assert partition.local_start == 0

    partition.carry_asked()
    partition.visit()
    assert partition.local_start > 30
    assert partition.log.log_start_offset == 0
    assert waits(partition) == len(waiting)
    assert delivered(partition) == waiting


def test_what_leaves_without_anything_that_waits_leaves_at_once(partition: TieredDelays) -> None:
    for number in range(30):
        partition.produce([Sent(b"%d" % number)])

    partition.visit()
    assert partition.local_start > 20


@pytest.mark.parametrize("way", ["restart", "read_again", "kill"])
def test_a_start_knows_what_waits_though_the_log_begins_in_the_store(partition: TieredDelays, way: str) -> None:
    waiting = fill(partition)
    partition.leave()

    getattr(partition, way)()
    assert partition.local_start > 30
    assert waits(partition) == len(waiting)
    assert partition.ledger.start_offset >= partition.local_start
    assert delivered(partition) == waiting


def test_what_is_carried_and_not_committed_keeps_its_segment(tmp_path: Path, store: MemoryObjectStore) -> None:
    leader, follower = TieredDelays(tmp_path / "a", store), TieredDelays(tmp_path / "b", store, leader=2)
    waiting = fill(leader)
    follower.fetch(leader)
    leader.fail_over_to(follower)  # which has no other in sync but itself
    end = leader.replica.log.log_end_offset
    leader.fetch(follower)
    for partition in (leader, follower):
        partition.visit()
        partition.carry_asked()

    assert follower.replica.log.log_end_offset > end
    leader.visit()
    assert leader.local_start == 0  # it has not fetched what the other has carried
    leader.fetch(follower)
    leader.visit()
    leader.carry_asked()
    leader.visit()
    assert leader.local_start > 30
    follower.fail_over_to(leader)
    assert delivered(leader) == waiting
    leader.close()
    follower.close()


def test_a_follower_lets_go_of_what_its_leader_has_carried_and_leads_with_it(
    tmp_path: Path, store: MemoryObjectStore
) -> None:
    leader, follower = TieredDelays(tmp_path / "a", store), TieredDelays(tmp_path / "b", store, leader=2)
    waiting = fill(leader)
    leader.leave()
    follower.begin_at_store(leader)
    assert (follower.log.log_start_offset, follower.local_start) == (0, leader.local_start)
    more = fill(leader)
    leader.leave()
    follower.fetch(leader)

    before = follower.local_start
    follower.visit()
    follower.carry_asked()
    follower.visit()
    assert follower.local_start > before
    leader.fail_over_to(follower)
    follower.read_again()
    follower.take_state()
    assert waits(follower) == len(waiting) + len(more)
    assert delivered(follower) == [value for pair in (waiting, more) for value in pair]
    leader.close()
    follower.close()


def test_a_follower_does_not_begin_inside_a_segment_of_the_store_where_records_wait(
    tmp_path: Path, store: MemoryObjectStore
) -> None:
    """It would begin behind what waits there; its leader soon begins at a segment's end, having carried it."""
    leader = TieredDelays(tmp_path / "a", store, tier_settings=EVERYTHING_LOCAL)
    follower = TieredDelays(tmp_path / "b", store, leader=2)
    for number in range(20):
        leader.produce([Sent(b"%d" % number)])
    leader.visit()
    leader.log.inner.advance_log_start(1)  # as another leader's segments had it, when no record waited yet
    waiting = fill(leader)

    with pytest.raises(NotInStoreError, match="inside a segment"):
        follower.begin_at_store(leader)
    leader.leave()
    assert leader.log.manifest is not None
    assert leader.local_start == leader.log.manifest.segments[0].next_offset
    follower.begin_at_store(leader)
    leader.fail_over_to(follower)
    assert delivered(follower) == waiting
    leader.close()
    follower.close()


def test_a_topic_that_is_tiered_later_or_no_more_loses_nothing_that_waits(
    tmp_path: Path, store: MemoryObjectStore
) -> None:
    partition = TieredDelays(tmp_path / "p", store, tier_settings=None)
    waiting = fill(partition)
    partition.switch_tier(is_on=True)
    partition.leave()
    start = partition.local_start
    assert start > 0

    partition.switch_tier(is_on=False)
    assert partition.replica.log.log_start_offset == start
    partition.read_again()
    assert delivered(partition) == waiting
    partition.close()


def test_a_name_withdraws_what_was_carried(partition: TieredDelays) -> None:
    waiting = fill(partition)
    partition.leave()
    partition.produce([Sent(b"", cancels=b"name of " + waiting[3])])

    partition.read_again()
    assert delivered(partition) == [*waiting[:3], *waiting[4:]]


def test_a_follower_that_is_truncated_reads_what_waits_in_its_local_log(
    tmp_path: Path, store: MemoryObjectStore
) -> None:
    leader, follower = TieredDelays(tmp_path / "a", store), TieredDelays(tmp_path / "b", store, leader=2)
    waiting = fill(leader)
    leader.leave()
    follower.begin_at_store(leader)
    end = leader.replica.log.log_end_offset
    truncate(follower.replica, end - 1)
    follower.rebuild()
    follower.fetch(leader)
    leader.fail_over_to(follower)

    assert delivered(follower) == waiting
    leader.close()
    follower.close()


def test_how_far_dead_letters_were_taken_is_known_from_the_local_log(tmp_path: Path, store: MemoryObjectStore) -> None:
    leader = TieredDelays(tmp_path / "a", store, dead_letters_of=RETRY)
    follower = TieredDelays(tmp_path / "b", store, leader=2, dead_letters_of=RETRY)
    topic_id, position = uuid.UUID(int=3), Position(70, 30)
    append_companion(leader.replica, note_of(position, topic_id, crc=None, epoch=0, now_ms=leader.now_ms))
    for number in range(30):
        leader.produce([Sent(b"%d" % number)])
    follower.fetch(leader)
    follower.visit()
    assert follower.local_start == 0

    leader.leave()
    follower.fetch(leader)
    follower.visit()
    for partition in (leader, follower):
        assert partition.local_start > 20
        partition.read_again()
        assert position_in(partition.ledger.last_delivery, topic_id) == position
        partition.close()


def test_dead_letters_are_taken_though_what_died_has_left_the_disk(tmp_path: Path) -> None:
    source, tier = Source(), FarTier()
    dead = DeadPartition(tmp_path, source)
    dead.hosted.tier = tier
    dead.restart()
    dead.hosted.open(RETRY, tier=NOTHING_LOCAL)
    replica = dead.hosted.replicas.get(RETRY, 0)
    source.node_id, source.topic_id = 1, replica.partition.topic_id
    source.log.fail(died(b"a"))
    copy(source, replica)
    replica.log.roll()
    tier.logs[replica.partition].send(replica.log.log_end_offset)

    dead.take()
    assert (dead.values(), replica.offline_reason) == ([], None)
    tier.arrive()
    dead.take()
    assert dead.values() == [b"a"]
    dead.close()
