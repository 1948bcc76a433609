"""Corners of reading past brokers: small gets, files that are missing or damaged, what is never found again."""

from __future__ import annotations

import os
import random
import shutil
from pathlib import Path
from typing import Any

import attrs
import pytest

from odradek.kernel.machine.files import OsFiles
from odradek.kernel.records.batch import CorruptRecordsError
from odradek.spark_plugin import direct
from odradek.spark_plugin.direct import BrokerPiece, PieceGoneError, SegmentPiece, TierPiece
from odradek.spark_plugin.direct import tier as tier_module
from odradek.spark_plugin.direct.batches import BatchChain
from odradek.spark_plugin.direct.gets import iterate_gets
from odradek.spark_plugin.direct.opening import MOVES_MAX, open_piece
from odradek.spark_plugin.direct.planning import group_pieces
from odradek.spark_plugin.ranges import OffsetRange
from odradek.testing.object_stores import MemoryObjectStore

from .log_kit import (
    NODE_ID,
    TOPIC_PARTITION,
    Log,
    Tier,
    make_log,
    plan,
    read_pieces,
    settings_for,
    sources_for,
    write_data_dir,
)


def told(log: Log, data_dir: Path) -> str:
    """Return the warning with which brokers are asked for everything."""
    sources, warnings = sources_for(settings_for(data_dir))

    assert {type(piece) for piece in plan(sources, log, 0, log.last_stable_offset)} == {BrokerPiece}
    return "".join(warnings)


# -- gets --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("get_bytes", [1, 7, 61, 100, 1 << 20])
def test_batches_are_put_together_however_little_is_got_at_a_time(log: Log, get_bytes: int) -> None:
    tier = Tier(log)
    tier.send([0, 1, 2])
    sources, _ = sources_for(settings_for(has_store=True, get_bytes=get_bytes), tier.store)
    end = log.segments[3].base_offset
    pieces = plan(sources, log, 0, end, is_read_committed=False)
    read = list(read_pieces(pieces, log, tier.store, is_read_committed=False))

    assert read == log.rows(0, end, is_read_committed=False)
    assert {type(piece) for piece in pieces} == {TierPiece}


def test_nothing_behind_the_likely_end_is_got_before_it_is_asked_for() -> None:
    store = MemoryObjectStore()
    store.put("x", bytes(range(256)) * 4_000)
    asked: list[tuple[int, int]] = []

    class Counting:
        url = store.url

        def get(self, name: str, start: int = 0, size: int | None = None) -> bytes:
            asked.append((start, size or 0))
            return store.get(name, start, size)

    gets = iterate_gets(Counting(), "x", 100, 300_000, 1_024_000, 200_000)  # type: ignore[arg-type] # as far as used
    first, second = next(gets), next(gets)

    assert asked == [(100, 200_000), (200_100, 165_436)]
    assert first + second + b"".join(gets) == store.get("x", 100)
    assert len(asked) == 6


def test_an_object_that_shrank_is_got_as_far_as_it_goes() -> None:
    store = MemoryObjectStore()
    store.put("x", b"12345")

    assert list(iterate_gets(store, "x", 0, 10, 10, 3)) == [b"123", b"45"]


def test_batches_out_of_place_are_damage(log: Log) -> None:
    data = memoryview(log.segments[1].data)
    begin, end = log.segments[1].base_offset, log.end_of(1)
    chain = BatchChain(begin, end, "here")

    assert chain.take(data) == len(data)
    for wrong in (BatchChain(begin + 1, end, "here"), BatchChain(begin, end - 1, "here"), chain):
        with pytest.raises(CorruptRecordsError, match="here: a batch has the offsets"):
            wrong.take(data)
    with pytest.raises(CorruptRecordsError, match="here: unsupported magic"):
        BatchChain(begin, end, "here").take(data[1:])


def test_what_is_kept_of_small_files_is_bounded(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tier_module, "SMALL_BYTES", 0)
    tier = Tier(log)
    tier.send([0, 1, 2])
    sources, _ = sources_for(settings_for(has_store=True), tier.store)
    for start in (1, 2, log.segments[2].base_offset + 1, 1):
        pieces = plan(sources, log, start, log.last_stable_offset, max_bytes=50)
        rows = log.rows(start, log.last_stable_offset, is_read_committed=True)

        assert list(read_pieces(pieces, log, tier.store)) == rows


