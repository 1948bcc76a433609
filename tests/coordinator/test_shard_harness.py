"""The harness drives a toy shard as the runtime would, and notices what a shard does wrong."""

from __future__ import annotations

from typing import Any

import pytest

from odradek.kernel.contracts.coordinator import PARKED, CoordinatorResult, ProducerIdentity
from odradek.kernel.errors import ErrorCode, KafkaError
from odradek.testing.shard_harness import RETRY_PAUSE_MS, LoggedMarker, LoggedRecord, RecordingWaiter, ShardHarness

from .toy import Added, CounterCoordinator, CounterShard, Result

ONE = ProducerIdentity(7, 0)


def harness() -> ShardHarness[CounterShard, Added]:
    return ShardHarness.of(CounterCoordinator(), snapshot=CounterShard.snapshot)


def test_an_operation_is_logged_replayed_and_answered() -> None:
    driven = harness()

    waiter = driven.run(lambda shard, _now_ms: shard.add("a", 5))

    assert waiter.response == 5
    assert driven.shard.counters == {"a": 5}
    assert driven.records == [Added("a", 5)]


def test_an_error_of_the_operation_fails_its_waiter() -> None:
    waiter = harness().run(lambda shard, _now_ms: shard.add("a", -1))

    assert waiter.error_code == ErrorCode.INVALID_REQUEST
    with pytest.raises(KafkaError):
        _ = waiter.response


def test_a_bug_reaches_the_test() -> None:
    with pytest.raises(ZeroDivisionError):
        harness().run(lambda shard, _now_ms: shard.fail())


def test_a_parked_waiter_is_answered_by_a_later_result() -> None:
    driven, parked = harness(), RecordingWaiter()
    driven.submit(lambda shard, _now_ms: shard.wait("a", 3, parked), parked)
    assert not parked.is_done
    driven.run(lambda shard, _now_ms: shard.add("a", 4))

    assert parked.response == 4


def test_time_fires_timers_in_order_with_what_they_arm() -> None:
    driven = harness()
    started_ms = driven.now_ms
    fired: list[tuple[str, int]] = []

    def fire(name: str, again_ms: int = 0) -> Any:
        def operation(now_ms: int) -> Result:
            fired.append((name, now_ms - started_ms))
            if again_ms:
                driven.schedule((name,), again_ms, fire(name))
            return CoordinatorResult([Added(name, 1)], PARKED)

        return operation

    driven.schedule(("late",), 50, fire("late"))
    driven.schedule(("early",), 10, fire("early", again_ms=20))
    driven.schedule(("dropped",), 20, fire("dropped"))
    driven.cancel(("dropped",))
    assert driven.armed == {("late",): 50, ("early",): 10}
    driven.advance(100)

    assert fired == [("early", 10), ("early", 30), ("late", 50)]
    assert driven.shard.counters == {"early": 2, "late": 1}
    assert driven.now_ms == started_ms + 100


def test_a_transaction_counts_when_its_marker_says_so() -> None:
    driven = harness()
    driven.run(lambda shard, _now_ms: shard.add("a", 1), ONE)
    assert driven.shard.counters == {}
    driven.end_transaction(ONE, is_commit=True)
    driven.run(lambda shard, _now_ms: shard.add("a", 2), ONE)
    driven.end_transaction(ONE, is_commit=False)

    assert driven.shard.counters == {"a": 1}
    assert [type(entry) for entry in driven.log] == [LoggedRecord, LoggedMarker, LoggedRecord, LoggedMarker]


def test_a_reload_keeps_the_log_and_nothing_else() -> None:
    driven, parked = harness(), RecordingWaiter()
    driven.run(lambda shard, _now_ms: shard.add("a", 1))
    driven.run(lambda shard, _now_ms: shard.add("b", 2), ONE)
    driven.run(lambda shard, _now_ms: shard.add_later("c", 1, 10))
    driven.submit(lambda shard, _now_ms: shard.wait("a", 3, parked), parked)
    old = driven.shard

    assert driven.reload() == [parked]
    assert parked.error_code == ErrorCode.NOT_COORDINATOR
    assert driven.shard is not old
    assert driven.shard.counters == {"a": 1}
    assert not driven.armed
    driven.end_transaction(ONE, is_commit=True)
    assert driven.shard.counters == {"a": 1, "b": 2}


def test_hard_state_outside_replay_is_found_by_a_reload() -> None:
    driven = harness()
    driven.shard.counters["smuggled"] = 1

    with pytest.raises(AssertionError, match="is the one that wrote it"):
        driven.reload()


def test_a_second_answer_fails_the_test() -> None:
    waiter = RecordingWaiter()
    waiter.answer(1)

    with pytest.raises(AssertionError, match="answered twice"):
        waiter.answer(2)


def test_records_that_are_refused_leave_no_trace_and_everybody_in_the_result_is_told() -> None:
    driven, parked, later = harness(), RecordingWaiter(), RecordingWaiter()
    driven.submit(lambda shard, _now_ms: shard.wait("a", 3, parked), parked)
    driven.refusal = KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    refused = driven.run(lambda shard, _now_ms: shard.add("a", 4))

    assert [refused.error_code, parked.error_code] == [ErrorCode.COORDINATOR_NOT_AVAILABLE] * 2
    assert (driven.log, driven.shard.counters) == ([], {})
    assert driven.run(lambda shard, _now_ms: shard.read("a")).response == 0

    def add_and_wait(shard: CounterShard, _now_ms: int) -> Result:
        shard.wait("b", 2, later)
        return CoordinatorResult(shard.add("b", 1).records, PARKED)

    driven.submit(add_and_wait, later)
    driven.refusal = None
    driven.run(lambda shard, _now_ms: shard.add("b", 5))

    assert later.error_code is ErrorCode.COORDINATOR_NOT_AVAILABLE  # and what the shard answers it later is dropped


def test_a_timer_whose_records_are_refused_runs_again() -> None:
    driven = harness()
    driven.run(lambda shard, _now_ms: shard.add_later("a", 1, 100))
    driven.refusal = KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    driven.advance(1_000)
    assert driven.shard.counters == {}
    driven.refusal = None
    driven.advance(RETRY_PAUSE_MS)

    assert driven.shard.counters == {"a": 1}
