"""An operation that answers thousands: they are told some at a time, in their order, and nobody overtakes them."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from odradek.kernel.contracts.coordinator import CoordinatorResult
from odradek.kernel.coordinator import sent_away
from odradek.kernel.coordinator.answers import CallbackWaiter
from odradek.kernel.errors import ErrorCode, KafkaError

from .hosting import World

if TYPE_CHECKING:
    from collections.abc import Callable

    from odradek.kernel.contracts.coordinator import Waiter

    from .toy import CounterShard, Result


class CrowdedWorld(World):
    """A world with a crowd that one operation answers; whoever is told anything is noted, in order."""

    SIZE = 3 * sent_away.ANSWERS_AT_ONCE + 1

    def __init__(self) -> None:
        super().__init__()
        self.told: list[tuple[int, object]] = []

    def ask(self, number: int, operation: Callable[[CounterShard, Waiter], Result]) -> None:
        def tell(response: object, error: KafkaError | None) -> None:
            self.told.append((number, response if error is None else error.code))

        waiter = CallbackWaiter(tell)
        self.runtime.submit(0, lambda shard, _now_ms: operation(shard, waiter), waiter)

    def gather(self, least: int = 1) -> None:
        for number in range(self.SIZE):
            self.ask(number, lambda shard, waiter: shard.wait("a", least, waiter))


def crowded(**options: object) -> CrowdedWorld:
    world = CrowdedWorld()
    world.open(**options)  # type: ignore[arg-type] # as given
    return world


@pytest.mark.parametrize("writes", [True, False])
def test_a_crowd_is_told_some_at_a_time_and_who_comes_later_after_it(*, writes: bool) -> None:
    world = crowded()
    world.gather()
    if writes:
        world.add("a", 1)
    else:
        world.submit(lambda shard, _now_ms: CoordinatorResult([], 1, [(each[2], 1) for each in shard.waiting]))
    world.turn()
    portions = [len(world.told)]
    late = (world.SIZE, 1 if writes else 0)
    for number in range(world.SIZE, world.SIZE + 3):
        world.ask(number, lambda shard, _waiter: shard.read("a"))
    portions.append(len(world.told))
    while len(world.told) < world.SIZE + 3:
        (entry,) = world.wheel.advance(world.clock.monotonic_ms(), 1)
        entry.expire()
        portions.append(len(world.told))

    assert portions[0] == portions[1] > 0
    assert max(after - before for before, after in pairwise([0, *portions])) <= sent_away.ANSWERS_AT_ONCE
    assert [number for number, _told in world.told] == [*range(world.SIZE + 3)]
    assert world.told[-3] == late
    assert {told for _number, told in world.told[: world.SIZE]} == {1}


def test_a_crowd_whose_records_are_not_committed_in_time_is_told_so_some_at_a_time() -> None:
    world = crowded(isr=(1, 2), replicas=(1, 2))
    world.follower_has(0)
    world.gather()
    world.add("a", 1)
    world.turn()
    world.clock.advance(5_000)
    portions = [0]
    while len(world.told) < world.SIZE:
        for entry in world.wheel.advance(world.clock.monotonic_ms(), 1):
            entry.expire()
        portions.append(len(world.told))

    assert max(after - before for before, after in pairwise(portions)) <= sent_away.ANSWERS_AT_ONCE
    assert {told for _number, told in world.told} == {ErrorCode.COORDINATOR_NOT_AVAILABLE}


def test_a_crowd_whose_records_are_committed_is_told_so_however_late() -> None:
    world = crowded(isr=(1, 2), replicas=(1, 2))
    world.follower_has(0)
    world.gather()
    world.add("a", 1)
    world.turn()
    world.follower_has(1)
    world.clock.advance(60_000)
    world.advance(0)

    assert world.told == [(number, 1) for number in range(world.SIZE)]


def test_who_of_a_crowd_is_not_told_yet_when_the_shard_ends_is_sent_elsewhere() -> None:
    world = crowded()
    world.gather()
    world.add("a", 1)
    world.turn()
    told_count = len(world.told)
    world.runtime.places[0].leave()
    world.advance(10)

    assert 0 < told_count < world.SIZE
    assert world.told[:told_count] == [(number, 1) for number in range(told_count)]
    assert [told for _number, told in world.told[told_count:]] == [ErrorCode.NOT_COORDINATOR] * (
        world.SIZE - told_count
    )


@pytest.mark.parametrize("is_closed", [True, False])
def test_a_crowd_that_is_sent_away_is_told_so_some_at_a_time(*, is_closed: bool) -> None:
    world = crowded()
    world.gather()
    if is_closed:
        world.runtime.places[0].leave()
    else:
        world.runtimes.release_parked()
    portions = [0, len(world.told)]
    while len(world.told) < world.SIZE:
        for entry in world.wheel.advance(world.clock.monotonic_ms(), 1):
            entry.expire()
        portions.append(len(world.told))

    assert max(after - before for before, after in pairwise(portions)) <= sent_away.ANSWERS_AT_ONCE
    assert world.told == [(number, ErrorCode.NOT_COORDINATOR) for number in range(world.SIZE)]


def test_a_crowd_is_told_at_once_when_the_broker_ends() -> None:
    world = crowded()
    world.gather()
    world.runtimes.close()

    assert world.told == [(number, ErrorCode.NOT_COORDINATOR) for number in range(world.SIZE)]
