"""Flushes that followers want: one after the other in a log directory, beside those of the others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import attrs
import pytest
import trio
import trio.testing

from odradek.kernel.errors import StorageError
from odradek.kernel.replication.follower_flushes import LANES_MAX, FollowerFlushes


@attrs.define(eq=False)
class Flush:
    """What makes a log durable, which cannot be before its disk lets it."""

    log: Log

    def run(self) -> None:
        """Nothing to do here: the thread takes the time."""

    def finish(self, error: Exception | None) -> None:
        if error is not None:
            raise error


@attrs.define(eq=False)
class Log:
    log_dir: str
    log_end_offset: int = 5

    def begin_flush(self) -> Flush:
        return Flush(self)


@attrs.define(eq=False)
class Follower:
    log: Log
    appended_offset: int = 0
    offline_reason: str | None = None
    is_leader: bool = False


class Threads:
    """Threads that are none; who works in a directory that is slow does so until it is not."""

    def __init__(self) -> None:
        self.slow: dict[str, trio.Event] = {}
        self.broken: set[str] = set()
        self.working: list[str] = []
        self.most = 0

    async def run_sync(
        self, function: Callable[..., Any], /, *, limiter: trio.CapacityLimiter, abandon_on_cancel: bool = False
    ) -> None:
        async with limiter:
            log_dir = function.__self__.log.log_dir  # type: ignore[attr-defined]
            self.working.append(log_dir)
            self.most = max(self.most, len(self.working))
            with trio.CancelScope(shield=not abandon_on_cancel):
                await trio.lowlevel.checkpoint()
                if log_dir in self.slow:
                    await self.slow[log_dir].wait()
            self.working.remove(log_dir)
            if log_dir in self.broken:
                raise StorageError(f"{log_dir} failed")


class Writes:
    """Takes note of what was flushed."""

    def __init__(self) -> None:
        self.flushed: list[Follower] = []
        self.failed: list[Follower] = []

    def note_flushed(self, replica: Follower, log: Log, failure: Exception | None) -> None:
        (self.flushed if failure is None else self.failed).append(replica)
        if failure is None:
            replica.appended_offset = log.log_end_offset


class Scene:
    def __init__(self) -> None:
        self.threads, self.writes = Threads(), Writes()
        self.flushes = FollowerFlushes(cast("Any", self.writes), cast("Any", self.threads))

    def ask(self, *followers: Follower) -> list[Follower]:
        return cast("list[Follower]", self.flushes.ask(cast("Any", followers)))

    def forget(self, follower: Follower) -> None:
        self.flushes.forget(cast("Any", follower))


def play(scenario: Callable[[Scene], Any]) -> None:
    async def main() -> None:
        scene = Scene()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(scene.flushes.run)
            await scenario(scene)
            assert not scene.flushes.is_busy
            scene.flushes.end()

    trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))


settle = trio.testing.wait_all_tasks_blocked


def test_a_slow_log_directory_holds_up_no_flush_in_another() -> None:
    async def scenario(scene: Scene) -> None:
        scene.threads.slow["a"] = trio.Event()
        slow = [Follower(Log("a")) for _ in range(3)]
        quick = [Follower(Log("b")) for _ in range(3)]
        assert scene.ask(*slow, *quick) == [*slow, *quick]
        await settle()
        assert scene.writes.flushed == quick
        later = Follower(Log("b"))
        scene.ask(later)
        await settle()
        assert scene.writes.flushed == [*quick, later]
        assert scene.threads.working == ["a"], "one after the other"
        scene.threads.slow["a"].set()
        await settle()

        assert scene.writes.flushed == [*quick, later, *slow]

    play(scenario)


def test_however_many_log_directories_there_are_a_few_are_flushed_at_once() -> None:
    async def scenario(scene: Scene) -> None:
        names = [str(number) for number in range(3 * LANES_MAX)]
        scene.threads.slow = {name: trio.Event() for name in names}
        followers = [Follower(Log(name)) for name in names]
        scene.ask(*followers)
        await settle()
        for event in scene.threads.slow.values():
            event.set()
        await settle()

        assert scene.threads.most == LANES_MAX
        assert set(scene.writes.flushed) == set(followers)

    play(scenario)


def test_who_is_forgotten_before_its_turn_is_not_flushed() -> None:
    async def scenario(scene: Scene) -> None:
        scene.threads.slow["a"] = trio.Event()
        first, second = Follower(Log("a")), Follower(Log("a"))
        scene.ask(first, second)
        await settle()
        for each in (first, second, Follower(Log("c"))):
            scene.forget(each)
        assert scene.ask(first) == [], "it is under way"
        scene.threads.slow["a"].set()
        await settle()

        assert scene.writes.flushed == [first]

    play(scenario)


def test_a_log_that_cannot_be_flushed_is_told_and_the_next_is_flushed() -> None:
    async def scenario(scene: Scene) -> None:
        scene.threads.broken.add("a")
        followers = [Follower(Log("a")) for _ in range(2)]
        scene.ask(*followers)
        await settle()
        assert scene.writes.failed == followers
        scene.threads.broken.clear()

        assert scene.ask(*followers) == followers
        await settle()
        assert scene.writes.flushed == followers

    play(scenario)


@pytest.mark.parametrize("log_dir", ["a", "b"])
def test_who_waits_is_told_of_its_own(log_dir: str) -> None:
    async def scenario(scene: Scene) -> None:
        scene.threads.slow["a"] = trio.Event()
        followers = [Follower(Log("a")), Follower(Log(log_dir))]
        new = scene.ask(*followers)
        began_s = trio.current_time()
        await scene.flushes.wait(cast("Any", new[1:]), 1000)
        assert trio.current_time() - began_s == (1 if log_dir == "a" else 0)
        scene.threads.slow["a"].set()
        await settle()

        assert scene.writes.flushed

    play(scenario)


def test_cancelled_flushes_under_way_are_waited_for_and_told() -> None:
    async def main() -> None:
        scene = Scene()
        for name in "ab":
            scene.threads.slow[name] = trio.Event()
        followers = [Follower(Log(name)) for name in "ab"]
        scene.ask(*followers, Follower(Log("a")))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(scene.flushes.run)
            await settle()
            nursery.cancel_scope.cancel()
            for event in scene.threads.slow.values():
                event.set()

        assert set(scene.writes.flushed) == set(followers)

    trio.run(main)
