"""Sleeping in trio's stead: trio's own business is never kept waiting, and who is served there does as in a task."""

import os
import select
import sys
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from math import inf
from pathlib import Path
from typing import Any

import attrs
import pytest
import trio
import trio.testing

from odradek.kernel.machine.poller import Poller
from odradek.kernel.network import sleeper
from odradek.kernel.network.settings import ListenerSettings, NetworkSettings
from odradek.kernel.network.sleeper import Sleeper, epoll_that_watches, may_take_over_sleep, take_over_sleep
from tests.machines import make_reactor
from tests.waiting import PATIENCE_S

from .conftest import Service

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="without epoll there is no reactor that sleeps")

LONG_S = 1000 * PATIENCE_S
"""A sleep that nobody sees the end of."""


@attrs.define(eq=False)
class FakeNest:
    """One event: a descriptor that is readable once rung; `on_event` is what serving it does. Keeps what it slept.

    A busy one always says that there may be more.
    """

    on_event: Callable[[], None] = lambda: None
    asked: list[float] = attrs.field(factory=list)
    is_busy: bool = False
    _epoll: select.epoll = attrs.field(factory=select.epoll)
    _on_trio: dict[int, Callable[[], None]] = attrs.field(factory=dict)
    event: int = attrs.field(factory=lambda: os.eventfd(0, os.EFD_NONBLOCK))

    def __attrs_post_init__(self) -> None:
        self._epoll.register(self.event, select.EPOLLIN)

    def watch_trio(self, descriptor: int, on_ready: Callable[[], None]) -> None:
        self._on_trio[descriptor] = on_ready
        self._epoll.register(descriptor, select.EPOLLIN | select.EPOLLONESHOT)

    def watch_trio_again(self, descriptor: int) -> None:
        self._epoll.modify(descriptor, select.EPOLLIN | select.EPOLLONESHOT)

    def unwatch_trio(self, descriptor: int) -> None:
        del self._on_trio[descriptor]
        self._epoll.unregister(descriptor)

    def sleep_and_serve(self, seconds: float) -> bool:
        self.asked.append(seconds)
        for descriptor, _ in self._epoll.poll(seconds):
            if descriptor == self.event:
                os.eventfd_read(descriptor)
                self.on_event()
            else:
                self._on_trio[descriptor]()
        return self.is_busy

    def ring(self) -> None:
        os.eventfd_write(self.event, 1)

    @property
    def watches_trio(self) -> bool:
        return bool(self._on_trio)

    def close(self) -> None:
        self._epoll.close()
        os.close(self.event)


@asynccontextmanager
async def sleeping(nest: FakeNest) -> AsyncIterator[None]:
    """Sleep in `nest` for the run of the test."""
    with trio.fail_after(PATIENCE_S):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(Sleeper(nest).run)
            while not nest.watches_trio:
                await trio.lowlevel.checkpoint()
            yield
            nursery.cancel_scope.cancel()


def run(work: Callable[[FakeNest], Awaitable[None]]) -> FakeNest:
    """Run `work` in a trio run that sleeps in the nest that is returned."""
    nest = FakeNest()

    async def main() -> None:
        async with sleeping(nest):
            await work(nest)

    trio.run(main)
    assert not nest.watches_trio
    nest.close()
    return nest


def test_a_served_event_makes_a_task_run_at_once() -> None:
    async def work(nest: FakeNest) -> None:
        served = trio.Event()
        nest.on_event = served.set
        thread = threading.Timer(0.01, nest.ring)
        thread.start()
        await served.wait()
        thread.join()

    run(work)


@pytest.mark.parametrize("is_busy", [False, True])
def test_events_that_concern_no_task_are_served_without_a_pass_of_trio(is_busy: bool) -> None:
    steps: list[str] = []

    class Steps(trio.abc.Instrument):
        def before_task_step(self, task: trio.lowlevel.Task) -> None:
            steps.append(task.name)

    async def work(nest: FakeNest) -> None:
        served = trio.Event()
        rounds = iter(range(50))

        def on_event() -> None:
            if next(rounds, None) is None:
                served.set()
            else:
                nest.ring()

        nest.on_event = on_event
        nest.is_busy = is_busy
        nest.ring()
        trio.lowlevel.add_instrument(Steps())
        await served.wait()
        assert next(rounds, None) is None

    run(work)
    assert len(steps) < 25


def test_a_task_that_served_nothing_but_sleeps_wakes_in_time_and_the_run_sleeps_meanwhile() -> None:
    async def work(nest: FakeNest) -> None:
        await trio.lowlevel.checkpoint()
        nest.asked.clear()
        before = trio.current_time()
        await trio.sleep(0.05)
        assert 0.05 <= trio.current_time() - before < PATIENCE_S

    nest = run(work)
    assert len(nest.asked) < 15  # the run slept, it did not look again and again


@pytest.mark.parametrize("is_busy", [False, True])
def test_a_deadline_that_serving_brings_forward_is_kept(is_busy: bool) -> None:
    async def work(nest: FakeNest) -> None:
        nest.is_busy = is_busy
        with trio.CancelScope() as scope:
            nest.on_event = lambda: setattr(scope, "deadline", trio.current_time() + 0.01)
            nest.ring()
            await trio.sleep(LONG_S)
        assert scope.cancelled_caught

    run(work)


