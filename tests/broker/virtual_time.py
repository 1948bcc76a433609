"""A broker in the test's own trio run whose time passes only when the test says so: both clocks, and every sleep.

What clients do, and worker threads, takes no time at all; so something that comes every hour is seen in a moment.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

import trio
import trio.testing

from odradek.kernel.broker import Broker, read_broker_options
from odradek.kernel.wire.messages.api_19_create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from tests.machines import machine_with
from tests.waiting import PATIENCE_S

from .broker_process import Client

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from typing import TypeVar

    from odradek.kernel.broker.parts import BrokerParts

    T = TypeVar("T")

NOW_MS: Final = 1_700_000_000_000
"""The wall clock at the start; `batch_of` stamps its records with it."""


class VirtualTime:
    """Both clocks of a broker. Asked by any thread; `passes` by a task of the run."""

    def __init__(self) -> None:
        self.clock = trio.testing.MockClock()

    def now_ms(self) -> int:
        """See `Clock.now_ms`."""
        return NOW_MS + self.monotonic_ms()

    def monotonic_ms(self) -> int:
        """See `Clock.monotonic_ms`."""
        return round(self.clock.current_time() * 1000)

    async def passes(self, seconds: float) -> None:
        """Let time pass, and everybody do what is due, but for what threads are still at."""
        await trio.testing.wait_all_tasks_blocked()  # who was told of a thread's end has begun to wait anew
        self.clock.jump(seconds)
        await trio.testing.wait_all_tasks_blocked()

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait for what threads and sockets bring about, while no time passes."""
        limit_s = time.perf_counter() + PATIENCE_S
        while not condition():
            assert time.perf_counter() < limit_s, "it never came about"
            await trio.to_thread.run_sync(time.sleep, 0.001)


def work_in_virtual_time(settings: Sequence[str], work: Callable[[BrokerParts, VirtualTime], Awaitable[None]]) -> None:
    """Run a broker, do work with its parts while it serves, and stop it."""
    options = read_broker_options(config=None, environment={}, options=settings, listen=["127.0.0.1:0"])

    async def main() -> None:
        broker = Broker(options, machine=machine_with(clock=virtual))
        async with trio.open_nursery() as nursery:
            await nursery.start(broker.run)
            await work(broker.parts, virtual)
            broker.stop()

    virtual = VirtualTime()
    trio.run(main, clock=virtual.clock)


async def create_topic(parts: BrokerParts, name: str, partitions: int = 1, /, **configs: str) -> None:
    """Create a topic; configs are Kafka's keys with underscores."""
    named = [CreatableTopicConfig(name=key.replace("_", "."), value=value) for key, value in configs.items()]
    topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=1, configs=named)
    answer = await parts.metadata.calls.create_topics(CreateTopicsRequest(topics=[topic], timeout_ms=30_000))
    assert [result.error_code for result in answer.topics] == [0]
    while parts.logs.replicas.find(name, partitions - 1) is None:
        await trio.lowlevel.checkpoint()


def address_of(parts: BrokerParts) -> str:
    """Return where a broker of this file, or of `broker_beside`, listens."""
    (broker,) = parts.published.image.brokers.values()
    (listener,) = broker.listeners.values()
    return f"{listener.host}:{listener.port}"


async def as_client(parts: BrokerParts, work: Callable[[Client], T]) -> T:
    """Do what a client does, on a thread with a connection of its own."""

    def ask() -> T:
        with Client(address_of(parts)) as client:
            return work(client)

    return await trio.to_thread.run_sync(ask)
