"""The indexes of a segment on a full disk: a store into a hole of the mapping would end the process, not the append."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from odradek.kernel.api import StorageError
from odradek.plugins.storage_segment.engine import SegmentEngine
from odradek.plugins.storage_segment.indexes import OffsetIndex, TimeIndex
from odradek.testing.contracts.storage_base import PARTITION, SMALL, all_bytes, fill, make_context

from .full_disk import FullDisk

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the path of a descriptor is Linux's to tell")

SIZE_MAX = 16_384


def append(index: OffsetIndex | TimeIndex, numbers: range) -> None:
    for number in numbers:
        index.append(number, number * 10, SIZE_MAX)


@pytest.mark.parametrize("kind", [OffsetIndex, TimeIndex])
def test_an_entry_that_the_disk_has_no_room_for_is_refused_and_may_come_later(
    tmp_path: Path, kind: type[OffsetIndex] | type[TimeIndex]
) -> None:
    files = FullDisk("*.index")
    index = kind(files, tmp_path / "00.index", 0)
    index.create(SIZE_MAX)
    index.append(1, 10, SIZE_MAX)

    files.is_full = True
    with pytest.raises(OSError, match="no room"):
        append(index, range(2, SIZE_MAX))
    stored = index.entries_count
    files.is_full = False
    append(index, range(stored + 1, stored + 100))
    index.seal()

    assert 1 < stored * index.entry.size <= 4096
    entries = list(index.entry.iter_unpack((tmp_path / "00.index").read_bytes()))
    assert entries == [(number, number * 10) for number in range(1, stored + 100)]


def test_a_closed_index_goes_on_only_where_the_disk_has_room(tmp_path: Path) -> None:
    files = FullDisk("*.index")
    index = OffsetIndex(files, tmp_path / "00.index", 0)
    index.create(SIZE_MAX)
    index.append(1, 10, SIZE_MAX)
    index.seal()

    files.is_full = True
    with pytest.raises(OSError, match="no room"):
        index.append(2, 20, SIZE_MAX)

    assert index.entries_count == 1


@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
def test_a_log_whose_index_finds_no_room_goes_offline_and_keeps_what_was_written(tmp_path: Path, suffix: str) -> None:
    files = FullDisk(f"*{suffix}")
    engine = SegmentEngine(make_context(tmp_path, files=files))
    engine.start()
    log = engine.open_log(PARTITION, SMALL)
    written = fill(log, 0, 1)
    files.is_full = True

    with pytest.raises(StorageError, match="the disk is full"):
        fill(log, 1, 200)

    files.is_full = False
    assert all_bytes(engine.open_log(PARTITION, SMALL))[: len(written)] == written
