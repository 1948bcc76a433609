"""A handler that is made when its API is asked for the first time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import pytest
import trio

from odradek.kernel.contracts.api_handler import AS_TASK, LazyHandler
from odradek.kernel.errors import ErrorCode, PluginError

if TYPE_CHECKING:
    from odradek.kernel.contracts.api_handler import Answer, RequestContext

CONTEXT = cast("RequestContext", object())


class Echo:
    """Answers what it is asked, or the error."""

    api_key = 12

    def handle(self, request: Any, context: RequestContext) -> Answer:
        """Return the request."""
        return request

    def error_response(self, request: Any, context: RequestContext, code: ErrorCode, detail: str) -> Answer:
        """Return the error."""
        return code, detail


def test_a_lazy_handler_is_made_at_the_first_request_and_once() -> None:
    made: list[Echo] = []

    def make() -> Echo:
        made.append(Echo())
        return made[-1]

    lazy = LazyHandler(12, make)

    assert made == []
    assert lazy.handle("one", CONTEXT) == "one"
    assert lazy.handle("two", CONTEXT) == "two"
    assert lazy.error_response("three", CONTEXT, ErrorCode.NOT_COORDINATOR, "") == (ErrorCode.NOT_COORDINATOR, "")
    assert len(made) == 1


class Later(Echo):
    """Answers as a task."""

    def handle(self, request: Any, context: RequestContext) -> Answer:
        """Ask for a task."""
        return AS_TASK

    async def handle_async(self, request: Any, context: RequestContext) -> Answer:
        """Return the request."""
        await trio.lowlevel.checkpoint()
        return request


def test_a_lazy_handler_passes_on_what_is_answered_as_a_task() -> None:
    lazy = LazyHandler(12, Later)

    assert lazy.handle("one", CONTEXT) is AS_TASK
    assert trio.run(lazy.handle_async, "one", CONTEXT) == "one"


def test_a_lazy_handler_can_refuse_before_it_was_asked() -> None:
    lazy = LazyHandler(12, Echo)

    assert lazy.error_response("one", CONTEXT, ErrorCode.NOT_COORDINATOR, "x") == (ErrorCode.NOT_COORDINATOR, "x")


def test_a_lazy_handler_that_could_not_be_made_is_tried_again() -> None:
    attempts = iter((ImportError("half written"), None))

    def make() -> Echo:
        error = next(attempts)
        if error is not None:
            raise error
        return Echo()

    lazy = LazyHandler(12, make)

    with pytest.raises(ImportError, match="half written"):
        lazy.handle("one", CONTEXT)
    assert lazy.handle("two", CONTEXT) == "two"


def test_a_lazy_handler_of_another_api_is_found_out() -> None:
    with pytest.raises(PluginError, match="not the handler of API 13"):
        LazyHandler(13, Echo).handle("one", CONTEXT)


def test_a_lazy_handler_that_cannot_answer_is_told_with_its_place() -> None:
    class Half(Echo):
        def handle(self, request: Any) -> Answer:  # type: ignore[override]
            return request

    told = r"`Half\.handle\(request\)` at .*\.py:\d+ is called with \(request, context\)"
    with pytest.raises(PluginError, match=told):
        LazyHandler(12, cast("Any", Half)).handle("one", CONTEXT)
