"""A whole broker with a toy coordinator: FindCoordinator, internal topics, a start after a stop, doubled plugins."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import trio

from odradek.kernel.api import hookimpl
from odradek.kernel.broker import Broker, read_broker_options
from odradek.kernel.contracts.coordinator import TopicKeys
from odradek.kernel.errors import ErrorCode, PluginError
from odradek.kernel.plugin_system.manager import FoundPlugin
from odradek.kernel.records.builder import BatchBuilder
from odradek.kernel.wire.codec import decode
from odradek.kernel.wire.headers import decode_response_header, encode_request
from odradek.kernel.wire.messages.api_00_produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from odradek.kernel.wire.messages.api_03_metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from odradek.kernel.wire.messages.api_10_find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from odradek.kernel.wire.messages.api_21_delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from odradek.kernel.wire.messages.api_75_describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    TopicRequest,
)
from odradek.testing.shard_harness import RecordingWaiter
from tests.waiting import PATIENCE_S

from .toy import CounterCoordinator

KEY_TYPE = CounterCoordinator.key_type
TOPIC = CounterCoordinator.topic
CONFIGS = {
    "cleanup.policy": "=compact",
    "segment.bytes": "offsets.topic.segment.bytes",
    "min.insync.replicas": "transaction.state.log.min.isr",
    "unclean.leader.election.enable": "=false",
}


class Client:
    """One connection, one request at a time."""

    def __init__(self, stream: trio.SocketStream) -> None:
        self._stream = stream

    async def call(self, message: Any, version: int, response: type[Any]) -> Any:
        await self._stream.send_all(encode_request(message, version, 1, "test").join())
        size = int.from_bytes(await self._exactly(4), "big")
        body = await self._exactly(size)
        _correlation_id, position = decode_response_header(body, message.__api_key__, version)
        return decode(response, body, version, position=position)

    async def _exactly(self, size: int) -> bytes:
        found = b""
        while len(found) < size:
            found += await self._stream.receive_some(size - len(found))
        return found


def options(data_dir: Path, *coordinators: CounterCoordinator, settings: tuple[str, ...] = ()) -> Any:
    read = read_broker_options(
        config=None,
        environment={},
        options=["offsets.topic.num.partitions=3", "log.dirs=" + str(data_dir), *settings],
        listen=["127.0.0.1:0"],
    )
    for number, coordinator in enumerate(coordinators):

        @hookimpl
        def odradek_coordinators(broker: object, it: CounterCoordinator = coordinator) -> list[CounterCoordinator]:
            return [it]

        name = f"toy{number}"
        read.plugins.register(FoundPlugin(name, name, ""), SimpleNamespace(odradek_coordinators=odradek_coordinators))
    return read


@asynccontextmanager
async def serving(broker: Broker) -> AsyncIterator[Client]:
    """Run a broker and give a client of it."""
    async with trio.open_nursery() as nursery:
        await nursery.start(broker.run)
        (listener,) = broker.listeners
        stream = await trio.open_tcp_stream("127.0.0.1", listener.port)
        async with stream:
            yield Client(stream)
        broker.stop()


def run(main: Callable[[], Any]) -> None:
    async def bounded() -> None:
        with trio.fail_after(PATIENCE_S):
            await main()

    trio.run(bounded)


async def found(client: Client, key: str = "k") -> FindCoordinatorResponse:
    """Ask until the topic is there."""
    while True:
        response = await client.call(FindCoordinatorRequest(key=key, key_type=KEY_TYPE), 1, FindCoordinatorResponse)
        assert isinstance(response, FindCoordinatorResponse)
        if response.error_code != ErrorCode.COORDINATOR_NOT_AVAILABLE:
            return response
        await trio.lowlevel.checkpoint()


def toy() -> CounterCoordinator:
    coordinator = CounterCoordinator()
    coordinator.topic_settings = TopicKeys("offsets.topic.num.partitions", "offsets.topic.replication.factor", CONFIGS)
    return coordinator


def test_the_topic_is_made_when_a_coordinator_is_first_looked_for(tmp_path: Path) -> None:
    broker = Broker(options(tmp_path, toy()))

    async def main() -> None:
        async with serving(broker) as client:
            first = await client.call(FindCoordinatorRequest(key="k", key_type=KEY_TYPE), 1, FindCoordinatorResponse)
            assert (first.error_code, first.node_id, first.host, first.port) == (15, -1, "", -1)
            response = await found(client)
            assert (response.error_code, response.error_message, response.node_id) == (0, "NONE", 1)
            assert response.port == broker.listeners[0].port
            image = broker.parts.published.image
            assert len(image.topics_by_name[TOPIC].partitions) == 3
            assert dict(image.topic_config(TOPIC)) == {
                "cleanup.policy": "compact",
                "segment.bytes": "104857600",
                "min.insync.replicas": "1",
                "unclean.leader.election.enable": "false",
            }

    run(main)


def test_metadata_makes_the_topic_as_its_coordinator_wants_it(tmp_path: Path) -> None:
    broker = Broker(options(tmp_path, toy()))

    async def main() -> None:
        async with serving(broker) as client:
            request = MetadataRequest(topics=[MetadataRequestTopic(name=TOPIC)], allow_auto_topic_creation=True)
            while True:
                response = await client.call(request, 9, MetadataResponse)
                if response.topics[0].error_code == ErrorCode.NONE:
                    break
            assert len(response.topics[0].partitions) == 3
            assert broker.parts.published.image.topic_config(TOPIC)["cleanup.policy"] == "compact"

    run(main)


def test_the_topic_is_internal_and_no_client_writes_to_it(tmp_path: Path) -> None:
    """As Kafka does with its own; here the topic of any plugin's coordinator, whether it is there yet or not."""
    broker = Broker(options(tmp_path, toy(), settings=("auto.create.topics.enable=false",)))
    asked = MetadataRequest(topics=[MetadataRequestTopic(name=TOPIC)], allow_auto_topic_creation=False)
    described = DescribeTopicPartitionsRequest(topics=[TopicRequest(name=TOPIC)])
    batch = BatchBuilder()
    batch.append(b"k", b"v", timestamp=0)
    produced = ProduceRequest(
        acks=1,
        timeout_ms=1_000,
        topic_data=[
            TopicProduceData(name=TOPIC, partition_data=[PartitionProduceData(index=0, records=batch.build())])
        ],
    )
    deleted = DeleteRecordsRequest(
        topics=[DeleteRecordsTopic(name=TOPIC, partitions=[DeleteRecordsPartition(partition_index=0, offset=0)])],
        timeout_ms=1_000,
    )

    async def main() -> None:
        async with serving(broker) as client:
            missing = (await client.call(asked, 9, MetadataResponse)).topics[0]
            assert (missing.error_code, missing.is_internal) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, True)
            assert (await client.call(described, 0, DescribeTopicPartitionsResponse)).topics[0].is_internal
            await found(client)
            assert (await client.call(asked, 9, MetadataResponse)).topics[0].is_internal
            assert (await client.call(described, 0, DescribeTopicPartitionsResponse)).topics[0].is_internal
            refused = (await client.call(produced, 9, ProduceResponse)).responses[0].partition_responses[0]
            assert refused.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
            kept = (await client.call(deleted, 2, DeleteRecordsResponse)).topics[0].partitions[0]
            assert kept.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION

    run(main)


