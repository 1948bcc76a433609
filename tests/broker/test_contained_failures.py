"""A failure costs what it has to and nothing else: one partition, one request, one connection."""

from __future__ import annotations

import shutil
import uuid
from pathlib import Path
from typing import Any

import attrs
import pytest
import trio
import trio.testing

from odradek.kernel.broker import Broker, read_broker_options
from odradek.kernel.contracts.election import Election, ElectionContext, PartitionState, Ready
from odradek.kernel.dispatch.router import Router
from odradek.kernel.errors import ErrorCode, KafkaError, StorageError
from odradek.kernel.partitions.leading import append_as_leader
from odradek.kernel.partitions.replica import Replica
from odradek.kernel.records.batch import read_header
from odradek.kernel.wire.messages.api_19_create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from odradek.kernel.wire.messages.api_60_describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from odradek.testing.running_broker import running_broker
from tests.partitions.hosted import Hosted

from ..dispatch.memory_client import MemoryClient
from .broker_process import Client, batch_of
from .test_process import create, fetch, produce

NO_PLUGIN_FOR_MEMORY = '[plugins]\ndisable = ["storage_memory"]\n'


def create_topic(client: Client, name: str, **configs: str) -> int:
    wanted = CreatableTopic(
        name=name,
        num_partitions=1,
        replication_factor=1,
        configs=[CreatableTopicConfig(name=key.replace("_", "."), value=value) for key, value in configs.items()],
    )
    response = client.ask(CreateTopicsRequest(topics=[wanted], timeout_ms=30_000), 5)
    assert isinstance(response, CreateTopicsResponse)
    return response.topics[0].error_code


# ---------------------------------------------------------------------------------------------------------- partitions


def test_a_log_that_the_metadata_does_not_know_is_set_aside_and_its_name_is_free(tmp_path: Path) -> None:
    with running_broker(data_dir=tmp_path) as broker, Client(broker.bootstrap) as client:
        create(client, "known")
        assert produce(client, "known", batch_of(b"stays")) == (ErrorCode.NONE, 0)
    shutil.copytree(tmp_path / "known-0", tmp_path / "ghost-0")

    with running_broker(data_dir=tmp_path) as broker, Client(broker.bootstrap) as client:
        create(client, "ghost")

        assert produce(client, "ghost", batch_of(b"new")) == (ErrorCode.NONE, 0)
        assert fetch(client, "known") == ([b"stays"], 1)
    assert len(list(tmp_path.glob("ghost-0.*-stray"))) == 1


def test_a_topic_stays_where_it_was_created_though_the_default_changes(tmp_path: Path) -> None:
    with running_broker(data_dir=tmp_path) as broker, Client(broker.bootstrap) as client:
        create(client, "t")
        assert produce(client, "t", batch_of(b"kept")) == (ErrorCode.NONE, 0)

    settings = {"odradek.storage": "segment", "num.partitions": 3}
    with running_broker(settings, data_dir=tmp_path) as broker, Client(broker.bootstrap) as client:
        assert fetch(client, "t") == ([b"kept"], 1)


def test_a_topic_whose_plugin_is_gone_is_offline_and_not_somewhere_else(tmp_path: Path) -> None:
    config = tmp_path / "odradek.toml"
    config.write_text(NO_PLUGIN_FOR_MEMORY)
    data = tmp_path / "data"
    with running_broker(data_dir=data) as broker, Client(broker.bootstrap) as client:
        assert create_topic(client, "remembered", odradek_storage="memory") == ErrorCode.NONE
        assert create_topic(client, "kept") == ErrorCode.NONE

    with running_broker(data_dir=data, config=config) as broker, Client(broker.bootstrap) as client:
        assert produce(client, "remembered", batch_of(b"a"))[0] == ErrorCode.KAFKA_STORAGE_ERROR
        assert produce(client, "kept", batch_of(b"a")) == (ErrorCode.NONE, 0)

    assert not (data / "remembered-0").exists()


def test_an_unreadable_log_takes_its_partition_offline_and_is_tried_again(tmp_path: Path) -> None:
    earlier = Hosted(tmp_path)
    earlier.open("bad")
    directory = earlier.produce("bad", 0).log.directory
    assert directory is not None
    earlier.lifecycle.close()
    hosted = Hosted(tmp_path)
    directory.rename(tmp_path / "elsewhere")

    hosted.open("bad")
    hosted.open("good")

    with pytest.raises(KafkaError, match="log directory cannot be"):
        hosted.replicas.get("bad", 0)
    assert hosted.replicas.get("good", 0).is_leader
    (tmp_path / "elsewhere").rename(directory)
    trio.run(hosted.lifecycle.retry_failed_logs)
    assert hosted.replicas.get("bad", 0).high_watermark == 1
    hosted.lifecycle.close()


