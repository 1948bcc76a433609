"""A log in two tiers: what is sent, what leaves the disk, what readers get."""

from __future__ import annotations

import os
import threading
from itertools import count
from typing import TYPE_CHECKING

import attrs
import pytest
import trio

from odradek.kernel.api import (
    CleanupSettings,
    EpochEnd,
    ErrorCode,
    KafkaError,
    RecordsAreRemoteError,
    do_now,
    read_header,
)
from odradek.kernel.records.builder import BatchBuilder
from odradek.plugins.storage_memory.engine import MemoryEngine
from odradek.plugins.storage_tiered.local_state import COLD_TRANSACTIONS_KIND, DERIVED_KINDS
from odradek.plugins.storage_tiered.manifests import FencedError, load_newest
from odradek.plugins.storage_tiered.names import segments_prefix
from odradek.testing.contracts.storage_base import PARTITION
from odradek.testing.object_stores import FaultyObjectStore, MemoryObjectStore, StoreFault
from tests.plugins.storage_tiered.tiered_house import EVERYTHING_LOCAL, LITTLE_LOCAL, House

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


async def test_old_segments_go_to_the_store_and_every_record_can_be_read(tmp_path: Path) -> None:
    house = House(tmp_path)
    written = house.fill(60)
    async with house.running():
        await house.visit()

        assert house.log.log_start_offset == 0
        assert house.log.local_log_start_offset > 40
        assert house.log.tiered_end_offset == house.log.active_base_offset
        assert await house.read_all() == written
    house.close()


async def test_a_log_in_memory_can_be_tiered_as_well(tmp_path: Path) -> None:
    house = House(tmp_path, engine=MemoryEngine)
    written = house.fill(60)
    async with house.running():
        await house.visit()

        assert house.log.local_log_start_offset > 40
        assert await house.read_all() == written


async def test_after_a_start_everything_is_there_before_the_store_was_asked(tmp_path: Path) -> None:
    store = FaultyObjectStore(MemoryObjectStore())
    house = House(tmp_path, store)
    written = house.fill(60)
    async with house.running():
        await house.visit()
    segments = house.log.segments()
    store.fault = StoreFault.UNREACHABLE

    again = house.reopened()

    assert [s[:4] for s in again.log.segments()] == [s[:4] for s in segments]
    with pytest.raises(RecordsAreRemoteError):
        again.log.read(0, 1_000)
    store.fault = None
    async with again.running():
        assert await again.read_all() == written
    again.close()


async def test_what_a_dead_broker_had_sent_is_found_by_the_next(tmp_path: Path) -> None:
    house = House(tmp_path)
    written = house.fill(60)
    async with house.running():
        await house.visit()
    # No close: what stands on the disk is all that is left.
    house.engine.close({})
    again = House(tmp_path, house.store, epoch=2)
    written += again.fill(20)
    async with again.running():
        await again.visit()

        assert await again.read_all() == written
        assert again.log.cold_segments[0].base_offset == 0


GATED = (StoreFault.UNREACHABLE, StoreFault.ANSWER_LOST, StoreFault.PARTIAL_UPLOAD, StoreFault.BYTES_CHANGED)
"""The faults that differ most; a sweep has them all."""


@pytest.mark.parametrize(
    "fault",
    [pytest.param(each, marks=() if each in GATED else pytest.mark.sweep) for each in StoreFault],
)
def test_whatever_the_store_does_no_record_is_lost(tmp_path: Path, fault: StoreFault) -> None:
    async def scenario(n: int) -> int:
        memory = MemoryObjectStore()
        store = FaultyObjectStore(memory, fail_at=n, fault=fault)
        house = House(tmp_path / str(n), store, settings=attrs.evolve(LITTLE_LOCAL, local_retention_bytes=200))
        written = house.fill(8)
        async with house.running():
            await house.visit_anyhow()
            written += house.fill(6)
            await house.visit_anyhow()
            reached = store.operations
            house.store = memory
            house = house.reopened()
        async with house.running():
            await house.visit()

            assert house.log.tiered_end_offset == house.log.active_base_offset
            assert await house.read_all() == written
        house.close()
        named = set((load_newest(memory, PARTITION) or pytest.fail("no manifest")).object_names())
        assert named <= memory.objects.keys()
        return reached

    for n in count(1):
        if trio.run(scenario, n) < n:
            break


async def test_a_store_that_is_away_keeps_nothing_from_being_written_or_read(tmp_path: Path) -> None:
    store = FaultyObjectStore(MemoryObjectStore())
    store.fault = StoreFault.UNREACHABLE
    house = House(tmp_path, store)
    written = house.fill(60)
    async with house.running():
        assert await house.visit_anyhow() is not None
        assert house.log.local_log_start_offset == 0
        assert await house.read_all() == written
    house.close()


