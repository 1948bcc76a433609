"""Moves between log directories: answered at once, done one after another, changed and given up."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Awaitable, Callable
from typing import cast

import pytest
import trio

from odradek.kernel.errors import ErrorCode, KafkaError
from odradek.kernel.machine.system.threads import SystemThreads
from odradek.kernel.machine.throttle import Throttle
from odradek.kernel.machine.turnstile import run_at_once
from odradek.kernel.partitions.log_moves import LogMoves
from odradek.kernel.partitions.replica import Replica
from odradek.kernel.partitions.voting import Voting
from tests.waiting import until_async

from .hosted import Hosted


def elsewhere(hosted: Hosted, replica: Replica) -> str:
    (other,) = [path for path in hosted.dirs if path != replica.log.log_dir]
    return other


def throttle_of(bytes_per_second: Callable[[], float]) -> Throttle:
    return Throttle(bytes_per_second, time.perf_counter, SystemThreads().new_event())


def serve(moves: LogMoves, scenario: Callable[[], Awaitable[None]]) -> None:
    """Run a scenario beside the service."""

    async def main() -> None:
        async with trio.open_nursery() as nursery:
            await nursery.start(moves.run)
            await scenario()
            nursery.cancel_scope.cancel()

    trio.run(main)


async def until_at_rest(*replicas: Replica) -> None:
    await until_async(lambda: all(replica.future is None for replica in replicas))


def test_several_moves_are_begun_at_once_and_done_one_after_another(hosted: Hosted) -> None:
    for topic in "abc":
        hosted.open(topic)
    replicas = [hosted.produce(topic, 0, 3) for topic in "abc"]
    targets = [elsewhere(hosted, replica) for replica in replicas]
    told: list[int] = []
    moves = hosted.moves(lambda: told.append(len(told)))

    async def scenario() -> None:
        for replica, target in zip(replicas, targets, strict=True):
            moves.ask(replica, target)
        assert [replica.future.log_dir for replica in replicas if replica.future is not None] == targets
        await until_at_rest(*replicas)

    serve(moves, scenario)

    assert [replica.log.log_dir for replica in replicas] == targets
    assert [replica.log.log_end_offset for replica in replicas] == [3, 3, 3]
    assert told == [0, 1, 2]


def test_a_replica_that_votes_does_not_move(hosted: Hosted) -> None:
    hosted.open("a")
    replica = hosted.produce("a", 0, 3)
    replica.voting = cast("Voting", object())

    with pytest.raises(KafkaError, match="stays in its log directory"):
        hosted.moves(lambda: None).ask(replica, elsewhere(hosted, replica))
    assert replica.future is None


def test_a_move_that_is_asked_for_again_is_one_move(hosted: Hosted) -> None:
    hosted.open("t")
    replica = hosted.produce("t", 0)
    target = elsewhere(hosted, replica)
    told: list[str] = []
    moves = hosted.moves(lambda: told.append("moved"))

    async def scenario() -> None:
        moves.ask(replica, target)
        moves.ask(replica, target)
        await until_at_rest(replica)
        moves.ask(replica, target)

    serve(moves, scenario)

    assert (replica.log.log_dir, replica.future, told) == (target, None, ["moved"])


def test_asking_for_where_it_is_ends_a_move_that_waits(hosted: Hosted) -> None:
    hosted.open("t")
    replica = hosted.produce("t", 0)
    here = replica.log.log_dir
    moves = hosted.moves(lambda: pytest.fail("nothing moves"))
    moves.ask(replica, elsewhere(hosted, replica))
    moves.ask(replica, here)

    assert replica.future is None

    async def scenario() -> None:
        await trio.testing.wait_all_tasks_blocked()

    serve(moves, scenario)

    assert (replica.log.log_dir, replica.offline_reason) == (here, None)


def test_a_move_under_way_can_be_called_back_and_asked_for_anew(hosted: Hosted) -> None:
    hosted.open("t")
    replica = hosted.produce("t", 0, 5)
    here, there = replica.log.log_dir, elsewhere(hosted, replica)
    moves = hosted.moves()

    async def scenario() -> None:
        moves.ask(replica, there)
        await trio.lowlevel.checkpoint()
        moves.ask(replica, here)
        moves.ask(replica, there)
        await until_at_rest(replica)
        await until_async(lambda: replica.log.log_dir != here)
        await until_at_rest(replica)

    serve(moves, scenario)

    assert (replica.log.log_dir, replica.log.log_end_offset) == (there, 5)


def test_a_move_that_is_called_back_is_no_error(hosted: Hosted, caplog: pytest.LogCaptureFixture) -> None:
    hosted.open("t")
    replica = hosted.produce("t", 0, 5)
    here, there = replica.log.log_dir, elsewhere(hosted, replica)
    is_asked = threading.Event()

    def bytes_per_second() -> float:
        is_asked.set()
        return 1e-6

    moves = hosted.moves(new_throttle=lambda: throttle_of(bytes_per_second))

    async def scenario() -> None:
        moves.ask(replica, there)
        await until_async(is_asked.is_set)
        moves.ask(replica, here)
        await until_at_rest(replica)

    with caplog.at_level(logging.INFO):
        serve(moves, scenario)

    told = [record.levelname for record in caplog.records if "stays where it is" in record.getMessage()]
    assert told == ["INFO"]


def test_a_topic_that_is_deleted_while_its_move_waits_is_gone(hosted: Hosted) -> None:
    hosted.open("t")
    replica = hosted.produce("t", 0)
    moves = hosted.moves(lambda: pytest.fail("nothing moves"))
    moves.ask(replica, elsewhere(hosted, replica))
    run_at_once(hosted.lifecycle.delete_topic_in_steps("t", 1))

    async def scenario() -> None:
        await until_at_rest(replica)

    serve(moves, scenario)

    hosted.open("t")
    assert hosted.produce("t", 0).log.log_end_offset == 1


@pytest.mark.parametrize("turns", [0, 1, 5])
def test_what_is_not_done_when_the_broker_ends_is_done_after_the_next_start(hosted: Hosted, turns: int) -> None:
    for topic in "abc":
        hosted.open(topic)
    replicas = [hosted.produce(topic, 0, 3) for topic in "abc"]
    targets = [elsewhere(hosted, replica) for replica in replicas]
    moves = hosted.moves()
    for replica, target in zip(replicas, targets, strict=True):
        moves.ask(replica, target)
    moves.ask(replicas[1], replicas[1].log.log_dir)  # called back

    async def end_soon() -> None:
        for _ in range(turns):
            await trio.lowlevel.checkpoint()

    serve(moves, end_soon)

    assert [replica.future for replica in replicas] == [None] * 3
    assert all(replica.offline_reason is None for replica in replicas)
    where_b_is = replicas[1].log.log_dir
    hosted.restart()
    for topic in "abc":
        hosted.open(topic)
    moves = hosted.moves()
    moves.go_on()
    begun = [hosted.replicas.get(topic, 0) for topic in "abc"]

    async def until_all_rest() -> None:
        await until_at_rest(*begun)

    serve(moves, until_all_rest)

    assert [replica.log.log_dir for replica in begun] == [targets[0], where_b_is, targets[2]]
    assert [replica.log.log_end_offset for replica in begun] == [3, 3, 3]


def test_a_move_whose_topic_is_gone_at_the_next_start_is_forgotten(hosted: Hosted) -> None:
    hosted.open("t")
    replica = hosted.produce("t", 0)
    hosted.moves().ask(replica, elsewhere(hosted, replica))
    hosted.restart()
    assert len(hosted.lifecycle.unfinished_moves) == 1
    hosted.lifecycle.set_strays_aside(lambda partition: False)
    hosted.moves(lambda: pytest.fail("nothing moves")).go_on()

    assert hosted.lifecycle.unfinished_moves == {}
    hosted.restart()
    assert hosted.lifecycle.unfinished_moves == {}


def test_a_replica_that_is_offline_does_not_move(hosted: Hosted) -> None:
    hosted.open("t")
    replica = hosted.produce("t", 0)
    target = elsewhere(hosted, replica)
    replica.go_offline("its disk failed")

    with pytest.raises(KafkaError) as caught:
        hosted.moves().ask(replica, target)
    assert caught.value.code == ErrorCode.KAFKA_STORAGE_ERROR


def test_a_copy_waits_for_its_rate_goes_on_when_that_grows_and_can_be_called_back_meanwhile(hosted: Hosted) -> None:
    for topic in "ab":
        hosted.open(topic)
    first, second = (hosted.produce(topic, 0, 5) for topic in "ab")
    here, there = first.log.log_dir, elsewhere(hosted, first)
    rate = [1e-6]
    is_asked = threading.Event()

    def bytes_per_second() -> float:
        is_asked.set()
        return rate[0]

    async def until_it_waits() -> None:
        is_asked.clear()
        await until_async(is_asked.is_set)

    moves = hosted.moves(new_throttle=lambda: throttle_of(bytes_per_second))

    async def scenario() -> None:
        moves.ask(first, there)
        await until_it_waits()
        assert first.future is not None, "a byte takes days"
        moves.ask(first, here)
        await until_at_rest(first)
        assert first.log.log_dir == here

        target = elsewhere(hosted, second)
        moves.ask(second, target)
        await until_it_waits()
        assert second.future is not None
        rate[0] = 1e300
        await until_at_rest(second)
        assert second.log.log_dir == target

        rate[0] = 1e-6
        moves.ask(first, there)
        await until_it_waits()

    serve(moves, scenario)  # its end does not wait for days
    assert first.log.log_dir == here


def test_records_that_are_deleted_while_a_log_moves_stay_deleted_where_it_goes(hosted: Hosted) -> None:
    """A copy begins where the log does: who deletes records need not wait for it, as in Kafka for a future replica."""
    hosted.open("t")
    replica = hosted.produce("t", 0, 5)
    moves = hosted.moves()
    moves.ask(replica, elsewhere(hosted, replica))

    async def delete_meanwhile() -> None:
        assert replica.future is not None
        replica.log.advance_log_start(3)
        assert replica.low_watermark == 3
        await until_at_rest(replica)

    serve(moves, delete_meanwhile)

    assert (replica.log.log_start_offset, replica.low_watermark) == (3, 3)
    hosted.restart()
    hosted.open("t")
    assert hosted.replicas.get("t", 0).log.log_start_offset == 3


def test_records_that_are_deleted_while_a_log_moves_stay_deleted_where_the_move_was_cut_off(hosted: Hosted) -> None:
    hosted.open("t")
    replica = hosted.produce("t", 0, 5)
    moves = hosted.moves()
    moves.ask(replica, elsewhere(hosted, replica))
    replica.log.advance_log_start(3)
    hosted.restart()
    hosted.open("t")
    moved = hosted.replicas.get("t", 0)
    moves = hosted.moves()
    moves.go_on()

    async def until_there() -> None:
        await until_at_rest(moved)

    serve(moves, until_there)

    assert moved.log.log_start_offset == 3