def test_a_tier_that_has_only_earlier_offsets_is_asked_for_its_newest_manifest_now_and_then(log: Log) -> None:
    tier = Tier(log)
    tier.send([0])
    now = [0.0]
    sources = direct.Sources(
        settings_for(has_store=True), open_store=lambda _: tier.store, warn=print, monotonic=lambda: now[0]
    )
    start, end = log.segments[1].base_offset, log.segments[2].base_offset
    kinds = []
    for seconds in (0.0, 1.0, 29.0, 31.0):
        now[0] = seconds
        kinds.append({type(piece) for piece in plan(sources, log, start, end, is_read_committed=False)})
        if not seconds:
            tier.send([1])

    assert kinds == [{BrokerPiece}, {BrokerPiece}, {BrokerPiece}, {TierPiece}]


# -- directories -------------------------------------------------------------------------------------------------------


def test_a_damaged_identity_is_told(log: Log, tmp_path: Path) -> None:
    directory = write_data_dir(tmp_path / "data", log)
    (directory / "partition.metadata").write_bytes(b"nonsense")
    assert "not a partition.metadata" in told(log, tmp_path / "data")
    (directory / "partition.metadata").unlink()
    assert f"there is no {directory / 'partition.metadata'}" in told(log, tmp_path / "data")
    (tmp_path / "data" / "meta.properties").write_bytes(b"nonsense")
    assert "not a meta.properties" in told(log, tmp_path / "data")


@pytest.mark.parametrize("name", ["meta.properties", "orders-3/partition.metadata", "orders-3"])
def test_a_disk_that_fails_is_told(log: Log, tmp_path: Path, name: str) -> None:
    write_data_dir(tmp_path / "data", log)

    class Failing(OsFiles):
        def open(self, path: Path, flags: int) -> int:
            return int(self._checked(path, super().open, flags))

        def listdir(self, path: Path) -> Any:
            return self._checked(path, super().listdir)

        def _checked(self, path: Path, operation: Any, *rest: Any) -> Any:
            if path == tmp_path / "data" / name:
                raise OSError(5, os.strerror(5))
            return operation(path, *rest)

    sources, warnings = sources_for(settings_for(tmp_path / "data"), files=Failing())

    assert {type(piece) for piece in plan(sources, log, 0, log.last_stable_offset)} == {BrokerPiece}
    assert "the disk is failing" in warnings[0]


def test_of_several_directories_the_one_that_has_it_is_read(log: Log, tmp_path: Path) -> None:
    write_data_dir(tmp_path / "b", log)
    settings = attrs.evolve(settings_for(), data_dirs=(str(tmp_path / "a"), str(tmp_path / "b")))
    sources, warnings = sources_for(settings)

    assert {type(piece) for piece in plan(sources, log, 0, log.last_stable_offset)} == {SegmentPiece}
    assert not warnings


@pytest.mark.parametrize("from_store", [False, True], ids=["segment", "object"])
def test_what_moved_is_not_found_in_a_copy_that_the_plan_would_not_have_read(
    log: Log, tmp_path: Path, *, from_store: bool
) -> None:
    """A broker that led and died may have records that nobody else ever had, and nobody has cut them off there."""
    stale_log = make_log(random.Random(2), 18, segments_count=4)
    write_data_dir(tmp_path / "a", stale_log, node_id=NODE_ID - 1)
    directory = write_data_dir(tmp_path / "b", log, first=2 if from_store else 0)
    tier = Tier(log)
    if from_store:
        tier.send([0, 1])
    dirs = (str(tmp_path / "a"), str(tmp_path / "b"))
    sources, warnings = sources_for(attrs.evolve(settings_for(has_store=from_store), data_dirs=dirs), tier.store)
    end = log.segments[1].base_offset
    facts = {TOPIC_PARTITION: log.facts()}
    [pieces] = sources.plan_pieces([OffsetRange(*TOPIC_PARTITION, 0, end)], facts, is_read_committed=False)
    assert {type(piece) for piece in pieces} == {TierPiece if from_store else SegmentPiece}
    if from_store:
        tier.store.delete(tier.name_of(0))
    for path in directory.glob(f"{0:020d}.*"):
        path.unlink()

    assert list(read_pieces(pieces, log, tier.store, is_read_committed=False)) == log.rows(
        0, end, is_read_committed=False
    )
    with pytest.raises(PieceGoneError):
        list(read_pieces(pieces, log, tier.store, is_read_committed=False, fallen_back=()))
    assert not warnings


