"""A large group of the consumer protocol in the simulator: its targets are computed on threads, one seed is one run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest
import trio

from odradek.lab.simulator.cluster import Cluster
from odradek.lab.simulator.runs import Run, Scenario, run_seed
from odradek.lab.simulator.world import SimulationError
from odradek.plugins.groups.consumer import assigning

if TYPE_CHECKING:
    from odradek.client.consumer import Consumer

TOPIC: Final = "records"
PARTITIONS: Final = 6
MEMBERS: Final = 4
SETTINGS: Final = {
    "group.consumer.assignment.interval.ms": "0",
    "group.consumer.heartbeat.interval.ms": "1000",
    "group.consumer.min.heartbeat.interval.ms": "1000",
    "num.partitions": str(PARTITIONS),
}


class Members:
    """Members that come, go, and know what they own."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._consumers: dict[str, Consumer] = {}

    def owned(self) -> list[int]:
        """Return what all of them own, whatever twice twice."""
        return sorted(part.partition for consumer in self._consumers.values() for part in consumer.assignment)

    async def live(self, name: str, seconds: float) -> None:
        """Be a member for so long."""
        settings = {"group.id": "g", "group.protocol": "consumer", "auto.offset.reset": "earliest"}
        with trio.move_on_after(seconds):
            async with self._cluster.consumer(name, settings) as consumer:
                consumer.subscribe([TOPIC])
                self._consumers[name] = consumer
                try:
                    while True:
                        await consumer.poll(timeout_ms=500)
                        if len(set(self.owned())) < len(self.owned()):
                            raise SimulationError(f"a partition has two owners: {self.owned()}")
                finally:
                    del self._consumers[name]


async def rebalances(run: Run) -> None:
    """Let members come and go while their coordinator is killed, then see that all is assigned."""
    async with trio.open_nursery() as nursery:
        cluster = Cluster(run.world, nursery)
        broker = cluster.add_broker(SETTINGS)
        broker.start()
        await broker.wait_serving()
        async with cluster.producer("producer") as producer:
            await producer.send(TOPIC, "it is there")
        members = Members(cluster)
        async with trio.open_nursery() as living:
            for number in range(MEMBERS):
                living.start_soon(members.live, f"member-{number}", 10 if number == 1 else 1000)
                await trio.sleep(0.3)
            await trio.sleep(run.world.seeds.stream("crash").random() * 12)
            broker.crash()
            await broker.wait_ended()
            await trio.sleep(1)
            broker.start()
            await trio.sleep(100)
            owned = members.owned()
            living.cancel_scope.cancel()
        if owned != [*range(PARTITIONS)]:
            raise SimulationError(f"the members own {owned}")
        await broker.stop()


REBALANCES: Final = Scenario("rebalances", "members of a large group come and go", rebalances, ())


@pytest.mark.parametrize("seed", range(1, 4))
def test_the_partitions_of_a_large_group_have_one_owner_and_a_seed_is_one_run(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, number in (("AT_ONCE_MAX", 0), ("TOPICS_A_STEP", 1), ("ENTRIES_A_STEP", 1)):
        monkeypatch.setattr(assigning, name, number)
    first = run_seed(REBALANCES, seed, {})

    assert first.failure == "", first.details
    assert first.trace_hash == run_seed(REBALANCES, seed, {}).trace_hash
