"""Three broker processes, of which one after the other comes back with an empty disk, under a real client's load.

A replica that has lost its log is brought up from its leader. One that votes has lost its votes, too, and might give
another one of the same term: it stays offline until the partition is reassigned without it, and then with it again
(docs/how-to/run-a-cluster.md).
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
import trio
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from odradek.cli.serve_many import free_port
from odradek.client import Admin, TopicPartition

from .node_processes import THIS, Node, alive
from .test_processes import PATIENCE_S
from .test_real_faults import REPLICAS, TOPIC, Load, await_agreement, check, read_all

CONFIGS = {
    "isr": {"min.insync.replicas": "2"},
    "quorum": {"odradek.election": "quorum"},
}
REPLACED = (3, 2)
"""Brokers that keep no metadata: whose does, and is alone with it, must not lose it."""


@contextmanager
def running(folder: Path) -> Iterator[tuple[dict[int, Node], str]]:
    """Three brokers by their numbers, and where they are; the first keeps the metadata."""
    with ExitStack() as held:
        controller, *own = (free_port("127.0.0.1", held) for _ in range(4))
        ports = dict(enumerate(own, start=1))
        nodes = {}
        for number, port in ports.items():
            at_controller = f",CONTROLLER://127.0.0.1:{controller}" if number == 1 else ""
            options = [
                f"node.id={number}",
                f"process.roles={'broker,controller' if number == 1 else 'broker'}",
                f"listeners=PLAINTEXT://127.0.0.1:{port}{at_controller}",
                "controller.listener.names=CONTROLLER",
                f"controller.quorum.voters=1@127.0.0.1:{controller}",
            ]
            nodes[number] = Node(options, folder / str(number))
        with alive(nodes, dict.fromkeys(nodes, THIS)):
            yield nodes, ",".join(node.address for node in nodes.values())


async def reassign_without_and_with(bootstrap: str, broker_id: int) -> None:
    """Have a broker's replicas leave the voters of every partition, and come back."""
    with_it = {TopicPartition(TOPIC, partition): replicas for partition, replicas in enumerate(REPLICAS)}
    without = {each: [other for other in replicas if other != broker_id] for each, replicas in with_it.items()}
    async with Admin({"bootstrap.servers": bootstrap}) as admin:
        for changes in (without, with_it):
            assert await admin.alter_partition_reassignments(changes) == {}
            with trio.fail_after(PATIENCE_S):
                while await admin.list_partition_reassignments():  # noqa: ASYNC110 - another process does it
                    await trio.sleep(0.05)
            info = await admin.describe_topic(TOPIC)
            assert {
                TopicPartition(TOPIC, number): list(each.replicas) for number, each in info.partitions.items()
            } == changes


@pytest.mark.parametrize("election", CONFIGS)
def test_what_was_acknowledged_outlives_disks_that_are_replaced_one_after_the_other(
    tmp_path: Path, election: str
) -> None:
    with running(tmp_path) as (nodes, bootstrap):
        topic = NewTopic(TOPIC, len(REPLICAS), replica_assignment=REPLICAS, config=CONFIGS[election])
        admin = AdminClient({"bootstrap.servers": bootstrap})
        admin.create_topics([topic])[TOPIC].result(timeout=PATIENCE_S)
        load = Load(bootstrap)
        with load.running():
            load.await_more()
            for number in REPLACED:
                nodes[number].kill()
                shutil.rmtree(tmp_path / str(number))
                load.await_more()
                nodes[number].start(THIS)
                load.await_more()
                if election == "quorum":
                    trio.run(reassign_without_and_with, bootstrap, number)
                await_agreement(bootstrap)
        found = read_all(bootstrap)

    assert load.failures == []
    check(found, load.acknowledged)
