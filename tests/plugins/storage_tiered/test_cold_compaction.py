"""Compacted topics may be tiered: cold segments are rewritten, and swapped in the manifest."""

from __future__ import annotations

import pickle
import threading
from typing import TYPE_CHECKING

import attrs
import pytest
import trio

from odradek.kernel.api import (
    Buffer,
    CleanupSettings,
    OsFiles,
    RemoteStoreError,
    StorageError,
    do_now,
    read_batch,
    read_header,
)
from odradek.kernel.cleanup.compaction_job import CompactionDone, CompactionJob, GroupRewritten, compact
from odradek.kernel.contracts.cleanup import LogState
from odradek.kernel.machine.system.threads import SystemThreads
from odradek.kernel.machine.throttle import Throttle
from odradek.kernel.records.builder import BatchBuilder
from odradek.plugins.cleanup.compact import CompactPolicy
from odradek.plugins.storage_tiered.manifest import Manifest
from odradek.plugins.storage_tiered.manifests import FencedError, load_newest
from odradek.plugins.storage_tiered.rewriting import ColdSource, StagingPlace
from odradek.plugins.storage_tiered.store_opening import StoreOpener
from odradek.plugins.storage_tiered.store_settings import StoreSettings
from odradek.testing.contracts.storage_base import PARTITION
from odradek.testing.object_stores import FaultyObjectStore, MemoryObjectStore, StoreFault
from tests.plugins.storage_tiered.tiered_house import LITTLE_LOCAL, House
from tests.waiting import PATIENCE_S, until_async

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

COMPACTED = CleanupSettings(cleanup_policy=("compact",), min_cleanable_dirty_ratio=0.0)


def put(house: House, records: Sequence[tuple[bytes, bytes | None]]) -> None:
    """Append one batch a record."""
    house.log.assign_epoch(house.epoch, house.log.log_end_offset)
    for key, value in records:
        offset = house.log.log_end_offset
        builder = BatchBuilder(base_offset=offset, partition_leader_epoch=house.epoch)
        builder.append(key, value, timestamp=1_000 + offset)
        house.log.append(builder.build(), offset, offset, 1_000 + offset)
        house.log.write_pending()
    house.flush()
    house.engine.checkpoint({})


def steps(house: House) -> Iterator[GroupRewritten | CompactionDone]:
    """Plan a compaction of the whole log and do it, without putting in place what it wrote."""
    log = house.log
    state = LogState(
        partition=PARTITION.topic_partition,
        segments=log.segments(),
        settings=COMPACTED,
        log_start_offset=log.log_start_offset,
        last_stable_offset=log.log_end_offset,
        high_watermark=log.log_end_offset,
        first_dirty_offset=log.log_start_offset,
        rewritable_end=log.rewritable_end,
        now_ms=house.clock.now_ms(),
    )
    compaction = CompactPolicy().plan(state).compaction
    assert compaction is not None
    job = CompactionJob(
        compaction=compaction,
        rewrite=log.begin_rewrite(compaction.end_offset),
        aborted=(),
        last_records={},
        memory_bytes=1 << 20,
        load_factor=0.9,
        buffer_bytes=500,
        bytes_per_second=1e300,
        segment_bytes=1_000,
        segment_index_bytes=1_000,
        delete_retention_ms=86_400_000,
        now_ms=house.clock.now_ms(),
    )
    for step in compact(job, Throttle(lambda: 1e300, lambda: 0.0, SystemThreads().new_event())):
        assert isinstance(step, GroupRewritten | CompactionDone)
        yield step


def compact_all(house: House) -> list[GroupRewritten]:
    """Do all of it."""
    groups = []
    for step in steps(house):
        if isinstance(step, GroupRewritten):
            do_now(house.log.begin_replacement(step.base_offsets))
            groups.append(step)
    return groups


