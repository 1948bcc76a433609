"""What a shard has computed beside: its outcome comes as a timer's operation, unless nobody waits for it any more."""

from __future__ import annotations

import logging
import math
from typing import TYPE_CHECKING, Any

import pytest
import trio
import trio.testing

from odradek.kernel.contracts.culprits import note_plugin
from odradek.kernel.coordinator import computing
from odradek.kernel.machine.system.threads import SystemThreads
from odradek.testing.shard_harness import ShardHarness

from .hosting import World
from .toy import CounterCoordinator, CounterShard

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

KEY = ("sum",)


class Asked:
    """What a work asks: an object of this module, which is a plugin's for the tests."""


@pytest.fixture(autouse=True)
def a_plugin() -> None:
    note_plugin("blocking", __name__)


def computing_in(world: World, work: Callable[[], Awaitable[None]]) -> None:
    async def main() -> None:
        with trio.fail_after(30):
            async with trio.open_nursery() as nursery:
                await nursery.start(world.runtimes.computing.run)
                await work()
                nursery.cancel_scope.cancel()

    trio.run(main)


def opened() -> World:
    world = World()
    world.open()
    return world


def compute(world: World, work: Callable[[], Any], asked: object = None) -> CounterShard:
    shard = world.shard()
    shard.timers.compute(KEY, work, lambda amount, _now_ms: shard.add("a", amount), asked=asked)
    return shard


async def computed(world: World) -> None:
    """Wait until nothing is being computed, then let a moment pass for the shard."""
    await trio.testing.wait_all_tasks_blocked(0.01)
    while world.runtimes.computing.busy_count:  # noqa: ASYNC110 - as a thread ends
        await trio.sleep(0.001)
    world.advance(1)


def test_the_outcome_is_taken_by_an_operation_of_the_shard() -> None:
    world = opened()

    async def work() -> None:
        shard = compute(world, lambda: sum(range(5)))

        assert shard.timers.is_scheduled(KEY)

        await computed(world)

        assert shard.counters == {"a": 10}
        assert not shard.timers.is_scheduled(KEY)

    computing_in(world, work)


@pytest.mark.parametrize("how", ["cancelled", "armed anew", "unloaded"])
def test_an_outcome_that_nobody_waits_for_any_more_is_dropped(how: str) -> None:
    world = opened()

    async def work() -> None:
        shard = compute(world, lambda: 1)
        if how == "cancelled":
            shard.timers.cancel(KEY)
        elif how == "armed anew":
            shard.timers.schedule(KEY, 0, lambda _now_ms: shard.add("b", 1))
        else:
            world.runtimes.close()
        await computed(world)

        assert shard.counters == ({"b": 1} if how == "armed anew" else {})

    computing_in(world, work)


def test_a_work_that_fails_is_logged_and_its_key_is_free(caplog: pytest.LogCaptureFixture) -> None:
    world = opened()

    async def work() -> None:
        shard = compute(world, lambda: 1 // 0)
        await computed(world)

        assert not shard.timers.is_scheduled(KEY)
        assert "('sum',) cannot be computed" in caplog.text
        assert caplog.records[-1].plugin == "blocking"  # type: ignore[attr-defined] # an extra field

        compute(world, lambda: 2)
        await computed(world)

        assert shard.counters == {"a": 2}

    computing_in(world, work)


def test_what_blocks_is_named_and_does_not_hold_up_the_end(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(computing, "LONG_S", 0.01)
    world = opened()
    end = SystemThreads().new_event()

    async def work() -> None:
        compute(world, end.wait, asked=Asked())
        with trio.fail_after(10):
            while not caplog.records:  # noqa: ASYNC110 - as the log is read
                await trio.sleep(0.001)

    try:
        computing_in(world, work)
    finally:
        end.set()
    (record,) = [each for each in caplog.records if each.levelno == logging.ERROR]

    assert "plugin 'blocking' holds up ('sum',)" in record.getMessage()
    assert "test_computing.py:" in record.place  # type: ignore[attr-defined] # an extra field


def test_the_harness_computes_at_once_and_tells_a_little_later() -> None:
    harness = ShardHarness.of(CounterCoordinator())
    harness.computing_ms = 7
    shard = harness.shard
    shard.timers.compute(KEY, lambda: math.factorial(4), lambda amount, _now_ms: shard.add("a", amount))

    assert harness.armed == {KEY: 7}

    harness.advance(7)

    assert shard.counters == {"a": 24}
