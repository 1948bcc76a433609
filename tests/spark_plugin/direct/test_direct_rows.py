"""Rows read from files and objects are the rows that a consumer gets: whatever the log, the cut, and who has what."""

from __future__ import annotations

import pickle
import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odradek.spark_plugin.direct import BrokerPiece, SegmentPiece, TierPiece, group_pieces

from .log_kit import Log, Tier, compact, make_log, plan, read_pieces, settings_for, sources_for, write_data_dir


@pytest.fixture(scope="module")
def roots(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return [tmp_path_factory.mktemp("logs")]


def fresh(roots: list[Path]) -> Path:
    roots.append(roots[0] / str(len(roots)))
    return roots[-1]


def some_log(choose: random.Random) -> Log:
    log = make_log(choose, choose.randint(4, 40), segments_count=choose.randint(1, 5))
    if len(log.segments) > 1 and choose.random() < 0.5:
        last = choose.randint(1, len(log.segments) - 1)
        first = choose.randint(0, last - 1)
        log.segments[first:last] = [compact(log, first, last, choose, drops_aborted=choose.random() < 0.5)]
    return log


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 2**32))
def test_rows_of_random_logs_are_those_that_a_consumer_reads(roots: list[Path], seed: int) -> None:
    choose = random.Random(seed)
    log = some_log(choose)
    sent = choose.randint(0, len(log.segments) - 1)
    while sent and log.end_of(sent - 1) > log.last_stable_offset:
        sent -= 1  # only what is decided is sent
    tier = Tier(log)
    tier.send(range(sent))
    left = choose.randint(0, len(log.segments) - 1)
    has_dir, has_store = choose.choice(((True, False), (False, True), (True, True)))
    data_dir = fresh(roots)
    write_data_dir(data_dir, log, first=left)
    is_read_committed = choose.random() < 0.7
    sources, warnings = sources_for(settings_for(data_dir if has_dir else None, has_store=has_store), tier.store)
    end = choose.randint(0, log.last_stable_offset if is_read_committed else log.end_offset)
    start = choose.randint(0, end)
    max_bytes = choose.choice((0, 0, 100, 400))
    pieces = plan(sources, log, start, end, is_read_committed=is_read_committed, max_bytes=max_bytes)
    pieces = pickle.loads(pickle.dumps(pieces))  # as a task gets them

    assert warnings == []
    assert list(read_pieces(pieces, log, tier.store, is_read_committed=is_read_committed)) == log.rows(
        start, end, is_read_committed=is_read_committed
    )
    assert [piece for task in group_pieces(pieces, max_bytes) for piece in task] == pieces
    for piece in pieces:
        if isinstance(piece, BrokerPiece) and has_dir and piece.range.end <= log.last_stable_offset:
            assert piece.range.end <= log.segments[left].base_offset, "what is on the disk is read there"


def test_a_whole_log_on_the_disk_needs_no_broker(tmp_path: Path) -> None:
    log = make_log(random.Random(3), 40)
    write_data_dir(tmp_path / "data", log)
    sources, _ = sources_for(settings_for(tmp_path / "data"))
    pieces = plan(sources, log, 0, log.last_stable_offset)

    assert {type(piece) for piece in pieces} == {SegmentPiece}
    assert list(read_pieces(pieces, log)) == log.rows(0, log.last_stable_offset, is_read_committed=True)


def test_cold_segments_come_from_the_store_and_local_ones_from_the_disk(tmp_path: Path) -> None:
    log = make_log(random.Random(12), 60, segments_count=6)
    tier = Tier(log)
    tier.send([0, 1, 2])
    write_data_dir(tmp_path / "data", log, first=2)
    sources, _ = sources_for(settings_for(tmp_path / "data", has_store=True), tier.store)
    pieces = plan(sources, log, 0, log.last_stable_offset)

    assert [type(piece) for piece in pieces][:3] == [TierPiece, TierPiece, SegmentPiece]
    assert pieces[1].range.end == log.segments[2].base_offset
    assert BrokerPiece not in {type(piece) for piece in pieces}
