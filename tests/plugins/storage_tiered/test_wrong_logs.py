"""What is wrong with one tiered log, or with the store's answer for it, is told with its name, and stops no other."""

from __future__ import annotations

import logging
import re
from typing import TYPE_CHECKING

import attrs
import pytest
import trio

from odradek.kernel.api import ErrorCode, KafkaError
from odradek.plugins.storage_tiered.forks import LogWay
from odradek.plugins.storage_tiered.manifest import Manifest
from odradek.plugins.storage_tiered.manifests import load_newest
from odradek.plugins.storage_tiered.names import manifest_prefix
from odradek.plugins.storage_tiered.planning import contradiction
from odradek.plugins.storage_tiered.tier import TieredStorage
from odradek.testing.contracts.storage_base import PARTITION, SMALL, fill
from odradek.testing.object_stores import FaultyObjectStore, MemoryObjectStore, StoreFault
from tests.plugins.storage_tiered.tiered_house import LITTLE_LOCAL, House
from tests.waiting import until_async

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from odradek.kernel.api import ObjectInfo
    from odradek.plugins.storage_tiered.log import TieredPartitionLog

OTHER = PARTITION._replace(partition=4)


class BuggyStore(MemoryObjectStore):
    """One whose author forgot something.

    Attributes:
        is_buggy: Whether it shows.
    """

    is_buggy = False

    def list(self, prefix: str) -> Iterator[ObjectInfo]:
        if self.is_buggy and prefix == manifest_prefix(PARTITION):
            raise ZeroDivisionError("a bug of the store's author")
        return super().list(prefix)

    def get(self, name: str, start: int = 0, size: int | None = None) -> bytes:
        if self.is_buggy and "/3/" in name and name.endswith(".log"):
            raise ZeroDivisionError("a bug of the store's author")
        return super().get(name, start, size)


def add_log(house: House) -> TieredPartitionLog:
    """Have the house's broker lead another log, which has nothing to send yet."""
    other = house.tier.wrap(house.engine.open_log(OTHER, SMALL), LITTLE_LOCAL)
    house.tier.note_leader(OTHER, 1, house.epoch)
    return other


def fill_log(house: House, other: TieredPartitionLog, count: int) -> None:
    other.assign_epoch(house.epoch, other.log_end_offset)
    fill(other, other.log_end_offset, other.log_end_offset + count, epoch=house.epoch)
    other.flush()
    other.write_sidecar(other.active_base_offset, "snapshot", b"state of producers")
    house.engine.checkpoint({})


def change_newest(store: MemoryObjectStore, old: bytes, new: bytes) -> None:
    name = max(name for name in store.objects if name.startswith(manifest_prefix(PARTITION)))
    data = store.get(name)
    assert old in data
    store.put(name, data.replace(old, new))


def nothing(store: BuggyStore) -> None:
    """Leave it: the local log alone is another one."""


def later_format(store: BuggyStore) -> None:
    change_newest(store, b'"format_version": 1', b'"format_version": 9')


def damage(store: BuggyStore) -> None:
    change_newest(store, b'"base_offset":0', b'"base_offset":1')


def show_bug(store: BuggyStore) -> None:
    store.is_buggy = True


@pytest.mark.parametrize(
    ("spoil", "told"),
    [
        (nothing, r"Was its folder lost\? Nothing is sent or removed; `odradek tiered restore`"),
        (later_format, r"the manifest of partition orders-3 .* 9"),
        (damage, r"the manifest of partition orders-3 .* is damaged"),
        (show_bug, r"a bug of the store's author"),
    ],
)
def test_what_is_wrong_with_one_log_stops_no_other(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, spoil: Callable[[BuggyStore], None], told: str
) -> None:
    async def main() -> None:
        store = BuggyStore()
        first = House(tmp_path / "first", store)
        first.fill(30)
        await first.tier.visit(first.log)
        first.close()
        spoil(store)
        objects = {name: each for name, each in store.objects.items() if "/3/segments/" in name}
        house = House(tmp_path / "second", store, epoch=2)
        house.fill(60)
        other = add_log(house)
        fill_log(house, other, 60)
        local = house.inner.segments()

        async with trio.open_nursery() as nursery:
            await nursery.start(house.tier.visit_logs)
            await until_async(lambda: house.tier.passes.counters.failures > 0 and other.local_log_start_offset > 0)
            nursery.cancel_scope.cancel()

        assert {name: each for name, each in store.objects.items() if "/3/segments/" in name} == objects
        assert house.inner.segments() == local
        assert load_newest(store, OTHER) is not None
        assert not house.tier.is_away
        other.close()
        house.close()

    with caplog.at_level(logging.ERROR):
        trio.run(main)

    assert "orders-3: tiering failed and is tried again" in caplog.text
    assert "stands still" not in caplog.text
    assert re.search(told, caplog.text)


