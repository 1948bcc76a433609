"""A log directory of a broker fails: others lead what lay in it, and it serves the rest; after a repair it is back."""

from __future__ import annotations

import errno
from typing import Any

import pytest

from odradek.client import NewTopic
from odradek.kernel.contracts.election import PartitionState
from odradek.kernel.controller.directory_changes import directory_of
from odradek.kernel.machine.files import disk_error
from odradek.kernel.metadata.image import UNASSIGNED_DIRECTORY
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


def partitions(cluster: Cluster) -> tuple[PartitionState, ...]:
    return image_of(cluster.brokers[1]).topics_by_name["t"].partitions


def leaders(cluster: Cluster) -> list[int]:
    return [state.leader for state in partitions(cluster)]


def is_told(cluster: Cluster) -> bool:
    """Return whether the controller knows where each replica lies."""
    image = image_of(cluster.brokers[1])
    topic = image.topics_by_name.get("t")
    return topic is not None and all(
        directory_of(image, topic.topic_id, index, broker_id) != UNASSIGNED_DIRECTORY
        for index in range(PARTITIONS)
        for broker_id in image.brokers
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
