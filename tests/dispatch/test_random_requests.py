"""Well-formed requests that say anything at all, in every version of every API: none of them meets a bug.

What a handler did not expect would be answered as UNKNOWN_SERVER_ERROR, and counted.
"""

from __future__ import annotations

import contextlib
import random
from typing import TYPE_CHECKING, Any

import pytest
import trio
import trio.testing

from odradek.kernel.errors import MalformedRequestError
from odradek.kernel.wire.headers import encode_request
from odradek.kernel.wire.messages.api_19_create_topics import CreatableTopic, CreateTopicsRequest
from tests.wire.random_messages import random_message

from .house import batch
from .memory_client import MemoryClient
from .test_bounded_requests import World, until, work_in

if TYPE_CHECKING:
    from pathlib import Path

    from odradek.kernel.wire.message import Message

TOGETHER = 50
"""So many clients ask, and leave whether they were answered or not: some ask for what never comes."""


async def ask_anything(world: World, count: int, source: random.Random) -> int:
    """Send so many requests of each version of each API; return how many were sent."""
    clients: list[MemoryClient] = []
    sent = 0
    for key, route in world.router.routes.items():
        for version in range(route.min_version, route.max_version + 1):
            for _ in range(count):
                client = MemoryClient(world.router)
                clients.append(client)
                frame = frame_of(random_message(route.api.request, version, source), version)
                with contextlib.suppress(MalformedRequestError):  # the network closes the connection then
                    client.send_bytes(frame)
                client.turn()
                sent += 1
            if len(clients) >= TOGETHER:
                await let_go(clients)
        assert not world.router.unexpected_errors_count, f"API key {key}"
    await let_go(clients)
    return sent


async def let_go(clients: list[MemoryClient]) -> None:
    """Have what was begun go on as far as it comes, and the clients leave."""
    await trio.testing.wait_all_tasks_blocked()
    for client in clients:
        client.leave()
    clients.clear()
    await trio.testing.wait_all_tasks_blocked()


def frame_of(message: Message, version: int) -> bytes:
    return encode_request(message, version, 1, "anybody").join()


@pytest.mark.parametrize("count", [3, pytest.param(150, marks=pytest.mark.sweep)])
def test_whatever_a_request_says_it_meets_no_bug(tmp_path: Path, count: int) -> None:
    found: list[Any] = []

    async def work(world: World) -> None:
        topic = CreatableTopic(name="topic-1", num_partitions=3, replication_factor=1)
        await world.parts.metadata.calls.create_topics(CreateTopicsRequest(topics=[topic], timeout_ms=60_000))
        await world.settle()
        for key_type in (0, 1):
            find = {"key_type": key_type, "coordinator_keys": ["a"]}
            await until(
                lambda find=find: world.ask(10, find),  # type: ignore[misc] # its type cannot be said
                lambda answer: not answer.coordinators[0].error_code,
            )
        sent = await ask_anything(world, count, random.Random(count))
        found.append((sent >= 200 * count, world.router.unexpected_errors_count))
        # And it serves on.
        await world.parts.metadata.calls.create_topics(
            CreateTopicsRequest(
                topics=[CreatableTopic(name="afterwards", num_partitions=1, replication_factor=1)], timeout_ms=60_000
            )
        )
        await world.settle()
        world.known["AFTER"] = world.parts.published.image.topics_by_name["afterwards"].topic_id
        data = [{"topic_id": "AFTER", "partition_data": [{"index": 0, "records": batch(b"value")}]}]
        answer = await world.ask(0, {"acks": 1, "timeout_ms": 1000, "topic_data": data})
        found.append(answer.responses[0].partition_responses[0].error_code)

    work_in(tmp_path, work)

    assert found == [(True, 0), 0]
