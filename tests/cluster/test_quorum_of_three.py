"""Three brokers that keep the metadata together, as clients and other nodes see them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import TypeVar

import pytest
import trio

from odradek.client import NewTopic
from odradek.client.admin_values import QuorumDescription, QuorumReplica
from odradek.kernel.metadata.image import ControllerImage
from odradek.kernel.peers.connection import open_connection
from odradek.kernel.peers.errors import ClientError
from odradek.kernel.wire.messages.api_03_metadata import MetadataRequest
from odradek.kernel.wire.messages.api_55_describe_quorum import DescribeQuorumRequest, PartitionData, TopicData
from odradek.lab.simulator.cluster import PORT, BrokerHost, Cluster

from .simulated import CONNECTION, admin, image_of, in_cluster, in_quorum_of_three, until

T = TypeVar("T")


def while_three_begin(main: Callable[[Cluster], Awaitable[T]], seed: int) -> T:
    """Run a task beside three voters that begin with empty directories, and return what it returns."""

    async def begin(cluster: Cluster) -> None:
        for broker in cluster.brokers.values():
            broker.start()

    return in_cluster(main, seed=seed, voters=3, begin=begin)


async def described(cluster: Cluster, broker_id: int) -> QuorumDescription:
    async with admin(cluster, broker_id) as client:
        return await client.describe_quorum()


def ids(replicas: Sequence[QuorumReplica]) -> list[int]:
    return [each.replica_id for each in replicas]


def test_any_broker_tells_who_leads_and_every_controller_is_registered() -> None:
    async def main(cluster: Cluster) -> tuple[list[QuorumDescription], list[dict[int, ControllerImage]]]:
        images = [partial(image_of, broker) for broker in cluster.brokers.values()]
        await until(lambda: all(len(image().controllers) == 3 for image in images))
        told = [await described(cluster, broker_id) for broker_id in cluster.brokers]
        return told, [dict(image().controllers) for image in images]

    told, controllers = in_quorum_of_three(main)

    assert len({(each.leader_id, each.leader_epoch) for each in told}) == 1
    assert [ids(each.voters) for each in told] == [[1, 2, 3]] * 3
    assert {address for each in told for voter in each.voters for address in voter.listeners} == {
        ("CONTROLLER", f"broker-{node_id}", 9093) for node_id in (1, 2, 3)
    }
    assert controllers[0] == controllers[1] == controllers[2]
    assert {node_id: known.listeners["CONTROLLER"].host for node_id, known in controllers[0].items()} == {
        node_id: f"broker-{node_id}" for node_id in (1, 2, 3)
    }


def test_voters_are_changed_by_any_broker_and_another_one_leads_when_the_controller_is_killed() -> None:
    async def main(cluster: Cluster) -> list[list[int]]:
        quorum = await described(cluster, 1)
        voter = next(each for each in quorum.voters if each.replica_id != quorum.leader_id)
        other = next(each for each in ids(quorum.voters) if each not in (voter.replica_id, quorum.leader_id))
        async with admin(cluster, quorum.leader_id) as client:
            await client.remove_raft_voter(voter.replica_id, voter.directory_id)
        removed = await described(cluster, voter.replica_id)
        while voter.replica_id not in ids((await described(cluster, other)).observers):  # noqa: ASYNC110 - as `until`
            await trio.sleep(0.1)
        async with admin(cluster, voter.replica_id) as client:
            await client.add_raft_voter(voter.replica_id, voter.directory_id, voter.listeners)
        added = await described(cluster, other)
        cluster.brokers[quorum.leader_id].crash()
        async with admin(cluster, other) as client:
            await client.create_topic(NewTopic("afterwards", 1, 2))
        after = await described(cluster, voter.replica_id)
        assert after.leader_epoch > quorum.leader_epoch
        expected = sorted((other, quorum.leader_id))
        return [ids(removed.voters), expected, ids(added.voters), [after.leader_id], [quorum.leader_id]]

    removed, expected, added, after, before = in_quorum_of_three(main)

    assert removed == expected
    assert added == [1, 2, 3]
    assert after != before


def test_a_broker_that_stops_waits_for_no_heartbeat_of_another_one() -> None:
    rare = {"broker.heartbeat.interval.ms": "100000", "broker.session.timeout.ms": "300000"}

    async def main(cluster: Cluster) -> tuple[float, bool]:
        async with admin(cluster, 1) as client:
            await client.create_topic(NewTopic("led", 3, 3))
        leader_id = (await described(cluster, 1)).leader_id
        stopped_id = next(each for each in cluster.brokers if each != leader_id)
        began_s = trio.current_time()
        await cluster.brokers[stopped_id].stop()
        took_s = trio.current_time() - began_s
        return took_s, image_of(cluster.brokers[leader_id]).brokers[stopped_id].is_fenced

    took_s, is_fenced = in_quorum_of_three(main, rare)

    assert is_fenced
    assert took_s < 1, "some heartbeats of its own, 20 ms apart; those of others come every 100 s"


def test_who_asks_in_an_older_version_is_told_what_that_can_say() -> None:
    asked = DescribeQuorumRequest(
        topics=[TopicData(topic_name="__cluster_metadata", partitions=[PartitionData(partition_index=0)])]
    )

    async def main(cluster: Cluster) -> list[tuple[int, list[int], int]]:
        told = []
        network = cluster.client_machine("asker").network
        for broker_id in cluster.brokers:
            for version in (0, 1, 2):
                async with open_connection(f"broker-{broker_id}", PORT, CONNECTION, network=network) as connection:
                    answer = await connection.request(asked, timeout_ms=30_000, version=version)
                part = answer.topics[0].partitions[0]
                told.append((part.error_code, [each.replica_id for each in part.current_voters], len(answer.nodes)))
        return told

    assert in_quorum_of_three(main) == [(0, [1, 2, 3], 0), (0, [1, 2, 3], 0), (0, [1, 2, 3], 3)] * 3


@pytest.mark.parametrize("seed", range(1, 5))
def test_a_broker_that_says_it_is_ready_tells_clients_of_itself(seed: int) -> None:
    async def main(cluster: Cluster) -> list[bool]:
        known = []

        async def see(broker_id: int, broker: BrokerHost) -> None:
            await broker.wait_serving()
            known.append(broker_id in image_of(broker).live_brokers())

        async with trio.open_nursery() as nursery:
            for broker_id, broker in cluster.brokers.items():
                nursery.start_soon(see, broker_id, broker)
        return known

    assert while_three_begin(main, seed) == [True] * 3


@pytest.mark.parametrize("seed", range(1, 5))
@pytest.mark.parametrize("is_killed", [False, True], ids=["stopped", "killed"])
def test_brokers_that_all_ended_begin_again_within_a_second(seed: int, *, is_killed: bool) -> None:
    async def main(cluster: Cluster) -> float:
        for broker in cluster.brokers.values():
            await broker.wait_serving()
        async with trio.open_nursery() as nursery:
            for broker in cluster.brokers.values():
                if is_killed:
                    broker.crash()
                else:
                    nursery.start_soon(broker.stop)
        began_s = trio.current_time()
        for broker in cluster.brokers.values():
            broker.start()
        for broker in cluster.brokers.values():
            await broker.wait_serving()
        return trio.current_time() - began_s

    assert while_three_begin(main, seed) < 1


@pytest.mark.parametrize("seed", range(1, 5))
def test_nobody_who_comes_while_a_cluster_begins_is_told_that_it_has_no_brokers(seed: int) -> None:
    """librdkafka asks again a minute after such an answer."""

    async def main(cluster: Cluster) -> list[int]:
        network, told = cluster.client_machine("asker").network, []

        async def ask(broker_id: int) -> None:
            while True:
                with suppress(ClientError):
                    async with open_connection(f"broker-{broker_id}", PORT, CONNECTION, network=network) as connection:
                        answer = await connection.request(MetadataRequest(topics=[]), timeout_ms=30_000)
                    told.append(len(answer.brokers))
                    return
                await trio.sleep(0.001)

        async with trio.open_nursery() as nursery:
            for broker_id in cluster.brokers:
                nursery.start_soon(ask, broker_id)
        return told

    assert min(while_three_begin(main, seed)) > 0
