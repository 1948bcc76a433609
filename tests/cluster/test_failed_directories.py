"""A log directory of a broker fails: others lead what lay in it, and it serves the rest; after a repair it is back."""

from __future__ import annotations

import errno
from typing import Any

import pytest
import trio

from odradek.client import NewTopic, TopicPartition
from odradek.kernel.contracts.election import PartitionState
from odradek.kernel.controller.directory_changes import directory_of
from odradek.kernel.errors import UnansweredError
from odradek.kernel.machine.files import disk_error
from odradek.kernel.metadata.image import UNASSIGNED_DIRECTORY
from odradek.kernel.wire.special_timestamps import LATEST_TIMESTAMP
from odradek.lab.simulator.cluster import BrokerHost, Cluster

from .simulated import admin, image_of, in_cluster, until

TWO_DISKS = {"log.dirs": "/data/one,/data/two"}
PARTITIONS = 6


def fail_second_disk(host: BrokerHost) -> set[int]:
    """Let the second directory of a broker fail as a disk does; return which partitions lie there."""
    assert host.broker is not None
    replicas = host.broker.parts.logs.replicas
    engine = replicas.engines["segment"]
    directories: Any = getattr(engine, "_dirs", None)
    (second,) = [each for each in directories if each.path.name == "two"]
    there = {index for index in range(PARTITIONS) if replicas.get("t", index).log.log_dir == second.name}
    directories.set_offline(second, disk_error(OSError(errno.EIO, "broken"), "write", second.path))
    return there


def has_opened(host: BrokerHost) -> bool:
    """Return whether a broker has all its replicas."""
    assert host.broker is not None
    opened = host.broker.parts.logs.replicas.topics.get("t")
    return opened is not None and len(opened.partitions) == PARTITIONS


def leaves_of(error: BaseException) -> list[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        return [leaf for each in error.exceptions for leaf in leaves_of(each)]
    return [error]


def partitions(cluster: Cluster) -> tuple[PartitionState, ...]:
    return image_of(cluster.brokers[1]).topics_by_name["t"].partitions


def leaders(cluster: Cluster) -> list[int]:
    return [state.leader for state in partitions(cluster)]


def is_told(cluster: Cluster, *node_ids: int) -> bool:
    """Return whether the controller knows where each replica lies, of these brokers or of all."""
    image = image_of(cluster.brokers[1])
    topic = image.topics_by_name.get("t")
    return topic is not None and all(
        directory_of(image, topic.topic_id, index, broker_id) != UNASSIGNED_DIRECTORY
        for index in range(PARTITIONS)
        for broker_id in node_ids or image.brokers
    )


@pytest.mark.parametrize("node_id", [1, 2], ids=["the controller's own", "another broker's"])
def test_what_lay_in_a_directory_that_failed_is_led_by_others_until_it_is_repaired(node_id: int) -> None:
    async def main(cluster: Cluster) -> tuple[list[int], list[int], set[int]]:
        async with admin(cluster, 3) as client:
            await client.create_topic(NewTopic("t", PARTITIONS, 3))
        await until(lambda: is_told(cluster))
        before = leaders(cluster)
        broker = cluster.brokers[node_id]
        lost = fail_second_disk(broker)
        await until(lambda: node_id not in {leaders(cluster)[index] for index in lost})
        after = leaders(cluster)
        await broker.stop()
        broker.start()
        await broker.wait_serving()
        await until(lambda: all(len(state.isr) == 3 for state in partitions(cluster)))
        return before, after, lost

    before, after, lost = in_cluster(main, settings=TWO_DISKS)

    assert any(before[index] == node_id for index in lost)
    assert {index for index in range(PARTITIONS) if before[index] != after[index]} == {
        index for index in lost if before[index] == node_id
    }
    assert -1 not in after


@pytest.mark.parametrize("node_id", [1, 2], ids=["the controller's own", "another broker's"])
def test_what_lay_in_a_directory_that_failed_before_the_controller_knew_is_led_by_others(node_id: int) -> None:
    async def main(cluster: Cluster) -> set[int]:
        async with admin(cluster, 3) as client:
            await client.create_topic(NewTopic("t", assignments=[[node_id, 3]] * PARTITIONS))
        broker = cluster.brokers[node_id]
        await until(lambda: has_opened(broker))
        assert not is_told(cluster)
        lost = fail_second_disk(broker)
        await until(lambda: node_id not in {leaders(cluster)[index] for index in lost})
        return {index for index, leader in enumerate(leaders(cluster)) if leader == node_id} | lost

    assert in_cluster(main, settings=TWO_DISKS) == set(range(PARTITIONS))


@pytest.mark.parametrize("node_id", [1, 2], ids=["the controller's own", "another broker's"])
def test_what_lay_in_a_directory_that_is_taken_out_of_use_is_copied_from_the_others(node_id: int) -> None:
    """The broker that begins anew leads nothing before it has what the others have."""

    async def main(cluster: Cluster) -> list[int]:
        async with admin(cluster, 3) as client, cluster.producer("producer", {"acks": "all"}) as producer:
            await client.create_topic(NewTopic("t", assignments=[[node_id, 3]] * PARTITIONS))
            await until(lambda: is_told(cluster, node_id, 3))
            for index in range(PARTITIONS):
                await producer.send("t", "kept", partition=index)
            broker = cluster.brokers[node_id]
            await broker.stop()
            broker.start({"log.dirs": "/data/one"})
            await broker.wait_serving()
            await until(lambda: all(len(state.isr) == 2 for state in partitions(cluster)))
            wanted = [TopicPartition("t", index) for index in range(PARTITIONS)]
            ends = await client.list_offsets(dict.fromkeys(wanted, LATEST_TIMESTAMP))
            return [ends[partition].offset for partition in wanted]

    assert in_cluster(main, settings=TWO_DISKS) == [1] * PARTITIONS


def test_a_broker_that_cannot_tell_the_controller_of_a_failed_directory_ends() -> None:
    """The other one that is cut off, and lost nothing, goes on."""
    limit_ms = 5_000

    async def main(cluster: Cluster) -> tuple[float, list[Exception], bool]:
        async with admin(cluster, 3) as client:
            await client.create_topic(NewTopic("t", PARTITIONS, 3))
        await until(lambda: is_told(cluster))
        hosts = {node_id: broker.host.host for node_id, broker in cluster.brokers.items()}
        for node_id in (2, 3):
            cluster.network.cut(hosts[node_id], hosts[1])
            cluster.network.cut(hosts[1], hosts[node_id])
        failures: list[Exception] = []
        cluster.brokers[2].on_failure = failures.append
        began = trio.current_time()
        fail_second_disk(cluster.brokers[2])
        await until(lambda: bool(failures))
        took_s = trio.current_time() - began
        await trio.sleep(limit_ms / 1000)
        third = cluster.brokers[3].broker
        return (
            took_s,
            failures,
            third is not None and len(third.parts.logs.replicas.topics["t"].partitions) == PARTITIONS,
        )

    settings = {**TWO_DISKS, "log.dir.failure.timeout.ms": str(limit_ms)}
    took_s, failures, is_third_there = in_cluster(main, settings=settings)

    assert limit_ms / 1000 <= took_s <= 3 * limit_ms / 1000
    (failure,) = leaves_of(failures[0])
    assert isinstance(failure, UnansweredError)
    assert "has failed" in str(failure)
    assert is_third_there
