"""Shell: brokers and consumers of one group on the simulator's time: hours take moments, and every run is the same.

    async def test(cluster: SimulatedCluster) -> None:
        async with cluster.consumer("a") as consumer: ...

    with_cluster(test, {"t": 2})

Brokers, client and group are the real ones. The network between them takes next to no time, so what is seen in whole
seconds is what the client, or the group's coordinator, waits for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import attrs
import trio

from odradek.client import NewTopic, TopicPartition
from odradek.kernel.wire.messages.api_43_elect_leaders import ElectLeadersRequest, TopicPartitions
from odradek.kernel.wire.messages.api_45_alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from odradek.lab.simulator.cluster import Cluster
from odradek.lab.simulator.network import LinkSettings
from odradek.lab.simulator.requests import Requests
from odradek.lab.simulator.running import run_in_world
from odradek.lab.simulator.seeds import Seeds
from odradek.lab.simulator.world import MICROSECOND, SECOND, World

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from odradek.client import Admin, Consumer, Producer

GROUP: Final = "g"
PROTOCOLS: Final[dict[str, dict[str, object]]] = {
    "eager": {"partition.assignment.strategy": "range"},
    "cooperative": {"partition.assignment.strategy": "cooperative-sticky"},
    "consumer": {"group.protocol": "consumer"},
}
SESSION_S: Final = 45
"""How long a member that is not heard of stays, in both protocols, unless a test says otherwise."""
_NEARBY: Final = LinkSettings(MICROSECOND, MICROSECOND, 1_000_000_000_000, split_share=0.0)
_OFFSETS: Final = "__consumer_offsets"
_SETTINGS: Final = {
    "auto.create.topics.enable": "false",
    "group.consumer.assignment.interval.ms": "0",
    "offsets.topic.num.partitions": "1",
}
_NOTED: Final = (
    "ConsumerGroupHeartbeat",
    "FindCoordinator",
    "Heartbeat",
    "JoinGroup",
    "LeaveGroup",
    "OffsetCommit",
)


@attrs.define(eq=False)
class SimulatedCluster:
    """What a test does to the brokers and their group, and what it sees.

    Attributes:
        requests: What the brokers were asked, of groups.
    """

    requests: Requests
    _cluster: Cluster
    _admin: Admin
    _producer: Producer

    def consumer(self, client_id: str, protocol: str = "eager", **more: object) -> Consumer:
        """Return a consumer of the group that all tests use, alone on its host."""
        settings: dict[str, object] = {
            "group.id": GROUP,
            "auto.offset.reset": "earliest",
            **PROTOCOLS[protocol],
            **{key.replace("_", "."): value for key, value in more.items()},
        }
        return self._cluster.consumer(client_id, settings)

    async def append(self, topic: str, partition: int, *values: int) -> None:
        """Append records."""
        for value in values:
            await self._producer.enqueue(topic, str(value), partition=partition)
        await self._producer.flush()

    async def committed(self) -> dict[TopicPartition, int]:
        """Return what the group has committed."""
        told = await self._admin.list_group_offsets(GROUP)
        return {partition: offset.offset for partition, offset in told.items() if offset is not None}

    async def create_topic(self, name: str, assignments: Sequence[Sequence[int]]) -> None:
        """Create a topic: for each partition the brokers that hold it, the leader first."""
        await self._admin.create_topic(NewTopic(name, assignments=assignments))

    async def add_partitions(self, topic: str, partitions_count: int) -> None:
        """Give a topic so many partitions."""
        await self._admin.create_partitions(topic, partitions_count)

    def unplug(self, client_id: str) -> None:
        """Cut a client's cable: nobody hears of it any more, and nothing says so."""
        self._connect(client_id, self._cluster.network.cut)

    def plug_in(self, client_id: str) -> None:
        """Mend a client's cable."""
        self._connect(client_id, self._cluster.network.heal)

    def _connect(self, client_id: str, change: Callable[..., None]) -> None:
        client = self._cluster.client_host(client_id).host
        for broker in self._cluster.brokers.values():
            change(client, broker.host.host)
            change(broker.host.host, client)

    async def move_coordinator(self) -> int:
        """Have the other one of two brokers coordinate the group; return which."""
        before = await self._coordinator()
        (other,) = {*self._cluster.brokers} - {before}
        order = ReassignablePartition(partition_index=0, replicas=[other, before])
        topic = ReassignableTopic(name=_OFFSETS, partitions=[order])
        await self._admin.call(AlterPartitionReassignmentsRequest(topics=[topic]), _accept)
        elected = TopicPartitions(topic=_OFFSETS, partitions=[0])
        while await self._coordinator() != other:
            await self._admin.call(ElectLeadersRequest(topic_partitions=[elected]), _accept)
        return other

    async def _coordinator(self) -> int:
        return (await self._admin.describe_topic(_OFFSETS)).partitions[0].leader_id


def _accept(_answer: object) -> None:
    """Take any answer: what came of it is looked at afterwards."""


def with_cluster(
    test: Callable[[SimulatedCluster], Awaitable[None]],
    topics: Mapping[str, int] | None = None,
    *,
    brokers_count: int = 1,
    limit_s: int = 3_600,
) -> None:
    """Run a test with brokers that serve.

    Args:
        test: It.
        topics: Partitions by name, led by the first broker; `t` with one partition when None.
        brokers_count: One, or two that both know what the group has said.
        limit_s: How long it may last, in virtual time.
    """
    world = World(Seeds(1))

    async def root() -> None:
        async with trio.open_nursery() as nursery:
            cluster = Cluster(world, nursery, _NEARBY)
            settings = {**_SETTINGS, "offsets.topic.replication.factor": str(brokers_count)}
            if brokers_count == 1:
                cluster.add_broker(settings)
            else:
                cluster.add_brokers(brokers_count, settings)
            requests = Requests(cluster, *_NOTED)
            await cluster.start()
            async with cluster.admin("admin") as admin, cluster.producer("writer", {"linger.ms": 0}) as producer:
                simulated = SimulatedCluster(requests, cluster, admin, producer)
                for name, count in ({"t": 1} if topics is None else topics).items():
                    await simulated.create_topic(name, [[1]] * count)
                await simulated.committed()  # has the group's own topic made
                requests.noted.clear()
                await test(simulated)
            for broker in cluster.brokers.values():
                broker.crash()
            nursery.cancel_scope.cancel()

    run_in_world(world, root, limit_ns=limit_s * SECOND)
