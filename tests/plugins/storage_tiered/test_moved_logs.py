"""A tiered log that moves to another directory takes along what it knows of the store."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from odradek.kernel.api import do_now
from odradek.plugins.storage_segment.engine import SegmentEngine
from odradek.testing.contracts.storage_base import PARTITION, SMALL
from tests.plugins.storage_tiered.tiered_house import LITTLE_LOCAL, House

if TYPE_CHECKING:
    from pathlib import Path


async def test_what_is_far_is_known_where_the_log_went_before_the_store_was_asked(tmp_path: Path) -> None:
    dirs = {str(tmp_path / "one"), str(tmp_path / "two")}
    house = House(tmp_path, engine=lambda context: SegmentEngine(attrs.evolve(context, log_dirs=sorted(dirs))))
    written = house.fill(60)
    async with house.running():
        await house.visit()
        (other,) = dirs - {house.inner.log_dir}
        move = house.engine.begin_move(PARTITION, other)
        move.run(lambda size_bytes: None)
        written += house.fill(30)
        await house.visit()  # it goes on being sent while it is copied
        do_now(house.log.begin_close())
        do_now(move.begin_swap())
        house.inner = house.engine.open_log(PARTITION, SMALL)
        house.log = house.tier.wrap(house.inner, LITTLE_LOCAL)

        assert house.inner.log_dir == other
        assert house.log.tiered_end_offset == house.log.active_base_offset
        assert await house.read_all() == written
        await house.visit()
        assert await house.read_all() == written
    house.close()
