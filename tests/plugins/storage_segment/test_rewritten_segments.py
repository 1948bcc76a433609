"""Segments that compaction replaces while somebody reads them."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import pytest

from odradek.kernel.api import CREATE, LogConfig, OsFiles
from odradek.plugins.storage_segment import segment
from odradek.plugins.storage_segment.log import SegmentLog
from odradek.testing.contracts.storage_base import PARTITION, fill, rewrite

from .test_segment_engine import started


@pytest.mark.parametrize("reads", ["headers", "batches"])
def test_who_reads_a_segment_goes_on_reading_it_when_compaction_has_put_another_in_its_place(
    tmp_path: Path, reads: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The number of a file that was let go is soon another file's."""
    monkeypatch.setattr(segment, "_HEADERS_CHUNK", 100)
    engine = started(tmp_path)
    log = engine.open_log(PARTITION, LogConfig())
    batches = fill(log, 0, 4)
    log.roll()
    fill(log, 4, 5)
    first = cast(SegmentLog, log)._directory.segments[0]
    headers = (header for _, header in first.headers(0))
    reading = (header for _, header, _ in first.batches(0, 100)) if reads == "batches" else headers
    seen = [next(reading).base_offset]
    rewrite(engine, log, [0], batches[3:])
    others = [OsFiles().open(tmp_path / str(number), CREATE) for number in range(10)]
    seen += [header.base_offset for header in reading]
    for fd in others:
        OsFiles().close(fd)

    assert seen == [0, 1, 2, 3]
