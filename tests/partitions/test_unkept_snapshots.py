"""Snapshots of many producers: of the moment in which they were begun, written in slices, lost by nobody."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import trio

from odradek.kernel.contracts.cleanup import CleanupSettings
from odradek.kernel.contracts.tiering import TierSettings
from odradek.kernel.errors import StorageError
from odradek.kernel.machine.turnstile import SLICE_STEPS
from odradek.kernel.partitions.producer_snapshot import SNAPSHOT_KIND, ProducerSnapshotEntry, decode_snapshot
from odradek.kernel.partitions.replica import Replica
from odradek.kernel.partitions.unkept_snapshots import UNKEPT_MAX
from odradek.testing.far_tier import FarLog, FarTier

from .hosted import Hosted
from .test_upkeep import do, upkeep_of

MANY = 2 * SLICE_STEPS + 1
TIERED = TierSettings(-1, -1, remote_log_copy_disable=False, cleanup=CleanupSettings())


@pytest.fixture
def tier() -> FarTier:
    return FarTier()


@pytest.fixture
def hosted(tmp_path: Path, tier: FarTier) -> Iterator[Hosted]:
    hosted = Hosted(tmp_path, tier=tier)
    hosted.open("t", tier=TIERED)
    for producer_id in range(MANY):
        hosted.produce("t", 0, producer_id=producer_id)
    yield hosted
    hosted.lifecycle.close()


def replica_of(hosted: Hosted) -> Replica:
    return hosted.replicas.get("t", 0)


def far(hosted: Hosted, tier: FarTier) -> FarLog:
    return tier.logs[replica_of(hosted).partition]


def kept(replica: Replica, offset: int) -> list[ProducerSnapshotEntry]:
    return decode_snapshot(replica.log.read_sidecar(offset, SNAPSHOT_KIND))


def roll(hosted: Hosted, sequence: int) -> int:
    """Roll the log, which it does with the next record; return where."""
    replica = replica_of(hosted)
    offset = replica.log.log_end_offset
    replica.log.roll()
    hosted.produce("t", sequence, producer_id=0)
    return offset


def test_a_roll_does_not_wait_for_many_producers_to_be_written_down(hosted: Hosted, tier: FarTier) -> None:
    replica = replica_of(hosted)
    expected = [replica.producers.snapshot()]
    first = roll(hosted, 1)
    expected.append(replica.producers.snapshot())
    second = roll(hosted, 2)
    assert not replica.log.sidecars(SNAPSHOT_KIND)
    assert far(hosted, tier).held_end == first, "what ends there is not sent without its snapshot"

    do(hosted, lambda upkeep: upkeep.keep_rolled)

    assert [kept(replica, offset) for offset in (first, second)] == expected
    assert far(hosted, tier).held_end is None


def test_they_are_written_in_slices(hosted: Hosted) -> None:
    replica, upkeep = replica_of(hosted), upkeep_of(hosted)[0]
    expected = replica.producers.snapshot()
    offset = roll(hosted, 1)
    passes = 0

    async def main() -> None:
        nonlocal passes
        async with trio.open_nursery() as nursery:
            nursery.start_soon(upkeep.keep_rolled)
            while replica.unkept.first is not None:
                passes += 1
                hosted.produce("t", 1 + passes, producer_id=0)
                await trio.lowlevel.checkpoint()

    trio.run(main)

    assert passes > MANY // SLICE_STEPS
    assert kept(replica, offset) == expected


def test_one_that_is_left_is_gone_on_with(hosted: Hosted) -> None:
    replica, upkeep = replica_of(hosted), upkeep_of(hosted)[0]
    expected = replica.producers.snapshot()
    offset = roll(hosted, 1)

    async def main() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(upkeep.keep_rolled)
            await trio.lowlevel.checkpoint()
            await trio.lowlevel.checkpoint()
            nursery.cancel_scope.cancel()

    trio.run(main)
    assert replica.unkept.first is not None

    replica.keep_producers()
    assert kept(replica, offset) == expected


def test_few_producers_are_written_with_the_roll(tmp_path: Path, tier: FarTier) -> None:
    hosted = Hosted(tmp_path / "few", tier=tier)
    hosted.open("t", tier=TIERED)
    hosted.produce("t", 0, producer_id=0)
    offset = roll(hosted, 1)

    assert list(replica_of(hosted).log.sidecars(SNAPSHOT_KIND)) == [offset]
    hosted.lifecycle.close()


def test_no_more_than_a_few_wait(hosted: Hosted) -> None:
    offsets = [roll(hosted, 1 + number) for number in range(UNKEPT_MAX + 1)]

    assert list(replica_of(hosted).log.sidecars(SNAPSHOT_KIND)) == offsets[-1:]


def test_one_that_cannot_be_written_holds_nothing_up(
    hosted: Hosted, tier: FarTier, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object) -> None:
        raise StorageError("the disk is full")

    roll(hosted, 1)
    monkeypatch.setattr(type(far(hosted, tier).inner), "begin_sidecar", fail)
    do(hosted, lambda upkeep: upkeep.keep_rolled)

    assert far(hosted, tier).held_end is None
    assert "producers of t-0" in caplog.text
    assert "the disk is full" in caplog.text


def test_a_log_that_is_opened_again_under_its_tier_holds_what_it_held(hosted: Hosted, tier: FarTier) -> None:
    replica = replica_of(hosted)
    offset = roll(hosted, 1)
    fresh: Any = FarLog(far(hosted, tier).inner, TIERED)
    replica.take_log(fresh.inner, fresh)

    assert fresh.held_end == offset


def test_at_the_end_many_producers_are_kept_in_slices_and_not_once_more(hosted: Hosted) -> None:
    replica = replica_of(hosted)
    rolled = roll(hosted, 1)
    end, expected = replica.log.log_end_offset, replica.producers.snapshot()
    do(hosted, lambda upkeep: upkeep.keep_at_end)

    assert list(replica.log.sidecars(SNAPSHOT_KIND)) == [rolled, end]
    assert kept(replica, end) == expected
    inode = next(Path(folder) for folder in hosted.dirs if list(Path(folder).glob("t-0/*.snapshot")))
    before = (inode / "t-0" / f"{end:020}.snapshot").stat().st_ino
    replica.keep_producers()
    assert (inode / "t-0" / f"{end:020}.snapshot").stat().st_ino == before
