"""The pages of topics, over replicas of memory."""

from __future__ import annotations

import re
import uuid
from typing import TYPE_CHECKING

import attrs
import pytest
import trio

from odradek.kernel.contracts.election import PartitionState
from odradek.kernel.machine.turnstile import run_at_once
from odradek.kernel.metadata.image import MetadataImage, TopicImage
from odradek.plugins.observe.topic_pages import NAMES_AT_A_TIME, PARTITIONS_AT_A_TIME, ROWS_PER_PAGE, TopicPages
from tests.dispatch.house import batch

from .opened import memory_replicas, watched

if TYPE_CHECKING:
    from odradek.kernel.partitions.replica import Replica
    from odradek.kernel.partitions.replicas import Replicas
    from odradek.plugins.observe.http import Page

HERE = PartitionState(leader=1, leader_epoch=0, partition_epoch=0, replicas=(1,), isr=(1,))
ELSEWHERE = attrs.evolve(HERE, leader=-1, replicas=(2, 3), isr=(3,))


BATCH = batch(*[b"value"] * 1500)
SIZE = len(BATCH)


def fill(replica: Replica) -> None:
    """Write 1,500 records to a log, and hide 500 of them."""
    replica.log.append(BATCH, 0, 1499, 0)
    replica.log.write_pending()
    replica.log.advance_log_start(500)


def topic_image(name: str, *partitions: PartitionState) -> TopicImage:
    return TopicImage(name, uuid.uuid5(uuid.NAMESPACE_DNS, name), storage="memory", partitions=partitions)


def pages_of(*topics: TopicImage, replicas: Replicas | None = None) -> TopicPages:
    image = MetadataImage(
        topics_by_name={topic.name: topic for topic in topics},
        topics_by_id={topic.topic_id: topic for topic in topics},
    )
    return TopicPages(watched(replicas, image=image))


def topics_page(pages: TopicPages, **query: str) -> Page:
    return trio.run(pages.topics, query)


def topic_page(pages: TopicPages, **query: str) -> Page:
    return trio.run(pages.topic, query)


def rows_of(page: Page) -> list[list[str]]:
    """Return the text of each cell of each row."""
    body = page.body.partition("<tbody>")[2]
    rows = [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row) for row in re.findall(r"<tr>(.*?)</tr>", body)]
    return [[re.sub(r"<[^>]*>", "", cell) for cell in row] for row in rows]


def link_to(page: Page, text: str) -> str | None:
    """Return the query that a link leads to."""
    found = re.search(rf'href="[^"?]*\?([^"]*)">{text}<', page.body)
    return found[1].replace("&amp;", "&") if found else None


def test_topics_are_shown_with_partitions_replicas_offsets_and_bytes() -> None:
    replicas = memory_replicas("b").replicas
    for index in (0, 1):
        fill(replicas.get("b", index))
    pages = pages_of(topic_image("b", HERE, HERE), topic_image("a", ELSEWHERE), replicas=replicas)

    assert rows_of(topics_page(pages)) == [["a", "1", "2", "0", "0"], ["b", "2", "1", "2,000", f"{2 * SIZE:,}"]]


def test_a_topics_partitions_are_shown_with_their_offsets() -> None:
    replicas = memory_replicas("b").replicas
    fill(replicas.get("b", 1))
    rows = rows_of(topic_page(pages_of(topic_image("b", HERE, HERE), replicas=replicas), name="b"))

    assert rows[0] == ["0", "leader", "1", "1", "1", "0", "0", "0", "0"]
    assert rows[1] == ["1", "leader", "1", "1", "1", "500", "0", "1,500", f"{SIZE:,}"]


def test_partitions_that_cannot_be_read_here_are_told() -> None:
    replicas = memory_replicas("b").replicas
    replicas.get("b", 1).go_offline("a test")
    pages = pages_of(topic_image("b", HERE, HERE, HERE, ELSEWHERE), replicas=replicas)
    unknown = [""] * 4

    assert rows_of(topics_page(pages)) == [["b", "4, 2 offline", "1", "0", "0"]]
    assert rows_of(topic_page(pages, name="b")) == [
        ["0", "leader", "1", "1", "1", "0", "0", "0", "0"],
        ["1", "offline", "1", "1", "1", *unknown],
        ["2", "offline", "1", "1", "1", *unknown],
        ["3", "no replica", "none", "2, 3", "3", *unknown],
    ]


