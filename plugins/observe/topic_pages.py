"""Shell: two pages for people: the topics, and the partitions of one of them.

    /topics?contains=TEXT&after=NAME     a hundred topics by name
    /topic?name=NAME&from=NUMBER         a hundred of a topic's partitions

What they show is what the metrics read. However many topics and partitions there are, a page has an end, and clients
are served while it is made.
"""

from __future__ import annotations

from heapq import nsmallest
from itertools import chain, islice
from typing import TYPE_CHECKING, Final

import attrs
import trio

from .html_page import CONTENT_TYPE, Link, page, paragraph, search_form, table
from .http import Page

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from odradek.kernel.api import BrokerHandle, PartitionState, ReplicaFigures, TopicView

    from .html_page import Cell

ROWS_PER_PAGE: Final = 100
NAMES_AT_A_TIME: Final = 2_000
"""So many names are looked at before clients come in between: about half a millisecond."""
PARTITIONS_AT_A_TIME: Final = 256

HOME: Final = Link("Odradek", "/")
TOPICS: Final = Link("Topics", "/topics")

_NUMBER_DIGITS_MAX: Final = 9
_TOPIC_COLUMNS: Final = ("Topic", "Partitions", "Replicas", "Offsets", "Bytes")
_PARTITION_COLUMNS: Final = (
    *("Partition", "Here", "Leader", "Replicas", "In sync"),
    *("Log start offset", "High watermark", "Log end offset", "Bytes"),
)
_UNKNOWN: Final = ("",) * 4


@attrs.define
class _TopicSums:
    """What the logs of a topic on this broker come to."""

    offsets_count: int = 0
    size_bytes: int = 0
    offline_count: int = 0


class TopicPages:
    """Makes the pages. Owned by the HTTP service; reads what the reactor's task owns, on that task."""

    def __init__(self, broker: BrokerHandle) -> None:
        """Make the pages of this broker."""
        self._broker = broker

    async def topics(self, query: Mapping[str, str]) -> Page:
        """Return the page of topics after `after` whose name has `contains` in it."""
        all_names = self._broker.cluster.topic_names()
        after, contains = query.get("after", ""), query.get("contains", "")
        names = await _first_names(all_names, after, contains)
        topics = filter(None, map(self._broker.cluster.topic, names[:ROWS_PER_PAGE]))  # one may be gone meanwhile
        rows = [await self._topic_row(topic) for topic in topics]
        links = [Link("First", "/topics", _filled(contains=contains))] if after else []
        if len(names) > ROWS_PER_PAGE:
            links.append(Link("Next", "/topics", _filled(contains=contains, after=names[ROWS_PER_PAGE - 1])))
        parts = [
            search_form("/topics", "Name contains", "contains", contains),
            table(_TOPIC_COLUMNS, rows) if rows else paragraph("No topic."),
            paragraph(*links),
            paragraph("Offsets and bytes: in the logs on this broker, from their start to their end."),
        ]
        return Page(page(f"{len(all_names):,} topics", parts, crumbs=(HOME,)), content_type=CONTENT_TYPE)

    async def topic(self, query: Mapping[str, str]) -> Page:
        """Return the page of the topic `name`, its partitions from `from` on; 404 when there is none."""
        await trio.lowlevel.checkpoint()
        topic = self._broker.cluster.topic(query.get("name", ""))
        if topic is None:
            return Page("no such topic\n", 404)
        text = query.get("from", "0")
        if not (text.isascii() and text.isdigit() and len(text) <= _NUMBER_DIGITS_MAX):
            return Page("`from` is no number of a partition\n", 400)
        start = int(text)
        end = start + ROWS_PER_PAGE
        rows = [self._partition_row(topic, index) for index in range(start, min(end, len(topic.partitions)))]
        links = [Link("First", "/topic", {"name": topic.name})] if start else []
        if end < len(topic.partitions):
            links.append(Link("Next", "/topic", {"name": topic.name, "from": str(end)}))
        parts = [
            paragraph(f"{len(topic.partitions):,} partitions, storage {topic.storage}, id {topic.topic_id}"),
            table(_PARTITION_COLUMNS, rows) if rows else paragraph("No partition."),
            paragraph(*links),
        ]
        return Page(page(topic.name, parts, crumbs=(HOME, TOPICS)), content_type=CONTENT_TYPE)

    async def _topic_row(self, topic: TopicView) -> tuple[Cell, ...]:
        sums = _TopicSums()
        partitions = iter(enumerate(topic.partitions))
        while portion := list(islice(partitions, PARTITIONS_AT_A_TIME)):
            for index, state in portion:
                self._add(sums, state, self._find(topic, index))
            await trio.lowlevel.checkpoint()
        count: Cell = len(topic.partitions)
        if sums.offline_count:
            count = f"{count:,}, {sums.offline_count:,} offline"
        replicas = len(topic.partitions[0].replicas) if topic.partitions else 0
        return Link(topic.name, "/topic", {"name": topic.name}), count, replicas, sums.offsets_count, sums.size_bytes

    def _add(self, sums: _TopicSums, state: PartitionState, replica: ReplicaFigures | None) -> None:
        if replica is None:
            sums.offline_count += self._broker.node_id in state.replicas
        else:
            sums.offsets_count += replica.log.log_end_offset - replica.log.log_start_offset
            sums.size_bytes += replica.log.size_bytes

    def _partition_row(self, topic: TopicView, index: int) -> tuple[Cell, ...]:
        state = topic.partitions[index]
        replica = self._find(topic, index)
        leader = str(state.leader) if state.leader >= 0 else "none"
        known = (leader, _ids(state.replicas), _ids(state.isr))
        if replica is None:
            return str(index), "offline" if self._broker.node_id in state.replicas else "no replica", *known, *_UNKNOWN
        log = replica.log
        role = "leader" if replica.is_leader else "follower"
        offsets = (log.log_start_offset, replica.high_watermark, log.log_end_offset)
        return str(index), role, *known, *offsets, log.size_bytes

    def _find(self, topic: TopicView, index: int) -> ReplicaFigures | None:
        """Return this broker's replica if its log can be read now."""
        replica = self._broker.figures.replica(topic.topic_id, index)
        return replica if replica is not None and replica.offline_reason is None else None


async def _first_names(all_names: Sequence[str], after: str, contains: str) -> list[str]:
    """Return the first names after `after` that have `contains` in them, one more than a page shows."""
    names = iter(all_names)
    found: list[str] = []
    while portion := list(islice(names, NAMES_AT_A_TIME)):
        fitting = (name for name in portion if name > after and contains in name)
        found = nsmallest(ROWS_PER_PAGE + 1, chain(found, fitting))
        await trio.lowlevel.checkpoint()
    return found


def _ids(brokers: tuple[int, ...]) -> str:
    return ", ".join(map(str, brokers))


def _filled(**query: str) -> dict[str, str]:
    """Return the parameters that say something."""
    return {name: value for name, value in query.items() if value}