@pytest.mark.parametrize("is_busy", [False, True])
def test_what_serving_spawns_runs(is_busy: bool) -> None:
    async def work(nest: FakeNest) -> None:
        nest.is_busy = is_busy
        ran = trio.Event()

        async def child() -> None:
            ran.set()

        async with trio.open_nursery() as nursery:
            nest.on_event = lambda: nursery.start_soon(child)
            nest.ring()
            await ran.wait()

    run(work)


@pytest.mark.parametrize("is_busy", [False, True])
def test_threads_reach_the_run_while_it_sleeps_or_serves(is_busy: bool) -> None:
    async def work(nest: FakeNest) -> None:
        nest.is_busy = is_busy
        assert await trio.to_thread.run_sync(trio.from_thread.run_sync, trio.current_time) > 0

    run(work)


def test_tasks_reach_each_other_through_sockets_while_the_run_sleeps() -> None:
    async def work(nest: FakeNest) -> None:
        one, other = trio.socket.socketpair()
        with one, other:
            async with trio.open_nursery() as nursery:

                async def answer() -> None:
                    await other.send(await other.recv(10))

                nursery.start_soon(answer)
                for _ in range(2):
                    await trio.lowlevel.checkpoint()
                await one.send(b"ping")
                assert await one.recv(10) == b"ping"

    run(work)


def test_what_serving_raises_is_raised_by_the_task() -> None:
    def fail() -> None:
        raise ValueError("a bug")

    nest = FakeNest(fail)
    with pytest.RaisesGroup(pytest.RaisesExc(ValueError, match="a bug")):

        async def main() -> None:
            async with sleeping(nest):
                nest.ring()
                await trio.sleep(LONG_S)

        trio.run(main)
    nest.close()


def test_the_run_sleeps_by_itself_again_afterwards() -> None:
    nest = FakeNest()

    async def main() -> None:
        async with sleeping(nest):
            await trio.lowlevel.checkpoint()
        nest.asked.clear()
        await trio.sleep(0.001)
        assert nest.asked == []

    trio.run(main)
    nest.close()


def test_who_waits_until_nobody_runs_is_told() -> None:
    async def work(nest: FakeNest) -> None:
        await trio.testing.wait_all_tasks_blocked()

    run(work)


def test_nobody_sleeps_for_longer_than_the_system_can_say() -> None:
    async def work(nest: FakeNest) -> None:
        served = trio.Event()
        nest.on_event = served.set
        with trio.CancelScope(deadline=inf):
            nest.ring()
            await served.wait()

    assert max(run(work).asked) <= sleeper.SLEEP_SECONDS_MAX


def test_where_trios_epoll_cannot_be_found_the_run_sleeps_by_itself(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(sleeper, "epoll_that_watches", lambda _descriptor: None)
    caplog.set_level("INFO")
    nest = FakeNest()

    trio.run(Sleeper(nest).run)

    assert nest.asked == []
    assert not nest.watches_trio
    assert "cannot be found in /proc" in caplog.text
    nest.close()


def test_an_epoll_is_found_by_what_it_watches_unless_there_are_two() -> None:
    watched, other = os.eventfd(0), os.eventfd(0)
    with select.epoll() as first, select.epoll() as second:
        assert epoll_that_watches(watched) is None
        first.register(watched)
        second.register(other)
        assert epoll_that_watches(watched) == first.fileno()
        assert epoll_that_watches(other) == second.fileno()
        second.register(watched)
        assert epoll_that_watches(watched) is None
    os.close(watched)
    os.close(other)


def test_without_proc_no_epoll_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_proc(path: Path) -> Iterator[Path]:
        raise FileNotFoundError(path)

    monkeypatch.setattr(Path, "iterdir", no_proc)
    assert epoll_that_watches(0) is None


class CountingPoller:
    """A poller that counts how often it is asked."""

    def __init__(self, poller: Poller) -> None:
        self.polls_count = 0
        self._poller = poller

    def poll(self, seconds: float, events_max: int) -> list[tuple[int, int]]:
        self.polls_count += 1
        return self._poller.poll(seconds, events_max)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._poller, name)


def test_the_reactor_looks_at_what_concerns_trio_once_and_lets_it_go_on() -> None:
    settings = NetworkSettings((ListenerSettings("PLAINTEXT", "127.0.0.1", 0),))

    async def main() -> int:
        reactor = make_reactor(Service(), settings)
        poller: Any = CountingPoller(reactor.poller)
        reactor.poller = poller
        take_over_sleep()
        with trio.fail_after(PATIENCE_S):
            async with trio.open_nursery() as nursery:
                await nursery.start(reactor.run)
                for _ in range(20):
                    await trio.to_thread.run_sync(time.sleep, 0)
                polls_count: int = poller.polls_count
                nursery.cancel_scope.cancel()
        return polls_count

    assert trio.run(main) < 20 * 10  # a turn of 1 ms for each would be hundreds


def test_a_run_has_one_sleep_and_it_has_to_be_offered() -> None:
    async def main(is_offered: bool) -> tuple[bool, bool]:
        if is_offered:
            take_over_sleep()
        return may_take_over_sleep(), may_take_over_sleep()

    assert trio.run(main, False) == (False, False)
    assert trio.run(main, True) == (True, False)
    assert trio.run(main, False) == (False, False)
