"""Supervised services: started, restarted, and never half alive."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest
import trio
import trio.testing

from odradek.kernel.broker.plugin_services import PluginServices
from odradek.kernel.broker.supervision import FAILURES_MAX, ServiceFailedError, supervise
from odradek.kernel.contracts.services import Service
from odradek.kernel.errors import ConfigError, PluginError
from odradek.kernel.machine.clock import ManualClock


def crashing(times: int, starts: list[int]) -> Callable[..., Awaitable[None]]:
    """Return a service that crashes after its start so many times, and then returns."""

    async def run(*, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        starts.append(len(starts))
        task_status.started()
        await trio.lowlevel.checkpoint()
        if len(starts) <= times:
            raise RuntimeError("crash")

    return run


def innermost(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        (error,) = error.exceptions
    return error


def run_supervised(run: Callable[..., Awaitable[None]]) -> None:
    async def scenario() -> None:
        async with trio.open_nursery() as nursery:
            await nursery.start(supervise, "mine", run, ManualClock())

    trio.run(scenario, clock=trio.testing.MockClock(autojump_threshold=0))


def test_a_service_that_crashes_is_started_again() -> None:
    starts: list[int] = []

    run_supervised(crashing(3, starts))

    assert len(starts) == 4


def test_a_service_that_crashes_again_and_again_stops_the_broker() -> None:
    starts: list[int] = []

    with pytest.raises(BaseExceptionGroup) as caught:
        run_supervised(crashing(100, starts))

    assert isinstance(innermost(caught.value), ServiceFailedError)
    assert len(starts) == FAILURES_MAX


def test_a_service_that_cannot_start_stops_the_broker_at_once() -> None:
    async def run(*, task_status: trio.TaskStatus[None]) -> None:
        raise RuntimeError("no")

    with pytest.raises(BaseException) as caught:  # noqa: PT011 - trio decides how deep the group is
        run_supervised(run)

    assert isinstance(innermost(caught.value), ServiceFailedError)


# Services of plugins: before they run, and after.


async def rest(*, task_status: trio.TaskStatus[None]) -> None:
    task_status.started()
    await trio.sleep_forever()


def test_services_are_prepared_in_their_order_told_of_and_closed() -> None:
    done: list[str] = []

    def service(name: str, address: str = "") -> Service:
        async def prepare() -> None:
            await trio.lowlevel.checkpoint()
            done.append(f"prepare {name}")

        return Service(name, rest, prepare, lambda: done.append(f"close {name}"), lambda: address)

    services = PluginServices([("one", service("a")), ("two", service("http", "127.0.0.1:80"))])
    trio.run(services.prepare)
    names = [name for name, _ in services.runs()]
    services.close()

    assert names == ["one: a", "two: http"]
    assert services.addresses() == {"http": "127.0.0.1:80"}
    assert done == ["prepare a", "prepare http", "close a", "close http"]


@pytest.mark.parametrize(
    ("raised", "kind", "told"),
    [
        (ConfigError("port 80 is taken"), ConfigError, "port 80 is taken"),
        (ValueError("a bug"), PluginError, "'mine'.*service 'http' cannot be prepared.*a bug"),
    ],
)
def test_a_service_that_cannot_be_prepared_ends_the_start(raised: Exception, kind: type[Exception], told: str) -> None:
    async def prepare() -> None:
        await trio.lowlevel.checkpoint()
        raise raised

    with pytest.raises(kind, match=told):
        trio.run(PluginServices([("mine", Service("http", rest, prepare))]).prepare)
