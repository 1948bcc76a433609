"""Shell: what the HTTP service shows: metrics for Prometheus, and whether the broker lives and serves."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from .http import Page, PageMaker
from .metrics import CONTENT_TYPE

if TYPE_CHECKING:
    from collections.abc import Callable

    from .metrics import MetricsRegistry


def make_pages(registry: MetricsRegistry, is_ready: Callable[[], bool]) -> dict[str, PageMaker]:
    """Return the pages by path.

    Args:
        registry: What `/metrics` shows.
        is_ready: Whether clients are served; `/readyz` is 503 while not. `/healthz` answers as long as the event loop
            turns.
    """

    async def metrics() -> Page:
        parts = []
        for text in registry.render():
            parts.append(text)
            # Thousands of partitions make long metrics: clients come in between.
            await trio.lowlevel.checkpoint()
        return Page("".join(parts), content_type=CONTENT_TYPE)

    async def health() -> Page:
        await trio.lowlevel.checkpoint()
        return Page("ok\n")

    async def readiness() -> Page:
        await trio.lowlevel.checkpoint()
        return Page("ready\n") if is_ready() else Page("not ready\n", 503)

    return {"/metrics": metrics, "/healthz": health, "/readyz": readiness}
