"""Shards are loaded from their partitions' logs: whole, in the background, whatever lies in the log."""

from __future__ import annotations

import random
import threading
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import trio

from odradek.kernel.contracts.coordinator import ProducerIdentity
from odradek.kernel.contracts.storage import LogConfig
from odradek.kernel.coordinator import loader
from odradek.kernel.errors import CorruptionError, ErrorCode, StorageError
from odradek.kernel.records.batch import CRC_POSITION, MAGIC_POSITION, compute_crc, iterate_batches
from odradek.kernel.records.builder import BatchBuilder
from odradek.kernel.records.compression import CompressionType
from odradek.testing.faults import FaultyFiles, PowerLoss
from tests.one_object import patch_one

from .hosting import TOPIC, World

ONE, TWO = ProducerIdentity(7, 3), ProducerIdentity(8, 0)
SMALL_SEGMENTS = LogConfig(segment_bytes=2_000)


def write_much(world: World) -> None:
    """Write plain records, a committed, an aborted and an open transaction, in many batches."""
    for number in range(100):
        world.add(f"c{number % 7}", number)
        if number % 3 == 0:
            world.turn()
    world.add("t", 5, producer=ONE)
    world.add("t", 7, producer=TWO)
    world.end_transaction(7, 4, is_commit=True)
    world.end_transaction(8, 0, is_commit=False)
    world.add("open", 1, producer=ProducerIdentity(7, 4))
    world.turn()


def batch_of(*records: tuple[bytes, bytes | None], compression: CompressionType = CompressionType.NONE) -> bytearray:
    builder = BatchBuilder(compression=compression)
    for key, value in records:
        builder.append(key, value, timestamp=0)
    return builder.build()


def patch_crc(batch: bytearray) -> None:
    batch[CRC_POSITION : CRC_POSITION + 4] = compute_crc(batch, 0, len(batch)).to_bytes(4, "big")


@pytest.mark.parametrize("is_on_disk", [False, True])
def test_a_loaded_shard_is_the_one_that_wrote(tmp_path: Path, is_on_disk: bool) -> None:
    world = World(tmp_path if is_on_disk else None, log_config=SMALL_SEGMENTS)
    world.open()
    write_much(world)
    old = world.reload()

    assert world.shard() is not old
    assert world.shard().snapshot() == old.snapshot()
    assert world.shard().offsets == old.offsets
    assert world.shard().loaded_at_ms == world.clock.now_ms()
    assert world.runtime.counters.skipped_records == 0
    assert world.runtime.counters.loaded_count == 1
    world.close()


def test_small_reads_give_the_same(tmp_path: Path) -> None:
    world = World(tmp_path, settings={"offsets.load.buffer.size": "1"}, log_config=SMALL_SEGMENTS)
    world.open()
    write_much(world)
    old = world.reload()

    assert world.shard().snapshot() == old.snapshot()
    world.close()


def test_a_start_loads_what_an_earlier_run_wrote(tmp_path: Path) -> None:
    first = World(tmp_path, log_config=SMALL_SEGMENTS)
    first.open(2)
    write_much(first)
    first.close()
    second = World(tmp_path, log_config=SMALL_SEGMENTS)
    second.open(2)
    assert second.runtime.is_loading()
    assert second.add("a", 1).error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert second.add("a", 1, partition=1).error_code == ErrorCode.NONE  # empty: active at once
    second.load()

    assert not second.runtime.is_loading()
    assert second.shard().snapshot() == first.coordinator.made[0].snapshot()
    second.close()