def test_a_log_whose_replica_could_not_be_made_is_tried_again(tmp_path: Path) -> None:
    hosted = Hosted(tmp_path)
    elections = hosted.lifecycle._opener.elections["isr"]

    class Moody:
        failures = 1
        initial_state = elections.initial_state

        def new_election(self, context: ElectionContext) -> Election:
            if self.failures:
                self.failures -= 1
                raise RuntimeError("not now")
            return elections.new_election(context)

    hosted.lifecycle._opener.elections = {"isr": Moody()}  # type: ignore[dict-item] # no more is asked of it here

    hosted.open("a")
    with pytest.raises(KafkaError, match="log directory cannot be"):
        hosted.replicas.get("a", 0)
    trio.run(hosted.lifecycle.retry_failed_logs)

    assert hosted.replicas.get("a", 0).is_leader
    hosted.lifecycle.close()


def test_stages_look_at_a_topic_also_when_its_log_was_opened_at_the_second_try(tmp_path: Path) -> None:
    hosted = Hosted(tmp_path)
    elections = hosted.lifecycle._opener.elections
    hosted.lifecycle._opener.elections = {}

    class Stage:
        def accept(self, batch: memoryview) -> memoryview:
            return batch

    hosted.lifecycle._opener.stages = {"looks": lambda partition, settings: Stage()}
    state = PartitionState(leader=1, leader_epoch=0, partition_epoch=0, replicas=(1,), isr=(1,))
    hosted.lifecycle.open_topic("a", uuid.UUID(int=5), attrs.evolve(hosted.plan(), stages=("looks",)), {0: state})

    hosted.lifecycle._opener.elections = elections
    trio.run(hosted.lifecycle.retry_failed_logs)

    assert hosted.replicas.get("a", 0).is_leader
    assert not hosted.replicas.topics["a"].is_plain
    hosted.lifecycle.close()


def test_a_log_that_could_not_be_opened_is_not_tried_again_once_its_partition_is_another_brokers(
    tmp_path: Path,
) -> None:
    earlier = Hosted(tmp_path)
    earlier.open("moved")
    replica = earlier.produce("moved", 0)
    assert replica.log.directory is not None
    earlier.lifecycle.close()
    hosted = Hosted(tmp_path)
    elections = hosted.lifecycle._opener.elections
    hosted.lifecycle._opener.elections = {}
    hosted.open("moved")
    with pytest.raises(KafkaError, match="log directory cannot be"):
        hosted.replicas.get("moved", 0)
    elsewhere = PartitionState(leader=2, leader_epoch=1, partition_epoch=1, replicas=(2,), isr=(2,))

    hosted.lifecycle.open_topic("moved", replica.partition.topic_id, hosted.plan(), {0: elsewhere})
    hosted.lifecycle._opener.elections = elections
    trio.run(hosted.lifecycle.retry_failed_logs)

    assert hosted.replicas.find("moved", 0) is None
    with pytest.raises(KafkaError, match="does not lead the partition"):
        hosted.replicas.get("moved", 0)
    assert not replica.log.directory.exists()
    hosted.lifecycle.close()


def test_one_replica_that_fails_at_the_turns_end_does_not_keep_others_from_being_written(tmp_path: Path) -> None:
    hosted = Hosted(tmp_path)
    for name in ("a", "b", "c"):
        hosted.open(name)

    class Broken:
        high_watermark = 0

        def local_append(self, log_end_offset: int) -> int:
            raise RuntimeError("a plugin's bug")

    staged = [hosted.stage(name) for name in ("a", "b", "c")]
    hosted.replicas.get("b", 0).election = Broken()  # type: ignore[assignment] # no more is asked of it here

    hosted.writes.write_staged()

    assert [replica.high_watermark for replica in staged] == [1, 0, 1]
    assert [replica.offline_reason is None for replica in staged] == [True, False, True]
    assert hosted.stage("c").is_dirty
    hosted.lifecycle.close()


def test_an_election_that_needs_a_cluster_takes_its_partition_offline_instead_of_forgetting_its_vote(
    tmp_path: Path,
) -> None:
    hosted = Hosted(tmp_path)
    hosted.open("a")
    replica = hosted.replicas.get("a", 0)

    class Voting:
        def step(self, event: object) -> None:
            pass

        def ready(self) -> Ready:
            return Ready(hard_state=b"voted for 1")

    replica.election = Voting()  # type: ignore[assignment] # no more is asked of it here
    assert replica.state is not None

    hosted.lifecycle.apply_leadership(replica, replica.state)

    assert "needs a cluster" in (replica.offline_reason or "")
    hosted.lifecycle.close()


