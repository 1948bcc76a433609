"""The reserve of a log directory: what the metadata log writes into, and logs are opened in, when the disk is full."""

from __future__ import annotations

import errno
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from odradek.kernel.api import LogConfig, OsFiles, PartitionLog, StorageError
from odradek.plugins.storage_segment.engine import SegmentEngine
from odradek.plugins.storage_segment.formats import RESERVE
from odradek.plugins.storage_segment.log_dir import OPENING_BYTES, RESERVE_BYTES
from odradek.testing.batches import make_batch
from odradek.testing.contracts.storage_base import PARTITION, all_bytes, fill, make_context

BLOCK_BYTES = 4096
METADATA = PARTITION._replace(topic="__cluster_metadata", partition=0)


class TightDisk(OsFiles):
    """A disk that has no room, once it is full, but what the reserve gives back; a write takes whole blocks."""

    def __init__(self) -> None:
        super().__init__()
        self.is_full = False
        self.room_bytes = 0
        self.pwritev = self._pwritev
        self.truncate = self._truncate

    def _pwritev(self, fd: int, buffers: Sequence[Any], position: int, /) -> int:
        if self.is_full:
            wanted = -(-sum(map(len, buffers)) // BLOCK_BYTES) * BLOCK_BYTES
            if self.room_bytes < wanted:
                raise OSError(errno.ENOSPC, "no room")
            self.room_bytes -= wanted
        return OsFiles().pwritev(fd, buffers, position)

    def _truncate(self, fd: int, size_bytes: int, /) -> None:
        if Path(f"/proc/self/fd/{fd}").readlink().name == RESERVE:
            self.room_bytes += self.size(fd) - size_bytes
        OsFiles().truncate(fd, size_bytes)

    def disk_space(self, path: Path) -> tuple[int, int]:
        """See `Files.disk_space`."""
        return 1 << 40, self.room_bytes if self.is_full else 1 << 39


def started(directory: Path, files: TightDisk) -> tuple[SegmentEngine, PartitionLog]:
    engine = SegmentEngine(make_context(directory, files=files))
    engine.start()
    return engine, engine.open_log(METADATA, LogConfig(), known_end=lambda directory: 0)


def reserve_bytes(directory: Path) -> int:
    return (directory / "logs0" / RESERVE).stat().st_size


def write_one_by_one(log: PartitionLog, end: int) -> None:
    for offset in range(log.log_end_offset, end):
        log.append(make_batch(offset, epoch=3), offset, offset, 1)
        log.write_pending()


def test_a_start_takes_the_reserve_where_the_disk_has_room(tmp_path: Path) -> None:
    engine, _ = started(tmp_path, TightDisk())

    assert reserve_bytes(tmp_path) == RESERVE_BYTES
    engine.close({})


def test_the_metadata_log_is_written_in_the_reserve_and_no_other_log_is(tmp_path: Path) -> None:
    files = TightDisk()
    engine, metadata = started(tmp_path, files)
    log = engine.open_log(PARTITION, LogConfig())
    files.is_full = True
    with pytest.raises(StorageError, match="the disk is full"):
        fill(log, 0, 1)
    assert reserve_bytes(tmp_path) == RESERVE_BYTES
    metadata.assign_epoch(3, 0)
    written = fill(metadata, 0, 5, epoch=3)
    metadata.flush()

    assert all_bytes(metadata) == written
    assert reserve_bytes(tmp_path) < RESERVE_BYTES
    with pytest.raises(StorageError, match="the disk is full"):
        write_one_by_one(metadata, 5 + RESERVE_BYTES // BLOCK_BYTES)
    assert reserve_bytes(tmp_path) == 0
    engine.abandon()


def test_a_start_on_a_full_disk_opens_all_logs_in_a_part_of_the_reserve(tmp_path: Path) -> None:
    files = TightDisk()
    engine, metadata = started(tmp_path, files)
    log = engine.open_log(PARTITION, LogConfig())
    log.assign_epoch(1, 0)
    batches = fill(log, 0, 5, epoch=1)
    metadata.assign_epoch(1, 0)
    records = fill(metadata, 0, 5, epoch=1)
    engine.abandon()  # a crash: the logs are checked, their indexes and epochs written anew
    files.is_full = True
    engine, metadata = started(tmp_path, files)
    log = engine.open_log(PARTITION, LogConfig())
    metadata.assign_epoch(2, 5)
    records += fill(metadata, 5, 6, epoch=2)
    metadata.flush()

    assert (all_bytes(log), all_bytes(metadata)) == (batches, records)
    assert reserve_bytes(tmp_path) < RESERVE_BYTES
    engine.abandon()


def test_the_reserve_is_filled_again_by_a_checkpoint_when_there_is_room(tmp_path: Path) -> None:
    files = TightDisk()
    engine, metadata = started(tmp_path, files)
    files.is_full = True
    fill(metadata, 0, 1)
    assert OPENING_BYTES < reserve_bytes(tmp_path) < RESERVE_BYTES
    files.is_full = False
    engine.checkpoint({})

    assert reserve_bytes(tmp_path) == RESERVE_BYTES
    engine.close({})
