"""The clock of a broker is that of its trio run: what sleeps and what counts milliseconds agree."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest
import trio
import trio.testing

from odradek.kernel.broker import Broker, read_broker_options
from odradek.kernel.machine.clock import TrioClock, is_trios_own

if TYPE_CHECKING:
    from pathlib import Path


def test_a_broker_measures_durations_by_the_clock_that_its_sleeps_wait_for(tmp_path: Path) -> None:
    broker = Broker(read_broker_options(config=None, environment={}, options=[], data_dir=tmp_path))

    async def main() -> None:
        begin_ms = broker.machine.clock.monotonic_ms()
        await trio.sleep(3_600)

        assert broker.machine.clock.monotonic_ms() - begin_ms == 3_600_000

    trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))


def test_the_wall_clock_stays_the_machines(tmp_path: Path) -> None:
    async def main() -> None:
        await trio.sleep(3_600)

        assert abs(TrioClock().now_ms() - time.time_ns() // 1_000_000) < 60_000

    trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))


@pytest.mark.parametrize("is_mocked", [True, False])
def test_worker_threads_read_the_time_of_the_run(is_mocked: bool) -> None:
    async def main() -> None:
        clock = TrioClock()
        before_ms = clock.monotonic_ms()
        told_ms = await trio.to_thread.run_sync(clock.monotonic_ms)

        assert before_ms <= told_ms <= clock.monotonic_ms()

    trio.run(main, clock=trio.testing.MockClock() if is_mocked else None)


def test_trios_own_clock_is_known_so_that_it_need_not_be_asked() -> None:
    """Else every request pays for the way through trio. What sleeps 10 ms does so by both."""

    async def main() -> None:
        clock = TrioClock()
        begin_ms = clock.monotonic_ms()
        await trio.sleep(0.01)

        assert is_trios_own(trio.lowlevel.current_clock())
        assert clock.monotonic_ms() >= begin_ms + 9  # fractions are cut off

    trio.run(main)


def test_a_clock_that_was_put_in_is_none_of_trios_own() -> None:
    assert not is_trios_own(trio.testing.MockClock())


def test_outside_of_a_run_there_is_no_time() -> None:
    with pytest.raises(RuntimeError, match="async context"):
        TrioClock().monotonic_ms()
