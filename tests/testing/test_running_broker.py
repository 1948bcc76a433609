"""The broker inside a test's process: its life, its settings, and what a test sees when it dies."""

from __future__ import annotations

import socket
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import pytest

from odradek.kernel.errors import ConfigError, PluginError
from odradek.kernel.wire.messages.api_03_metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from odradek.kernel.wire.messages.api_32_describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from odradek.testing.running_broker import BrokerDiedError, RunningBroker, running_broker

from ..broker.broker_process import Client, batch_of
from ..broker.test_process import create, fetch, produce

DELAY = "group.initial.rebalance.delay.ms"
BROKER = 4
"""The type of a resource that is a broker."""
INSIDE = {"inter.broker.listener.name": "INSIDE", "listener.security.protocol.map": "INSIDE:PLAINTEXT"}
DYING_PLUGIN = """
import trio
from odradek.kernel.api import Service, hookimpl

async def run(*, task_status):
    task_status.started()
    raise SystemExit("the plugin pulled the plug")

@hookimpl
def odradek_services(broker):
    return [Service("death", run)]
"""


def partitions_of(address: str, topic: str) -> int:
    with Client(address) as client:
        create(client, topic)
        response = client.ask(MetadataRequest(topics=[MetadataRequestTopic(name=topic)]), 9)
    assert isinstance(response, MetadataResponse)
    return len(response.topics[0].partitions)


def test_settings_are_the_brokers_own() -> None:
    with running_broker({"num.partitions": 4, "auto.create.topics.enable": True}) as broker:
        assert partitions_of(broker.bootstrap, "orders") == 4


@pytest.mark.parametrize(
    ("settings", "file", "expected"),
    [({}, "", "0"), ({DELAY: 70}, "", "70"), ({}, f'[broker]\n"{DELAY}" = 80\n', "80"), ({}, "[topics.orders]\n", "0")],
)
def test_the_first_member_of_a_group_waits_for_no_others_unless_somebody_says_so(
    tmp_path: Path, settings: dict[str, object], file: str, expected: str
) -> None:
    config = tmp_path / "odradek.toml"
    config.write_text(file)
    with running_broker(settings, config=config) as broker, Client(broker.bootstrap) as client:
        resource = DescribeConfigsResource(resource_type=BROKER, resource_name="1", configuration_keys=[DELAY])
        response = client.ask(DescribeConfigsRequest(resources=[resource]), 4)

    assert isinstance(response, DescribeConfigsResponse)
    assert [item.value for item in response.results[0].configs] == [expected]


def test_listeners_may_be_given() -> None:
    with running_broker(
        {"listeners": "INSIDE://127.0.0.1:0", "inter.broker.listener.name": "INSIDE"} | INSIDE
    ) as broker:
        assert (broker.host, broker.port > 0) == ("127.0.0.1", True)


def test_another_address_may_be_advertised() -> None:
    with running_broker({"advertised.listeners": "PLAINTEXT://localhost:9999"}) as broker:
        assert broker.bootstrap == "localhost:9999"


def test_each_listener_has_its_address() -> None:
    both = {"listener.security.protocol.map": "INSIDE:PLAINTEXT,PLAINTEXT:PLAINTEXT"}
    with running_broker({"listeners": "INSIDE://127.0.0.1:0,PLAINTEXT://localhost:0"} | INSIDE | both) as broker:
        assert broker.bootstrap == broker.bootstrap_of("INSIDE") == broker.bootstrap_of("inside")
        assert broker.bootstrap_of("PLAINTEXT").startswith("localhost:")
        with pytest.raises(ValueError, match="no listener 'SSL'; it has INSIDE, PLAINTEXT"):
            broker.bootstrap_of("SSL")
        addresses = [broker.bootstrap_of(name) for name in ("INSIDE", "PLAINTEXT")]
        broker.stop()
        broker.start()
        assert addresses == [broker.bootstrap_of(name) for name in ("INSIDE", "PLAINTEXT")]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("odradek.toml", '[broker]\nlisteners = "PLAINTEXT://localhost:0"\n'),
        ("odradek.toml", '[broker]\n"listeners" = ["PLAINTEXT://localhost:0"]\n'),
        ("server.properties", "# as it was\nlisteners=PLAINTEXT://localhost:0\n"),
    ],
)
def test_the_listeners_of_a_configuration_file_hold_unless_the_test_gives_others(
    tmp_path: Path, name: str, text: str
) -> None:
    config = tmp_path / name
    config.write_text(text)
    with running_broker(config=config) as broker:
        assert broker.host == "localhost"
    with running_broker({"listeners": "PLAINTEXT://127.0.0.1:0"}, config=config) as broker:
        assert broker.host == "127.0.0.1"


