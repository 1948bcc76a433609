"""A leader that has no room for fetch sessions, or gives none: its followers wait in long polls all the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import trio

from odradek.kernel.wire.message import Message
from odradek.kernel.wire.messages.api_01_fetch import FetchRequest

from .small_cluster import POLL_S, SETTINGS, Node, running
from .test_replication import run


def waits_of(node: Node) -> list[int]:
    """Return a list to which comes how long each Fetch of a node may wait."""
    waits: list[int] = []
    ask = node.request

    async def noted(node_id: int, message: Message, **options: Any) -> Any:
        if isinstance(message, FetchRequest):
            waits.append(message.max_wait_ms)
        return await ask(node_id, message, **options)

    node.request = noted  # type: ignore[method-assign]
    return waits


def test_an_idle_follower_waits_in_long_polls_and_has_records_at_once(tmp_path: Path) -> None:
    async def body() -> None:
        async with running(tmp_path, 1, 2, fetch_slots=0) as cluster:
            await cluster.acknowledged(cluster.leader.produce(b"a"))
            await trio.sleep(2)
            waits = waits_of(cluster.nodes[2])
            await trio.sleep(10)
            idle = list(waits)
            began = trio.current_time()
            await cluster.acknowledged(cluster.leader.produce(b"b"))

            assert set(idle) == {SETTINGS.wait_ms_max}
            assert 18 <= len(idle) <= 21
            assert trio.current_time() - began < 0.1

    run(body)


def test_partitions_that_come_one_by_one_are_asked_for_at_once_in_few_fetches(tmp_path: Path) -> None:
    async def body() -> None:
        async with running(tmp_path, 1, 2, fetch_slots=0) as cluster:
            await cluster.acknowledged(cluster.leader.produce(b"a"))
            await trio.sleep(2)
            follower = cluster.nodes[2]
            fetcher = follower.fetchers._fetchers[1, 0]
            waits = waits_of(follower)
            for _ in range(50):
                fetcher.follow(follower.replica())
                await trio.sleep(POLL_S / 10)
            began = trio.current_time()
            await cluster.acknowledged(cluster.leader.produce(b"b"))

            assert 0 in waits, "what came is asked for without a wait"
            assert len(waits) < 20
            assert trio.current_time() - began < 0.1

    run(body)
