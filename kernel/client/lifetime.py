"""Shell: what is common to things that live inside an `async with`.

.. versionadded:: 0.1
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


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