@pytest.mark.parametrize("style", list(PowerLoss))
def test_what_was_answered_and_flushed_survives_a_loss_of_power(tmp_path: Path, style: PowerLoss) -> None:
    before, after = tmp_path / "before", tmp_path / "after"
    before.mkdir()
    files = FaultyFiles(before)
    world = World(before, files=files)
    world.open()
    write_much(world)
    work = world.replica().log.begin_flush()
    work.run()
    work.finish(None)
    durable = world.shard().snapshot()
    atomic = world.add("atomic", 1, times=50)
    world.turn()
    assert atomic.response == 50
    files.crash()
    after.mkdir()
    files.after_power_loss(after, style, random.Random(1))
    second = World(after)
    second.open()
    second.load()
    counters = dict(second.shard().counters)

    assert counters.pop("atomic", 0) in (0, 50)  # all of its records, or none
    assert (counters, second.shard().pending) == durable
    second.close()


def test_it_serves_once_the_high_watermark_reached_what_it_loaded() -> None:
    world = World()
    world.open(isr=(1, 2), replicas=(1, 2))
    world.follower_has(0)
    world.add("a", 1)
    world.turn()
    world.runtime.places[0].leave()
    world.runtime.places[0].check()
    world.load()
    assert world.runtime.is_loading()
    assert world.read("a").error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    world.follower_has(1)

    assert world.read("a").response == 1


def test_what_cannot_be_understood_is_skipped_counted_and_told(caplog: pytest.LogCaptureFixture) -> None:
    world = World()
    world.open()
    broken_crc = batch_of((b"add a", b"1000"))
    broken_crc[-1] ^= 1
    broken_payload = batch_of((b"add a", b"1000"), compression=CompressionType.GZIP)
    broken_payload[61:] = b"x" * (len(broken_payload) - 61)
    patch_crc(broken_payload)
    world.append(batch_of((b"add a", b"1"), (b"add b", None), (b"later x", b""), (b"\xff", b"1"), (b"add a", b"2")))
    world.append(broken_crc)
    world.append(batch_of((b"add huge", b"nine"), (b"add a", b"4")))
    world.append(broken_payload)
    world.reload()

    assert world.shard().counters == {"a": 7}
    assert world.runtime.counters.skipped_records == 6
    for line in ("offset 1: no counter", "offset 2: a record of a type", "offset 5: a batch whose CRC"):
        assert f"{TOPIC}-0: skipped {line}" in caplog.text


