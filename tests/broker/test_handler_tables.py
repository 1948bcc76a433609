"""The tables of the kernel's handlers: whatever an API's handler is given fits it, and it is made when it is asked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from odradek.kernel.contracts.api_handler import ApiHandler, AsyncApiHandler
from odradek.kernel.contracts.signatures import problem_with
from odradek.kernel.dispatch.routes import LaterRoute
from odradek.kernel.dispatch.unkept_groups import RefusedRequests
from odradek.kernel.plugin_system.manager import PluginManager

from .simulated_broker import SimulatedBroker, work_in_world

if TYPE_CHECKING:
    import pytest

SHARE_FETCH: Final = 78
SHARE_ACKNOWLEDGE: Final = 79


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


def test_a_plugin_that_keeps_share_groups_answers_for_them_and_nobody_refuses_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    handler = RefusedRequests(SHARE_FETCH)
    monkeypatch.setattr(PluginManager, "api_handlers", lambda *_: [("shares", handler)])
    found: dict[int, tuple[str, Any]] = {}

    async def work(broker: SimulatedBroker) -> None:
        routes = broker.parts.requests.router.routes
        found.update({key: (routes[key].plugin, routes[key].handler) for key in (SHARE_FETCH, SHARE_ACKNOWLEDGE)})

    work_in_world({}, work)

    assert found[SHARE_FETCH] == ("shares", handler)
    assert found[SHARE_ACKNOWLEDGE][0] == ""
    assert isinstance(found[SHARE_ACKNOWLEDGE][1], RefusedRequests)
