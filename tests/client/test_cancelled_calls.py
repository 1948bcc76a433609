"""A call in a scope that is cancelled already raises Cancelled, also where it has nothing to wait for.

Otherwise whether a loop of such calls ends would depend on what there happens to be to do.
"""

from __future__ import annotations

import inspect
import random
from collections.abc import Awaitable, Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
import trio

from odradek.client import Consumer
from odradek.client.group.session import GroupSession
from odradek.kernel.peers.backoff import Backoff

from .group_cluster import cluster, make_topic, name, run

TAKES_A_RECORD = {"dead", "retry"}
"""Calls of a consumer that always produce, and wait for that."""
OF_CONSUMER: dict[str, Callable[[Consumer, str], Awaitable[object]]] = {
    "assign_topics": lambda consumer, topic: consumer.assign_topics(),
    "beginning_offsets": lambda consumer, topic: consumer.beginning_offsets([]),
    "commit": lambda consumer, topic: consumer.commit(),
    "committed": lambda consumer, topic: consumer.committed([]),
    "end_offsets": lambda consumer, topic: consumer.end_offsets([]),
    "offsets_for_times": lambda consumer, topic: consumer.offsets_for_times({}),
    "partitions_for": lambda consumer, topic: consumer.partitions_for(topic),
    "poll": lambda consumer, topic: consumer.poll(timeout_ms=0),
    "poll_iterated": lambda consumer, topic: consumer.poll_iterated(),
    "position": lambda consumer, topic: consumer.position((topic, 0)),
    "unsubscribe": lambda consumer, topic: consumer.unsubscribe(),
}
OF_SESSION: dict[str, Callable[[GroupSession], Awaitable[None]]] = {
    "attend": lambda session: session.attend(),
    "end": lambda session: session.end(is_peaceful=True),
    "leave": lambda session: session.leave("the consumer unsubscribed", is_for_good=True),
    "run": lambda session: session.run(),
}


def awaitables(kind: type) -> set[str]:
    return {each for each, _ in inspect.getmembers(kind, inspect.iscoroutinefunction) if not each.startswith("_")}


async def is_cancelled(call: Callable[[], Awaitable[object]]) -> bool:
    with trio.CancelScope() as scope:
        scope.cancel()
        await call()
    return scope.cancelled_caught


@pytest.fixture(scope="module")
def bootstrap() -> Iterator[str]:
    with cluster() as address:
        yield address


def test_every_call_is_in_the_tables() -> None:
    assert awaitables(Consumer) == {*OF_CONSUMER} | TAKES_A_RECORD
    assert awaitables(GroupSession) == {*OF_SESSION}


@pytest.mark.parametrize("called", OF_CONSUMER)
def test_a_consumers_call_that_was_cancelled_before_is_not_made(bootstrap: str, called: str) -> None:
    async def scene() -> None:
        topic = await make_topic(bootstrap, 1)
        async with Consumer({"bootstrap.servers": bootstrap, "group.id": name("g")}) as consumer:
            await consumer.assign_topics(topic)
            consumer.seek((topic, 0), 0)

            assert await is_cancelled(lambda: OF_CONSUMER[called](consumer, topic))

    run(scene)


def test_giving_up_partitions_that_were_assigned_by_hand_can_be_cancelled_and_is_done_all_the_same(
    bootstrap: str,
) -> None:
    async def scene() -> None:
        topic = await make_topic(bootstrap, 1)
        async with Consumer({"bootstrap.servers": bootstrap}) as consumer:
            await consumer.assign_topics(topic)

            assert await is_cancelled(consumer.unsubscribe)
            assert consumer.assignment == frozenset()

    run(scene)


@pytest.mark.parametrize("called", OF_SESSION)
def test_a_memberships_call_that_was_cancelled_before_is_not_made(called: str) -> None:
    settings: Any = SimpleNamespace(group_id="g", is_auto_commit=False)
    nobody: Any = None
    source = random.Random(1)

    async def scene() -> None:
        session = GroupSession(settings, nobody, nobody, Backoff(1, 2, source), source, api_timeout_ms=1)

        assert await is_cancelled(lambda: OF_SESSION[called](session))

    run(scene)
