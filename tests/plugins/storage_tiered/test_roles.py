"""Two brokers of one partition over one store: who leads sends; who follows lets go, and goes on where it was."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import attrs
import pytest

from odradek.kernel.api import CleanupSettings, ConfigError, StoreRefusedError
from odradek.kernel.contracts.coordinator import TopicView
from odradek.kernel.contracts.disk_work import do_now
from odradek.kernel.contracts.election import PartitionState
from odradek.plugins.storage_tiered.beginnings import NotInStoreError
from odradek.plugins.storage_tiered.manifests import OtherLogError, load_newest, put_next
from odradek.plugins.storage_tiered.tier import TieredStorage
from odradek.testing.contracts.storage_base import PARTITION
from odradek.testing.object_stores import MemoryObjectStore
from tests.plugins.storage_tiered.tiered_house import EVERYTHING_LOCAL, LITTLE_LOCAL, House

RECORDS = 60


def follower_of(leader: House, directory: Path, batches: list[bytes], *, rolls_at: int = 0) -> House:
    """A broker that has taken these batches from the leader; its segments begin elsewhere when it rolled once."""
    house = House(directory, leader.store, settings=leader.log.settings, epoch=leader.epoch)
    house.tier.note_leader(PARTITION, 2, leader.epoch)
    append(house, batches, rolls_at=rolls_at)
    return house


def append(house: House, batches: list[bytes], *, rolls_at: int = 0) -> None:
    log = house.log
    log.assign_epoch(house.epoch, log.log_end_offset)
    for batch in batches:
        if rolls_at and log.log_end_offset == rolls_at:
            log.roll()
        log.append(batch, log.log_end_offset, log.log_end_offset, 0)
        log.write_pending()
    house.flush()


def lead(house: House, epoch: int) -> None:
    house.epoch = epoch
    house.tier.note_leader(PARTITION, 1, epoch)


def begin_at_store(house: House, offset: int) -> None:
    start = house.log.begin_at_store(offset, is_exact=False)
    start.run()
    for work in start.begin_keeping():
        do_now(work)
    start.apply()


def bounds(house: House) -> list[tuple[int, int]]:
    newest = load_newest(house.store, PARTITION)
    assert newest is not None
    return [(segment.base_offset, segment.next_offset) for segment in newest.segments]


def objects_of(store: object) -> set[str]:
    assert isinstance(store, MemoryObjectStore)
    return {name for name in store.objects if name.endswith(".log")}


async def test_a_follower_lets_go_of_what_its_leader_has_sent_and_sends_nothing(tmp_path: Path) -> None:
    leader = House(tmp_path / "leader")
    written = leader.fill(RECORDS)
    follower = follower_of(leader, tmp_path / "follower", written)
    async with leader.running(), follower.running():
        await follower.tier.visit(follower.log)
        assert (follower.log.local_log_start_offset, objects_of(leader.store)) == (0, set()), "nothing was sent yet"

        await leader.visit()
        sent = objects_of(leader.store)
        await follower.tier.visit(follower.log)

        assert objects_of(leader.store) == sent
        assert follower.log.local_log_start_offset == leader.log.local_log_start_offset > 0
        assert (follower.log.log_start_offset, await follower.read_all()) == (0, written)
        reopened = follower.reopened()
        assert reopened.log.local_log_start_offset == leader.log.local_log_start_offset


@pytest.mark.parametrize("rolls_at", [0, 7])
async def test_who_leads_next_sends_what_the_store_lacks_and_nothing_twice(tmp_path: Path, rolls_at: int) -> None:
    leader = House(tmp_path / "leader", settings=EVERYTHING_LOCAL)
    written = leader.fill(RECORDS)
    async with leader.running():
        await leader.visit()
    end = bounds(leader)[-1][1]
    sent = objects_of(leader.store)
    follower = follower_of(leader, tmp_path / "follower", written, rolls_at=rolls_at)
    lead(follower, leader.epoch + 1)
    follower.log.reconfigure_tier(LITTLE_LOCAL)
    written += follower.fill(RECORDS)
    async with follower.running():
        await follower.visit()

        segments = bounds(follower)
        assert objects_of(leader.store) >= sent, "what was sent stays as it was"
        assert [one[1] for one in segments[:-1]] == [other[0] for other in segments[1:]], "no gap, and nothing twice"
        assert end in [base for base, _ in segments]
        assert follower.log.local_log_start_offset > end
        assert await follower.read_all() == written


async def test_a_follower_whose_segments_end_elsewhere_reads_the_stores_up_to_where_its_own_begin(
    tmp_path: Path,
) -> None:
    leader = House(tmp_path / "leader")
    written = leader.fill(RECORDS)
    async with leader.running():
        await leader.visit()
    follower = follower_of(leader, tmp_path / "follower", written, rolls_at=7)
    async with follower.running():
        await follower.tier.visit(follower.log)

        border = follower.log.local_log_start_offset
        assert border not in {0, *(base for base, _ in bounds(leader))}
        assert await follower.read_all() == written
        infos = follower.log.segments()
        assert [info.next_offset for info in infos[:-1]] == [info.base_offset for info in infos[1:]]
        assert infos[0].base_offset == 0
        assert not follower.log.begin_rewrite(RECORDS).sources, "nothing that is in both tiers in part is rewritten"


async def test_a_follower_of_a_compacted_log_keeps_what_it_has(tmp_path: Path) -> None:
    compacted = attrs.evolve(LITTLE_LOCAL, cleanup=CleanupSettings(cleanup_policy=("compact",)))
    leader = House(tmp_path / "leader", settings=compacted)
    written = leader.fill(RECORDS)
    async with leader.running():
        await leader.visit()
    follower = follower_of(leader, tmp_path / "follower", written)
    await follower.tier.visit(follower.log)

    assert leader.log.local_log_start_offset > 0
    assert follower.log.local_log_start_offset == 0


@pytest.mark.parametrize("cleanup", ["delete", "compact"])
async def test_who_leads_a_log_next_has_the_store_name_each_offset_once(tmp_path: Path, cleanup: str) -> None:
    settings = attrs.evolve(LITTLE_LOCAL, cleanup=CleanupSettings(cleanup_policy=(cleanup,)))
    leader = House(tmp_path / "leader", settings=settings)
    written = leader.fill(RECORDS)
    async with leader.running():
        await leader.visit()
    follower = follower_of(leader, tmp_path / "follower", written, rolls_at=7)
    lead(follower, leader.epoch + 1)
    written += follower.fill(RECORDS)
    async with follower.running():
        await follower.visit()
        await follower.visit()

        segments = bounds(follower)
        assert all(one[1] <= other[0] for one, other in pairwise(segments))
        assert await follower.read_all() == written


async def test_a_leader_that_was_not_in_sync_goes_on_behind_what_it_has_and_the_one_before_it_finds_its_own_again(
    tmp_path: Path,
) -> None:
    leader = House(tmp_path / "leader")
    written = leader.fill(RECORDS)
    async with leader.running():
        await leader.visit()
        sent = objects_of(leader.store)
        unclean = follower_of(leader, tmp_path / "unclean", written[:20])
        lead(unclean, leader.epoch + 1)
        others = written[:20] + unclean.fill(RECORDS)
        async with unclean.running():
            await unclean.visit()
            assert all(one[1] == other[0] for one, other in pairwise(bounds(unclean)))
            assert bounds(unclean)[-1][1] > RECORDS
            assert await unclean.read_all() == others
            assert objects_of(leader.store) > sent, "what nobody reads now is there all the same"

        lead(leader, leader.epoch + 2)
        written += leader.fill(RECORDS)
        await leader.visit()
        assert all(one[1] == other[0] for one, other in pairwise(bounds(leader)))
        assert await leader.read_all() == written


async def test_a_leader_that_has_lost_what_was_only_in_the_store_sends_nothing(tmp_path: Path) -> None:
    leader = House(tmp_path / "leader")
    written = leader.fill(RECORDS)
    async with leader.running():
        await leader.visit()
        unclean = follower_of(leader, tmp_path / "unclean", written[:20])
        lead(unclean, leader.epoch + 1)
        unclean.fill(RECORDS)
        await unclean.visit()
        newest = load_newest(leader.store, PARTITION)
        assert newest is not None
        put_next(leader.store, attrs.evolve(newest, abandoned=()))
        lead(leader, leader.epoch + 2)

        with pytest.raises(OtherLogError, match="Was a leader elected that was not in sync"):
            await leader.tier.passes.take_over(leader.log, leader.epoch)


class OneReplica:
    """The committed metadata: the topic's partitions have one replica each."""

    def topic_by_id(self, topic_id: object) -> TopicView:
        state = PartitionState(leader=1, leader_epoch=0, partition_epoch=0, replicas=(1,), isr=(1,))
        return TopicView(PARTITION.topic, PARTITION.topic_id, 9, partitions=(state,) * 9)


