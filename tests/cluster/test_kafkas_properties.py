"""Three files as Apache Kafka 4.3 ships its `config/server.properties`, with ids, ports and places of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
import trio

from odradek.cli.serve_many import free_port
from odradek.client import NewTopic
from odradek.client.admin import Admin
from tests.waiting import is_readable

from .test_processes import PATIENCE_S

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")

KAFKAS = """\
process.roles=broker,controller
node.id={number}
controller.quorum.bootstrap.servers={servers}
listeners=PLAINTEXT://:{clients},CONTROLLER://:{controllers}
inter.broker.listener.name=PLAINTEXT
advertised.listeners=PLAINTEXT://localhost:{clients},CONTROLLER://localhost:{controllers}
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT,\
SASL_SSL:SASL_SSL
num.network.threads=3
num.io.threads=8
socket.send.buffer.bytes=102400
socket.receive.buffer.bytes=102400
socket.request.max.bytes=104857600
log.dirs={place}
num.partitions=1
num.recovery.threads.per.data.dir=2
offsets.topic.replication.factor=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
log.retention.hours=168
log.segment.bytes=1073741824
log.retention.check.interval.ms=300000
"""
"""Each key that the file sets, in its order."""


@contextmanager
def started(config: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A broker of a file, which is not waited for."""
    command = [sys.executable, "-m", "odradek", "serve", "--config", str(config)]
    with (config.with_suffix(".log")).open("wb") as log:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, bufsize=0)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


async def voters_of(address: str) -> tuple[list[int], list[int]]:
    """Have a broker make a topic with three replicas, and return who votes, and the brokers of the cluster."""
    async with Admin({"bootstrap.servers": address}) as client:
        await client.create_topic(NewTopic("orders", 1, 3))
        quorum, cluster = await client.describe_quorum(), await client.describe_cluster()
    return sorted(each.replica_id for each in quorum.voters), sorted(each.node_id for each in cluster.nodes)


def test_three_of_kafkas_own_files_start_three_brokers_as_they_are(tmp_path: Path) -> None:
    with ExitStack() as stack:
        clients, controllers = ([free_port("127.0.0.1", stack) for _ in range(3)] for _ in range(2))
        servers = ",".join(f"localhost:{port}" for port in controllers)
        brokers = []
        for number, (client, controller) in enumerate(zip(clients, controllers, strict=True), start=1):
            config, place = tmp_path / f"server-{number}.properties", tmp_path / f"logs-{number}"
            config.write_text(
                KAFKAS.format(number=number, servers=servers, clients=client, controllers=controller, place=place)
            )
            brokers.append(stack.enter_context(started(config)))
        for broker in brokers:
            assert broker.stdout is not None
            assert is_readable(broker.stdout, PATIENCE_S), "a broker did not get ready in time"
            assert broker.stdout.readline().startswith(b"ready ")
        voters, members = trio.run(voters_of, f"localhost:{clients[0]}")

    assert voters == members == [1, 2, 3]
