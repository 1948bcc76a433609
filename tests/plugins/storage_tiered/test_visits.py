"""Visits to tiered logs: patience with a store that is away, deletions, garbage, what is told."""

from __future__ import annotations

import logging
from pathlib import Path

import attrs
import pytest
import trio
import trio.testing

from odradek.kernel.api import OsFiles
from odradek.plugins.storage_tiered.local_state import COLD_TRANSACTIONS_KIND
from odradek.plugins.storage_tiered.manifests import load_newest
from odradek.plugins.storage_tiered.metrics import tier_metrics
from odradek.plugins.storage_tiered.pending import PendingRemovals
from odradek.plugins.storage_tiered.tier import TieredStorage
from odradek.testing.contracts.storage_base import PARTITION
from odradek.testing.object_stores import FaultyObjectStore, MemoryObjectStore, StoreFault
from tests.plugins.storage_tiered.tiered_house import CLUSTER_ID, LITTLE_LOCAL, House
from tests.waiting import until_async


def test_a_store_that_is_away_is_asked_less_and_less_and_told_of_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        store = FaultyObjectStore(MemoryObjectStore())
        store.fault = StoreFault.UNREACHABLE
        house = House(tmp_path, store)
        house.fill(30)
        pauses = []
        for _ in range(9):
            await house.tier.visit(house.log)
            pauses.append(house.tier.next_visit_ms(PARTITION) - house.clock.monotonic_ms())
            house.clock.advance(pauses[-1])
        metric = next(metric for metric in tier_metrics(house.tier) if metric.name == "odradek_tiered_store_away")

        assert metric.read() == {(): 1}
        for number, pause in enumerate(pauses):
            assert abs(pause - min(500 << number, 30_000)) <= min(500 << number, 30_000) * 0.2
        store.fault = None
        await house.tier.visit(house.log)
        assert metric.read() == {(): 0}
        assert house.tier.next_visit_ms(PARTITION) - house.clock.monotonic_ms() == 30_000
        house.close()

    with caplog.at_level(logging.WARNING):
        trio.run(main)

    told = [record.getMessage() for record in caplog.records if "tiered storage" in record.getMessage()]
    assert len(told) == 2
    assert "stands still" in told[0]
    assert "nobody answers" in told[0]
    assert "works again, after" in told[1]


