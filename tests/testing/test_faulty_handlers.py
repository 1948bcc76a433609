"""Faults of requests that go to a task: each is met once, and the broker's own handler is back when all is over."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
import trio

from odradek.kernel.contracts.api_handler import AS_TASK, PENDING, Answer
from odradek.kernel.errors import ErrorCode, KafkaError, MalformedRequestError
from odradek.testing.faulty_handlers import FaultyHandlers
from odradek.testing.request_faults import Fault, FaultPlan, Treatment

KEY = 0
LIE = Treatment(error=ErrorCode.REQUEST_TIMED_OUT, is_done_first=True)


class Handler:
    """Gives every request to a task; what it does there is told."""

    def __init__(self) -> None:
        self.done: list[Any] = []

    def handle(self, body: Any, context: Any) -> Answer:
        if isinstance(body, Exception):
            raise body
        return AS_TASK

    async def handle_async(self, body: Any, context: Any) -> Answer:
        self.done.append(body)
        return f"success of {body}"

    def error_response(self, body: Any, context: Any, code: ErrorCode, detail: str) -> Answer:
        return code


class Context:
    """One request of a client."""

    client_id = "client"
    api_version = 9

    def __init__(self) -> None:
        self.connection = SimpleNamespace(is_open=True)
        self.answers: list[Any] = []

    def reply(self, answer: Any) -> None:
        self.answers.append(answer)


class House:
    """One route, its handler, and the faults that were asked for."""

    def __init__(self, *faults: Fault) -> None:
        self.handler = Handler()
        self.route = SimpleNamespace(api_key=KEY, handler=self.handler, repeats=None, is_async=False, errors_count=0)
        self.plan = FaultPlan()
        for fault in faults:
            self.plan.add(fault)
        self.handlers = FaultyHandlers(self.plan)
        routes = {KEY: self.route}
        self.handlers.attach(
            cast("Any", SimpleNamespace(requests=SimpleNamespace(router=SimpleNamespace(routes=routes))))
        )

    @property
    def is_own(self) -> bool:
        return self.route.handler is self.handler

    def begin(self, body: Any, context: Context) -> Answer:
        """Do what the router does at once."""
        return cast("Any", self.route.handler).handle(body, context)

    def end(self, body: Any, context: Context) -> None:
        """Do what the router's task does."""
        answer = trio.run(cast("Any", self.route.handler).handle_async, body, context)
        if answer is not PENDING:
            context.reply(answer)


def once(treatment: Treatment) -> Fault:
    return Fault(frozenset({KEY}), treatment, times=1)


def test_a_request_that_goes_to_a_task_is_carried_out_and_told_otherwise() -> None:
    house = House(once(LIE))
    context = Context()
    assert house.begin("a", context) is AS_TASK
    assert not house.is_own

    house.end("a", context)

    assert (context.answers, house.handler.done) == ([ErrorCode.REQUEST_TIMED_OUT], ["a"])
    assert house.is_own


def test_others_that_come_meanwhile_are_not_met() -> None:
    house = House(once(LIE))
    first, second = Context(), Context()
    assert house.begin("a", first) is AS_TASK
    assert house.begin("b", second) is AS_TASK

    house.end("b", second)
    assert not house.is_own
    house.end("a", first)

    assert (first.answers, second.answers) == ([ErrorCode.REQUEST_TIMED_OUT], ["success of b"])
    assert house.is_own


def test_a_fault_that_is_ended_still_treats_what_it_has_met() -> None:
    fault = Fault(frozenset({KEY}), LIE)
    house = House(fault)
    context = Context()
    assert house.begin("a", context) is AS_TASK
    house.plan.remove(fault)
    house.handlers.exchange()

    house.end("a", context)

    assert context.answers == [ErrorCode.REQUEST_TIMED_OUT]
    assert house.is_own


def test_a_request_whose_client_has_left_is_not_waited_for() -> None:
    """The router never asks about it again."""
    house = House(once(LIE))
    left, context = Context(), Context()
    assert house.begin("a", left) is AS_TASK
    left.connection.is_open = False
    assert house.begin("b", context) is AS_TASK

    assert house.is_own
    house.end("b", context)
    assert context.answers == ["success of b"]


def test_a_request_that_is_not_carried_out_goes_to_no_task() -> None:
    house = House(once(Treatment(error=ErrorCode.REQUEST_TIMED_OUT)))
    context = Context()

    assert house.begin("a", context) is PENDING
    assert (context.answers, house.handler.done) == ([ErrorCode.REQUEST_TIMED_OUT], [])
    assert house.is_own


@pytest.mark.parametrize("error", [MalformedRequestError("bytes"), RuntimeError("a bug")])
def test_a_handler_that_raises_gets_its_route_back(error: Exception) -> None:
    house = House(once(LIE))

    with pytest.raises(type(error)):
        house.begin(error, Context())
    assert house.is_own


def test_a_refusal_of_the_handler_is_treated_too() -> None:
    house = House(once(LIE))
    context = Context()

    assert house.begin(KafkaError(ErrorCode.INVALID_REQUEST), context) is PENDING
    assert context.answers == [ErrorCode.REQUEST_TIMED_OUT]
    assert house.is_own
