"""Dead letters on three brokers are there once, though their partitions are led elsewhere, and leaders die."""

from __future__ import annotations

import trio

from odradek.client import Admin, Consumer, NewTopic, Producer, TopicPartition
from odradek.kernel.retry.headers import ATTEMPT, DEAD
from odradek.testing.running_cluster import running_cluster
from tests.waiting import PATIENCE_S

PARTITIONS = 3
COUNT = 24
RETRY, LETTERS = "t.g.retry", "t.g.dlq"
OWNER = {"odradek.retry.topic": "t", "odradek.retry.group": "g", "odradek.retry.levels": "1s"}
EARLIEST = {"auto.offset.reset": "earliest"}


async def make_topics(bootstrap: str) -> None:
    """Have every partition of the dead letters led by another broker than the retry topic's."""
    brokers = (1, 2, 3)
    rotated = [[brokers[(first + number) % 3] for number in range(3)] for first in range(PARTITIONS)]
    async with Admin({"bootstrap.servers": bootstrap}) as admin:
        shifted = [*rotated[1:], rotated[0]]
        await admin.create_topic(
            NewTopic(LETTERS, assignments=shifted, configs={"odradek.retry.dead.letters.of": RETRY})
        )
        await admin.create_topic(NewTopic(RETRY, assignments=rotated, configs=OWNER))


async def fail(bootstrap: str, numbers: range) -> None:
    """Have each record fail: the even ones for good, the others once more."""
    async with Producer({"bootstrap.servers": bootstrap, "acks": "all"}) as producer:
        for number in numbers:
            headers = [(ATTEMPT, b"16")] if number % 2 == 0 else [(DEAD, b"0")]
            await producer.send(RETRY, b"%d" % number, partition=number % PARTITIONS, headers=headers)


async def read(bootstrap: str, topic: str, count: int) -> list[bytes | None]:
    found: list[bytes | None] = []
    async with Consumer({"bootstrap.servers": bootstrap, **EARLIEST}) as consumer:
        consumer.assign([TopicPartition(topic, number) for number in range(PARTITIONS)])
        with trio.fail_after(PATIENCE_S):
            while len(found) < count:
                found += [record.value for record in await consumer.poll()]
        with trio.move_on_after(0.2):
            found += [record.value for record in await consumer.poll()]
    return sorted(found, key=lambda value: int(value or b"-1"))


def test_what_died_is_there_once_and_what_failed_comes_back_once_whoever_leads() -> None:
    with running_cluster(virtual_time=True) as cluster:
        bootstrap = cluster.bootstrap_servers
        trio.run(make_topics, bootstrap)
        trio.run(fail, bootstrap, range(COUNT // 2))
        cluster.advance("2s")
        cluster.kill(cluster.leader(LETTERS))
        cluster.advance("3s")
        trio.run(fail, bootstrap, range(COUNT // 2, COUNT))
        cluster.advance("3s")

        letters = trio.run(read, bootstrap, LETTERS, COUNT // 2)
        returned = trio.run(read, bootstrap, RETRY, COUNT // 2)

    assert letters == [b"%d" % number for number in range(0, COUNT, 2)]
    assert returned == [b"%d" % number for number in range(1, COUNT, 2)]
