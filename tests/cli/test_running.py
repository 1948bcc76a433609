"""How a command's trio part is run and interrupted."""

import os
import signal
import threading
from collections.abc import Iterator
from typing import Any

import pytest
import trio

from odradek.cli.running import run_interruptible


async def add(first: int, second: int) -> int:
    await trio.lowlevel.checkpoint()
    return first + second


def test_the_result_comes_back() -> None:
    assert run_interruptible(add, 1, 2) == 3


def test_an_error_comes_as_itself() -> None:
    async def fail() -> None:
        raise KeyError("x")

    with pytest.raises(KeyError):
        run_interruptible(fail)


@pytest.fixture(params=[signal.default_int_handler, signal.SIG_IGN], ids=["default", "ignored, as in a background job"])
def handler(request: pytest.FixtureRequest) -> Iterator[Any]:
    """What SIGINT does around the run."""
    before = signal.signal(signal.SIGINT, request.param)
    yield request.param
    signal.signal(signal.SIGINT, before)


def test_an_interruption_cancels_the_work_and_is_raised_afterwards(handler: Any) -> None:
    seen: list[str] = []

    async def wait() -> None:
        try:
            os.kill(os.getpid(), signal.SIGINT)
            await trio.sleep_forever()
        except trio.Cancelled:
            seen.append("cancelled")
            raise

    with pytest.raises(KeyboardInterrupt):
        run_interruptible(wait)

    assert seen == ["cancelled"]
    assert signal.getsignal(signal.SIGINT) is handler


def test_other_threads_may_run_commands_too() -> None:
    results: list[int] = []
    thread = threading.Thread(target=lambda: results.append(run_interruptible(add, 1, 2)))
    thread.start()
    thread.join()

    assert results == [3]
