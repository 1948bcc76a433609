"""Supervised services: started, restarted, and never half alive."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest
import trio
import trio.testing

from odradek.kernel.broker.supervision import FAILURES_MAX, ServiceFailedError, supervise
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