@pytest.mark.parametrize("reason", ["compacted", "the only replica"])
async def test_a_log_that_parts_from_what_was_sent_is_not_sent_where_it_is(reason: str, tmp_path: Path) -> None:
    policy = "compact" if reason == "compacted" else "delete"
    leader = House(
        tmp_path / "leader",
        settings=attrs.evolve(LITTLE_LOCAL, cleanup=CleanupSettings(cleanup_policy=(policy,))),
    )
    written = leader.fill(RECORDS)
    async with leader.running():
        await leader.visit()
    other = follower_of(leader, tmp_path / "other", written[:20])
    if reason == "the only replica":
        other.cluster = OneReplica()
    lead(other, leader.epoch + 1)
    other.fill(RECORDS)

    with pytest.raises(OtherLogError, match="another log than the one in"):
        await other.tier.passes.take_over(other.log, other.epoch)


async def test_a_follower_of_a_leader_that_was_not_in_sync_lets_go_of_nothing_that_the_store_has_otherwise(
    tmp_path: Path,
) -> None:
    leader = House(tmp_path / "leader")
    follower = follower_of(leader, tmp_path / "follower", leader.fill(RECORDS))
    follower.log.reconfigure_tier(attrs.evolve(LITTLE_LOCAL, local_retention_bytes=2_500))
    async with leader.running(), follower.running():
        await leader.visit()
        await follower.tier.visit(follower.log)
        border, known_end = follower.log.local_log_start_offset, follower.log.stored_end
        follower.log.reconfigure_tier(attrs.evolve(LITTLE_LOCAL, local_retention_bytes=100))
        follower.log.truncate_to(known_end - 4)
        follower.epoch += 1  # of another leader, which has another log from there on
        others = follower.fill(1)
        await follower.tier.passes.follow(follower.log, lambda: True)
        assert follower.log.local_log_start_offset == border, "its log does not reach what it knows to be in the store"
        others += follower.fill(9)
        with pytest.raises(OtherLogError, match="Was a leader elected that was not in sync"):
            await follower.tier.passes.follow(follower.log, lambda: True)

        assert (follower.log.local_log_start_offset, follower.log.stored_end) == (border, known_end)
        assert (await follower.read_all())[-len(others) :] == others