async def test_records_that_cannot_be_had_are_a_retriable_error_for_a_moment(tmp_path: Path) -> None:
    store = FaultyObjectStore(MemoryObjectStore())
    house = House(tmp_path, store)
    written = house.fill(60)
    async with house.running():
        await house.visit()
        store.fault = StoreFault.UNREACHABLE
        await house.bring(0)

        with pytest.raises(KafkaError) as caught:
            house.log.read(0, 1_000)
        assert caught.value.code == ErrorCode.KAFKA_STORAGE_ERROR
        assert caught.value.code.retriable
        store.fault = None
        house.clock.advance(1_001)
        assert await house.read_all() == written
    house.close()


async def test_an_object_that_changed_is_an_error_and_never_wrong_records(tmp_path: Path) -> None:
    store = MemoryObjectStore()
    house = House(tmp_path, store)
    house.fill(60)
    async with house.running():
        await house.visit()
        name = min(name for name in store.objects if name.endswith(".log"))
        data, at = store.objects[name]
        store.objects[name] = data[:300] + bytes([data[300] ^ 1]) + data[301:], at
        await house.bring(0)

        with pytest.raises(KafkaError, match="damaged") as caught:
            house.log.read(0, 1_000)
        assert caught.value.code == ErrorCode.KAFKA_STORAGE_ERROR
    house.close()


@pytest.mark.parametrize("kind", ["index", "timeindex"])
async def test_an_index_that_changed_is_an_error_and_passes_over_no_records(tmp_path: Path, kind: str) -> None:
    store = MemoryObjectStore()
    house = House(tmp_path, store)
    house.fill(60)
    async with house.running():
        await house.visit()
        for name in [name for name in store.objects if name.endswith(f".{kind}")]:
            store.put(name, b"\0\0\0\0\x7f\xff\xff\xff" * 3)
        await house.bring(0)
        work = house.log.begin_time_lookup(1_007)
        assert work is not None
        do_now(work)

        with pytest.raises(RecordsAreRemoteError):
            house.log.batch_for_timestamp(1_007, 0)
        if kind == "index":
            with pytest.raises(KafkaError, match=r"by the manifest: it was damaged; bring it back") as caught:
                house.log.read(0, 1_000)
            assert caught.value.code == ErrorCode.KAFKA_STORAGE_ERROR
    house.close()


async def test_a_leader_that_was_deposed_changes_nothing(tmp_path: Path) -> None:
    store = MemoryObjectStore()
    old = House(tmp_path / "old", store, epoch=1)
    old.fill(30)
    new = House(tmp_path / "new", store, epoch=2)
    new.fill(30, epoch=1)
    async with old.running(), new.running():
        await old.visit()
        await new.visit()
        manifest = load_newest(store, PARTITION)
        old.fill(30)
        local = old.inner.segments()

        with pytest.raises(FencedError):
            await old.visit()
        assert load_newest(store, PARTITION) == manifest
        assert old.inner.segments() == local


async def test_deleted_records_leave_the_store(tmp_path: Path) -> None:
    store = MemoryObjectStore()
    house = House(tmp_path, store)
    written = house.fill(60)
    async with house.running():
        await house.visit()
        house.log.advance_log_start(20)
        house.log.delete_segments_below(20)
        await house.visit()

        assert house.log.log_start_offset == 20
        assert (await house.read_all())[-40:] == written[20:]
        names = [name for name in store.objects if name.startswith(segments_prefix(PARTITION))]
        assert min(names) > f"{segments_prefix(PARTITION)}{15:020d}"
        house = house.reopened()
        assert house.log.log_start_offset == 20
    house.close()


async def test_retention_of_the_whole_log_reaches_into_the_store(tmp_path: Path) -> None:
    house = House(tmp_path)
    house.fill(60)
    async with house.running():
        await house.visit()
        second = house.log.segments()[2].base_offset

        assert house.log.delete_segments_below(second) == 2
        assert house.log.log_start_offset == second
        assert house.log.delete_segments_below(house.log.active_base_offset) > 2
        assert house.log.cold_segments == ()
        assert house.log.log_start_offset == house.log.active_base_offset
    house.close()


def test_a_log_of_which_nothing_was_sent_expires_as_any_other(tmp_path: Path) -> None:
    house = House(tmp_path)
    house.fill(30)
    second = house.log.segments()[2].base_offset

    assert house.log.delete_segments_below(second) == 2
    assert (house.log.log_start_offset, house.log.local_log_start_offset) == (second, second)
    house.close()


