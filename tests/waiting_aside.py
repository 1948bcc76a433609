"""How the contexts of tests wait aside: in the task itself, as nobody wants its place."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any


async def wait_here(wait: Callable[[], Awaitable[Any]]) -> Any:
    """Wait; see `RequestContext.wait_aside`."""
    return await wait()
