"""Shell: runs a command's trio part, so that Ctrl-C cancels it in good order.

A KeyboardInterrupt that Python raises wherever it happens to be may tear a client between two steps. Here SIGINT
becomes a cancellation, which everything below knows how to meet, and KeyboardInterrupt is raised when that is done.
"""

from __future__ import annotations

import signal
import threading
from typing import TYPE_CHECKING, Generic, TypeVar

import attrs
import trio

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

T = TypeVar("T")


def run_interruptible(work: Callable[..., Awaitable[T]], *arguments: object) -> T:
    """Run an async function in trio and return its result; raises what it raises.

    Raises:
        KeyboardInterrupt: SIGINT came, and the work was cancelled.
    """
    if threading.current_thread() is not threading.main_thread():  # signals go to the main thread alone
        return trio.run(work, *arguments)
    run = _Run[T]()
    try:
        trio.run(run.guard, work, arguments)
    except BaseExceptionGroup as group:
        error: BaseException = group
        while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
            error = error.exceptions[0]
        raise error from None
    if run.is_interrupted:
        raise KeyboardInterrupt
    (result,) = run.results
    return result


@attrs.define
class _Run(Generic[T]):
    """One run: its result, unless it was interrupted."""

    results: list[T] = attrs.field(factory=list)
    is_interrupted: bool = False

    async def guard(self, work: Callable[..., Awaitable[T]], arguments: tuple[object, ...]) -> None:
        """Do the work until it is done or a signal comes."""
        with trio.open_signal_receiver(signal.SIGINT) as signals:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._watch, signals, nursery.cancel_scope)
                self.results.append(await work(*arguments))
                nursery.cancel_scope.cancel()

    async def _watch(self, signals: AsyncIterator[int], work_scope: trio.CancelScope) -> None:
        async for _number in signals:
            self.is_interrupted = True
            work_scope.cancel()
            return