async def test_epochs_of_both_tiers_are_known(tmp_path: Path) -> None:
    house = House(tmp_path)
    house.fill(20, epoch=1)
    house.fill(20, epoch=3)
    house.epoch = 4
    house.fill(20)
    async with house.running():
        before = list(house.log.epoch_entries())
        await house.visit()

        assert house.log.local_log_start_offset > 40
        assert list(house.log.epoch_entries()) == before == [(1, 0), (3, 20), (4, 40)]
        assert house.log.end_offset_for_epoch(1) == EpochEnd(1, 20)
        assert house.log.end_offset_for_epoch(2) == EpochEnd(1, 20)
        assert house.log.end_offset_for_epoch(3) == EpochEnd(3, 40)
    house.close()


async def test_times_are_found_in_the_store(tmp_path: Path) -> None:
    house = House(tmp_path)
    written = house.fill(60)
    async with house.running():
        await house.visit()
        for offset in (0, 7, 30, house.log.local_log_start_offset - 1):
            with pytest.raises(RecordsAreRemoteError):
                house.log.batch_for_timestamp(1_000 + offset, 0)
            work = house.log.begin_time_lookup(1_000 + offset)
            assert work is not None
            do_now(work)

            assert house.log.batch_for_timestamp(1_000 + offset, 0) == written[offset]
        assert house.log.batch_for_timestamp(1_059, 0) == written[59]
        assert house.log.batch_for_timestamp(9_999, 0) is None
    house.close()


async def test_a_time_is_found_behind_the_start_of_a_log_that_begins_within_a_batch(tmp_path: Path) -> None:
    house = House(tmp_path)
    builder = BatchBuilder(partition_leader_epoch=1)
    for stamp in (9_000, 1_000, 2_000):
        builder.append(None, b"v", timestamp=stamp)
    house.log.assign_epoch(1, 0)
    house.log.append(builder.build(), 0, 2, 9_000)
    written = house.fill(60)
    async with house.running():
        await house.visit()
        house.log.advance_log_start(1)
        lookup = house.log.begin_time_lookup(1_003)
        assert lookup is not None
        do_now(lookup)
        found = house.log.batch_for_timestamp(1_003, 1)

        assert found is not None
        assert read_header(found).base_offset == 0
        lookup = house.log.begin_time_lookup(8_000)
        assert lookup is not None
        do_now(lookup)
        assert house.log.batch_for_timestamp(8_000, 1) is None
        assert len(await house.read_all()) == len(written) + 1
    house.close()


async def test_transaction_indexes_of_cold_segments_stay_at_hand(tmp_path: Path) -> None:
    house = House(tmp_path)
    house.fill(60)
    bases = [segment.base_offset for segment in house.log.segments()]
    for base in (bases[1], bases[3]):
        house.log.write_sidecar(base, "txnindex", b"aborted in %d" % base)
    house.flush()
    async with house.running():
        await house.visit()
        house = house.reopened()

        assert house.log.local_log_start_offset > bases[3]
        assert list(house.log.sidecars("txnindex")) == [bases[1], bases[3]]
        assert house.log.read_sidecar(bases[3], "txnindex") == b"aborted in %d" % bases[3]
        assert "txnindex" in house.log.cold_segments[1].files
    house.close()


async def test_a_segment_whose_snapshot_is_being_taken_is_not_sent_before_it_is_there(tmp_path: Path) -> None:
    house = House(tmp_path)
    house.fill(60)
    house.flush()
    bases = [segment.base_offset for segment in house.log.segments()]
    house.log.hold_uploads(bases[2])
    async with house.running():
        await house.visit()
        assert house.log.tiered_end_offset == bases[1], "the second ends where the third begins"
        house.log.write_sidecar(bases[2], "snapshot", b"producers")
        house.log.hold_uploads(None)
        await house.visit()

        assert house.log.tiered_end_offset > bases[2]
        assert "snapshot" in house.log.cold_segments[1].files
    house.close()


async def test_no_visit_waits_for_the_disk_on_the_reactor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced_by = set()

    def fsync(fd: int, really: Callable[[int], None] = os.fsync) -> None:
        synced_by.add(threading.current_thread())
        really(fd)

    house = House(tmp_path)
    house.fill(60)
    for segment in house.log.segments():
        house.log.write_sidecar(segment.base_offset, "txnindex", b"aborted")
    house.flush()
    monkeypatch.setattr(os, "fsync", fsync)
    async with house.running():
        await house.visit()
    monkeypatch.undo()

    assert house.log.cold_segments
    assert synced_by
    assert threading.main_thread() not in synced_by
    house.close()