def test_pages_of_topics_follow_each_other_until_all_were_shown() -> None:
    names = [f"t{number:04}" for number in range(2 * ROWS_PER_PAGE + 1)]
    pages = pages_of(*(topic_image(name, ELSEWHERE) for name in reversed(names)))
    first = topics_page(pages)
    second = topics_page(pages, after=names[ROWS_PER_PAGE - 1])
    third = topics_page(pages, after=names[2 * ROWS_PER_PAGE - 1])

    assert [row[0] for page in (first, second, third) for row in rows_of(page)] == names
    assert link_to(first, "Next") == f"after={names[ROWS_PER_PAGE - 1]}"
    assert link_to(second, "Next") == f"after={names[2 * ROWS_PER_PAGE - 1]}"
    assert link_to(third, "Next") is None
    assert 'href="/topics">First' in third.body
    assert ">First<" not in first.body


def test_topics_can_be_chosen_by_a_part_of_their_name_page_after_page() -> None:
    chosen = [f"a.eu.{number:03}" for number in range(ROWS_PER_PAGE + 1)]
    pages = pages_of(*(topic_image(name, ELSEWHERE) for name in [*chosen, "a.us", "eu", "z"]))
    first = topics_page(pages, contains=".eu.")

    assert [row[0] for row in rows_of(first)] == chosen[:-1]
    assert link_to(first, "Next") == f"contains=.eu.&after={chosen[-2]}"
    assert [row[0] for row in rows_of(topics_page(pages, contains=".eu.", after=chosen[-2]))] == chosen[-1:]
    assert "No topic." in topics_page(pages, contains="<none>").body


def test_partitions_of_a_topic_have_pages_too() -> None:
    pages = pages_of(topic_image("wide", *[ELSEWHERE] * (ROWS_PER_PAGE + 2)))
    first, last = topic_page(pages, name="wide"), topic_page(pages, name="wide", **{"from": str(ROWS_PER_PAGE)})

    assert [row[0] for row in rows_of(first)] == list(map(str, range(ROWS_PER_PAGE)))
    assert link_to(first, "Next") == f"name=wide&from={ROWS_PER_PAGE}"
    assert [row[0] for row in rows_of(last)] == [str(ROWS_PER_PAGE), str(ROWS_PER_PAGE + 1)]
    assert link_to(last, "First") == "name=wide"
    assert "No partition." in topic_page(pages, name="wide", **{"from": "999999999"}).body


@pytest.mark.parametrize("start", ["-1", "x", "", "1e3", "²", "9" * 5000])
def test_a_start_that_is_no_partition_is_refused(start: str) -> None:
    assert topic_page(pages_of(topic_image("a", ELSEWHERE)), name="a", **{"from": start}).status == 400


def test_an_unknown_topic_is_not_found() -> None:
    assert topic_page(pages_of(topic_image("a", ELSEWHERE)), name="b").status == 404


def test_clients_are_served_while_many_topics_or_partitions_are_looked_through() -> None:
    many = [topic_image(f"t{number:06}") for number in range(3 * NAMES_AT_A_TIME)]
    wide = topic_image("wide", *[ELSEWHERE] * (3 * PARTITIONS_AT_A_TIME))
    turns = 0

    async def count_turns() -> None:
        nonlocal turns
        while True:
            await trio.lowlevel.checkpoint()
            turns += 1

    async def main() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(count_turns)
            await pages_of(*many, wide).topics({"contains": "wide"})
            nursery.cancel_scope.cancel()

    trio.run(main)

    assert turns >= 5


def test_a_deleted_topic_may_go_while_its_page_is_made() -> None:
    local = memory_replicas("b")
    pages = pages_of(topic_image("b", HERE, HERE), replicas=local.replicas)
    run_at_once(local.lifecycle.delete_topic_in_steps("b", 2))

    assert rows_of(topics_page(pages)) == [["b", "2, 2 offline", "1", "0", "0"]]
