"""The scenario `compaction`, and its rules: each is broken by something, and by nothing else."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import attrs
import pytest

from odradek.kernel.api import Files
from odradek.kernel.cleanup.compaction_job import CompactionJob
from odradek.lab.simulator.compaction import COMPACTION, Plan
from odradek.lab.simulator.compaction_oracle import CompactionOracle, ReadRecord, Write, WriteFate
from odradek.lab.simulator.faults import Crash, operations_on
from odradek.lab.simulator.oracle import PromiseBrokenError
from odradek.lab.simulator.runs import run_seed
from odradek.lab.simulator.seeds import Seeds
from odradek.plugins.storage_segment import recovery
from odradek.plugins.storage_segment.formats import SegmentFile, segment_file_name

RETENTION_MS = 1_000
SABOTAGE_SEEDS_MAX = 40


class Told:
    """Two keys of one partition: what an oracle was told of them, each record at the offset of its place."""

    def __init__(self, *, is_last_kept: bool = True) -> None:
        self.oracle = CompactionOracle(RETENTION_MS)
        self.writes = [
            self._sent("a"),
            self._sent("b"),
            self._sent("a", is_tombstone=True),
            self._sent("b", is_kept=is_last_kept),
        ]

    def _sent(self, key: str, *, is_tombstone: bool = False, is_kept: bool = True) -> Write:
        write = self.oracle.sent(key, 0, is_tombstone=is_tombstone, now_ms=0)
        if is_kept:
            write.offset = self.oracle.delivered_count
            self.oracle.settled([write], WriteFate.KEPT)
        return write

    def read(self, *places: int, offsets: Sequence[int] = (), now_ms: int = 10, began_ms: int = 0) -> None:
        """Check a log that has these of the writes."""
        begun = self.oracle.begin(began_ms)
        found = [
            ReadRecord(0, offset, self.writes[place].name, self.writes[place].is_tombstone)
            for place, offset in zip(places, offsets or places, strict=True)
        ]
        self.oracle.check(begun, {0: 4}, [found], now_ms)


@pytest.mark.parametrize(("places", "now_ms"), [((0, 1, 2, 3), 10), ((2, 3), 10), ((3,), RETENTION_MS)])
def test_a_log_that_keeps_every_promise(places: tuple[int, ...], now_ms: int) -> None:
    Told().read(*places, now_ms=now_ms)


def test_a_record_of_which_nothing_is_known_may_be_there_or_not() -> None:
    Told(is_last_kept=False).read(1, 2, 3)
    Told(is_last_kept=False).read(1, 2)


@pytest.mark.parametrize(
    ("rule", "places", "now_ms"),
    [
        ("last", (0, 1, 2), 10),
        ("last", (2,), 10),
        ("last", (0, 3), 10),
        ("last", (0, 3), RETENTION_MS),
        ("tombstone", (3,), RETENTION_MS - 1),
        ("order", (2, 0, 3), 10),
    ],
)
def test_a_log_breaks_a_rule(rule: str, places: tuple[int, ...], now_ms: int) -> None:
    with pytest.raises(PromiseBrokenError, match=f"^{rule}: "):
        Told().read(*places, now_ms=now_ms, began_ms=now_ms - 10)


def test_a_tombstone_of_an_aborted_transaction_excuses_nothing() -> None:
    told = Told(is_last_kept=False)
    told.oracle.settled([told.writes[3]], WriteFate.ABORTED)
    aborted = told.oracle.sent("b", 0, is_tombstone=True, now_ms=0)
    told.oracle.settled([aborted], WriteFate.ABORTED)

    with pytest.raises(PromiseBrokenError, match=r"^last: of key b nothing is there"):
        told.read(2, now_ms=RETENTION_MS)


def test_records_of_a_key_stand_in_their_order() -> None:
    with pytest.raises(PromiseBrokenError, match=r"^order: b/0 was read after b/1"):
        Told().read(2, 3, 1, offsets=(0, 1, 2))


def test_who_reads_for_long_may_miss_a_tombstone() -> None:
    told = Told()
    told.read(0, 3, now_ms=RETENTION_MS)

    assert told.oracle.tombstones_gone_count == 0


def test_nothing_aborted_and_nothing_unknown_is_read_and_nothing_changes() -> None:
    told = Told()
    told.oracle.delivered(ReadRecord(0, 0, "a/0", False))
    with pytest.raises(PromiseBrokenError, match=r"^change: "):
        told.oracle.delivered(ReadRecord(0, 0, "b/0", False))
    for stranger in (ReadRecord(0, 9, "c/0", False), ReadRecord(1, 9, "a/0", False), ReadRecord(0, 9, "a/0", True)):
        with pytest.raises(PromiseBrokenError, match=r"^origin: "):
            told.oracle.delivered(stranger)
    told.oracle.settled([told.writes[0]], WriteFate.ABORTED)
    with pytest.raises(PromiseBrokenError, match=r"^aborted: "):
        told.oracle.delivered(ReadRecord(0, 0, "a/0", False))


def test_what_an_open_transaction_hides_need_not_be_read() -> None:
    told = Told()
    told.writes[3].offset = 4
    told.read(1, 2)


def test_plans_differ() -> None:
    plans = [Plan.drawn(Seeds(seed).stream("workload")) for seed in range(40)]

    assert {plan.delete_retention_ms for plan in plans} == {5_000, 30_000, 86_400_000}
    assert {plan.has_power_losses for plan in plans} == {False, True}


def keep_no_tombstones(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have tombstones go with the second pass, whenever that is."""
    monkeypatch.setattr(CompactionJob, "delete_retention_ms", property(lambda _self: 0, lambda _self, _value: None))


def take_what_was_ready_for_unready(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove a `.swap` whose old segments are gone already."""
    monkeypatch.setattr(recovery, "_finish_swap", throw_away)
    draw = Crash.drawn  # each crash comes as files take each other's place

    def draw_in_a_swap(*args: Any) -> Crash:
        crash = draw(*args)
        return attrs.evolve(crash, counted=operations_on(".swap"), after=1 + crash.after % 12)

    monkeypatch.setattr(Crash, "drawn", draw_in_a_swap)


def throw_away(files: Files, path: Path, _entries: object, ready: list[SegmentFile]) -> None:
    for found in ready:
        files.unlink(path / segment_file_name(*found))


@pytest.mark.unmeasured
@pytest.mark.parametrize(("sabotage", "found_last"), [(keep_no_tombstones, 16), (take_what_was_ready_for_unready, 4)])
def test_sabotage_is_found_within_so_many_seeds(
    sabotage: Callable[[pytest.MonkeyPatch], None], found_last: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    sabotage(monkeypatch)

    assert any(run_seed(COMPACTION, seed, {}).failure for seed in (found_last, *range(1, SABOTAGE_SEEDS_MAX + 1)))