async def test_disks_that_fill_while_the_store_is_away_are_told_of_early(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store = FaultyObjectStore(MemoryObjectStore())
    store.fault = StoreFault.UNREACHABLE
    house = House(tmp_path, store)
    house.tier = TieredStorage(house, store=store, free_share=lambda folder: 0.1)  # type: ignore[arg-type] # enough
    house.log = house.tier.wrap(house.inner, LITTLE_LOCAL)
    house.tier.note_leader(PARTITION, 1, 1)
    house.fill(30)
    await house.tier.visit(house.log)
    async with trio.open_nursery() as nursery:
        await nursery.start(house.tier.visit_logs)
        await until_async(lambda: "has 10 % left" in caplog.text)
        nursery.cancel_scope.cancel()
    house.close()

    assert str(tmp_path / "logs0") in caplog.text
    assert "bring the store back" in caplog.text


async def test_a_deleted_partition_leaves_nothing_even_if_the_store_was_away(tmp_path: Path) -> None:
    memory = MemoryObjectStore()
    store = FaultyObjectStore(memory)
    house = House(tmp_path, store, changes={"remote.log.manager.task.interval.ms": 20})
    house.fill(30)
    await house.tier.visit(house.log)
    assert load_newest(memory, PARTITION) is not None
    store.fault = StoreFault.BUSY
    house.tier.delete(PARTITION)
    async with trio.open_nursery() as nursery:
        await nursery.start(house.tier.visit_logs)
        await until_async(lambda: house.tier.is_away)
        store.fault = None
        house.clock.advance(60_000)
        await until_async(lambda: set(memory.objects) == {"odradek.json"})
        nursery.cancel_scope.cancel()


async def test_a_deletion_that_the_store_has_not_heard_of_survives_a_restart(tmp_path: Path) -> None:
    memory = MemoryObjectStore()
    store = FaultyObjectStore(memory)
    (tmp_path / "data").mkdir()
    house = House(tmp_path, store, changes={"remote.log.manager.task.interval.ms": 20})
    house.fill(30)
    await house.tier.visit(house.log)
    store.fault = StoreFault.BUSY
    house.tier.delete(PARTITION)
    async with trio.open_nursery() as nursery:
        await nursery.start(house.tier.visit_logs)
        await until_async(lambda: house.tier.is_away)
        nursery.cancel_scope.cancel()
    store.fault = None
    following = TieredStorage(house, store=store)  # type: ignore[arg-type] # as far as it is asked
    async with trio.open_nursery() as nursery:
        await nursery.start(following.visit_logs)
        await until_async(lambda: set(memory.objects) == {"odradek.json"})
        await until_async(lambda: not PendingRemovals(OsFiles(), tmp_path / "data/tiered-deletions.json").load())
        nursery.cancel_scope.cancel()


def test_a_file_of_deletions_that_is_damaged_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "tiered-deletions.json"
    path.write_bytes(b"?")

    assert PendingRemovals(OsFiles(), path).load() == {}
    PendingRemovals(OsFiles(), tmp_path / "missing" / "file").save({PARTITION: True})
    assert [record.message.partition(":")[0] for record in caplog.records] == [
        "which partitions are still to be removed from the store is not known",
        "a restart would forget 1 partitions to be removed from the store",
    ]


async def test_a_partition_that_is_deleted_before_its_visit_begins_is_not_visited(tmp_path: Path) -> None:
    house = House(tmp_path)
    house.fill(30)
    house.tier.delete(PARTITION)

    await house.tier.visit(house.log)

    assert isinstance(house.store, MemoryObjectStore)
    assert house.store.objects == {}


async def test_a_log_that_is_not_led_when_its_visit_begins_is_visited_when_it_is_led_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    house = House(tmp_path)
    house.fill(30)
    get_int = house.config.get_int
    was_deposed = trio.Event()

    def depose(name: str) -> int:
        # Asked for the pause: after the visit was started, before its first step.
        if name == "remote.log.manager.task.interval.ms" and not was_deposed.is_set():
            house.tier.note_leader(PARTITION, 2, 2)
            was_deposed.set()
        return get_int(name)

    monkeypatch.setattr(house.config, "get_int", depose)
    async with trio.open_nursery() as nursery:
        await nursery.start(house.tier.visit_logs)
        await was_deposed.wait()
        await trio.testing.wait_all_tasks_blocked()
        assert house.log.manifest is None
        house.tier.note_leader(PARTITION, 1, 3)
        await until_async(lambda: house.log.manifest is not None)
        nursery.cancel_scope.cancel()
    house.close()


async def test_a_bucket_of_another_cluster_is_left_alone(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    store = MemoryObjectStore()
    first = House(tmp_path / "first", store)
    first.fill(30)
    await first.tier.visit(first.log)
    objects = dict(store.objects)
    other = House(tmp_path / "other", store)
    other.cluster_id = "another-cluster"
    other.fill(30)

    await other.tier.visit(other.log)

    assert store.objects == objects
    assert len(other.inner.segments()) > 4

    assert f"the cluster {CLUSTER_ID}, and this cluster is another-cluster" in caplog.text


async def test_a_store_that_was_emptied_is_not_taken_for_a_new_one(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    house = House(tmp_path)
    written = house.fill(30)
    await house.tier.visit(house.log)
    house = house.reopened()
    assert isinstance(house.store, MemoryObjectStore)
    objects = dict(house.store.objects)
    house.store.objects.clear()
    house.fill(30)
    local = house.inner.segments()
    await house.tier.visit(house.log)

    assert house.store.objects == {}
    assert house.inner.segments() == local
    house.store.objects.update({name: each for name, each in objects.items() if "manifest" not in name})
    house.clock.advance(60_000)
    await house.tier.visit(house.log)
    assert house.inner.segments() == local
    house.store.objects.update(objects)
    house.clock.advance(60_000)
    await house.tier.visit(house.log)
    assert house.log.tiered_end_offset == house.log.active_base_offset
    async with house.running():
        assert (await house.read_all())[:30] == written
    house.close()

    assert "is empty, and this broker has sent segments" in caplog.text
    assert "it lost something, or is another store" in caplog.text


async def test_what_a_failed_upload_left_is_collected_after_the_grace_time(tmp_path: Path) -> None:
    memory = MemoryObjectStore()
    store = FaultyObjectStore(memory)
    house = House(tmp_path, store, changes={"odradek.tiered.garbage.grace.ms": 60_000})
    house.fill(30)
    memory.now_ms = house.clock.now_ms()
    memory.put("topics/orders/AAAAAAAAAAAAAAAAAAAATQ/3/segments/00000000000000000000-left.log", b"half")
    await house.tier.visit(house.log)
    named = set(house.log.manifest.object_names()) if house.log.manifest is not None else set()
    house.clock.advance(60_001)
    memory.put("topics/orders/AAAAAAAAAAAAAAAAAAAATQ/3/segments/00000000000000000000-fresh.log", b"half")
    memory.now_ms = house.clock.now_ms()
    memory.put("topics/orders/AAAAAAAAAAAAAAAAAAAATQ/3/segments/00000000000000000000-new.log", b"half")
    await house.tier.visit(house.log)

    left = {name for name in memory.objects if "/segments/" in name} - named
    assert [name[-7:] for name in left] == ["new.log"]
    assert house.tier.garbage_objects == 2
    house.close()


async def test_transaction_indexes_of_expired_segments_go_while_others_are_still_cold(tmp_path: Path) -> None:
    house = House(tmp_path)
    house.fill(60)
    bases = [segment.base_offset for segment in house.log.segments()[:-1]]
    for base in bases:
        house.log.write_sidecar(base, "txnindex", b"aborted")
    house.flush()
    await house.visit()
    border = house.log.local_log_start_offset
    assert list(house.inner.sidecars(COLD_TRANSACTIONS_KIND)) == [base for base in bases if base < border]

    house.log.advance_log_start(bases[3] + 1)
    house.fill(12)
    await house.visit()
    assert house.log.local_log_start_offset > border
    kept = list(house.inner.sidecars(COLD_TRANSACTIONS_KIND))
    assert kept == [base for base in bases if bases[3] <= base < house.log.local_log_start_offset]
    house.close()


async def test_metrics_tell_what_was_sent_got_and_waits(tmp_path: Path) -> None:
    house = House(tmp_path)
    house.fill(60)
    house.last_stable_offset = 20
    async with house.running():
        await house.tier.visit(house.log)
        house.tier.passes.has_due(house.log)
        house.last_stable_offset = None
        house.tier.passes.has_due(house.log)
        waits = {metric.name: dict(metric.read()) for metric in tier_metrics(house.tier)}
        await house.tier.visit(house.log)
        await house.read_all()
    found = {metric.name: dict(metric.read()) for metric in tier_metrics(house.tier)}
    topics = "kafka_server_brokertopicmetrics_"

    assert waits[f"{topics}remotecopylagsegments"][("orders",)] > 3
    assert found[f"{topics}remotecopylagsegments"] == {("orders",): 0}
    assert found[f"{topics}remotecopylagbytes"] == {("orders",): 0}
    manifest = house.log.manifest
    assert manifest is not None
    assert found[f"{topics}remotelogsizebytes"] == {("orders",): manifest.size_bytes}
    assert found[f"{topics}remotecopybytes_total"] == {(): manifest.size_bytes}
    assert found[f"{topics}remotecopyrequests_total"] == {(): len(manifest.segments)}
    assert found[f"{topics}remotefetchrequests_total"][()] > 3
    assert found[f"{topics}remotefetchbytes_total"][()] > 3_000
    assert found["odradek_tiered_local_segments_removed_total"][()] > 3
    assert found["odradek_tiered_store_away"] == {(): 0}
    assert found["odradek_tiered_cache_bytes"][()] > 3_000
    house.close()


def test_every_metric_stands_in_the_reference(tmp_path: Path) -> None:
    house = House(tmp_path, settings=attrs.evolve(LITTLE_LOCAL))
    page = (Path(__file__).parents[3] / "docs/reference/metrics.md").read_text()

    assert [metric.name for metric in tier_metrics(house.tier) if metric.name not in page] == []
    house.close()
