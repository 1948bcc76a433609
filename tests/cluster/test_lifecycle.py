"""The states of a broker's life, as its heartbeats and their answers move it."""

from __future__ import annotations

from uuid import UUID

from odradek.kernel.cluster.lifecycle import SOON_MS, BrokerLifecycle, BrokerState
from odradek.kernel.errors import ErrorCode
from odradek.kernel.wire.messages.api_63_broker_heartbeat import BrokerHeartbeatResponse

FENCED = BrokerHeartbeatResponse(is_fenced=True)
LIVE = BrokerHeartbeatResponse(is_fenced=False)
INTERVAL_MS = 2000
ONE, TWO = UUID(int=1), UUID(int=2)


def begun() -> BrokerLifecycle:
    return BrokerLifecycle(broker_id=2, broker_epoch=7, interval_ms=INTERVAL_MS, failure_timeout_ms=30_000)


def state_of(lifecycle: BrokerLifecycle) -> BrokerState:
    return lifecycle.state


def test_it_wants_to_stay_fenced_until_it_is_ready() -> None:
    lifecycle = begun()
    first = lifecycle.heartbeat(5)
    assert (first.broker_id, first.broker_epoch, first.current_metadata_offset, first.want_fence) == (2, 7, 5, True)

    assert lifecycle.answered(FENCED) == INTERVAL_MS
    lifecycle.ready()
    assert not lifecycle.heartbeat(5).want_fence
    assert lifecycle.answered(FENCED) == SOON_MS
    assert lifecycle.answered(LIVE) == INTERVAL_MS
    assert lifecycle.state is BrokerState.LIVE


def test_who_was_fenced_for_its_silence_asks_to_be_let_in_again() -> None:
    lifecycle = begun()
    lifecycle.ready()
    lifecycle.answered(LIVE)

    assert lifecycle.answered(FENCED) == SOON_MS
    assert (lifecycle.state, lifecycle.is_fenced) == (BrokerState.READY, True)


def test_it_ends_when_the_controller_lets_it() -> None:
    lifecycle = begun()
    lifecycle.ready()
    lifecycle.answered(LIVE)
    lifecycle.stop()
    assert lifecycle.heartbeat(5).want_shut_down

    assert lifecycle.answered(LIVE) == SOON_MS
    assert state_of(lifecycle) is BrokerState.STOPPING
    lifecycle.answered(BrokerHeartbeatResponse(is_fenced=True, should_shut_down=True))
    assert state_of(lifecycle) is BrokerState.STOPPED
    lifecycle.stop()
    assert state_of(lifecycle) is BrokerState.STOPPED


def test_a_refusal_changes_nothing() -> None:
    lifecycle = begun()
    refused = BrokerHeartbeatResponse(error_code=ErrorCode.NOT_CONTROLLER, is_fenced=False, should_shut_down=True)

    assert lifecycle.answered(refused) == INTERVAL_MS
    assert lifecycle.is_fenced
    lifecycle.stop()
    assert lifecycle.answered(refused) == SOON_MS


def test_a_directory_that_failed_is_told_by_every_heartbeat_and_is_told_once_one_was_answered() -> None:
    lifecycle = begun()
    lifecycle.note_failures([ONE], 1_000)
    assert lifecycle.heartbeat(5).offline_log_dirs == [ONE]
    lifecycle.answered(LIVE)
    lifecycle.note_failures([ONE], 90_000)
    assert lifecycle.heartbeat(5).offline_log_dirs == [ONE]

    assert lifecycle.untold_failure(90_000) is None


def test_a_directory_that_the_controller_is_not_told_of_in_time_is_too_much() -> None:
    lifecycle = begun()
    lifecycle.note_failures([ONE], 1_000)
    lifecycle.heartbeat(5)
    lifecycle.answered(BrokerHeartbeatResponse(error_code=ErrorCode.NOT_CONTROLLER))
    assert lifecycle.untold_failure(30_999) is None
    lifecycle.note_failures([ONE, TWO], 30_999)

    assert lifecycle.untold_failure(31_000) == ONE
    lifecycle.heartbeat(5)
    lifecycle.answered(LIVE)
    assert lifecycle.untold_failure(90_000) is None


def test_what_failed_after_a_heartbeat_left_is_not_told_by_its_answer() -> None:
    lifecycle = begun()
    lifecycle.heartbeat(5)
    lifecycle.note_failures([ONE], 1_000)
    lifecycle.answered(LIVE)

    assert lifecycle.untold_failure(31_000) == ONE


def test_a_directory_that_works_again_need_not_be_told() -> None:
    lifecycle = begun()
    lifecycle.note_failures([ONE], 1_000)
    lifecycle.note_failures([], 2_000)

    assert lifecycle.untold_failure(90_000) is None


def test_what_is_cordoned_is_told_once_it_is_ready() -> None:
    lifecycle = begun()
    lifecycle.cordoned = (ONE,)
    assert lifecycle.heartbeat(5).cordoned_log_dirs is None
    lifecycle.ready()
    assert lifecycle.heartbeat(5).cordoned_log_dirs == [ONE]
    lifecycle.cordoned = ()
    assert lifecycle.heartbeat(5).cordoned_log_dirs == []
    lifecycle.cordoned = None  # as long as the metadata has no place for it

    assert lifecycle.heartbeat(5).cordoned_log_dirs is None
