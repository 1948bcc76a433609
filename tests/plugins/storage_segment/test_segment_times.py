"""Delays and intervals of the segment storage, when somebody sets the machine's clock."""

from __future__ import annotations

from pathlib import Path

import attrs
import pytest

from odradek.kernel.api import LogConfig, do_now
from odradek.kernel.machine.clock import ManualClock
from odradek.plugins.storage_segment.engine import SegmentEngine
from odradek.testing.batches import make_batch
from odradek.testing.contracts.storage_base import PARTITION, SMALL, fill, make_context

HOUR_MS = 3_600_000
JUMPS = pytest.mark.parametrize("jump_ms", [-HOUR_MS, HOUR_MS])


def timed(directory: Path, clock: ManualClock) -> SegmentEngine:
    """Return an engine, started, that reads a test's clock."""
    context = attrs.evolve(make_context(directory), now_ms=clock.now_ms, monotonic_ms=clock.monotonic_ms)
    engine = SegmentEngine(context)
    engine.start()
    return engine


@JUMPS
def test_a_deleted_log_is_removed_after_its_delay(tmp_path: Path, jump_ms: int) -> None:
    clock = ManualClock()
    engine = timed(tmp_path, clock)
    fill(engine.open_log(PARTITION, SMALL), 0, 20)
    engine.delete_log(PARTITION)
    marks = engine.begin_removal(clock.monotonic_ms())
    assert marks is not None
    do_now(marks)
    clock.jump(jump_ms)
    clock.advance(59_999)
    early = engine.begin_removal(clock.monotonic_ms())
    clock.advance(1)

    assert early is None
    assert engine.begin_removal(clock.monotonic_ms()) is not None


@JUMPS
def test_a_log_asks_for_a_flush_when_its_interval_is_over(tmp_path: Path, jump_ms: int) -> None:
    clock = ManualClock()
    log = timed(tmp_path, clock).open_log(PARTITION, LogConfig(flush_ms=1_000))
    clock.jump(jump_ms)
    asked = []
    for offset in range(2):
        log.append(make_batch(offset), offset, offset, 5)
        asked.append(log.write_pending())
        clock.advance(1_000)

    assert asked == [False, True]


@JUMPS
def test_a_segment_without_timestamps_is_closed_at_its_age(tmp_path: Path, jump_ms: int) -> None:
    clock = ManualClock()
    log = timed(tmp_path, clock).open_log(PARTITION, LogConfig(segment_ms=1_000))
    for offset in range(3):
        log.append(make_batch(offset, timestamp=-1), offset, offset, -1)
        log.write_pending()
        if offset == 0:
            clock.jump(jump_ms)
        else:
            clock.advance(1_001)

    assert [segment.base_offset for segment in log.segments()] == [0, 2]
