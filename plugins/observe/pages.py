"""Shell: what the HTTP service shows: metrics for Prometheus, whether the broker lives and serves, pages for people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import trio

from odradek import __version__

from . import html_page
from .html_page import Link
from .http import Page
from .metrics import CONTENT_TYPE, render
from .topic_pages import TopicPages

if TYPE_CHECKING:
    from collections.abc import Mapping

    from odradek.kernel.api import BrokerHandle

    from .http import PageMaker

_LINKS: Final = (
    ("/topics", "the topics and their partitions"),
    ("/metrics", "all metrics, for Prometheus"),
    ("/readyz", "whether clients are served"),
    ("/healthz", "whether the process lives"),
)


def make_pages(broker: BrokerHandle) -> dict[str, PageMaker]:
    """Return the pages of a broker by path.

    `/healthz` answers as long as the event loop turns; `/readyz` is 503 while clients are not served.
    """
    figures, topic_pages = broker.figures, TopicPages(broker)

    async def home(_query: Mapping[str, str]) -> Page:
        await trio.lowlevel.checkpoint()
        status = "serves clients" if figures.is_serving else "does not serve clients"
        parts = (
            html_page.paragraph(f"Broker {broker.node_id}, version {__version__}, {status}."),
            *(html_page.paragraph(Link(path, path), text) for path, text in _LINKS),
        )
        return Page(html_page.page("Odradek", parts), content_type=html_page.CONTENT_TYPE)

    async def metrics(_query: Mapping[str, str]) -> Page:
        parts = []
        for text in render(figures.metrics()):
            parts.append(text)
            # Thousands of partitions make long metrics: clients come in between.
            await trio.lowlevel.checkpoint()
        return Page("".join(parts), content_type=CONTENT_TYPE)

    async def health(_query: Mapping[str, str]) -> Page:
        await trio.lowlevel.checkpoint()
        return Page("ok\n")

    async def readiness(_query: Mapping[str, str]) -> Page:
        await trio.lowlevel.checkpoint()
        return Page("ready\n") if figures.is_serving else Page("not ready\n", 503)

    return {
        "/": home,
        "/topics": topic_pages.topics,
        "/topic": topic_pages.topic,
        "/metrics": metrics,
        "/healthz": health,
        "/readyz": readiness,
    }
