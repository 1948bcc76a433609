"""Who a consumer says that it is, for a transactional producer's offsets: never nobody, once it was somebody."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest
import trio

from odradek.client import Consumer
from odradek.client.errors import TransactionAbortableError
from odradek.lab.simulator.cluster import Cluster
from odradek.lab.simulator.running import run_in_world
from odradek.lab.simulator.seeds import Seeds
from odradek.lab.simulator.world import SECOND, World

TOPIC = "t"
GROUP = "g"
SESSION_S = 10
PROTOCOLS: dict[str, dict[str, object]] = {
    "classic": {"group.protocol": "classic", "session.timeout.ms": SESSION_S * 1_000},
    "consumer": {"group.protocol": "consumer"},
}


def in_world(test: Callable[[Cluster], Awaitable[None]]) -> None:
    """Run a test beside one broker that serves, on virtual time."""
    world = World(Seeds(1))

    async def main() -> None:
        async with trio.open_nursery() as nursery:
            cluster = Cluster(world, nursery)
            broker = cluster.add_broker(
                {
                    "group.consumer.session.timeout.ms": str(SESSION_S * 1_000),
                    "group.consumer.min.session.timeout.ms": str(SESSION_S * 1_000),
                }
            )
            broker.start()
            await broker.wait_serving()
            await test(cluster)
            nursery.cancel_scope.cancel()

    run_in_world(world, main, limit_ns=600 * SECOND)


def member(cluster: Cluster, name: str, protocol: str) -> Consumer:
    settings = {"group.id": GROUP, "auto.offset.reset": "earliest", "enable.auto.commit": False}
    return cluster.consumer(name, settings | PROTOCOLS[protocol])


async def read_one(consumer: Consumer) -> None:
    consumer.subscribe([TOPIC])
    while not await consumer.poll():
        pass


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_offsets_of_a_member_that_was_dropped_unknowingly_are_refused(protocol: str) -> None:
    async def scene(cluster: Cluster) -> None:
        async with cluster.producer("producer") as producer:
            await producer.send(TOPIC, "value")
        host, server = cluster.client_host("dropped").host, cluster.brokers[1].host.host
        async with (
            member(cluster, "dropped", protocol) as dropped,
            member(cluster, "heir", protocol) as heir,
            cluster.producer("transactor", {"transactional.id": "transactor"}) as transactor,
        ):
            await read_one(dropped)
            before, offsets = dropped.group_metadata, dropped.consumed()
            for pair in ((host, server), (server, host)):
                cluster.network.cut(*pair)
            await trio.sleep(2 * SESSION_S)
            for pair in ((host, server), (server, host)):
                cluster.network.heal(*pair)
            await read_one(heir)
            await trio.sleep(SESSION_S)  # the dropped one hears of it, and does not poll

            assert before.member_id
            assert dropped.group_metadata == before
            await transactor.begin_transaction()
            with pytest.raises(TransactionAbortableError):
                await transactor.send_offsets(offsets, dropped.group_metadata)

    in_world(scene)


def test_a_consumer_that_was_never_a_member_is_nobody() -> None:
    async def scene(cluster: Cluster) -> None:
        async with member(cluster, "alone", "classic") as alone:
            assert alone.group_metadata.member_id == ""

    in_world(scene)
