"""A cluster on virtual time with a topic whose replicas vote: what an operator asks for, and what settings do there."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest
import trio

from odradek.cli import cluster_drain, elect, topics
from odradek.cli.cluster_calls import ClusterCalls
from odradek.client import Admin, Consumer, NewTopic, Producer, TopicPartition
from odradek.kernel.contracts.election import PartitionState
from odradek.kernel.errors import ErrorCode
from odradek.lab.simulator.cluster import PORT, Cluster

from .simulated import admin, image_of, in_cluster, until

TOPIC = "votes"
PARTITIONS = 3


def states(cluster: Cluster, node_id: int = 1) -> list[PartitionState]:
    """Return the topic's partitions, as a broker knows them."""
    topic = image_of(cluster.brokers[node_id]).topics_by_name.get(TOPIC)
    return [] if topic is None else list(topic.partitions)


async def make_topic(cluster: Cluster, client: Admin, **configs: str) -> None:
    """Make the topic, and wait until all of it is led, and all brokers know."""
    wanted = {"odradek.election": "quorum", **configs}
    await client.create_topic(NewTopic(TOPIC, PARTITIONS, 3, wanted))
    await until(lambda: _is_led(cluster))


def _is_led(cluster: Cluster) -> bool:
    known = [states(cluster, node_id) for node_id in cluster.brokers]
    return all(len(each) == PARTITIONS and all(state.leader > 0 for state in each) for each in known)


async def prefer(client: Admin, node_id: int) -> None:
    """Have a broker be the preferred leader of all partitions: no voter changes with their order."""
    order = (node_id, *(each for each in (1, 2, 3) if each != node_id))
    refused = await client.alter_partition_reassignments(
        {TopicPartition(TOPIC, number): order for number in range(PARTITIONS)}
    )
    assert refused == {}


def producer(cluster: Cluster) -> Producer:
    settings = {"bootstrap.servers": f"broker-2:{PORT},broker-3:{PORT}", "client.id": "shop", "acks": "all"}
    return Producer(settings, machine=cluster.client_machine("shop"))


async def calls_of(client: Admin) -> ClusterCalls:
    """Return what commands work with."""
    found = await client.list_topics(with_internal=True)
    return ClusterCalls(client, {topic.name: topic for topic in found})


def test_topics_describe_shows_voters_their_term_and_how_far_each_is(capsys: pytest.CaptureFixture[str]) -> None:
    async def main(cluster: Cluster) -> list[tuple[int, int]]:
        async with admin(cluster, 2) as client, producer(cluster) as shop:
            await make_topic(cluster, client)
            for partition in range(PARTITIONS):
                await shop.send(TOPIC, b"an order", partition=partition)
            await trio.sleep(2)
            calls = await calls_of(client)
            for is_json in (True, False):
                await topics._describe(_arguments(topics=[TOPIC], json=is_json), calls)
            return [(state.leader, state.leader_epoch) for state in states(cluster)]

    led = in_cluster(main)
    shown = capsys.readouterr().out
    (told,), end = json.JSONDecoder().raw_decode(shown)
    lines = [line.split() for line in shown[end:].splitlines()]

    assert [(row["leader"], row["epoch"]) for row in told["partitions"]] == led
    for row in told["partitions"]:
        assert [voter["id"] for voter in row["voters"]] == [1, 2, 3]
        assert {voter["end"] for voter in row["voters"]} == {row["high_watermark"]} == {row["end"]}
    assert lines[-4][-1] == "voters"
    assert lines[-1][-3:] == [f"{broker_id}@{told['partitions'][2]['end']}" for broker_id in (1, 2, 3)]


def _arguments(**named: Any) -> Any:
    return SimpleNamespace(**{"json": True, **named})


def test_the_preferred_replica_of_a_new_partition_leads_it() -> None:
    async def main(cluster: Cluster) -> list[tuple[int, int]]:
        async with admin(cluster, 2) as client:
            await make_topic(cluster, client)
            return [(state.leader, state.replicas[0]) for state in states(cluster)]

    led = in_cluster(main)

    assert {leader for leader, _preferred in led} == {1, 2, 3}
    assert all(leader == preferred for leader, preferred in led)


def test_elect_brings_the_preferred_replicas_back(capsys: pytest.CaptureFixture[str]) -> None:
    async def main(cluster: Cluster) -> tuple[int, list[int], list[int]]:
        async with admin(cluster, 3) as client:
            await make_topic(cluster, client)
            await trio.sleep(2)
            await prefer(client, 2)
            status = await elect._elect(_arguments(topics=[TOPIC], unclean=False), await calls_of(client))
            return status, [state.leader for state in states(cluster, 3)], [state.leader for state in states(cluster)]

    status, known, leaders = in_cluster(main)

    assert (status, known, leaders) == (0, [2, 2, 2], [2, 2, 2])
    assert json.loads(capsys.readouterr().out)["failed"] == []


