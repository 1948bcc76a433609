"""Which requests the faults of a test meet, what they do to them, and what is said of a name that Kafka has not."""

from __future__ import annotations

import pytest

from odradek.kernel.errors import ErrorCode
from odradek.testing.request_faults import HELPERS_CLIENT_ID, Fault, FaultPlan, Treatment, apis_named, error_named

PRODUCE, FETCH = 0, 1
NOT_LEADER = Treatment(error=ErrorCode.NOT_LEADER_OR_FOLLOWER)
DROPPED = Treatment(is_dropped=True)


def plan_of(*faults: Fault) -> FaultPlan:
    plan = FaultPlan()
    for fault in faults:
        plan.add(fault)
    return plan


def fault(treatment: Treatment, times: int | None = None, client_id: str | None = None, api: int = PRODUCE) -> Fault:
    return Fault(frozenset({api}), treatment, times, client_id)


def test_a_fault_meets_as_many_requests_as_it_should_and_no_other_api() -> None:
    wanted = fault(NOT_LEADER, times=2)
    plan = plan_of(wanted)

    met = [plan.meet(api, "client", None) for api in (FETCH, PRODUCE, PRODUCE, PRODUCE)]

    assert met == [None, NOT_LEADER, NOT_LEADER, None]
    assert wanted.met_count == 2
    assert plan.faulty_apis() == set()


def test_delays_add_up_and_the_longest_throttle_counts() -> None:
    plan = plan_of(*(fault(Treatment(delay_ms=delay, throttle_ms=throttle)) for delay, throttle in ((10, 7), (20, 5))))

    assert plan.meet(PRODUCE, None, None) == Treatment(delay_ms=30, throttle_ms=7)


def test_of_those_that_take_the_answer_one_meets_a_request_and_the_others_wait_for_the_next() -> None:
    plan = plan_of(fault(NOT_LEADER, times=1), fault(DROPPED, times=1), fault(Treatment(delay_ms=5)))

    met = [plan.meet(PRODUCE, None, None) for _ in range(3)]

    assert met == [
        Treatment(error=ErrorCode.NOT_LEADER_OR_FOLLOWER, delay_ms=5),
        Treatment(is_dropped=True, delay_ms=5),
        Treatment(delay_ms=5),
    ]


def test_a_fault_may_be_meant_for_one_client_and_never_meets_the_helpers() -> None:
    plan = plan_of(fault(NOT_LEADER, client_id="the one"), fault(DROPPED, api=FETCH))

    assert plan.meet(PRODUCE, "another", None) is None
    assert plan.meet(PRODUCE, None, None) is None
    assert plan.meet(PRODUCE, "the one", None) == NOT_LEADER
    assert plan.meet(FETCH, HELPERS_CLIENT_ID, None) is None


def test_a_fault_that_is_removed_meets_nothing_and_so_do_all_when_they_are_cleared() -> None:
    one, other = fault(NOT_LEADER), fault(DROPPED, api=FETCH)
    plan = plan_of(one, other)

    plan.remove(one)
    plan.remove(one)
    assert plan.faulty_apis() == {FETCH}

    plan.clear()
    assert plan.faulty_apis() == set()


def test_names_are_kafkas_and_the_nearest_is_told() -> None:
    assert apis_named("OffsetCommit") == {8}
    assert {PRODUCE, FETCH, 8} < apis_named("*")
    assert error_named("THROTTLING_QUOTA_EXCEEDED") is ErrorCode.THROTTLING_QUOTA_EXCEEDED
    assert error_named(ErrorCode.NOT_CONTROLLER) is ErrorCode.NOT_CONTROLLER

    with pytest.raises(ValueError, match="Kafka has no API 'Prduce': did you mean 'Produce'"):
        apis_named("Prduce")
    with pytest.raises(ValueError, match="Kafka has no API 'fetch': did you mean 'Fetch'"):
        apis_named("fetch")
    with pytest.raises(ValueError, match="no error 'NOT_LEADER': did you mean 'NOT_LEADER_OR_FOLLOWER'"):
        error_named("NOT_LEADER")
    with pytest.raises(ValueError, match=r"no error 'xyzzy'$"):
        error_named("xyzzy")
    with pytest.raises(ValueError, match="NONE is no error"):
        error_named("NONE")
