"""A tier whose settings are altered while it works: how fast it sends, and how many threads read and send."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import trio
import trio.testing

from odradek.plugins.storage_tiered.pace import Pace
from odradek.testing.object_stores import MemoryObjectStore
from tests.waiting import PATIENCE_S, until_async

from .tiered_house import House

if TYPE_CHECKING:
    from pathlib import Path


class BusyStore(MemoryObjectStore):
    """Lets nobody have records, or leave some, until told to; counts who is at it."""

    def __init__(self) -> None:
        super().__init__()
        self.opened = threading.Event()
        self.is_busy = False
        self.visitors = 0

    def get(self, name: str, start: int = 0, size: int | None = None) -> bytes:
        if self.is_busy and name.endswith(".log"):
            self.visitors += 1
            assert self.opened.wait(PATIENCE_S)
        return super().get(name, start, size)


def in_virtual_time(scenario: object) -> None:
    trio.run(scenario, clock=trio.testing.MockClock(autojump_threshold=0))  # type: ignore[arg-type]


def test_all_logs_together_are_sent_at_the_rate() -> None:
    ends: list[float] = []

    async def scenario() -> None:
        pace, begun_s = Pace(lambda: 100), trio.current_time()

        async def send() -> None:
            await pace.note(1_000)
            ends.append(trio.current_time() - begun_s)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(send)
            nursery.start_soon(send)

    in_virtual_time(scenario)

    assert [round(end_s, 1) for end_s in ends] == [20.0, 20.0]


def test_who_waits_for_a_slow_rate_follows_a_faster_one() -> None:
    async def scenario() -> None:
        rate = [1]
        pace, begun_s = Pace(lambda: rate[0]), trio.current_time()

        async def hasten() -> None:
            await trio.sleep(100)
            rate[0] = 1_000

        async with trio.open_nursery() as nursery:
            nursery.start_soon(hasten)
            await pace.note(10_000)

        assert 109 < trio.current_time() - begun_s < 111

    in_virtual_time(scenario)


async def test_more_threads_read_once_they_are_wanted(tmp_path: Path) -> None:
    store = BusyStore()
    house = House(tmp_path, store, changes={"remote.log.reader.threads": 1})
    house.fill(60)
    await house.visit()
    store.is_busy = True
    async with house.running():
        house.log.begin_cold_read(0, 4_096, lambda: None)
        house.log.begin_cold_read(20, 4_096, lambda: None)
        await until_async(lambda: store.visitors == 1)
        await trio.testing.wait_all_tasks_blocked()
        assert store.visitors == 1
        house.config.change("remote.log.reader.threads", 3)
        house.log.begin_cold_read(40, 4_096, lambda: None)
        await until_async(lambda: store.visitors == 3)
        store.opened.set()
    house.close()


async def test_more_threads_send_once_they_are_wanted(tmp_path: Path) -> None:
    house = House(tmp_path, changes={"remote.log.manager.copier.thread.pool.size": 1})
    is_over = threading.Event()
    entered: list[None] = []

    def block() -> None:
        entered.append(None)
        assert is_over.wait(PATIENCE_S)

    async with trio.open_nursery() as nursery:
        for _ in range(2):
            nursery.start_soon(house.tier._in_thread, block)
        await until_async(lambda: len(entered) == 1)
        await trio.testing.wait_all_tasks_blocked()
        assert len(entered) == 1
        house.config.change("remote.log.manager.copier.thread.pool.size", 3)
        nursery.start_soon(house.tier.passes._in_thread, block)
        await until_async(lambda: len(entered) == 3)
        is_over.set()
    house.close()
