"""What a storage sees of its own log by public names: its segments, what is written, and how it is used again."""

from __future__ import annotations

from pathlib import Path

import pytest

from odradek.plugins.storage_memory.engine import MemoryEngine
from odradek.plugins.storage_memory.log import MemoryLog
from odradek.testing.contracts.storage_base import PARTITION, SMALL, all_bytes, fill, make_context


@pytest.fixture
def log(tmp_path: Path) -> MemoryLog:
    log = MemoryEngine(make_context(tmp_path)).open_log(PARTITION, SMALL)
    assert isinstance(log, MemoryLog)
    return log


def test_segments_are_the_storages_own(log: MemoryLog) -> None:
    written = fill(log, 0, 14)

    assert [batch for segment in log.log_segments for batch in segment.batches] == written
    assert [log.log_segments[log.segment_number(offset)].base_offset for offset in (0, 5, 6, 13)] == [0, 0, 6, 12]


def test_what_is_staged_is_not_written(log: MemoryLog) -> None:
    (batch,) = fill(log, 0, 1)
    log.append(batch, 1, 1, 0)

    assert (log.written_end, log.log_end_offset) == (1, 2)


def test_a_closed_log_is_used_again_and_an_open_one_is_not(log: MemoryLog) -> None:
    written = fill(log, 0, 3)
    with pytest.raises(AssertionError, match="is open already"):
        log.reopen(SMALL)
    log.close()
    log.reopen(SMALL)

    assert all_bytes(log) == written