async def test_a_follower_is_told_of_a_store_that_has_lost_something(tmp_path: Path) -> None:
    leader = House(tmp_path / "leader")
    written = leader.fill(RECORDS)
    follower = follower_of(leader, tmp_path / "follower", written)
    async with leader.running():
        await leader.visit()
        await follower.tier.visit(follower.log)
    assert isinstance(leader.store, MemoryObjectStore)
    leader.store.objects.clear()
    append(follower, leader.fill(RECORDS))

    with pytest.raises(StoreRefusedError, match="it lost something, or is another store"):
        await follower.tier.passes.follow(follower.log, lambda: True)


async def test_a_beginning_waits_for_a_store_that_does_not_have_it_yet(tmp_path: Path) -> None:
    leader = House(tmp_path / "leader")
    written = leader.fill(RECORDS)
    empty = House(tmp_path / "empty", leader.store, settings=leader.log.settings)
    with pytest.raises(NotInStoreError, match="has no manifest"):
        empty.log.begin_at_store(20, is_exact=False).run()
    async with leader.running():
        await leader.visit()
    border = leader.log.local_log_start_offset
    with pytest.raises(NotInStoreError, match=rf"the leader's log begins at {RECORDS + 1}"):
        empty.log.begin_at_store(RECORDS + 1, is_exact=False).run()

    begin_at_store(empty, border)
    append(empty, written[border:])
    async with empty.running():
        assert await empty.read_all() == written
        reopened = empty.reopened()
    async with reopened.running():
        assert (reopened.log.log_start_offset, reopened.log.local_log_start_offset) == (0, border)
        assert await reopened.read_all() == written


async def test_a_beginning_does_not_go_below_what_was_deleted_since_the_manifest(tmp_path: Path) -> None:
    leader = House(tmp_path / "leader")
    leader.fill(RECORDS)
    async with leader.running():
        await leader.visit()
    follower = House(tmp_path / "follower", leader.store, settings=leader.log.settings)
    follower.log.truncate_fully(3)  # where its leader's log begins by now

    begin_at_store(follower, leader.log.local_log_start_offset)

    assert follower.log.log_start_offset == 3


def test_a_broker_of_a_cluster_has_no_store_of_its_own(tmp_path: Path) -> None:
    house = House(tmp_path, changes={"controller.quorum.voters": ("1@controller:9093",)})

    with pytest.raises(ConfigError, match="brokers of a cluster send to one store"):
        TieredStorage(house)  # type: ignore[arg-type] # as far as it is asked
