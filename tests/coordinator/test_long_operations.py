"""What is long in a shard is done in slices, one thing after the other, wholly or not at all: counted in steps."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import pytest
import trio

from odradek.kernel.contracts.coordinator import PARKED, CoordinatorResult
from odradek.kernel.coordinator import shard_queue
from odradek.kernel.coordinator.shard_queue import ShardQueue
from odradek.kernel.errors import ErrorCode, KafkaError

from .hosting import World
from .toy import Added, CounterCoordinator, CounterShard

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from odradek.kernel.contracts.coordinator import CoordinatorSteps, CoordinatorTimers
    from odradek.testing.shard_harness import RecordingWaiter

STEPS = 5
"""Of a slice, in these tests."""
DECIDING = 12
RECORDS = 12
EVERY_SLICE = range((DECIDING + 2 * RECORDS) // STEPS)


@pytest.fixture(autouse=True)
def _short_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shard_queue, "STEPS_PER_SLICE", STEPS)


class Long:
    """An operation that takes many steps to decide, to encode and to replay; `seen` has how far it is."""

    def __init__(
        self, name: str = "a", *, is_atomic: bool = True, response: object = "done", error: Exception | None = None
    ) -> None:
        self.name = name
        self.is_atomic = is_atomic
        self.response = response
        self.error = error
        self.seen: list[int] = []

    def __call__(self, shard: CounterShard, now_ms: int) -> CoordinatorSteps:
        for step in range(DECIDING):
            self.seen.append(step)
            yield
        if self.error is not None:
            raise self.error
        return CoordinatorResult([Added(self.name, 1)] * RECORDS, self.response, is_atomic=self.is_atomic)


def opened(partitions: int = 1, **options: Any) -> World:
    world = World(**options)
    world.open(partitions)
    return world


def slice_of(world: World) -> None:
    """Do one slice, and end the turn."""
    world.runtimes.long_operations.go_on()
    world.turn()


def finish(world: World) -> int:
    """Do slices until nothing is long any more; return how many."""
    for count in range(100):
        if not world.runtimes.long_operations.is_busy:
            return count
        slice_of(world)
    raise AssertionError("it never ended")


def value(world: World, name: str = "a", partition: int = 0) -> object:
    waiter = world.read(name, partition)
    world.turn()
    return waiter.response


def test_it_is_decided_encoded_and_replayed_so_many_steps_at_a_time() -> None:
    world = opened()
    long = Long()
    waiter = world.submit(long)
    decided, replayed = [len(long.seen)], [0]
    while world.runtimes.long_operations.is_busy:
        slice_of(world)
        decided.append(len(long.seen))
        replayed.append(world.shard().counters.get("a", 0))

    assert decided[0] == STEPS
    assert max(after - before for before, after in itertools.pairwise(decided)) <= STEPS
    assert max(after - before for before, after in itertools.pairwise(replayed)) <= STEPS
    assert len(decided) > len(EVERY_SLICE)
    assert waiter.response == "done"
    assert value(world) == RECORDS


def test_what_ends_within_a_slice_is_answered_at_once() -> None:
    world = opened()

    def short(shard: CounterShard, now_ms: int) -> CoordinatorSteps:
        yield
        return CoordinatorResult([Added("a", 1)], "done")

    waiter = world.submit(short)
    world.turn()

    assert waiter.response == "done"
    assert not world.runtimes.long_operations.is_busy


def test_its_records_are_one_batch_that_no_turn_in_between_cuts() -> None:
    world = opened()
    before = world.add("b", 1)
    world.submit(Long())
    ends = set()
    while world.runtimes.long_operations.is_busy:
        ends.add(world.replica().log.log_end_offset)
        slice_of(world)

    assert ends <= {0, 1}
    assert before.response == 1
    assert world.replica().log.log_end_offset == 1 + RECORDS


def test_a_turn_that_ends_in_the_middle_of_its_replay_appends_nothing_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shard_queue, "STEPS_PER_SLICE", RECORDS + 4)
    world = opened()

    def quick(shard: CounterShard, now_ms: int) -> CoordinatorSteps:
        yield
        return CoordinatorResult([Added("a", 1)] * RECORDS, "done")

    world.add("b", 1)
    world.submit(quick)

    assert 0 < world.shard().counters["a"] < RECORDS

    world.turn()

    assert len(world.records()) == 1

    finish(world)

    assert len(world.records()) == 1 + RECORDS


def test_what_was_decided_before_it_does_not_wait_for_its_end() -> None:
    world = opened()
    before = world.add("b", 1)
    world.submit(Long())
    for _ in range(DECIDING // STEPS + 1):
        slice_of(world)

    assert world.runtimes.long_operations.is_busy
    assert before.response == 1


def test_nothing_else_of_its_shard_begins_before_it_has_ended() -> None:
    world = opened()
    order: list[object] = []
    world.submit(lambda shard, _: shard.add_later("a", 100, 10))
    world.turn()
    world.submit(Long())

    def looking(number: int) -> Callable[[CounterShard, int], CoordinatorResult[Any, Any]]:
        def look(shard: CounterShard, now_ms: int) -> CoordinatorResult[Any, Any]:
            order.append((number, shard.counters.get("a", 0)))
            return CoordinatorResult([], number)

        return look

    first = world.submit(looking(1))
    world.advance(10)
    codes = world.end_transaction(7, 0, is_commit=True)
    second = world.submit(looking(2))

    assert (order, codes, first.is_done, second.is_done) == ([], [], False, False)

    finish(world)

    assert order == [(1, RECORDS), (2, RECORDS + 100)]
    assert codes == [ErrorCode.NONE]
    assert (first.response, second.response) == (1, 2)


def test_other_shards_are_served_while_it_is_under_way() -> None:
    world = opened(2)
    world.submit(Long())
    other = world.add("b", 3, 1)
    world.turn()

    assert other.response == 3
    assert world.runtimes.long_operations.is_busy


def test_two_shards_take_turns() -> None:
    world = opened(2)
    longs = [Long(), Long()]
    waiters = [world.submit(long, partition) for partition, long in enumerate(longs)]
    for _ in range(2):
        slice_of(world)

    assert [len(long.seen) for long in longs] == [2 * STEPS, 2 * STEPS]

    finish(world)

    assert [waiter.response for waiter in waiters] == ["done", "done"]


@pytest.mark.parametrize("after", EVERY_SLICE)
def test_a_loss_of_leadership_in_the_middle_leaves_nothing_half_done(after: int) -> None:
    world = opened()
    world.add("a", 5)
    world.turn()
    waiter, behind = world.submit(Long()), world.add("a", 1)
    codes = world.end_transaction(7, 0, is_commit=True)
    for _ in range(after):
        slice_of(world)
    assert not waiter.is_done
    world.reload()

    assert waiter.error_code == behind.error_code == ErrorCode.NOT_COORDINATOR
    assert codes == [ErrorCode.NOT_LEADER_OR_FOLLOWER]
    assert len(world.records()) == 1
    assert finish(world) <= 1
    assert value(world) == 5


@pytest.mark.parametrize("error", [KafkaError(ErrorCode.INVALID_REQUEST), ZeroDivisionError()])
def test_what_it_raises_is_told_and_whoever_waits_goes_on(error: Exception) -> None:
    world = opened()
    waiter, behind = world.submit(Long(error=error)), world.add("a", 1)
    finish(world)

    assert waiter.error_code == getattr(error, "code", ErrorCode.UNKNOWN_SERVER_ERROR)
    assert behind.response == 1


def test_steps_that_return_no_result_are_a_bug_that_is_told() -> None:
    world = opened()

    def wrong(shard: CounterShard, now_ms: int) -> Generator[None, None, None]:
        yield

    waiter = world.submit(wrong)
    finish(world)

    assert waiter.error_code is ErrorCode.UNKNOWN_SERVER_ERROR
    assert value(world) == 0


def test_records_that_do_not_fit_a_batch_are_refused_and_nothing_is_replayed() -> None:
    world = opened()
    waiter = world.submit(Long("long" * 40))
    finish(world)

    assert waiter.error_code is ErrorCode.UNKNOWN_SERVER_ERROR
    assert world.shard().counters == {}


def test_records_that_need_not_be_whole_fill_several_batches() -> None:
    world = opened()
    waiter = world.submit(Long("long" * 40, is_atomic=False))
    finish(world)

    assert waiter.response == "done"
    assert value(world, "long" * 40) == RECORDS
    assert len(world.records()) == RECORDS


def test_a_replay_that_fails_loads_the_shard_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    world = opened()
    world.add("a", 5)
    world.turn()
    monkeypatch.setattr(world.shard(), "replay", lambda *_: 1 / 0)
    waiter, behind = world.submit(Long()), world.add("a", 1)
    finish(world)

    assert waiter.error_code == behind.error_code == ErrorCode.NOT_COORDINATOR
    assert "cannot be answered" not in caplog.text  # nobody is told twice
    assert len(world.records()) == 1

    world.advance(200)
    world.load()

    assert value(world) == 5


def test_whoever_is_sent_away_in_the_middle_is_told_once() -> None:
    world = opened()
    waiter = world.submit(Long())
    world.runtimes.release_parked()

    assert waiter.error_code is ErrorCode.NOT_COORDINATOR

    finish(world)

    assert value(world) == RECORDS


def test_it_may_park_its_waiter_and_answer_others() -> None:
    world = opened()
    parked = world.wait("a", RECORDS)
    own: list[RecordingWaiter] = [world.submit(Long(response=PARKED))]
    finish(world)

    def answering(shard: CounterShard, now_ms: int) -> CoordinatorSteps:
        yield from [None] * DECIDING
        return CoordinatorResult([], "done", [(parked, "a"), (own[0], "b")])

    last = world.submit(answering)

    assert not parked.is_done
    assert not own[0].is_done

    finish(world)

    assert (parked.response, own[0].response, last.response) == ("a", "b", "done")


def test_a_timer_that_waits_for_its_turn_can_be_disarmed() -> None:
    world = opened()
    world.submit(lambda shard, _: shard.add_later("late", 1, 10))
    world.turn()

    def disarming(shard: CounterShard, now_ms: int) -> CoordinatorSteps:
        yield from [None] * DECIDING
        shard.timers.cancel(("late",))
        return CoordinatorResult([], None)

    world.submit(disarming)
    world.advance(10)
    finish(world)
    world.advance(1_000)

    assert value(world, "late") == 0


@pytest.mark.parametrize("fails", [True, False])
def test_what_a_timer_does_may_be_long_and_is_tried_again_when_it_fails(*, fails: bool) -> None:
    world = opened()
    runs: list[Long] = []

    def due(now_ms: int) -> CoordinatorSteps:
        error = ZeroDivisionError() if fails and not runs else None
        runs.append(Long(error=error))
        return runs[-1](world.shard(), now_ms)

    def arm(shard: CounterShard, now_ms: int) -> CoordinatorResult[Any, Any]:
        shard.timers.schedule(("long",), 10, due)
        return CoordinatorResult([], None)

    world.submit(arm)
    world.advance(10)
    finish(world)
    world.advance(1_000)
    finish(world)

    assert len(runs) == 1 + fails
    assert value(world) == RECORDS


# -------------------------------------------------------------------------------------------------------------- loading


class SlowToBegin(CounterShard):
    begun = 0
    failures = 0

    def loaded(self, now_ms: int) -> Generator[None, None, None]:  # type: ignore[override] # in steps, as it may be
        for _ in range(DECIDING):
            self.begun += 1
            yield
        if type(self).failures:
            type(self).failures -= 1
            raise ZeroDivisionError
        super().loaded(now_ms)


class SlowCoordinator(CounterCoordinator):
    def new_shard(self, partition: int, timers: CoordinatorTimers) -> CounterShard:
        return SlowToBegin(timers)


def test_a_shard_begins_in_slices_and_whoever_asks_meanwhile_waits() -> None:
    world = opened(coordinators=[SlowCoordinator()])
    waiter = world.add("a", 1)
    place = world.runtime.places[0]
    assert place.hosted is not None

    assert place.hosted.shard.begun == STEPS
    assert not place.hosted.is_active
    assert not waiter.is_done

    finish(world)

    assert waiter.response == 1
    assert place.hosted.shard.begun == DECIDING


def test_a_shard_that_cannot_begin_is_made_anew_after_a_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SlowToBegin, "failures", 2)
    world = opened(coordinators=[SlowCoordinator()])
    waiter = world.add("a", 1)
    finish(world)

    assert waiter.error_code is ErrorCode.NOT_COORDINATOR

    for _ in range(4):
        world.advance(250)
        finish(world)

    later = world.add("a", 1)
    world.turn()

    assert later.response == 1


# -------------------------------------------------------------------------------------------------------------- service


def test_the_service_goes_on_until_nothing_is_left_and_waits_for_more() -> None:
    world = opened(2)
    answers: list[object] = []

    async def main() -> None:
        async with trio.open_nursery() as nursery:
            await nursery.start(world.runtimes.long_operations.run)
            for round_number in (1, 2):
                waiters = [world.submit(Long(), partition) for partition in (0, 1)]
                while world.runtimes.long_operations.is_busy:
                    await trio.lowlevel.checkpoint()
                    world.turn()
                answers.append((round_number, [waiter.response for waiter in waiters]))
            nursery.cancel_scope.cancel()

    trio.run(main)

    assert answers == [(1, ["done"] * 2), (2, ["done"] * 2)]


def test_who_waited_counts_for_more_than_a_step() -> None:
    queue, done = ShardQueue(lambda _: None), []
    queue.begin(iter([None] * STEPS))  # type: ignore[arg-type] # steps of no generator do as well
    for number in range(4):
        queue.put(lambda number=number: done.append(number))  # type: ignore[misc] # bound now
    counts = []
    while queue.go_on():
        counts.append(len(done))

    assert done == [0, 1, 2, 3]
    assert max(after - before for before, after in zip([0, *counts], counts, strict=False)) == 1
