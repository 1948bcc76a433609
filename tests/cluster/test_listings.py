"""What clients are told of brokers right after one of them died, and what they ask all of them for."""

from __future__ import annotations

import pytest
import trio

from odradek.client import NewTopic, TopicPartition
from odradek.kernel.metadata.published_image import LOST_MS_MAX
from odradek.kernel.peers.connection import open_connection
from odradek.kernel.wire.messages.api_46_list_partition_reassignments import ListPartitionReassignmentsRequest
from odradek.lab.simulator.cluster import PORT, Cluster
from odradek.lab.simulator.world import MILLISECOND

from .simulated import CONNECTION, admin, fenced_in, in_cluster, until

SOON_S = 10.0
"""Far less than a client's patience of a minute, in virtual time."""


@pytest.mark.parametrize("is_forgotten", [False, True], ids=["known by all", "known by the client alone"])
def test_who_has_left_is_not_waited_for(is_forgotten: bool) -> None:
    async def main(cluster: Cluster) -> list[object]:
        async with admin(cluster, 1) as client:
            assert await client.list_groups() == []
            cluster.brokers[3].crash()
            if is_forgotten:
                await trio.sleep(SOON_S)
            with trio.fail_after(SOON_S):
                return [await client.list_groups(), await client.list_transactions()]

    assert in_cluster(main) == [[], []]


def test_who_died_is_named_for_a_moment_longer_than_it_leads() -> None:
    async def main(cluster: Cluster) -> list[set[int]]:
        async with admin(cluster, 1) as client:
            cluster.brokers[3].crash()
            await until(lambda: fenced_in(cluster)[3])
            named = []
            for _ in range(2):
                await client.opened().update(timeout_ms=1_000)
                named.append(set(client.opened().cluster.nodes))
                await trio.sleep(LOST_MS_MAX / 1_000)
            return named

    assert in_cluster(main) == [{1, 2, 3}, {1, 2}]


def test_who_asks_a_broker_that_is_behind_is_told_of_moves_by_the_controller() -> None:
    async def main(cluster: Cluster) -> list[str]:
        cluster.set_apart(3, 400 * MILLISECOND)
        network = cluster.client_machine("admin").network
        async with (
            admin(cluster, 1) as client,
            open_connection("broker-3", PORT, CONNECTION, network=network) as far,
        ):
            await client.create_topic(NewTopic("t", assignments=[[1, 2]]))
            assert await client.alter_partition_reassignments({TopicPartition("t", 0): (1, 2, 3)}) == {}
            answer = await far.request(ListPartitionReassignmentsRequest(timeout_ms=0), timeout_ms=10_000)
            return [topic.name for topic in answer.topics]

    assert in_cluster(main) == ["t"]
