"""Shell: what the HTTP service shows: metrics for Prometheus, whether the broker lives and serves, pages for people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import trio

from odradek import __version__

from . import html_page
from .html_page import Link
from .http import Page
from .metrics import CONTENT_TYPE

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from .http import PageMaker
    from .metrics import MetricsRegistry
    from .topic_pages import TopicPages

_LINKS: Final = (
    ("/topics", "the topics and their partitions"),
    ("/metrics", "all metrics, for Prometheus"),
    ("/readyz", "whether clients are served"),
    ("/healthz", "whether the process lives"),
)


def make_pages(
    registry: MetricsRegistry, is_ready: Callable[[], bool], topic_pages: TopicPages
) -> dict[str, PageMaker]:
    """Return the pages by path.

    Args:
        registry: What `/metrics` shows.
        is_ready: Whether clients are served; `/readyz` is 503 while not. `/healthz` answers as long as the event loop
            turns.
        topic_pages: Makes `/topics` and `/topic`.
    """

    async def home(_query: Mapping[str, str]) -> Page:
        await trio.lowlevel.checkpoint()
        status = "serves clients" if is_ready() else "does not serve clients"
        parts = (
            html_page.paragraph(f"Broker {topic_pages.node_id}, version {__version__}, {status}."),
            *(html_page.paragraph(Link(path, path), text) for path, text in _LINKS),
        )
        return Page(html_page.page("Odradek", parts), content_type=html_page.CONTENT_TYPE)

    async def metrics(_query: Mapping[str, str]) -> Page:
        parts = []
        for text in registry.render():
            parts.append(text)
            # Thousands of partitions make long metrics: clients come in between.
            await trio.lowlevel.checkpoint()
        return Page("".join(parts), content_type=CONTENT_TYPE)

    async def health(_query: Mapping[str, str]) -> Page:
        await trio.lowlevel.checkpoint()
        return Page("ok\n")

    async def readiness(_query: Mapping[str, str]) -> Page:
        await trio.lowlevel.checkpoint()
        return Page("ready\n") if is_ready() else Page("not ready\n", 503)

    return {
        "/": home,
        "/topics": topic_pages.topics,
        "/topic": topic_pages.topic,
        "/metrics": metrics,
        "/healthz": health,
        "/readyz": readiness,
    }