def test_a_record_that_replay_fails_on_is_skipped(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    world = World()
    world.open()
    for name in ("a", "b", "c"):
        world.add(name, 1)
    world.end_transaction(9, 0, is_commit=True)
    world.turn()
    replay = type(world.shard()).replay

    def picky(shard: Any, record: Any, offset: int, producer: ProducerIdentity) -> None:
        if record.name == "b":
            raise ZeroDivisionError
        replay(shard, record, offset, producer)

    monkeypatch.setattr(type(world.shard()), "replay", picky)
    monkeypatch.setattr(type(world.shard()), "replay_marker", lambda *_arguments, **_options: 1 / 0)
    world.reload()

    assert world.shard().counters == {"a": 1, "c": 1}
    assert world.runtime.counters.skipped_records == 2
    assert "skipped offset 1: it cannot be replayed" in caplog.text
    assert "skipped offset 3: a marker that cannot be replayed" in caplog.text


def damage(world: World, first_offset: int, at: int, what: bytes) -> None:
    """Overwrite bytes of the batch that begins at an offset, in its file or in memory."""
    log = world.replica().log
    assert log.directory is not None
    segment = max(each.base_offset for each in log.segments() if each.base_offset <= first_offset)
    with (log.directory / f"{segment:020}.log").open("r+b") as file:
        content = file.read()
        (position,) = (position for position, header in iterate_batches(content) if header.base_offset == first_offset)
        file.seek(position + at)
        file.write(what)


DAMAGE = {
    "an impossible magic": (MAGIC_POSITION, b"\x00"),
    "a length below any batch's": (8, (3).to_bytes(4, "big")),
    "a length beyond the end": (8, (1 << 30).to_bytes(4, "big")),
    "a length that ends within a later batch": (8, (200).to_bytes(4, "big")),
    "a negative length": (8, b"\xff\xff\xff\xff"),
    "a flipped bit": (70, b"\xff"),
    "zeroes": (0, bytes(70)),
}


@pytest.mark.parametrize("buffer_bytes", [300, 5_000_000])
@pytest.mark.parametrize("offset", [0, 7, 19])
@pytest.mark.parametrize("name", DAMAGE)
def test_damage_costs_the_batch_that_it_hit_and_no_other(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, name: str, offset: int, buffer_bytes: int
) -> None:
    """In a log of which each batch is indexed, so that any can be found."""
    world = World(
        tmp_path,
        settings={"offsets.load.buffer.size": str(buffer_bytes)},
        log_config=LogConfig(index_interval_bytes=0),
    )
    world.open()
    for number in range(20):
        world.add(f"c{number}", 1)
        world.turn()
    damage(world, offset, *DAMAGE[name])
    world.reload()

    assert world.shard().counters == {f"c{number}": 1 for number in range(20) if number != offset}
    assert world.runtime.counters.skipped_records == 1
    assert f"{TOPIC}-0: skipped offset {offset}: " in caplog.text
    assert world.runtime.counters.failed_count == 0
    world.close()


def test_what_is_written_behind_damage_is_found_by_the_next_load(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.open()
    world.add("a", 1)
    world.add("b", 1)
    world.turn()
    damage(world, 0, *DAMAGE["zeroes"])
    world.reload()
    assert world.shard().counters == {}
    assert world.runtime.counters.skipped_records == 2
    for name in ("a", "c"):
        assert world.add(name, 5).error_code == ErrorCode.NONE
        world.turn()
    world.reload()

    assert world.shard().counters == {"a": 5, "c": 5}
    world.close()


def test_a_log_of_which_nothing_can_be_read_is_served_from_its_end(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    world = World()
    world.open()
    world.add("a", 1, times=5)
    world.turn()

    def broken(*_arguments: object, **_options: object) -> None:
        raise CorruptionError("no batches")

    with monkeypatch.context() as patched:
        patch_one(patched, world.replica().log, "read", broken)
        world.reload()

    assert "skipped offsets 0 to 4: no batches" in caplog.text
    assert world.runtime.counters.skipped_records == 5
    assert world.add("a", 7).error_code == ErrorCode.NONE


def test_a_loading_that_fails_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    world.open()
    world.add("a", 1)
    world.turn()
    log_type = type(world.replica().log)

    def broken(*_arguments: object, **_options: object) -> None:
        raise ZeroDivisionError

    with monkeypatch.context() as patched:
        patched.setattr(log_type, "read", broken)
        place = world.runtime.places[0]
        place.leave()
        place.check()
        world.load()
    assert world.read("a").error_code == ErrorCode.NOT_COORDINATOR
    world.advance(100)
    world.load()

    assert world.read("a").response == 1
    assert world.runtime.counters.failed_count == 1


def test_a_log_that_fails_takes_its_partition_offline(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    world.open()
    world.add("a", 1)
    world.turn()

    def broken(*_arguments: object, **_options: object) -> None:
        raise StorageError("the disk is gone")

    patch_one(monkeypatch, world.replica().log, "read", broken)
    place = world.runtime.places[0]
    place.leave()
    place.check()
    world.load()

    assert world.replica().offline_reason == "the disk is gone"
    assert world.read("a").error_code == ErrorCode.NOT_COORDINATOR


def test_a_log_that_moves_while_it_is_loaded_is_loaded_again(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    world.open()
    world.add("a", 1)
    world.turn()
    replica = world.replica()
    partition_log = replica.log

    def closing(*_arguments: object, **_options: object) -> None:
        replica.pause("its log moves")
        raise StorageError("it is being closed")

    place = world.runtime.places[0]
    place.leave()
    with monkeypatch.context() as patched:
        patch_one(patched, partition_log, "read", closing)
        place.check()
        world.load()
    assert replica.offline_reason == "its log moves"
    replica.is_paused = False
    replica.resume(partition_log, None)
    world.advance(100)
    world.load()

    assert world.read("a").response == 1
    assert replica.offline_reason is None


def test_the_smallest_partition_is_loaded_first() -> None:
    world = World()
    world.open(3)
    for partition, count in ((0, 50), (1, 1), (2, 10)):
        for _ in range(count):
            world.add("a", 1, partition)
            world.turn()
    for partition in range(3):
        world.runtime.places[partition].leave()
        world.runtime.places[partition].check()
    order: list[int] = []
    for partition in range(3):
        hosted = world.runtime.places[partition].hosted
        assert hosted is not None
        note_read = hosted.note_read

        def noted(end_offset: int, number: int = partition, original: Any = note_read) -> None:
            order.append(number)
            original(end_offset)

        hosted.note_read = noted  # type: ignore[method-assign] # the order is all that is watched
    world.load()

    assert order == [1, 2, 0]


def test_others_have_their_turns_while_a_shard_is_loaded() -> None:
    world = World()
    world.open()
    world.add("a", 1, times=loader.SLICE_RECORDS * 20, is_atomic=False)
    world.turn()
    world.runtime.places[0].leave()
    world.runtime.places[0].check()
    turns: list[int] = []

    async def other() -> None:
        while world.runtime.is_loading():
            turns.append(world.runtime.places[0].hosted.shard.counters.get("a", 0))  # type: ignore[union-attr]
            await trio.lowlevel.checkpoint()

    async def main() -> None:
        async with trio.open_nursery() as nursery:
            await nursery.start(world.runtimes.loader.run)
            await other()
            nursery.cancel_scope.cancel()

    trio.run(main)

    assert max(later - earlier for earlier, later in pairwise(turns)) <= 3 * loader.SLICE_RECORDS
    assert len(set(turns)) >= 10


def test_a_cold_file_is_read_beside_the_reactor(tmp_path: Path) -> None:
    first = World(tmp_path)
    first.open()
    first.add("a", 1)
    first.turn()
    first.close()
    held, wanted = threading.Event(), threading.Event()
    files = FaultyFiles(tmp_path)
    files.is_cached = lambda *_arguments: False  # type: ignore[method-assign] # nothing is in the page cache
    world = World(tmp_path, files=files)
    world.open(2)
    main_thread = threading.current_thread()

    def hold() -> None:
        if threading.current_thread() is not main_thread:
            wanted.set()
            held.wait(10)

    files.before_each = hold

    async def main() -> None:
        async with trio.open_nursery() as nursery:
            await nursery.start(world.runtimes.loader.run)
            while not wanted.is_set():
                await trio.lowlevel.checkpoint()
            meanwhile = world.add("b", 1, partition=1)
            world.turn()
            assert meanwhile.response == 1
            held.set()
            while world.runtime.is_loading():
                await trio.lowlevel.checkpoint()
            nursery.cancel_scope.cancel()

    trio.run(main)

    assert world.read("a").response == 1
    world.close()


def test_a_shard_that_is_lost_while_it_is_loaded_is_left_alone() -> None:
    world = World()
    world.open()
    world.add("a", 1, times=loader.SLICE_RECORDS * 4, is_atomic=False)
    world.turn()
    place = world.runtime.places[0]
    place.leave()
    place.check()
    lost = place.hosted
    assert lost is not None

    async def main() -> None:
        async with trio.open_nursery() as nursery:
            await nursery.start(world.runtimes.loader.run)
            while not lost.shard.counters:
                await trio.lowlevel.checkpoint()
            place.leave()
            while world.runtimes.loader.is_busy:
                await trio.lowlevel.checkpoint()
            nursery.cancel_scope.cancel()

    trio.run(main)

    assert 0 < lost.shard.counters["a"] < loader.SLICE_RECORDS * 4
    assert lost.shard.loaded_at_ms is None
    assert lost.shard.is_unloaded
