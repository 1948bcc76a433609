"""A topic loses its tier and gets it again: who removes what, and what a broker believes that was away meanwhile."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import attrs
import pytest
import trio

from odradek.kernel.api import OsFiles, StoreRefusedError
from odradek.plugins.storage_tiered.bucket import claim
from odradek.plugins.storage_tiered.collecting import empty_partition
from odradek.plugins.storage_tiered.manifest import Manifest
from odradek.plugins.storage_tiered.manifests import load_newest
from odradek.plugins.storage_tiered.pending import PendingRemovals
from odradek.testing.contracts.storage_base import PARTITION
from odradek.testing.object_stores import FaultyObjectStore, MemoryObjectStore, StoreFault
from tests.plugins.storage_tiered.test_roles import append, follower_of, lead, objects_of
from tests.plugins.storage_tiered.tiered_house import EVERYTHING_LOCAL, LITTLE_LOCAL, House
from tests.waiting import until_async

OFTEN = {"remote.log.manager.task.interval.ms": 20}


def house_of(directory: Path, store: object = None, *, often: bool = True, leads: bool = True) -> House:
    """A broker of a cluster that knows the topic."""
    house = House(directory, store, changes=OFTEN if often else {})  # type: ignore[arg-type] # None for a new one
    (directory / "data").mkdir(exist_ok=True)
    house.cluster.has_topic = True
    if not leads:
        house.tier.note_leader(PARTITION, 2, house.epoch)
    return house


@asynccontextmanager
async def visiting(*houses: House) -> AsyncIterator[None]:
    async with trio.open_nursery() as nursery:
        for house in houses:
            await nursery.start(house.tier.visit_logs)
        yield
        nursery.cancel_scope.cancel()


def manifest_in(house: House) -> Manifest:
    newest = load_newest(house.store, PARTITION)
    assert newest is not None
    return newest


def is_emptied(house: House) -> bool:
    newest = load_newest(house.store, PARTITION)
    return newest is not None and not newest.names_anything and not objects_of(house.store)


def begin_often(house: House) -> None:
    house.clock.advance(60_000)
    house.tier.note_leader(PARTITION, 1, house.epoch)


async def test_a_leader_sends_again_once_its_topic_is_tiered_again(tmp_path: Path) -> None:
    house = house_of(tmp_path)
    house.fill(30)
    async with visiting(house):
        await until_async(lambda: house.log.local_log_start_offset > 10)
        start, version = house.log.local_log_start_offset, manifest_in(house).version
        house.switch_off()
        await until_async(lambda: is_emptied(house) and not house.tier.removals)
        assert manifest_in(house).log_start_offset == start
        house.switch_on()
        house.fill(30)
        await until_async(lambda: house.log.local_log_start_offset > start)
    assert manifest_in(house).version > version
    assert manifest_in(house).segments[0].base_offset == start == house.log.log_start_offset
    house.close()


async def test_on_again_before_the_store_heard_of_off_nothing_is_removed_that_was_sent_since(tmp_path: Path) -> None:
    memory = MemoryObjectStore()
    store = FaultyObjectStore(memory)
    house = house_of(tmp_path, store)
    house.fill(30)
    async with visiting(house):
        await until_async(lambda: house.log.local_log_start_offset > 10)
        start = house.log.local_log_start_offset
        store.fault = StoreFault.BUSY
        house.switch_off()
        await until_async(lambda: house.tier.is_away)
        house.switch_on()
        house.fill(30)
        store.fault = None
        begin_often(house)
        await until_async(lambda: house.log.local_log_start_offset > start)
        await until_async(lambda: manifest_in(house).log_start_offset == start)
    assert house.log.log_start_offset == start, "what was below is no part of the log any more"
    assert manifest_in(house).segments[0].base_offset == start
    assert set(manifest_in(house).object_names()) <= set(memory.objects)
    assert PendingRemovals(OsFiles(), tmp_path / "data/tiered-deletions.json").load() == {}
    house.close()


@pytest.mark.parametrize("is_started_again", [False, True])
async def test_who_hears_late_of_off_removes_nothing_that_was_sent_since(
    is_started_again: bool, tmp_path: Path
) -> None:
    leader = house_of(tmp_path / "leader", often=False)
    leader.fill(30)
    async with leader.running():
        await leader.visit()
    store = FaultyObjectStore(leader.store)
    late = house_of(tmp_path / "late", store, leads=False)
    store.fault = StoreFault.BUSY
    late.switch_off()
    async with visiting(late):
        await until_async(lambda: late.tier.is_away)
    leader.switch_off()
    async with visiting(leader):
        await until_async(lambda: is_emptied(leader))
    leader.switch_on()
    written = leader.fill(30)
    async with leader.running():
        await leader.visit()
        sent = objects_of(leader.store)
        assert leader.log.local_log_start_offset > leader.log.log_start_offset > 0

        store.fault = None
        if is_started_again:
            late.inner.close()
            late.engine.close({})
            late = house_of(tmp_path / "late", store, leads=False)
            late.log.unwrap()  # its metadata are of the time in between
        late.clock.advance(60_000)
        async with visiting(late):
            await until_async(
                lambda: (
                    PARTITION in late.tier.removals
                    and late.tier.removals[PARTITION].track.due_ms > late.clock.monotonic_ms()
                )
            )
            assert not late.tier.is_away
        assert objects_of(leader.store) == sent
        assert (await leader.read_all())[-len(written) :] == written


async def test_a_deposed_leader_that_knows_only_of_off_is_stopped_by_the_next_ones_manifest(tmp_path: Path) -> None:
    deposed = house_of(tmp_path / "deposed")
    written = deposed.fill(30)
    async with deposed.running():
        await deposed.visit()
    following = follower_of(deposed, tmp_path / "following", written)
    lead(following, 2)
    await following.visit()
    sent = objects_of(deposed.store)
    assert manifest_in(deposed).leader_epoch == 2

    deposed.switch_off()
    async with visiting(deposed):
        await until_async(lambda: deposed.tier.removals[PARTITION].track.failures > 0)
        deposed.clock.advance(60_000)
    assert objects_of(deposed.store) == sent != set()


async def test_who_leads_next_removes_what_the_one_before_it_did_not(tmp_path: Path) -> None:
    leader = house_of(tmp_path / "leader", often=False)
    written = leader.fill(30)
    async with leader.running():
        await leader.visit()
    following = house_of(tmp_path / "following", leader.store, leads=False)
    append(following, written)
    following.switch_off()
    async with visiting(following):
        await until_async(lambda: not following.tier.removals[PARTITION].track.is_busy)
        assert objects_of(leader.store), "it does not lead"
        lead(following, 2)
        await until_async(lambda: is_emptied(following) and not following.tier.removals)
    assert manifest_in(following).leader_epoch == 2


@pytest.mark.parametrize("is_off", [True, False])
async def test_who_leads_and_was_down_at_off_finds_out_by_what_is_left(is_off: bool, tmp_path: Path) -> None:
    leader = house_of(tmp_path / "leader", often=False)
    written = leader.fill(30)
    async with leader.running():
        await leader.visit()
    claim(leader.store, leader.cluster_id)
    sent = objects_of(leader.store)
    watched = FaultyObjectStore(leader.store)
    following = house_of(tmp_path / "following", watched, leads=False)
    append(following, written)
    following.log.unwrap()  # it was started when its topic was tiered no more
    following.config.change("odradek.tiered.garbage.grace.ms", 20)
    following.cluster.configs = {"remote.storage.enable": "false" if is_off else " True"}
    lead(following, 2)
    async with visiting(following), trio.open_nursery() as nursery:
        await nursery.start(following.tier.collect_deleted_topics)
        if is_off:
            await until_async(lambda: is_emptied(leader))
        else:
            await until_async(lambda: watched.operations > 10)
        nursery.cancel_scope.cancel()
    assert objects_of(leader.store) == (set() if is_off else sent)


async def test_a_topic_that_was_deleted_after_off_leaves_nothing_in_the_end(tmp_path: Path) -> None:
    house = house_of(tmp_path)
    house.fill(30)
    async with house.running():
        await house.visit()
    house.tier.note_leader(PARTITION, 2, 2)
    house.switch_off()
    house.cluster.has_topic = False
    async with visiting(house):
        await until_async(lambda: house.tier.removals[PARTITION].track.due_ms > house.clock.monotonic_ms())
        assert objects_of(house.store), "metadata that are younger may know it"
        house.clock.advance(3_600_000)
        await until_async(lambda: not house.tier.removals)
    assert isinstance(house.store, MemoryObjectStore)
    assert not [name for name in house.store.objects if name.startswith("topics/")]


def switched_off_and_on(leader: House) -> None:
    """Off and on at the leader, with its removal in between."""
    leader.switch_off()
    start = leader.inner.log_start_offset
    empty_partition(leader.store, PARTITION, leader_epoch=leader.epoch, log_start_offset=start)
    leader.switch_on()


async def test_a_follower_that_was_away_over_off_and_on_lets_go_of_nothing_that_the_store_lacks(tmp_path: Path) -> None:
    leader = House(tmp_path / "leader", settings=EVERYTHING_LOCAL)
    written = leader.fill(60)
    follower = follower_of(leader, tmp_path / "follower", written)
    follower.log.reconfigure_tier(attrs.evolve(LITTLE_LOCAL, local_retention_bytes=5_000))
    async with leader.running():
        await leader.visit()
        await follower.tier.visit(follower.log)
        known, local_start = follower.log.manifest, follower.log.local_log_start_offset
        assert known is not None
        assert known.end_offset > local_start > 0
        switched_off_and_on(leader)

        follower = follower.reopened()
        follower.tier.note_leader(PARTITION, 2, leader.epoch)
        follower.log.reconfigure_tier(LITTLE_LOCAL)
        await follower.tier.visit(follower.log)
        assert follower.log.local_log_start_offset == local_start, "the store has nothing"

        await leader.visit()
        follower.tier.note_leader(PARTITION, 1, leader.epoch)
        follower.tier.note_leader(PARTITION, 2, leader.epoch)
        await follower.tier.passes.follow(follower.log, lambda: True)
        assert follower.log.local_log_start_offset > local_start, "it has it again"
    async with follower.running():
        assert (await follower.read_all()) == written[follower.log.log_start_offset :]


@pytest.mark.parametrize("was_sent_anew", [True, False])
async def test_who_was_away_over_off_and_on_and_leads_then_goes_on(was_sent_anew: bool, tmp_path: Path) -> None:
    leader = House(tmp_path / "leader", settings=EVERYTHING_LOCAL)
    written = leader.fill(60)
    follower = follower_of(leader, tmp_path / "follower", written)
    async with leader.running(), follower.running():
        await leader.visit()
        follower.log.reconfigure_tier(LITTLE_LOCAL)
        await follower.tier.visit(follower.log)
        local_start = follower.log.local_log_start_offset
        switched_off_and_on(leader)
        if was_sent_anew:
            await leader.visit()
    follower = follower.reopened()
    lead(follower, leader.epoch + 1)
    written += follower.fill(30)
    async with follower.running():
        await follower.visit()

        begin = 0 if was_sent_anew else local_start
        assert follower.log.log_start_offset == begin
        assert follower.log.local_log_start_offset > local_start
        assert await follower.read_all() == written[begin:]
        assert not manifest_in(follower).gaps


async def test_what_was_kept_from_before_says_nothing_once_a_log_was_served_without_a_tier(tmp_path: Path) -> None:
    house = House(tmp_path)
    house.fill(60)
    await house.visit()
    start = house.log.local_log_start_offset
    house.close()  # and started while the topic is not tiered
    again = House(tmp_path, MemoryObjectStore())
    again.inner.write_sidecar(0, "tier", b"of an earlier time, and damaged")
    again.log = again.tier.wrap(again.inner, LITTLE_LOCAL, is_new=True)

    assert (again.log.log_start_offset, again.log.manifest) == (start, None)
    again.close()
    reopened = House(tmp_path, house.store)
    assert (reopened.log.log_start_offset, reopened.log.manifest) == (start, None)
    await reopened.tier.passes.take_over(reopened.log, 1)
    assert reopened.log.log_start_offset == start, "nor does what the store has from before"


async def test_a_store_that_has_lost_something_is_no_store_that_was_switched_off(tmp_path: Path) -> None:
    house = House(tmp_path)
    house.fill(60)
    await house.visit()
    empty_partition(house.store, PARTITION, leader_epoch=1, log_start_offset=0)
    assert isinstance(house.store, MemoryObjectStore)
    house.store.objects.clear()

    with pytest.raises(StoreRefusedError, match="it lost something"):
        await house.tier.passes.take_over(house.log, 1)
