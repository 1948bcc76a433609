"""A broker in the test's own trio run, for work with its parts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from odradek.kernel.broker import Broker, read_broker_options
from odradek.kernel.wire.messages.api_19_create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from tests.waiting import PATIENCE_S

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from odradek.kernel.broker.parts import BrokerParts


def broker_with(settings: Sequence[str]) -> Broker:
    """Return a broker on a free port, not started."""
    options = read_broker_options(config=None, environment={}, options=settings, listen=["127.0.0.1:0"])
    return Broker(options)


def work_beside(settings: Sequence[str], work: Callable[[BrokerParts], Awaitable[None]]) -> None:
    """Run a broker, do work with its parts while it serves, and stop it."""

    async def main() -> None:
        broker = broker_with(settings)
        with trio.fail_after(PATIENCE_S):
            async with trio.open_nursery() as nursery:
                await nursery.start(broker.run)
                await work(broker.parts)
                broker.stop()

    trio.run(main)


async def create_topic(parts: BrokerParts, name: str, partitions: int = 1, /, **configs: str) -> None:
    """Create a topic; configs are Kafka's keys with underscores."""
    named = [CreatableTopicConfig(name=key.replace("_", "."), value=value) for key, value in configs.items()]
    topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=1, configs=named)
    answer = await parts.metadata.calls.create_topics(CreateTopicsRequest(topics=[topic], timeout_ms=30_000))
    assert [result.error_code for result in answer.topics] == [0]
    while parts.logs.replicas.find(name, partitions - 1) is None:
        await trio.lowlevel.checkpoint()


def address_of(parts: BrokerParts) -> str:
    """Return where a broker listens."""
    (broker,) = parts.published.image.brokers.values()
    (listener,) = broker.listeners.values()
    return f"{listener.host}:{listener.port}"
