"""Brokers that die, stop, lose their power or are cut off at any moment: in the end all are back and know the same."""

from __future__ import annotations

from random import Random

import pytest
import trio

from odradek.client import NewTopic
from odradek.kernel.peers.errors import ClientError
from odradek.lab.simulator.cluster import Cluster
from odradek.testing.faults import PowerLoss

from .simulated import fenced_in, image_of, in_cluster, until

GATE_SEEDS = range(1, 4)


class Accidents:
    """What befalls one cluster, drawn from a seed."""

    def __init__(self, cluster: Cluster, seed: int) -> None:
        self.cluster = cluster
        self.random = Random(seed)
        self.made: list[str] = []

    async def befall(self, node_id: int, *, kinds: tuple[str, ...]) -> None:
        """Let something happen to a broker, and let it come back."""
        broker = self.cluster.brokers[node_id]
        kind = self.random.choice(kinds)
        pause_s = self.random.choice((0.0, 0.01, 1.0, 12.0))
        if kind == "cut":
            hosts = [other.host.host for other in self.cluster.brokers.values() if other is not broker]
            for other in hosts:
                self.cluster.network.cut(broker.host.host, other)
                self.cluster.network.cut(other, broker.host.host)
            await trio.sleep(pause_s)
            for other in hosts:
                self.cluster.network.heal(broker.host.host, other)
                self.cluster.network.heal(other, broker.host.host)
            return
        if kind == "stop":
            await broker.stop()
        elif kind == "crash":
            broker.crash()
        else:
            broker.crash(PowerLoss(kind))
            broker.host.power_on()
        await trio.sleep(pause_s)
        broker.start()
        await broker.wait_serving()

    async def make_topics(self) -> None:
        """Create topics all the while, by whoever answers."""
        number = 0
        while True:
            number += 1
            name = f"topic-{number}"
            try:
                async with self.cluster.admin("admin") as client:
                    await client.create_topic(NewTopic(name, 2, 1))
            except (ClientError, OSError):
                continue
            self.made.append(name)
            await trio.sleep(self.random.random())


@pytest.mark.parametrize("seed", GATE_SEEDS)
def test_all_come_back_and_know_the_same(seed: int) -> None:
    async def main(cluster: Cluster) -> tuple[set[str], list[set[str]], set[bool]]:
        accidents = Accidents(cluster, seed)
        kinds = ("stop", "crash", "cut", *(style.value for style in PowerLoss))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(accidents.make_topics)
            for _ in range(5):
                await accidents.befall(accidents.random.choice((2, 3)), kinds=kinds)
            await accidents.befall(1, kinds=("stop", "crash"))
            nursery.cancel_scope.cancel()
        await until(lambda: not any(fenced_in(cluster).values()))
        await until(lambda: len({image_of(each).offset for each in cluster.brokers.values()}) == 1)
        names = [set(image_of(each).topics_by_name) for each in cluster.brokers.values()]
        leaders = {
            state.leader > 0
            for topic in image_of(cluster.brokers[3]).topics_by_name.values()
            for state in topic.partitions
        }
        return set(accidents.made), names, leaders

    made, names, leaders = in_cluster(main, seed=seed)

    assert made, "nothing was exercised"
    assert all(made <= known for known in names)
    assert names[0] == names[1] == names[2]
    assert leaders == {True}
