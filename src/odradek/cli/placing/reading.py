"""Shell: what plans and moves need to know of a cluster: its brokers, and which of them has what, how large."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import attrs
import trio

from odradek.client import ClientError, UnsupportedVersionError
from odradek.kernel.errors import ConfigError
from odradek.kernel.types import TopicPartition

from .layout import PlacedBroker, PlacedPartition

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from odradek.cli.cluster_calls import ClusterCalls
    from odradek.client.admin_values import LogDir
    from odradek.client.cluster import Node

    Sizes: TypeAlias = Mapping[int, Mapping[TopicPartition, int]]


async def read_nodes(calls: ClusterCalls) -> list[Node]:
    """Return the brokers that are registered, by id; from Kafka before 4.0 those alone that live."""
    try:
        found = await calls.admin.describe_cluster(with_fenced=True)
    except UnsupportedVersionError:
        found = await calls.admin.describe_cluster()
    return sorted(found.nodes, key=lambda node: node.node_id)


async def read_log_dirs(calls: ClusterCalls, broker_ids: Iterable[int]) -> dict[int, list[LogDir]]:
    """Return the log directories of brokers, of those that answer; all are asked at once."""
    found: dict[int, list[LogDir]] = {}

    async def ask(broker_id: int) -> None:
        try:
            found[broker_id] = await calls.admin.describe_log_dirs(broker_id)
        except ClientError:
            return  # it left meanwhile: what it has is not known

    async with trio.open_nursery() as nursery:
        for broker_id in broker_ids:
            nursery.start_soon(ask, broker_id)
    return found


def sizes_of(log_dirs: Mapping[int, list[LogDir]]) -> dict[int, dict[TopicPartition, int]]:
    """Return how large each broker's replicas are, without copies that move between its directories."""
    return {
        broker_id: {
            TopicPartition(replica.topic, replica.partition): replica.size_bytes
            for log_dir in directories
            for replica in log_dir.replicas
            if not replica.is_future
        }
        for broker_id, directories in log_dirs.items()
    }


@attrs.frozen
class Reading:
    """What is where.

    Attributes:
        brokers: All that are registered, by id.
        partitions: Those that were asked about, by topic and number.
    """

    brokers: tuple[PlacedBroker, ...]
    partitions: tuple[PlacedPartition, ...]

    def check_brokers(self, broker_ids: Iterable[int]) -> None:
        """See that brokers are registered.

        Raises:
            ConfigError: One is not; says which are.
        """
        known = [each.broker_id for each in self.brokers]
        for broker_id in broker_ids:
            if broker_id not in known:
                hint = f"there are: {', '.join(map(str, known))}"
                raise ConfigError(f"there is no broker {broker_id}", hint=hint)


async def read_placing(calls: ClusterCalls, topics: Iterable[str]) -> Reading:
    """Return what is where.

    Args:
        calls: The cluster.
        topics: Whose partitions count.
    """
    nodes = await read_nodes(calls)
    log_dirs = await read_log_dirs(calls, (node.node_id for node in nodes if not node.is_fenced))
    sizes = sizes_of(log_dirs)
    brokers = []
    for node in nodes:
        directories = log_dirs.get(node.node_id, [])
        may_gain = any(not each.is_failed and not each.is_cordoned for each in directories)
        brokers.append(PlacedBroker(node.node_id, node.rack, may_gain))
    partitions = []
    for topic in topics:
        for number, info in sorted(calls.topics[topic].partitions.items()):
            partition = TopicPartition(topic, number)
            size = max((sizes.get(each, {}).get(partition, 0) for each in info.replicas), default=0)
            partitions.append(PlacedPartition(partition, info.replicas, size))
    return Reading(tuple(brokers), tuple(partitions))


async def check_nothing_moves(calls: ClusterCalls) -> None:
    """See that no partition is moving: a plan that is made meanwhile would be of what is no more.

    Raises:
        ConfigError: Some are.
    """
    moving = await calls.admin.list_partition_reassignments()
    if moving:
        told = ", ".join(str(each) for each in sorted(moving)[:3]) + (", ..." if len(moving) > 3 else "")
        hint = "wait for them, or `odradek reassign cancel --all`"
        raise ConfigError(f"partitions are moving already: {told}", hint=hint)