async def test_a_segment_that_is_rewritten_while_it_is_about_to_leave_stays(
    tmp_path: Path,
) -> None:
    compacted = attrs.evolve(LITTLE_LOCAL, cleanup=CleanupSettings(cleanup_policy=("compact",)))
    house = House(tmp_path, settings=compacted)
    house.fill(60)
    base = house.log.segments()[2].base_offset
    house.log.write_sidecar(base, "txnindex", b"aborted")
    house.flush()
    asked = count()

    def is_wanted() -> bool:
        # As the visit asks a last time, compaction has taken a transaction out of the segment.
        is_kept = base in house.inner.sidecars(COLD_TRANSACTIONS_KIND)
        if is_kept and base in house.log.copies and not next(asked):
            house.inner.delete_sidecar(base, "txnindex")
            house.log.copies = {at: copy for at, copy in house.log.copies.items() if at != base}
        return True

    async with house.running():
        await house.tier.passes.take_over(house.log, house.epoch)
        await house.tier.passes.run(house.log, house.epoch, is_wanted)

        assert house.log.local_log_start_offset == base
        assert list(house.log.sidecars("txnindex")) == []
        await house.visit()
        assert house.log.local_log_start_offset > base
        assert list(house.log.sidecars("txnindex")) == []
    house.close()


async def test_nothing_undecided_and_nothing_volatile_is_sent(tmp_path: Path) -> None:
    house = House(tmp_path)
    house.fill(30)
    house.last_stable_offset = 10
    async with house.running():
        await house.visit()

        assert house.log.tiered_end_offset <= 10
        house.last_stable_offset = None
        await house.visit()
        assert house.log.tiered_end_offset == house.log.active_base_offset
    house.close()


async def test_without_copying_nothing_more_is_sent_and_nothing_unsent_leaves(tmp_path: Path) -> None:
    house = House(tmp_path)
    house.fill(30)
    async with house.running():
        await house.visit()
        end = house.log.tiered_end_offset
        house.log.reconfigure_tier(attrs.evolve(LITTLE_LOCAL, remote_log_copy_disable=True))
        house.fill(30)
        await house.visit()

        assert house.log.tiered_end_offset == end
        assert house.log.local_log_start_offset <= end
        assert len(await house.read_all()) == 60
    house.close()


async def test_a_log_that_is_unwrapped_goes_on_with_what_is_local(tmp_path: Path) -> None:
    house = House(tmp_path)
    house.fill(60)
    async with house.running():
        await house.visit()
        start = house.log.local_log_start_offset

        inner = house.log.unwrap()

        assert (inner.log_start_offset, house.tier.logs) == (start, [])
        assert list(inner.sidecars("tier")) == []
    house.close()


async def test_a_log_that_is_truncated_below_its_local_part_is_given_up_as_a_whole(tmp_path: Path) -> None:
    house = House(tmp_path)
    house.fill(60)
    async with house.running():
        await house.visit()
        border, sent = house.log.local_log_start_offset, {each.name for each in house.store.list("")}

        house.log.truncate_to(58)
        assert (house.log.local_log_start_offset, house.log.log_end_offset) == (border, 58)
        house.log.truncate_to(5)
        assert (house.log.log_start_offset, house.log.local_log_start_offset, house.log.log_end_offset) == (0, 0, 0)
        assert [kind for kind in DERIVED_KINDS if house.log.sidecars(kind)] == []
        assert {each.name for each in house.store.list("")} == sent, "who follows removes nothing there"
        written = house.fill(3)
        reopened = house.reopened()
        assert (reopened.log.log_start_offset, await reopened.read_all()) == (0, written)
    reopened.close()


async def test_a_log_that_keeps_everything_local_is_in_the_store_as_well(tmp_path: Path) -> None:
    house = House(tmp_path, settings=EVERYTHING_LOCAL)
    written = house.fill(60)
    async with house.running():
        await house.visit()

        assert house.log.local_log_start_offset == 0
        assert house.log.tiered_end_offset == house.log.active_base_offset
        assert await house.read_all() == written
    house.close()


async def test_a_reader_that_goes_on_finds_the_next_records_on_their_way(tmp_path: Path) -> None:
    house = House(tmp_path)
    house.fill(60)
    async with house.running():
        await house.visit()
        await house.read_all()
        asked_for = house.tier.cold_reads.counters.requests
        await house.read_all()

        assert house.tier.cold_reads.counters.requests == asked_for
        assert house.tier.cold_reads.counters.hits > 40
    house.close()