async def seen(house: House) -> list[tuple[int, bytes | None, bytes | None]]:
    """Return all records as a reader gets them."""
    batches = await house.read_all()
    return [
        (record.offset, record.key, record.value)
        for batch in batches
        for record in read_batch(batch, 0, read_header(batch))
    ]


def updates(rounds: int, keys: int = 5) -> list[tuple[bytes, bytes | None]]:
    return [(b"k%d" % key, b"value %d of %d" % (number, key)) for number in range(rounds) for key in range(keys)]


async def test_cold_segments_are_compacted_and_readers_notice_nothing_but_the_gaps(tmp_path: Path) -> None:
    house = House(tmp_path, settings=attrs.evolve(LITTLE_LOCAL, local_retention_bytes=900))
    put(house, updates(20))
    async with house.running():
        await house.visit()
        before = await seen(house)
        cold_bytes = sum(segment.size_bytes for segment in house.log.cold_segments)
        border = house.log.local_log_start_offset

        groups = compact_all(house)

        assert all(each.end_offset <= border or each.base_offsets[0] >= border for each in groups)
        after = await seen(house)
        assert set(after) < set(before)
        assert {key: value for _, key, value in after} == {key: value for _, key, value in before}
        assert [offset for offset, _, _ in after] == sorted({offset for offset, _, _ in after})
        assert sum(segment.size_bytes for segment in house.log.cold_segments) < cold_bytes / 2
        assert load_newest(house.store, PARTITION) == house.log.manifest

        compact_all(house)
        assert await seen(house) == after
        await house.visit()
        house = house.reopened()
    async with house.running():
        assert await seen(house) == after
    house.close()


async def test_segments_of_which_nothing_is_left_move_no_end_of_the_log(tmp_path: Path) -> None:
    house = House(tmp_path, settings=attrs.evolve(LITTLE_LOCAL, local_retention_bytes=300))
    put(house, [(b"k", b"%d" % number) for number in range(60)])
    async with house.running():
        await house.visit()
        end = house.log.tiered_end_offset
        compact_all(house)
        latest = await seen(house)
        await house.visit()

        assert len(latest) < 20
        assert (house.log.log_start_offset, house.log.tiered_end_offset) == (0, end)
        assert house.log.segments()[0].base_offset == 0
        house = house.reopened()
        assert house.log.log_start_offset == 0
    async with house.running():
        assert await seen(house) == latest
    house.close()


async def test_a_deleted_key_does_not_come_back_out_of_the_store(tmp_path: Path) -> None:
    house = House(tmp_path, settings=attrs.evolve(LITTLE_LOCAL, local_retention_bytes=900))
    put(house, updates(12))
    async with house.running():
        await house.visit()
        put(house, [(b"k0", None), *updates(4, keys=0), *[(b"other", b"x") for _ in range(20)]])
        compact_all(house)
        house.clock.advance(86_400_001)
        house.log.note_clean_end(0)
        compact_all(house)

        assert b"k0" not in {key for _, key, _ in await seen(house)}
    house.close()


@pytest.mark.parametrize("fault", [StoreFault.UNREACHABLE, StoreFault.ANSWER_LOST, StoreFault.BYTES_CHANGED])
def test_a_store_that_fails_leaves_the_old_segments_or_the_new_ones(tmp_path: Path, fault: StoreFault) -> None:
    async def scenario(n: int) -> bool:
        store = FaultyObjectStore(MemoryObjectStore())
        house = House(tmp_path / str(n), store, settings=attrs.evolve(LITTLE_LOCAL, local_retention_bytes=300))
        put(house, updates(6))
        async with house.running():
            await house.visit()
            latest = {key: value for _, key, value in await seen(house)}
            begun = store.operations
            faulty = FaultyObjectStore(store, fail_at=n, fault=fault)
            house.tier._cold_rewrites._open_store = lambda: faulty  # as if it failed from here on
            is_whole = True
            try:
                compact_all(house)
            except (StorageError, OSError):
                is_whole = False
            assert store.operations > begun or not is_whole
            house = house.reopened()
        async with house.running():
            await house.visit_anyhow()
            assert {key: value for _, key, value in await seen(house)} == latest
        house.close()
        return faulty.operations < n

    n = 1
    while not trio.run(scenario, n):
        n += 3


