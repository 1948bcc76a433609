"""Settings that a running broker takes: topics follow at once, and after a restart."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from odradek.kernel.errors import ErrorCode
from odradek.kernel.machine.clock import SystemClock
from odradek.kernel.records.builder import BatchBuilder
from odradek.kernel.wire.messages.api_19_create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from odradek.kernel.wire.messages.api_44_incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from odradek.kernel.wire.messages.api_61_describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    TopicRequest,
)
from odradek.testing.running_broker import running_broker

from ..waiting import until
from .broker_process import Client, batch_of, broker_process
from .test_process import create, produce

TOPIC = 2
BROKER = 4
SET = 0
DELETE = 1


def alter(client: Client, kind: int, name: str, key: str, value: str | None, operation: int = SET) -> int:
    config = AlterableConfig(name=key, config_operation=operation, value=value)
    resource = AlterConfigsResource(resource_type=kind, resource_name=name, configs=[config])
    response = client.ask(IncrementalAlterConfigsRequest(resources=[resource]), 1)
    assert isinstance(response, IncrementalAlterConfigsResponse)
    return response.responses[0].error_code


def create_with(client: Client, topic: str, storage: str) -> None:
    config = CreatableTopicConfig(name="odradek.storage", value=storage)
    wanted = CreatableTopic(name=topic, num_partitions=1, replication_factor=1, configs=[config])
    response = client.ask(CreateTopicsRequest(topics=[wanted], timeout_ms=30_000), 5)
    assert isinstance(response, CreateTopicsResponse)
    assert response.topics[0].error_code == ErrorCode.NONE


def test_a_topics_setting_works_at_once_survives_a_restart_and_goes_again(tmp_path: Path) -> None:
    large = batch_of(b"x" * 2000)
    with running_broker(data_dir=tmp_path) as broker, Client(broker.bootstrap) as client:
        create(client, "t")
        assert produce(client, "t", large)[0] == ErrorCode.NONE
        assert alter(client, TOPIC, "t", "max.message.bytes", "1000") == ErrorCode.NONE
        assert produce(client, "t", large)[0] == ErrorCode.MESSAGE_TOO_LARGE

    with running_broker(data_dir=tmp_path) as broker, Client(broker.bootstrap) as client:
        assert produce(client, "t", large)[0] == ErrorCode.MESSAGE_TOO_LARGE
        assert alter(client, TOPIC, "t", "max.message.bytes", None, DELETE) == ErrorCode.NONE

        assert produce(client, "t", large)[0] == ErrorCode.NONE


@pytest.mark.parametrize("name", ["", "1"])
def test_a_brokers_default_reaches_topics_that_do_not_set_it(tmp_path: Path, name: str) -> None:
    large = batch_of(b"x" * 2000)
    with running_broker(data_dir=tmp_path) as broker, Client(broker.bootstrap) as client:
        create(client, "follows")
        create(client, "decides")
        assert alter(client, TOPIC, "decides", "max.message.bytes", "5000") == ErrorCode.NONE

        assert alter(client, BROKER, name, "message.max.bytes", "1000") == ErrorCode.NONE

        assert produce(client, "follows", large)[0] == ErrorCode.MESSAGE_TOO_LARGE
        assert produce(client, "decides", large)[0] == ErrorCode.NONE

    with running_broker(data_dir=tmp_path) as broker, Client(broker.bootstrap) as client:
        assert produce(client, "follows", large)[0] == ErrorCode.MESSAGE_TOO_LARGE
        assert produce(client, "decides", large)[0] == ErrorCode.NONE


def test_a_new_limit_of_connections_counts_for_the_next_ones_and_after_a_restart(tmp_path: Path) -> None:
    with running_broker(data_dir=tmp_path) as broker, Client(broker.bootstrap) as client:
        assert alter(client, BROKER, "1", "max.connections.per.ip", "1") == ErrorCode.NONE

        with Client(broker.bootstrap) as refused:
            assert refused.socket.recv(1) == b""

        create(client, "t")

    with running_broker(data_dir=tmp_path) as broker, Client(broker.bootstrap) as client:
        create(client, "u")
        with Client(broker.bootstrap) as refused:
            assert refused.socket.recv(1) == b""


def test_a_new_time_for_which_producers_are_known_counts_after_a_restart(tmp_path: Path) -> None:
    def known(client: Client) -> int:
        asked = TopicRequest(name="t", partition_indexes=[0])
        response = client.ask(DescribeProducersRequest(topics=[asked]), 0)
        assert isinstance(response, DescribeProducersResponse)
        return len(response.topics[0].partitions[0].active_producers)

    with running_broker(data_dir=tmp_path) as broker, Client(broker.bootstrap) as client:
        create(client, "t")
        assert alter(client, BROKER, "", "producer.id.expiration.ms", "1") == ErrorCode.NONE
        builder = BatchBuilder(producer_id=1, producer_epoch=0, base_sequence=0)
        builder.append(None, b"v", timestamp=SystemClock().now_ms())
        assert produce(client, "t", bytes(builder.build()))[0] == ErrorCode.NONE
        assert known(client) == 1  # it is looked at every ten minutes

    often = {"producer.id.expiration.check.interval.ms": 10}
    with running_broker(often, data_dir=tmp_path) as broker, Client(broker.bootstrap) as client:
        until(lambda: known(client) == 0, broker.check)


def test_a_list_does_not_grow_beyond_what_a_record_can_hold(tmp_path: Path) -> None:
    """The code is Apache Kafka's, 4.3.1, asked on 2026-11-23."""
    name, append = "leader.replication.throttled.replicas", 2
    first, second = (",".join(f"{number}:1" for number in range(start, start + 2500)) for start in (10_000, 20_000))
    with running_broker(data_dir=tmp_path) as broker, Client(broker.bootstrap) as client:
        create(client, "t")
        assert alter(client, TOPIC, "t", name, first, append) == ErrorCode.NONE
        assert alter(client, TOPIC, "t", name, second, append) == ErrorCode.INVALID_CONFIG
        assert alter(client, TOPIC, "t", name, "1:1", append) == ErrorCode.NONE


