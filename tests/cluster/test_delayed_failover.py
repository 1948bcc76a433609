"""What waits on three brokers is delivered once, by whichever of them leads when it is due."""

from __future__ import annotations

import trio

from odradek.client import Admin, Consumer, NewTopic, Producer
from odradek.kernel.delay.headers import DELIVER_AFTER
from odradek.testing.running_cluster import running_cluster

COUNT = 30
MINUTE_MS = 60_000


async def produce(bootstrap: str) -> None:
    async with Admin({"bootstrap.servers": bootstrap}) as admin:
        await admin.create_topic(NewTopic("t", configs={"odradek.delay.enable": "true"}))
    async with Producer({"bootstrap.servers": bootstrap, "acks": "all"}) as producer, trio.open_nursery() as nursery:
        for number in range(COUNT):
            headers = [(DELIVER_AFTER, b"%d" % (number * MINUTE_MS))]
            nursery.start_soon(lambda n, h: producer.send("t", b"%d" % n, headers=h), number, headers)


async def consume(bootstrap: str) -> list[bytes | None]:
    found: list[bytes | None] = []
    async with Consumer({"bootstrap.servers": bootstrap, "auto.offset.reset": "earliest"}) as consumer:
        consumer.assign([("t", 0)])
        while len(found) < COUNT:
            found += [record.value for record in await consumer.poll()]
        with trio.move_on_after(0.2):
            found += [record.value for record in await consumer.poll()]
    return found


def test_what_waits_is_delivered_once_whoever_leads() -> None:
    with running_cluster(virtual_time=True) as cluster:
        trio.run(produce, cluster.bootstrap_servers)
        cluster.advance("10m")
        cluster.kill(cluster.leader("t"))
        cluster.advance("30m")

        found = trio.run(consume, cluster.bootstrap_servers)

    assert found == [b"%d" % number for number in range(COUNT)]