def test_a_log_that_moved_to_another_disk_of_its_broker_is_found_there(log: Log, tmp_path: Path) -> None:
    write_data_dir(tmp_path / "a", log, node_id=NODE_ID - 1)
    directory = write_data_dir(tmp_path / "b", log)
    names = ("a", "b", "c")
    sources, _ = sources_for(attrs.evolve(settings_for(), data_dirs=tuple(str(tmp_path / name) for name in names)))
    end = log.last_stable_offset
    facts = {TOPIC_PARTITION: log.facts()}
    [pieces] = sources.plan_pieces([OffsetRange(*TOPIC_PARTITION, 0, end)], facts, is_read_committed=True)
    write_data_dir(tmp_path / "c", log)
    shutil.rmtree(directory)
    read = read_pieces(pieces, log, fallen_back=())

    assert list(read) == log.rows(0, end, is_read_committed=True)


def test_an_empty_log_is_the_brokers(log: Log, tmp_path: Path) -> None:
    directory = write_data_dir(tmp_path / "data", log)
    for path in directory.glob("*.log"):
        path.unlink()

    assert told(attrs.evolve(log), tmp_path / "data") == ""


def test_a_segment_without_an_index_is_read_from_its_beginning(log: Log, tmp_path: Path) -> None:
    directory = write_data_dir(tmp_path / "data", log)
    for path in directory.glob("*.index"):
        path.unlink()
    sources, _ = sources_for(settings_for(tmp_path / "data"))
    start, end = log.segments[1].base_offset + 2, log.last_stable_offset
    pieces = plan(sources, log, start, end, max_bytes=100)

    assert list(read_pieces(pieces, log)) == log.rows(start, end, is_read_committed=True)
    assert BrokerPiece not in {type(piece) for piece in pieces}


def test_a_growing_segment_of_which_nothing_is_whole_is_the_brokers(log: Log, tmp_path: Path) -> None:
    directory = write_data_dir(tmp_path / "data", log)
    (directory / f"{log.segments[-1].base_offset:020d}.log").write_bytes(b"\0" * 40)
    sources, _ = sources_for(settings_for(tmp_path / "data"))
    pieces = plan(sources, log, 0, log.end_offset, is_read_committed=False)

    assert [type(piece) for piece in pieces] == [SegmentPiece] * 3 + [BrokerPiece]


def test_damage_between_batches_of_transactions_is_told_with_the_file(log: Log, tmp_path: Path) -> None:
    directory = write_data_dir(tmp_path / "data", log)
    sources, _ = sources_for(settings_for(tmp_path / "data"))
    pieces = plan(sources, log, 0, log.last_stable_offset)
    piece = next(each for each in pieces if isinstance(each, SegmentPiece) and each.aborted)
    path = directory / f"{piece.base_offset:020d}.log"
    data = bytearray(path.read_bytes())
    data[16] = 9
    path.write_bytes(data)
    with pytest.raises((CorruptRecordsError, PieceGoneError), match=f"{piece.base_offset:020d}.log"):
        list(open_piece(piece))


# -- never again -------------------------------------------------------------------------------------------------------


def test_what_is_nowhere_any_more_is_gone(log: Log, tmp_path: Path) -> None:
    directory = write_data_dir(tmp_path / "data", log)
    sources, _ = sources_for(settings_for(tmp_path / "data"))
    piece = plan(sources, log, 0, log.last_stable_offset)[0]
    assert isinstance(piece, SegmentPiece)
    for path in directory.glob("*"):
        path.unlink()
    with pytest.raises(PieceGoneError, match=r"orders-3 \[0, .* it is gone"):
        list(open_piece(piece))


def test_what_moves_for_ever_is_left_to_the_broker(log: Log, tmp_path: Path) -> None:
    write_data_dir(tmp_path / "data", log)
    sources, _ = sources_for(settings_for(tmp_path / "data"))
    piece = plan(sources, log, 0, log.last_stable_offset)[0]
    assert isinstance(piece, SegmentPiece)
    lost = attrs.evolve(piece, directory=str(tmp_path / "elsewhere"), moves=MOVES_MAX)
    with pytest.raises(PieceGoneError, match="elsewhere"):
        list(open_piece(lost))


def test_pieces_of_a_known_size_share_tasks_and_a_brokers_stands_alone() -> None:
    class Sized:
        def __init__(self, size_bytes: int) -> None:
            self.size_bytes = size_bytes

    pieces: list[Any] = [
        Sized(4),
        Sized(5),
        Sized(3),
        BrokerPiece(OffsetRange(*TOPIC_PARTITION, 0, 1)),
        Sized(1),
        Sized(20),
        Sized(1),
    ]

    assert [len(task) for task in group_pieces(pieces, 10)] == [2, 1, 1, 1, 1, 1]
    assert [len(task) for task in group_pieces(pieces, 0)] == [7]
    assert group_pieces([], 10) == []


def test_names_of_the_room_are_imported_when_they_are_asked_for() -> None:
    for name in direct.__all__:
        assert getattr(direct, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = direct.nothing
