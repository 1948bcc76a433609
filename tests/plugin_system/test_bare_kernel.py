"""A kernel without any plugin, as a process: it comes up, says what is missing, and refuses what needs it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import trio

from odradek.client import Admin, BrokerError, NewTopic, ResourceType
from odradek.kernel.broker import Broker, read_broker_options
from odradek.kernel.errors import ErrorCode
from odradek.kernel.plugin_system.missing_roles import ROLE_OF_KEY_TYPE, missing_roles, told
from odradek.kernel.wire.messages.api_03_metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from odradek.kernel.wire.messages.api_10_find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from odradek.kernel.wire.messages.api_18_api_versions import ApiVersionsRequest, ApiVersionsResponse
from odradek.kernel.wire.messages.api_19_create_topics import (
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from odradek.kernel.wire.messages.api_32_describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from odradek.kernel.wire.messages.api_60_describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from tests.broker.broker_process import BrokerProcess, Client, serving
from tests.waiting import PATIENCE_S

if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from pathlib import Path

FIND_COORDINATOR = 10
JOIN_GROUP = 11
BROKER = 4
TRANSACTION = 1
NONE_ENABLED = "[plugins]\nenable = []\n"


def bare(folder: Path, config: str) -> AbstractContextManager[BrokerProcess]:
    """Run a broker with this configuration; what it said is to be read by `terminate`."""
    (folder / "odradek.toml").write_text(config)
    return serving(BrokerProcess.from_config(folder / "data", folder / "odradek.toml"))


def refused(folder: Path, config: str, expected: int) -> str:
    """Start a broker that ends by itself with this status; return the one line that it says last."""
    (folder / "odradek.toml").write_text(config)
    broker = BrokerProcess.from_config(folder / "data", folder / "odradek.toml")
    try:
        assert broker.process.stdout is not None
        assert not broker.process.stdout.readline(), "it got ready"
        status, said = broker.finish()
    finally:
        broker.process.kill()
        broker.process.wait()
        broker.close()
    lines = [line for line in said.splitlines() if line.startswith("odradek: ")]

    assert status == expected, said
    assert "Traceback" not in said
    (line,) = lines
    return line


def create(client: Client, name: str) -> tuple[int, str | None]:
    """Ask for a topic; return what is answered."""
    wanted = CreatableTopic(name=name, num_partitions=1, replication_factor=1)
    response = client.ask(CreateTopicsRequest(topics=[wanted], timeout_ms=30_000), 7)
    assert isinstance(response, CreateTopicsResponse)
    return response.topics[0].error_code, response.topics[0].error_message


def test_it_starts_says_which_roles_nobody_has_and_ends_cleanly(tmp_path: Path) -> None:
    with bare(tmp_path, NONE_ENABLED) as broker:
        status, said = broker.terminate()
    *lines, stopping = said.splitlines()
    warned = [line for line in lines if " WARNING " in line]
    nobody = missing_roles(storages=set(), elections=set(), cleanup_policies=set(), key_types=set())

    assert [line.partition(" broker.parts: ")[2] for line in warned] == [told(role) for role in nobody]
    assert len(warned) == 5
    assert stopping.startswith("odradek: stopping (SIGTERM)")
    assert status == 0
    assert not (tmp_path / "data").exists(), "nobody who could take a directory is there"


def test_it_answers_what_needs_no_plugin_and_refuses_the_rest_with_the_reason(tmp_path: Path) -> None:
    settings = '[broker]\n"node.id" = 7\n"odradek.cluster.id" = "AAAAAAAAAAAAAAAAAAAAAA"\n'
    resource = DescribeConfigsResource(resource_type=BROKER, resource_name="7", configuration_keys=["odradek.storage"])
    with bare(tmp_path, settings + NONE_ENABLED) as broker, Client(broker.address) as client:
        versions = client.ask(ApiVersionsRequest(), 0)
        metadata = client.ask(MetadataRequest(topics=[MetadataRequestTopic(name="orders")]), 9)
        cluster = client.ask(DescribeClusterRequest(), 0)
        configs = client.ask(DescribeConfigsRequest(resources=[resource]), 1)
        created = create(client, "orders")

    assert isinstance(versions, ApiVersionsResponse)
    assert not {FIND_COORDINATOR, JOIN_GROUP} & {api.api_key for api in versions.api_keys}
    assert isinstance(metadata, MetadataResponse)
    assert [f"{node.host}:{node.port}" for node in metadata.brokers] == [broker.address]
    assert metadata.topics[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert isinstance(cluster, DescribeClusterResponse)
    assert cluster.cluster_id == "AAAAAAAAAAAAAAAAAAAAAA"
    assert isinstance(configs, DescribeConfigsResponse)
    assert configs.results[0].configs[0].value == "segment"
    assert created == (ErrorCode.INVALID_CONFIG, "no active plugin of the broker offers a storage for topics")


def test_without_a_storage_no_topic_is_made_though_there_is_an_election(tmp_path: Path) -> None:
    with bare(tmp_path, '[plugins]\nenable = ["election_isr", "groups"]\n') as broker:
        with Client(broker.address) as client:
            code, _ = create(client, "orders")
            found = client.ask(FindCoordinatorRequest(key="mine", key_type=0), 2)
        _, said = broker.terminate()

    assert code == ErrorCode.INVALID_CONFIG
    assert isinstance(found, FindCoordinatorResponse)
    assert found.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert "no active plugin offers an election" not in said
    assert "no active plugin coordinates groups" not in said
    assert "no active plugin offers a storage" in said


def test_what_is_missing_is_said_by_a_broker_that_keeps_records_too(tmp_path: Path) -> None:
    with bare(tmp_path, '[plugins]\ndisable = ["transactions"]\n') as broker:
        with Client(broker.address) as client:
            found = client.ask(FindCoordinatorRequest(key="mine", key_type=TRANSACTION), 2)
        _, said = broker.terminate()

    assert told(ROLE_OF_KEY_TYPE[TRANSACTION]) in said
    assert said.count("no active plugin") == 1
    assert isinstance(found, FindCoordinatorResponse)
    assert found.error_code == ErrorCode.INVALID_REQUEST
    assert found.error_message == "no active plugin of the broker coordinates transactions"


@pytest.mark.parametrize(
    ("config", "status", "reason"),
    [
        ('[broker]\n"odradek.storage" = "segment"\n', 2, "must be one of: (nothing: no active plugin offers one)"),
        ('[broker]\n"odradek.election" = "isr"\n', 2, "must be one of: (nothing: no active plugin offers one)"),
        (
            '[broker]\n"odradek.internal.election" = "isr"\n',
            2,
            "must be one of: (nothing: no active plugin offers one)",
        ),
        ('[broker]\n"odradek.metadata.election" = "isr"\n', 1, "no active plugin offers the storage 'segment'"),
        ('[broker]\n"remote.log.storage.system.enable" = true\n', 1, "no active plugin offers a tier"),
        ("[topics.orders]\n", 2, "no active plugin of the broker offers a storage"),
    ],
)
def test_what_is_named_and_missing_stops_the_start(tmp_path: Path, config: str, status: int, reason: str) -> None:
    assert reason in refused(tmp_path, config + NONE_ENABLED, status)


def test_it_does_not_come_up_without_topics_beside_somebodys_data(tmp_path: Path) -> None:
    with bare(tmp_path, ""):
        pass
    before = sorted(path.name for path in (tmp_path / "data").iterdir())
    line = refused(tmp_path, NONE_ENABLED, 1)

    assert f"there is data in {tmp_path / 'data'}, and no active plugin offers a storage" in line
    assert sorted(path.name for path in (tmp_path / "data").iterdir()) == before


def test_the_mark_of_a_new_file_system_is_no_data(tmp_path: Path) -> None:
    (tmp_path / "data" / "lost+found").mkdir(parents=True)
    with bare(tmp_path, NONE_ENABLED) as broker:
        assert broker.address


async def test_what_is_set_on_it_holds_while_it_runs(tmp_path: Path) -> None:
    (tmp_path / "odradek.toml").write_text(NONE_ENABLED)
    options = read_broker_options(
        config=tmp_path / "odradek.toml",
        environment={},
        options=[],
        listen=["127.0.0.1:0"],
        data_dir=tmp_path / "data",
    )
    broker = Broker(options)
    with trio.fail_after(PATIENCE_S):
        async with trio.open_nursery() as nursery:
            (listener,) = await nursery.start(broker.run)
            async with Admin({"bootstrap.servers": listener.advertised}) as admin:
                await admin.alter_configs(ResourceType.BROKER, "", {"log.retention.ms": "7000"})
                with pytest.raises(BrokerError, match="no active plugin of the broker offers a storage"):
                    await admin.create_topic(NewTopic("orders"))

            assert broker.parts.published.config.get_int("log.retention.ms") == 7000

            broker.stop()