def test_a_disk_error_met_by_an_append_is_a_storage_error_and_ends_the_lead(tmp_path: Path) -> None:
    hosted = Hosted(tmp_path)
    hosted.open("a")
    replica = hosted.replicas.get("a", 0)

    def fail(*arguments: object) -> None:
        raise StorageError("no room")

    replica.log.append = fail  # type: ignore[assignment, method-assign] # the log of a full disk

    with pytest.raises(KafkaError, match="log directory cannot be"):
        hosted.stage("a")
    assert not replica.is_leader


def test_closing_goes_on_past_a_log_that_cannot_be_kept(tmp_path: Path) -> None:
    hosted = Hosted(tmp_path)
    hosted.open("a")
    hosted.open("b")
    hosted.produce("a", 0)
    hosted.produce("b", 0)

    def fail(*arguments: object) -> None:
        raise StorageError("no room")

    hosted.replicas.get("a", 0).log.write_sidecar = fail  # type: ignore[assignment, method-assign] # as above

    hosted.lifecycle.close()

    assert list(Path(hosted.replicas.get("b", 0).log.directory or "").glob("*.snapshot"))


def test_one_coordinator_that_fails_does_not_keep_others_from_hearing_of_progress(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    options = read_broker_options(config=None, environment={}, options=[f"log.dirs={tmp_path}"], listen=["127.0.0.1:0"])
    heard: list[tuple[str, bool]] = []

    async def scenario() -> None:
        broker = Broker(options)
        async with trio.open_nursery() as nursery:
            await nursery.start(broker.run)
            parts = broker.parts
            assert parts is not None
            for name in ("a", "b", "c"):
                wanted = CreatableTopic(name=name, num_partitions=1, replication_factor=1)
                await parts.metadata.calls.create_topics(CreateTopicsRequest(topics=[wanted], timeout_ms=30_000))
            replicas = [parts.logs.replicas.get(name, 0) for name in ("a", "b", "c")]

            def progressed(replica: Replica) -> None:
                heard.append((replica.partition.topic, replica.offline_reason is None))
                if replica.partition.topic == "b":
                    raise RuntimeError("a plugin's bug")

            parts.requests.coordinators.progressed = progressed  # type: ignore[method-assign] # a plugin's, as it could be
            batch = batch_of(b"x")
            for replica in replicas:
                append_as_leader(replica, memoryview(bytearray(batch)), read_header(batch), 1)
                parts.logs.writes.stage(replica)
            parts.logs.writes.write_staged()

            assert [replica.high_watermark for replica in replicas] == [1, 1, 1]
            assert [replica.offline_reason is None for replica in replicas] == [True, False, True]
            broker.stop()

    trio.run(scenario)

    assert heard[:4] == [("a", True), ("b", True), ("b", False), ("c", True)]
    assert "the coordinator of b-0 failed" in caplog.text


# ------------------------------------------------------------------------------------------------------------ requests


class Answers:
    """A handler of DescribeCluster whose first answer cannot be encoded."""

    api_key = 60

    def __init__(self) -> None:
        self.count = 0

    async def handle_async(self, request: DescribeClusterRequest, context: object) -> Any:
        self.count += 1
        if self.count == 1:
            return DescribeClusterResponse(cluster_id=None)  # type: ignore[arg-type] # what a bug would do
        await trio.lowlevel.checkpoint()
        return DescribeClusterResponse(cluster_id="here")

    def error_response(self, request: object, context: object, code: ErrorCode, detail: str) -> Any:
        raise AssertionError("another bug")


def test_an_answer_that_cannot_be_sent_costs_its_own_connection_only() -> None:
    router = Router(timer=lambda: 0.0, turn_enders=(), on_connection_closed=lambda connection: None)
    router.add(Answers())
    bad, innocent = MemoryClient(router), MemoryClient(router)

    async def scenario() -> None:
        async with trio.open_nursery() as nursery:
            await nursery.start(router.run)
            bad.send(DescribeClusterRequest(), 0)
            innocent.send(DescribeClusterRequest(), 0)
            await trio.testing.wait_all_tasks_blocked()
            nursery.cancel_scope.cancel()

    trio.run(scenario)

    assert bad.connection.is_closing
    assert innocent.received() == [DescribeClusterResponse(cluster_id="here")]


def test_what_is_staged_outside_a_request_is_written_without_one(tmp_path: Path) -> None:
    wanted: list[Replica] = []
    hosted = Hosted(tmp_path)
    hosted.open("a")
    hosted.writes._on_staged = lambda: wanted.append(hosted.replicas.get("a", 0))

    hosted.stage("a")
    hosted.stage("a")

    assert len(wanted) == 1
    hosted.writes.write_staged()
    assert wanted[0].high_watermark == 2
    hosted.lifecycle.close()