def test_every_version_answers_in_its_form(tmp_path: Path) -> None:
    broker = Broker(options(tmp_path, toy()))

    async def ask(client: Client, version: int, key_type: int) -> FindCoordinatorResponse:
        request = FindCoordinatorRequest(key_type=key_type)
        if version < 4:
            request.key = "k"
        else:
            request.coordinator_keys = ["k", "", "k"]
        response = await client.call(request, version, FindCoordinatorResponse)
        assert isinstance(response, FindCoordinatorResponse)
        return response

    async def main() -> None:
        async with serving(broker) as client:
            await found(client)
            port = broker.listeners[0].port
            for version in range(1, 4):
                response, refused = await ask(client, version, KEY_TYPE), await ask(client, version, 77)
                assert (response.error_code, response.node_id, response.port) == (0, 1, port)
                assert (refused.error_code, refused.node_id, refused.port) == (42, -1, -1)
                assert refused.error_message
            for version in range(4, 7):
                response, refused = await ask(client, version, KEY_TYPE), await ask(client, version, 77)
                assert response.coordinators == [
                    Coordinator(key=key, node_id=1, host="127.0.0.1", port=port, error_message="")
                    for key in ("k", "", "k")
                ]
                assert [each.error_code for each in refused.coordinators] == [42, 42, 42]
                assert all(each.error_message for each in refused.coordinators)

    run(main)


def test_what_was_written_is_there_after_a_restart(tmp_path: Path) -> None:
    async def add(broker: Broker, expected: int) -> None:
        async with serving(broker) as client:
            await found(client)
            runtime = broker.parts.requests.coordinators.by_key_type[KEY_TYPE]
            partition = runtime.partition_for("k")
            while runtime.is_loading() or runtime.coordinator_epoch(partition) < 0:
                await trio.lowlevel.checkpoint()
            value = await runtime.call(partition, lambda shard, _now_ms: shard.add("k", 5))
            assert value == expected

    run(lambda: add(Broker(options(tmp_path, toy())), 5))
    run(lambda: add(Broker(options(tmp_path, toy())), 10))


def test_a_stop_does_not_wait_for_who_waits_for_others(tmp_path: Path) -> None:
    broker = Broker(options(tmp_path, toy()))
    waiter = RecordingWaiter()

    async def main() -> None:
        async with serving(broker) as client:
            await found(client)
            runtime = broker.parts.requests.coordinators.by_key_type[KEY_TYPE]
            while runtime.coordinator_epoch(0) < 0:
                await trio.lowlevel.checkpoint()
            runtime.submit(0, lambda shard, _now_ms: shard.wait("a", 1, waiter), waiter)

    run(main)

    assert waiter.error_code == ErrorCode.NOT_COORDINATOR


def test_coordinators_hear_of_topics(tmp_path: Path) -> None:
    coordinator = toy()

    async def main() -> None:
        async with serving(Broker(options(tmp_path, coordinator))) as client:
            await found(client)

    run(main)

    assert any(TOPIC in change.created_topics for change in coordinator.changes)


def test_two_coordinators_of_one_topic_stop_the_start(tmp_path: Path) -> None:
    broker = Broker(options(tmp_path, toy(), toy()))

    async def main() -> None:
        with pytest.raises(PluginError, match=r"toy1.*__counters.*'toy0'"):
            await broker.run()

    run(main)
