"""The tables of the kernel's handlers: whatever an API's handler is given fits it, and it is made when it is asked."""

from __future__ import annotations

from typing import Any

from odradek.kernel.contracts.api_handler import ApiHandler, AsyncApiHandler
from odradek.kernel.contracts.signatures import problem_with
from odradek.kernel.dispatch.routes import LaterRoute

from .simulated_broker import SimulatedBroker, work_in_world


def problem_of(handler: Any) -> str:
    return problem_with(handler, ApiHandler if hasattr(handler, "handle") else AsyncApiHandler)


def test_every_handler_of_the_kernel_can_be_made_of_what_the_tables_give_it() -> None:
    problems: dict[str, str] = {}
    later: list[int] = []

    async def work(broker: SimulatedBroker) -> None:
        routes = broker.parts.requests.router.routes
        later.extend(key for key, route in routes.items() if type(route) is LaterRoute)
        for key, route in routes.items():
            problems[route.name] = problem_of(route.handler) or ("" if route.handler.api_key == key else "another API")

    work_in_world({}, work)

    assert {name: told for name, told in problems.items() if told} == {}
    assert len(later) > 30
    assert len(problems) > len(later)
