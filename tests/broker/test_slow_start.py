"""A start that takes long, as after a crash that left much to check: it says how far it has come."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import trio

from odradek.kernel.broker import Broker, read_broker_options
from odradek.kernel.machine.clock import ManualClock
from odradek.kernel.machine.files import OsFiles
from tests.machines import machine_with
from tests.waiting import PATIENCE_S

if TYPE_CHECKING:
    from pathlib import Path

    from odradek.kernel.machine.files import FileStat

PARTITIONS = 7
CHECK_MS = 2000


class SlowFiles(OsFiles):
    """A disk on which each log takes its time to be looked through."""

    def __init__(self, clock: ManualClock, check_ms: int) -> None:
        super().__init__()
        self._clock = clock
        self._check_ms = check_ms

    def listdir(self, path: Path) -> list[FileStat]:
        if path.name.startswith("slow-"):
            self._clock.advance(self._check_ms)
        return super().listdir(path)


def start_and_stop(folder: Path, check_ms: int) -> None:
    """Have a broker with its topic begin, and end, without a client."""
    config = folder / "odradek.toml"
    config.write_text(f"[topics.slow]\npartitions = {PARTITIONS}\n")
    options = read_broker_options(
        config=config, environment={}, options=[], listen=["127.0.0.1:0"], data_dir=folder / "data"
    )
    clock = ManualClock()
    broker = Broker(options, machine=machine_with(clock=clock, files=SlowFiles(clock, check_ms)))

    async def main() -> None:
        with trio.fail_after(PATIENCE_S):
            async with trio.open_nursery() as nursery:
                await nursery.start(broker.run)
                broker.stop()

    trio.run(main)


@pytest.mark.parametrize(
    ("check_ms", "expected"), [(CHECK_MS, [3, 6]), (CHECK_MS // 2, [5]), (CHECK_MS // 4, [])], ids=str
)
def test_a_long_start_says_every_five_seconds_how_many_partitions_are_open(
    check_ms: int, expected: list[int], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    start_and_stop(tmp_path, 0)
    for number in range(PARTITIONS):  # as the first record of each makes them
        (tmp_path / "data" / f"slow-{number}").mkdir()
        (tmp_path / "data" / f"slow-{number}" / "00000000000000000000.log").touch()
    caplog.clear()
    start_and_stop(tmp_path, check_ms)

    assert [record.getMessage() for record in caplog.records if "partitions" in record.getMessage()] == [
        f"{opened} of {PARTITIONS} partitions opened so far; after a crash each log is checked" for opened in expected
    ]
