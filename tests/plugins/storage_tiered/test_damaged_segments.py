"""A segment that was damaged on the local disk: it is told of, it never takes the place of records in the store."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from odradek.kernel.api import HEADER_SIZE, StorageError
from odradek.testing.object_stores import MemoryObjectStore
from tests.plugins.storage_tiered.tiered_house import EVERYTHING_LOCAL, LITTLE_LOCAL, House

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def file_of(directory: Path, base_offset: int) -> Path:
    """Return where a local segment's records are."""
    (path,) = directory.glob(f"**/{base_offset:020}.log")
    return path


def turn_over(path: Path) -> None:
    """Turn over a bit in the records of the first batch."""
    data = bytearray(path.read_bytes())
    data[HEADER_SIZE + 3] ^= 1
    path.write_bytes(data)


def tear(path: Path) -> None:
    """Lose the end, as a file system does."""
    path.write_bytes(path.read_bytes()[:-5])


def empty(path: Path) -> None:
    """Lose all bytes but not their places."""
    path.write_bytes(bytes(path.stat().st_size))


@pytest.mark.parametrize("damage", [turn_over, tear, empty])
async def test_a_damaged_segment_is_told_of_and_not_sent(tmp_path: Path, damage: Callable[[Path], None]) -> None:
    store = MemoryObjectStore()
    house = House(tmp_path, store)
    house.fill(60)
    damaged = house.log.segments()[2].base_offset
    async with house.running():
        damage(file_of(tmp_path, damaged))

        with pytest.raises(StorageError, match=f"segment {damaged} is damaged on the local disk"):
            await house.visit()

        assert house.log.tiered_end_offset == damaged  # what is before it went, also from the local disk
        assert house.log.local_log_start_offset == damaged
        assert not [name for name in store.objects if f"{damaged:020}" in name]
    house.engine.close({})


async def test_once_retention_is_past_a_damaged_segment_the_tier_goes_on(tmp_path: Path) -> None:
    house = House(tmp_path, settings=EVERYTHING_LOCAL)
    written = house.fill(60)
    damaged = house.log.segments()[0]
    async with house.running():
        turn_over(file_of(tmp_path, damaged.base_offset))
        with pytest.raises(StorageError, match="is damaged on the local disk"):
            await house.visit()
        house.log.advance_log_start(damaged.next_offset)
        house.log.delete_segments_below(damaged.next_offset)
        house.log.reconfigure_tier(LITTLE_LOCAL)

        await house.visit()

        assert house.log.tiered_end_offset == house.log.active_base_offset
        assert await house.read_all() == written[damaged.next_offset :]
    house.close()
