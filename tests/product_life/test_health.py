"""`/healthz`, `/readyz` and `/metrics` of a broker in a process of its own."""

from __future__ import annotations

import http.client
import socket
from contextlib import suppress
from pathlib import Path

import pytest

from odradek.kernel.errors import ErrorCode

from ..broker.broker_process import BrokerProcess, Client, batch_of, broker_process, serving
from ..broker.test_process import create, produce


@pytest.fixture
def http_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
        return port


def get(port: int, path: str) -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        return response.status, response.read().decode()
    finally:
        connection.close()


def test_a_broker_that_serves_is_healthy_ready_and_counts(tmp_path: Path, http_port: int) -> None:
    with broker_process(tmp_path, f"odradek.http.listener=127.0.0.1:{http_port}") as broker:
        with Client(broker.address) as client:
            create(client, "counted")
            produce(client, "counted", batch_of(b"one", b"two", b"three"))
        health, ready, metrics = (get(http_port, path) for path in ("/healthz", "/readyz", "/metrics"))

    assert (health[0], ready[0], metrics[0]) == (200, 200, 200)
    (count,) = (line for line in metrics[1].splitlines() if "messagesin" in line.lower() and 'topic="counted"' in line)
    assert count.endswith(" 3")


def test_without_the_setting_nothing_listens_beside_the_broker(tmp_path: Path) -> None:
    with broker_process(tmp_path) as broker:
        tcp = Path(f"/proc/{broker.process.pid}/net/tcp").read_text().splitlines()[1:]
        listening = {line.split()[9] for line in tcp if line.split()[3] == "0A"}
        own = set()
        for descriptor in Path(f"/proc/{broker.process.pid}/fd").iterdir():
            with suppress(FileNotFoundError):  # the broker closed it meanwhile
                own.add(descriptor.readlink().name.removeprefix("socket:[").removesuffix("]"))

    assert len(listening & own) == 1


def test_a_browser_finds_the_topics(tmp_path: Path, http_port: int) -> None:
    with broker_process(tmp_path, f"odradek.http.listener=127.0.0.1:{http_port}") as broker:
        with Client(broker.address) as client:
            create(client, "counted")
            produce(client, "counted", batch_of(b"one", b"two", b"three"))
        home, topics, topic = (get(http_port, path) for path in ("/", "/topics", "/topic?name=counted"))

    assert (home[0], topics[0], topic[0]) == (200, 200, 200)
    assert 'href="/topics"' in home[1]
    assert 'href="/topic?name=counted"' in topics[1]
    assert '<td data-of="Log end offset">3</td>' in topic[1]


def test_without_the_plugin_that_serves_http_the_setting_is_refused_and_the_broker_serves(tmp_path: Path) -> None:
    """Whoever set it would otherwise wait for health that never comes."""
    (tmp_path / "odradek.toml").write_text('[plugins]\ndisable = ["observe"]\n')
    with serving(BrokerProcess.from_config(tmp_path / "data", tmp_path / "odradek.toml")) as broker:
        with Client(broker.address) as client:
            create(client, "orders")
            assert produce(client, "orders", batch_of(b"one"))[0] == ErrorCode.NONE
        status, _said = broker.terminate()
    (tmp_path / "odradek.toml").write_text(
        '[broker]\n"odradek.http.listener" = "127.0.0.1:0"\n[plugins]\ndisable = ["observe"]\n'
    )
    refused_status, said = BrokerProcess.from_config(tmp_path / "data", tmp_path / "odradek.toml").finish()

    assert status == 0
    assert refused_status == 2
    assert "odradek.http.listener" in said