async def test_a_compaction_can_be_done_by_another_process(tmp_path: Path) -> None:
    folder = (tmp_path / "store").as_uri()
    opener = StoreOpener(folder, StoreSettings())
    house = House(tmp_path / "broker", opener())
    put(house, updates(20))
    async with house.running():
        await house.visit()
    source = ColdSource(opener, PARTITION, house.log.cold_segments[1])

    copy = pickle.loads(pickle.dumps(source))

    assert list(copy.batches(0, 100)) == list(source.batches(0, 100)) != []
    later = list(source.batches(source.base_offset + 2, 100))
    assert [bytes(batch) for batch in later] == [bytes(batch) for batch in copy.batches(0, 100)][2:]
    house.close()


def test_a_pass_removes_what_its_own_partition_left_and_not_that_of_one_whose_number_begins_alike(
    tmp_path: Path,
) -> None:
    one, ten = (StagingPlace(OsFiles(), tmp_path, f"topic-{number}") for number in (1, 10))
    for place in (one, ten):
        place.path(0, "log").write_bytes(b"")
    one.remove()

    assert [path.name for path in tmp_path.iterdir()] == [ten.path(0, "log").name]


async def test_what_a_compaction_that_is_not_over_yet_has_extended_does_not_expire(tmp_path: Path) -> None:
    house = House(tmp_path)
    put(house, updates(20))
    await house.visit()
    first, second = house.log.cold_segments[:2]
    # What a compaction puts on its thread when it left nothing of the second one; the reactor has not heard of it.
    house.log.line.put(house.store, lambda newest: manifest_of(newest).with_replacement([second.uid], []))
    house.log.advance_log_start(first.next_offset + 1)

    await house.tier.passes.run(house.log, house.epoch, lambda: True)

    assert isinstance(house.store, MemoryObjectStore)
    newest = manifest_of(load_newest(house.store, PARTITION))
    assert (newest.segments[0].uid, newest.log_start_offset) == (first.uid, first.next_offset + 1)
    assert set(newest.object_names()) <= set(house.store.objects)
    house.log.advance_log_start(second.next_offset)
    await house.visit()
    assert {name for name in house.store.objects if first.uid in name} == set()
    house.close()


async def test_visits_let_nothing_leave_the_disk_during_a_pass_and_make_up_for_it_after(tmp_path: Path) -> None:
    house = House(tmp_path, settings=LITTLE_LOCAL)
    put(house, updates(20))
    async with house.running():
        await house.visit()
        put(house, updates(1, keys=100))
        border, latest = house.log.local_log_start_offset, {key: value for _, key, value in await seen(house)}

        steps_of_pass = steps(house)
        house.log.hold_segments(are_read=True)
        groups = 0
        for step in steps_of_pass:
            if isinstance(step, GroupRewritten):
                do_now(house.log.begin_replacement(step.base_offsets))
                groups += 1
            await house.visit()
            assert house.log.local_log_start_offset == border
        house.log.hold_segments(are_read=False)
        await house.visit()

        assert groups > 3
        assert house.log.local_log_start_offset > border
        assert {key: value for _, key, value in await seen(house)} == latest
    house.close()