@pytest.mark.parametrize("is_enabled", [True, False])
def test_leaders_go_back_to_preferred_replicas_by_themselves_unless_they_shall_not(is_enabled: bool) -> None:
    settings = {
        "leader.imbalance.check.interval.seconds": "20",
        "auto.leader.rebalance.enable": f"{is_enabled}".lower(),
    }

    async def main(cluster: Cluster) -> list[tuple[int, int]]:
        async with admin(cluster, 3) as client:
            await make_topic(cluster, client)
            await trio.sleep(2)
            await prefer(client, 2)
            await trio.sleep(25)
            return [(state.leader, state.replicas[0]) for state in states(cluster)]

    led = in_cluster(main, settings=settings)

    assert [preferred for _leader, preferred in led] == [2, 2, 2]
    assert {leader for leader, _preferred in led} == ({2} if is_enabled else {1, 2, 3})


def test_a_broker_is_drained_of_its_leaders(capsys: pytest.CaptureFixture[str]) -> None:
    async def main(cluster: Cluster) -> tuple[int, list[int]]:
        async with admin(cluster, 2) as client:
            await make_topic(cluster, client)
            await trio.sleep(2)
            drained = states(cluster)[0].leader
            arguments = _arguments(id=drained, replicas=False, throttle=None)
            status = await cluster_drain._drain(arguments, await calls_of(client))
            return status, [state.leader == drained for state in states(cluster)]

    assert in_cluster(main) == (0, [False] * PARTITIONS)
    assert json.loads(capsys.readouterr().out)["left"] == []


def test_a_broker_that_stops_in_good_order_hands_over_and_nothing_is_refused() -> None:
    async def main(cluster: Cluster) -> tuple[bool, list[int]]:
        async with admin(cluster, 2) as client, producer(cluster) as shop:
            await make_topic(cluster, client)
            first = [await shop.send(TOPIC, b"1", partition=number) for number in range(PARTITIONS)]
            stopped = next(state.leader for state in states(cluster) if state.leader > 1)
            await cluster.brokers[stopped].stop()
            leads = any(state.leader == stopped for state in states(cluster))
            after = [await shop.send(TOPIC, b"2", partition=number) for number in range(PARTITIONS)]
            return leads, [later.offset - before.offset for before, later in zip(first, after, strict=True)]

    leads, steps = in_cluster(main)

    assert not leads
    assert all(1 <= step <= 2 for step in steps)  # a new leader's own record may stand between


def test_min_insync_replicas_refuses_nothing_where_a_majority_is_there() -> None:
    async def main(cluster: Cluster) -> int:
        async with admin(cluster, 2) as client, producer(cluster) as shop:
            await make_topic(cluster, client, **{"min.insync.replicas": "3"})
            cluster.brokers[3].crash()
            await until(lambda: all(3 not in state.isr and state.leader > 0 for state in states(cluster)))
            return (await shop.send(TOPIC, b"a majority has it", partition=0)).offset

    assert in_cluster(main) >= 0


def test_unclean_elections_are_refused_with_the_reason_and_the_setting_has_no_effect() -> None:
    async def main(cluster: Cluster) -> tuple[list[int], Any]:
        async with admin(cluster, 1) as client:
            await make_topic(cluster, client, **{"unclean.leader.election.enable": "true"})
            await trio.sleep(2)
            await prefer(client, 2)
            await client.elect_leaders()
            for node_id in (2, 3):
                cluster.brokers[node_id].crash()
            await until(lambda: all(state.isr == (1,) and state.leader == -1 for state in states(cluster)))
            await trio.sleep(30)
            place = TopicPartition(TOPIC, 0)
            answers = await client.elect_leaders([place], is_unclean=True)
            return [state.leader for state in states(cluster)], answers[place]

    leaders, error = in_cluster(main)

    assert leaders == [-1] * PARTITIONS
    assert error.code is ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE
    assert "who lacks committed records cannot win" in error.detail


def test_consumers_read_from_a_follower_of_their_rack() -> None:
    async def main(cluster: Cluster) -> tuple[list[bytes | None], bool]:
        async with admin(cluster, 2) as client, producer(cluster) as shop:
            await make_topic(cluster, client)
            for number in range(10):
                await shop.send(TOPIC, b"%d" % number, partition=0)
            leader = states(cluster)[0].leader
            follower = next(each for each in (1, 2, 3) if each != leader)
            settings = {
                "bootstrap.servers": f"broker-{leader}:{PORT}",
                "client.rack": f"rack-{follower}",
                "auto.offset.reset": "earliest",
            }
            reads = _reads(cluster, follower)
            async with Consumer(settings, machine=cluster.client_machine("reader")) as reader:
                reader.assign([TopicPartition(TOPIC, 0)])
                found: list[bytes | None] = []
                while len(found) < 10:
                    found += [each.value for each in await reader.poll(timeout_ms=1000)]
            return found, _reads(cluster, follower) > reads

    settings = {"replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector"}
    found, was_read = in_cluster(main, settings=settings, begin=_start_in_racks)

    assert found == [b"%d" % number for number in range(10)]
    assert was_read


async def _start_in_racks(cluster: Cluster) -> None:
    for node_id, broker in cluster.brokers.items():
        broker.start({"broker.rack": f"rack-{node_id}"})
    for broker in cluster.brokers.values():
        await broker.wait_serving()


def _reads(cluster: Cluster, node_id: int) -> int:
    """Return how many bytes consumers have been given of the topic by a broker."""
    broker = cluster.brokers[node_id].broker
    assert broker is not None
    return broker.parts.logs.replicas.topics[TOPIC].counters.bytes_out