def test_a_file_that_only_speaks_of_listeners_gives_none(tmp_path: Path) -> None:
    config = tmp_path / "odradek.toml"
    config.write_text("# listeners = 'PLAINTEXT://localhost:9092' in production\n[broker]\n\"num.partitions\" = 2\n")
    with running_broker(config=config) as broker:
        assert broker.host == "127.0.0.1"


def test_two_brokers_stand_side_by_side() -> None:
    with running_broker() as one, running_broker() as other:
        assert one.port != other.port
        assert one.data_dir != other.data_dir


def test_what_was_acknowledged_is_there_after_a_restart(tmp_path: Path) -> None:
    with running_broker(data_dir=tmp_path) as broker, Client(broker.bootstrap) as client:
        create(client, "kept")
        produce(client, "kept", batch_of(b"one", b"two"))
    with running_broker(data_dir=tmp_path) as broker, Client(broker.bootstrap) as client:
        assert fetch(client, "kept") == ([b"one", b"two"], 2)


def test_a_fresh_broker_is_the_tests_own(odradek_broker: RunningBroker, fresh_odradek_broker: RunningBroker) -> None:
    assert odradek_broker.port != fresh_odradek_broker.port
    assert partitions_of(fresh_odradek_broker.bootstrap, "orders") == 2


def test_a_directory_of_its_own_is_gone_at_the_end_and_so_is_the_thread() -> None:
    before = {*threading.enumerate()}
    with running_broker() as broker:
        assert broker.data_dir.exists()

    assert not broker.data_dir.exists()
    assert "odradek broker" not in {thread.name for thread in {*threading.enumerate()} - before}


def test_a_failing_test_ends_the_broker_too() -> None:
    with pytest.raises(ZeroDivisionError), running_broker() as broker:
        raise ZeroDivisionError

    with pytest.raises(OSError, match="refused"):
        socket.create_connection((broker.host, broker.port))


def test_a_wrong_setting_is_told_where_the_broker_is_asked_for() -> None:
    with pytest.raises(ConfigError, match=r"num\.partitions"), running_broker({"num.partitons": 4}):
        pass


def test_a_port_that_is_taken_is_told_where_the_broker_is_asked_for() -> None:
    with (
        running_broker() as broker,
        pytest.raises(ConfigError, match=str(broker.port)),
        running_broker({"listeners": f"PLAINTEXT://127.0.0.1:{broker.port}"}),
    ):
        pass


def test_a_plugin_that_is_missing_is_told_where_the_broker_is_asked_for(tmp_path: Path) -> None:
    config = tmp_path / "odradek.toml"
    config.write_text('[plugins]\nenable = ["missing"]\n')

    with pytest.raises(PluginError, match="missing"), running_broker(config=config):
        pass


def test_a_broker_that_dies_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "stranger").mkdir()
    (tmp_path / "stranger" / "dying.py").write_text(DYING_PLUGIN)
    monkeypatch.syspath_prepend(tmp_path)
    config = tmp_path / "odradek.toml"
    config.write_text('[plugins]\nenable = ["storage_memory", "election_isr", "storage_segment", "stranger.dying"]\n')

    with pytest.raises(BrokerDiedError, match="the plugin pulled the plug"), running_broker(config=config):
        pass


def test_a_test_run_that_starts_no_broker_imports_none() -> None:
    costly = "{'trio', 'odradek.kernel.broker.broker'}"
    check = f"import sys, odradek.testing.pytest_plugin; assert not {costly} & {{*sys.modules}}"

    assert subprocess.run([sys.executable, "-c", check], check=False).returncode == 0


def test_nothing_is_left_beside_a_temporary_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with running_broker({"remote.log.storage.system.enable": True}):
        assert list(tmp_path.iterdir())

    assert not list(tmp_path.iterdir())
