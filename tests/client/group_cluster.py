"""Shell: a broker for tests of groups and transactions: ours, quick; or any other, by its address.

`ODRADEK_TEST_BOOTSTRAP=127.0.0.1:9092 pytest tests/client/test_group_round_trip.py` runs them against Apache Kafka,
which should have `group.initial.rebalance.delay.ms=0`.
"""

from __future__ import annotations

import os
import random
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

import trio

from odradek.client import Admin, NewTopic, Producer
from odradek.testing.running_broker import running_broker
from tests.waiting import PATIENCE_S

QUICK = {
    "group.initial.rebalance.delay.ms": 0,
    "group.min.session.timeout.ms": 100,
    "group.consumer.heartbeat.interval.ms": 100,
    "group.consumer.min.heartbeat.interval.ms": 50,
    "group.consumer.assignment.interval.ms": 0,
    "offsets.topic.num.partitions": 3,
    "transaction.state.log.num.partitions": 3,
}

FAST: dict[str, object] = {
    "auto.offset.reset": "earliest",
    "retry.backoff.ms": 10,
    "retry.backoff.max.ms": 50,
    "fetch.max.wait.ms": 50,
}
PROTOCOLS: dict[str, dict[str, object]] = {
    "range": {"partition.assignment.strategy": "range", "heartbeat.interval.ms": 100},
    "cooperative": {"partition.assignment.strategy": "cooperative-sticky", "heartbeat.interval.ms": 100},
    "consumer": {"group.protocol": "consumer"},
}


@contextmanager
def cluster() -> Iterator[str]:
    """Yield the address of a cluster that has groups and transactions."""
    given = os.environ.get("ODRADEK_TEST_BOOTSTRAP")
    if given is not None:
        yield given
        return
    with running_broker(QUICK) as broker:
        yield broker.bootstrap


def run(test: Callable[[], Awaitable[None]], limit_s: float = PATIENCE_S) -> None:
    """Run a test in trio, not for ever."""

    async def limited() -> None:
        with trio.fail_after(limit_s):
            await test()

    trio.run(limited)


def name(what: str) -> str:
    """Return a name that nobody has used in this cluster."""
    return f"{what}-{random.SystemRandom().randrange(2**40):x}"


async def make_topic(bootstrap: str, partitions_count: int, prefix: str = "t") -> str:
    """Create a topic and return its name."""
    topic = name(prefix)
    async with Admin({"bootstrap.servers": bootstrap}) as admin:
        await admin.create_topic(NewTopic(topic, partitions_count=partitions_count))
    return topic


async def fill(bootstrap: str, topic: str, count: int, partitions_count: int, first: int = 0) -> None:
    """Send the numbers from `first` on, one partition after the other."""
    async with Producer({"bootstrap.servers": bootstrap, "linger.ms": 0}) as producer:
        for number in range(first, first + count):
            await producer.enqueue(topic, str(number), partition=number % partitions_count)
