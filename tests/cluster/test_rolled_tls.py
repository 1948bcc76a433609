"""Three broker processes that go from plaintext to TLS, listener by listener, under a real client's load.

What Kafka's `security_rolling_upgrade_test` checks with SSL: brokers get a listener for it beside the one that they
have, then speak it among themselves, then have it alone. Each step is a roll of all three, so that brokers of two steps
stand beside each other, and nobody stops to be reached by those who know the listener of the step before.
"""

from __future__ import annotations

import socket
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import pytest

from odradek.cli.serve_many import free_port

from .billing import create_topics
from .node_processes import Build, Node, alive
from .test_processes import PATIENCE_S
from .test_real_faults import Load, Settings, check, read_all
from .test_secured_brokers import HOST, Authority

STEPS: Final = (
    {"listeners": "PLAINTEXT", "security.inter.broker.protocol": "PLAINTEXT"},
    {"listeners": "PLAINTEXT,SSL", "security.inter.broker.protocol": "PLAINTEXT"},
    {"listeners": "PLAINTEXT,SSL", "security.inter.broker.protocol": "SSL"},
    {"listeners": "SSL", "security.inter.broker.protocol": "SSL"},
)
"""What brokers are set to, step by step: which listeners they have, and which one they speak among themselves."""
LATER: Final = 1 << 40
"""The first number that is sent by TLS."""


def builds(node_id: int, ports: dict[str, int], controller_port: int, authority: Authority) -> list[Build]:
    """Return a broker as each step has it; the first one is the controller, too."""
    controller = f",CONTROLLER://{HOST}:{controller_port}" if node_id == 1 else ""
    alike = {
        "node.id": str(node_id),
        "process.roles": "broker,controller" if node_id == 1 else "broker",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SSL:SSL,CONTROLLER:PLAINTEXT",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.voters": f"1@{HOST}:{controller_port}",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(authority.signed(f"broker-{node_id}", HOST)),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(authority.file),
        "ssl.client.auth": "required",
    }
    found = []
    for step in STEPS:
        listeners = ",".join(f"{name}://{HOST}:{ports[name]}" for name in step["listeners"].split(","))
        found.append(Build(Path(sys.executable), {**alike, **step, "listeners": f"{listeners}{controller}"}))
    return found


@pytest.fixture
def ports() -> Iterator[dict[int, dict[str, int]]]:
    """Ports of each broker; held until the test ends, since brokers take and leave them as they go."""
    with ExitStack() as held:
        found = {number: {name: free_port("127.0.0.1", held) for name in ("PLAINTEXT", "SSL")} for number in (1, 2, 3)}
        found[1]["CONTROLLER"] = free_port("127.0.0.1", held)
        yield found


def test_a_cluster_goes_from_plaintext_to_tls_listener_by_listener(
    tmp_path: Path, ports: dict[int, dict[str, int]]
) -> None:
    authority = Authority(tmp_path)
    controller_port = ports[1]["CONTROLLER"]
    steps = {number: builds(number, own, controller_port, authority) for number, own in ports.items()}
    nodes = {number: Node([], tmp_path / str(number)) for number in ports}
    open_to_all, secured = (",".join(f"{HOST}:{own[name]}" for own in ports.values()) for name in ("PLAINTEXT", "SSL"))
    own_file = str(authority.signed("client", "client.example"))
    with_tls: Settings = {
        "security.protocol": "SSL",
        "ssl.ca.location": str(authority.file),
        "ssl.certificate.location": own_file,
        "ssl.key.location": own_file,
    }

    def roll(step: int, load: Load) -> None:
        for number in (3, 2, 1):
            nodes[number].stop()
            nodes[number].start(steps[number][step])
            load.await_more()

    with alive(nodes, {number: each[0] for number, each in steps.items()}):
        create_topics(open_to_all)
        before = Load(open_to_all)
        with before.running():
            before.await_more()
            roll(1, before)
            roll(2, before)
        after = Load(secured, with_tls, first=LATER)
        with after.running():
            after.await_more()
            roll(3, after)
        found = read_all(secured, with_tls)
        closed = [is_refused(own["PLAINTEXT"]) for own in ports.values()]

    assert before.failures == after.failures == []
    check(found, [{**one, **other} for one, other in zip(before.acknowledged, after.acknowledged, strict=True)])
    assert closed == [True] * 3


def is_refused(port: int) -> bool:
    try:
        socket.create_connection((HOST, port), PATIENCE_S).close()
    except ConnectionRefusedError:
        return True
    return False