@pytest.mark.parametrize("keys", [1, 5])
@pytest.mark.parametrize("cleanup", [COMPACTED, CleanupSettings()])  # the topic may be compacted no more
async def test_segments_of_which_nothing_is_left_are_not_taken_from_the_store_again_once_they_leave_the_disk(
    tmp_path: Path, cleanup: CleanupSettings, keys: int
) -> None:
    house = House(tmp_path, settings=attrs.evolve(LITTLE_LOCAL, local_retention_bytes=1, cleanup=cleanup))
    put(house, updates(60 // keys, keys))
    async with house.running():
        house.log.hold_segments(are_read=True)
        await house.visit()  # all is sent, and none of it is cold yet
        assert house.log.local_log_start_offset == 0 < house.log.tiered_end_offset
        groups = compact_all(house)
        latest = await seen(house)
        house.log.hold_segments(are_read=False)
        await house.visit()

        assert [each.bytes_written for each in groups[:3]] == [0, 0, 0]
        assert house.log.local_log_start_offset > groups[2].end_offset
        assert await seen(house) == latest
        sent = house.tier.passes.counters.segments_sent
        await house.visit()
        assert house.tier.passes.counters.segments_sent == sent
        house = house.reopened()
    async with house.running():
        assert await seen(house) == latest
    house.close()


@pytest.mark.parametrize("local_records", [0, 12])
async def test_records_that_are_deleted_during_a_pass_leave_the_store_after_it(
    tmp_path: Path, local_records: int
) -> None:
    store = MemoryObjectStore()
    house = House(tmp_path, store)
    put(house, updates(40))
    async with house.running():
        await house.visit()
        cold, border = house.log.cold_segments, house.log.local_log_start_offset
        end = border + local_records

        steps_of_pass = steps(house)
        house.log.hold_segments(are_read=True)
        groups = [next(steps_of_pass)]
        house.log.advance_log_start(end)
        put(house, updates(20))
        await house.visit()  # which sends a segment, and so a manifest
        assert {segment.uid for segment in cold} <= {
            segment.uid for segment in manifest_of(house.log.manifest).segments
        }
        for step in groups + list(steps_of_pass):
            if isinstance(step, GroupRewritten):
                do_now(house.log.begin_replacement(step.base_offsets))
        rewritten = manifest_of(house.log.manifest)
        expired = [segment.uid for segment in rewritten.segments if segment.next_offset <= end]
        house.log.hold_segments(are_read=False)
        await house.visit()

        newest = manifest_of(load_newest(store, PARTITION))
        assert newest.log_start_offset == house.log.log_start_offset == end
        assert newest.segments[0].base_offset >= border
        assert newest.segments[0].next_offset > end
        assert expired
        assert not [name for name in store.objects for uid in expired if uid in name]
    house.close()


async def test_the_reactor_does_not_wait_while_a_compaction_waits_for_the_store(tmp_path: Path) -> None:
    begun, may_end = threading.Event(), threading.Event()

    class Hangs(MemoryObjectStore):
        """A store that does not answer the next creation of a manifest for a while."""

        hangs = False

        def create(self, name: str, data: Buffer) -> None:
            if self.hangs:
                self.hangs = False
                begun.set()
                assert may_end.wait(PATIENCE_S)
            super().create(name, data)

    store = Hangs()
    house = House(tmp_path, store)
    put(house, updates(20))
    await house.visit()
    second = house.log.cold_segments[1]
    store.hangs = True
    failed: list[RemoteStoreError] = []

    def compact() -> None:
        try:
            house.log.line.put(store, lambda newest: manifest_of(newest).with_replacement([second.uid], []))
        except RemoteStoreError as error:
            failed.append(error)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.to_thread.run_sync, compact)
        await until_async(begun.is_set)
        watchdog = threading.Timer(PATIENCE_S / 20, may_end.set)
        watchdog.start()

        await house.tier.passes.take_over(house.log, 2)

        assert not may_end.is_set()
        watchdog.cancel()
        may_end.set()
    assert isinstance(failed[0], FencedError)
    assert house.log.line.newest == house.log.manifest == load_newest(store, PARTITION)
    house.epoch = 2
    put(house, updates(4))
    await house.visit()
    assert house.log.line.newest == load_newest(store, PARTITION)
    house.close()


def manifest_of(newest: Manifest | None) -> Manifest:
    assert newest is not None
    return newest
