"""Shell: what is common to things that live inside an `async with`.

.. versionadded:: 0.1
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import trio

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable


@asynccontextmanager
async def single_error() -> AsyncIterator[None]:
    """Let an exception leave a nursery as itself where it is the only one: callers catch what they raised.

    That a client has tasks of its own is none of their business. Cancellations pass unchanged.
    """
    try:
        yield
    except BaseExceptionGroup as group:
        error: BaseException = group
        while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
            error = error.exceptions[0]
        if error is group:
            raise
        raise error from error.__cause__


class Crew:
    """The tasks of a client. They end with the client's block, however it ends, and not before.

    A cancellation from outside reaches the user's block at once, and the tasks only when the block has been left: what
    the block does at its end, in a shielded scope with a deadline, still has connections to do it with.
    """

    def __init__(self, nursery: trio.Nursery) -> None:
        """Made by `open_crew`."""
        self._nursery = nursery
        self._scopes: set[trio.CancelScope] = set()
        self._is_over = False

    def start_soon(self, function: Callable[..., Awaitable[Any]], *arguments: Any) -> None:
        """Have a task do something, until it is done or the block is left."""
        self._nursery.start_soon(self._run, function, arguments)

    async def _run(self, function: Callable[..., Awaitable[Any]], arguments: tuple[Any, ...]) -> None:
        with trio.CancelScope(shield=True) as scope:
            if self._is_over:
                scope.cancel()
            self._scopes.add(scope)
            try:
                await function(*arguments)
            finally:
                self._scopes.discard(scope)

    def dismiss(self) -> None:
        """Cancel all tasks, also those that are started from now on."""
        self._is_over = True
        for scope in self._scopes:
            scope.cancel()


@asynccontextmanager
async def open_crew() -> AsyncIterator[Crew]:
    """Have tasks for the time of an `async with`; all have ended when it is left. A task that fails ends the block."""
    async with single_error(), trio.open_nursery() as nursery:
        crew = Crew(nursery)
        try:
            yield crew
        finally:
            crew.dismiss()