def test_topics_of_both_storages_live_side_by_side(tmp_path: Path) -> None:
    with running_broker(data_dir=tmp_path) as broker, Client(broker.bootstrap) as client:
        create_with(client, "remembered", "memory")
        create_with(client, "kept", "segment")

        assert produce(client, "remembered", batch_of(b"a")) == (ErrorCode.NONE, 0)
        assert produce(client, "kept", batch_of(b"a")) == (ErrorCode.NONE, 0)

    assert (tmp_path / "kept-0").is_dir()
    assert not (tmp_path / "remembered-0").exists()
    with running_broker(data_dir=tmp_path) as broker, Client(broker.bootstrap) as client:
        assert produce(client, "remembered", batch_of(b"b")) == (ErrorCode.NONE, 0)

        assert produce(client, "kept", batch_of(b"b")) == (ErrorCode.NONE, 1)


def test_a_client_is_told_by_the_log_that_a_setting_has_no_effect(tmp_path: Path) -> None:
    with broker_process(tmp_path) as broker:
        with Client(broker.address) as client:
            create(client, "t")
            assert alter(client, TOPIC, "t", "leader.replication.throttled.replicas", "0:1") == ErrorCode.NONE
            assert alter(client, TOPIC, "t", "max.message.bytes", "1000") == ErrorCode.NONE
            assert alter(client, BROKER, "", "background.threads", "12") == ErrorCode.NONE
        _, said = broker.terminate()

    assert "broker default: background.threads sizes thread pools of the JVM" in said
    assert "leader.replication.throttled.replicas" not in said
    assert "max.message.bytes" not in said


def test_a_setting_without_effect_is_told_once_and_again_when_it_changes(tmp_path: Path) -> None:
    with broker_process(tmp_path) as broker:
        with Client(broker.address) as client:
            for name, value in (
                ("num.network.threads", "4"),
                ("log.retention.bytes", "1000"),
                ("num.io.threads", "9"),
                ("num.network.threads", "5"),
                ("log.retention.bytes", "2000"),
            ):
                assert alter(client, BROKER, "", name, value) == ErrorCode.NONE
        _, said = broker.terminate()

    told = [name for line in said.splitlines() for name in re.findall(r"broker default: (\S+)", line)]
    assert told == ["num.network.threads", "num.io.threads", "num.network.threads"]


def test_every_partition_of_a_large_topic_takes_records(tmp_path: Path) -> None:
    with running_broker({"num.partitions": 100}, data_dir=tmp_path) as broker, Client(broker.bootstrap) as client:
        create(client, "wide")

        for partition in (0, 50, 99):
            error, offset = produce(client, "wide", batch_of(b"a"), partition=partition)
            while error == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                error, offset = produce(client, "wide", batch_of(b"a"), partition=partition)
            assert (error, offset) == (ErrorCode.NONE, 0)