async def test_a_log_that_had_nothing_to_ask_says_nothing_of_the_store(tmp_path: Path) -> None:
    store = FaultyObjectStore(MemoryObjectStore())
    house = House(tmp_path, store)
    idle = add_log(house)
    house.fill(30)
    store.fault = StoreFault.UNREACHABLE
    await house.tier.visit(house.log)
    await house.tier.visit(idle)
    is_away = house.tier.is_away
    store.fault = None
    await house.tier.visit(house.log)

    assert (is_away, house.tier.is_away) == (True, False)
    idle.close()
    house.close()


async def test_a_disk_that_is_gone_while_the_store_is_away_stops_nothing(tmp_path: Path) -> None:
    asked = []

    def free_share(folder: str) -> float:
        asked.append(folder)
        raise FileNotFoundError(folder)

    store = FaultyObjectStore(MemoryObjectStore())
    store.fault = StoreFault.UNREACHABLE
    house = House(tmp_path, store, changes={"remote.log.manager.task.interval.ms": 20})
    house.tier = TieredStorage(house, store=store, free_share=free_share)  # type: ignore[arg-type] # enough
    house.log = house.tier.wrap(house.inner, LITTLE_LOCAL)
    house.tier.note_leader(PARTITION, 1, 1)
    house.fill(30)
    await house.tier.visit(house.log)
    async with trio.open_nursery() as nursery:
        await nursery.start(house.tier.visit_logs)
        await until_async(lambda: len(asked) > 1)
        nursery.cancel_scope.cancel()
    house.close()


async def test_a_read_that_meets_a_bug_is_an_error_and_the_next_ones_are_served(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store = BuggyStore()
    house = House(tmp_path, store)
    written = house.fill(60)
    async with house.running():
        await house.visit()
        store.is_buggy = True
        await house.bring(0)
        with pytest.raises(KafkaError) as caught:
            house.log.read(0, 1_000)
        assert caught.value.code == ErrorCode.KAFKA_STORAGE_ERROR
        store.is_buggy = False
        house.clock.advance(1_001)

        assert await house.read_all() == written
    house.close()

    assert "a bug of the store's author" in caplog.text


async def test_an_object_that_is_missing_is_a_retriable_error_that_names_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store = MemoryObjectStore()
    house = House(tmp_path, store)
    written = house.fill(60)
    async with house.running():
        await house.visit()
        name = min(name for name in store.objects if name.endswith(".log"))
        lost = store.objects.pop(name)
        await house.bring(0)
        with pytest.raises(KafkaError, match=name) as caught:
            house.log.read(0, 1_000)
        assert caught.value.code == ErrorCode.KAFKA_STORAGE_ERROR
        store.objects[name] = lost
        house.clock.advance(1_001)

        assert await house.read_all() == written
    house.close()

    assert "orders-3: offset 0 cannot be read from the store" in caplog.text


async def test_a_manifest_is_held_against_what_the_local_log_has(tmp_path: Path) -> None:
    house = House(tmp_path, epoch=3)
    house.fill(30)
    await house.tier.visit(house.log)
    manifest = house.log.manifest
    assert manifest is not None
    end = manifest.end_offset

    def told(manifest: Manifest, epochs: list[tuple[int, int]], end_offset: int, local_start_offset: int = 0) -> str:
        return contradiction(manifest, LogWay(epochs, 0, local_start_offset, end_offset))

    assert told(manifest, [(3, 0)], end) == ""
    assert told(manifest, [(3, 0), (4, end)], end + 5) == ""
    assert told(manifest, [(4, end)], end + 5, end) == "", "of what is cold a log may know no epochs"
    assert told(manifest, [], end) == ""
    assert (
        told(manifest, [(3, 0)], end - 1) == f"the store has offsets up to {end}, and the local log ends at {end - 1}"
    )
    assert told(manifest, [(3, 0)], end + 9, end + 4) == (
        f"the store has offsets up to {end}, and the local log begins at {end + 4}"
    )
    assert told(attrs.evolve(manifest, segments=(), log_start_offset=end), [], 0) != ""
    assert told(manifest, [(4, 0)], end + 5) == "offset 0 has the leader epoch 3 in the store, and 4 in the local log"
    house.close()


async def test_a_smaller_cache_of_indexes_is_smaller_from_the_next_read_on(tmp_path: Path) -> None:
    house = House(tmp_path)
    house.fill(60)
    async with house.running():
        await house.visit()
        for offset in (0, 12, 24):
            await house.bring(offset)
        indexes = house.tier.cold_reads._indexes
        size_bytes = indexes.size_bytes
        house.config.change("remote.log.index.file.cache.total.size.bytes", 1)
        await house.bring(36)

        assert 0 < indexes.size_bytes < size_bytes
    house.close()
