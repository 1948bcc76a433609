"""A broker as a process: what it promises across a clean end, a crash, and trouble at its start."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import pytest

from odradek import __version__
from odradek.kernel.broker import BoundListener
from odradek.kernel.errors import ErrorCode
from odradek.kernel.records.batch import iterate_batches
from odradek.kernel.records.reader import read_batch
from odradek.kernel.wire.messages.api_00_produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from odradek.kernel.wire.messages.api_01_fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from odradek.kernel.wire.messages.api_03_metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from tests.waiting import until

from .broker_process import BrokerProcess, Client, batch_of, broker_process


@pytest.mark.parametrize(("host", "told"), [("::1", "[::1]:9092"), ("127.0.0.1", "127.0.0.1:9092"), ("a", "a:9092")])
def test_what_ready_tells_is_taken_by_clients(host: str, told: str) -> None:
    assert BoundListener("PLAINTEXT", host, 9092, host, 9092).advertised == told


def create(client: Client, topic: str) -> None:
    """Have a topic created by asking for its metadata until it is there."""

    def is_there() -> bool:
        response = client.ask(MetadataRequest(topics=[MetadataRequestTopic(name=topic)]), 9)
        assert isinstance(response, MetadataResponse)
        return response.topics[0].error_code == ErrorCode.NONE

    until(is_there, pause_s=0.001)


def produce(client: Client, topic: str, batch: bytes, acks: int = -1, partition: int = 0) -> tuple[int, int]:
    """Produce one batch; return error code and base offset."""
    data = [TopicProduceData(name=topic, partition_data=[PartitionProduceData(index=partition, records=batch)])]
    response = client.ask(ProduceRequest(acks=acks, timeout_ms=30_000, topic_data=data), 9)
    assert isinstance(response, ProduceResponse)
    (part,) = response.responses[0].partition_responses
    return part.error_code, part.base_offset


def fetch(client: Client, topic: str, offset: int = 0, partition: int = 0) -> tuple[list[bytes], int]:
    """Read from an offset to the end; return the values and the high watermark."""
    values: list[bytes] = []
    while True:
        wanted = FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=1 << 20)
        request = FetchRequest(max_wait_ms=0, min_bytes=0, topics=[FetchTopic(topic=topic, partitions=[wanted])])
        response = client.ask(request, 11)
        assert isinstance(response, FetchResponse)
        (part,) = response.responses[0].partitions
        assert part.error_code == ErrorCode.NONE
        records = part.records
        if not records:
            return values, part.high_watermark
        assert type(records) is memoryview
        for position, header in iterate_batches(records):
            values += [bytes(record.value or b"") for record in read_batch(records, position, header)]
            offset = header.next_offset


def test_what_was_acknowledged_survives_a_kill_and_offsets_go_on(tmp_path: Path) -> None:
    acknowledged: list[bytes] = []
    for life in range(3):
        with broker_process(tmp_path, is_measured=True) as broker, Client(broker.address) as client:
            create(client, "orders")
            values, high_watermark = fetch(client, "orders")
            assert values == acknowledged
            assert high_watermark == len(acknowledged)
            for number in range(20):
                value = b"%d-%d" % (life, number)
                assert produce(client, "orders", batch_of(value)) == (ErrorCode.NONE, len(acknowledged))
                acknowledged.append(value)
            broker.kill()


def test_a_topic_that_was_created_and_never_written_to_is_led_and_empty_after_a_kill(tmp_path: Path) -> None:
    with broker_process(tmp_path) as broker, Client(broker.address) as client:
        create(client, "orders")
        broker.kill()
    assert not (tmp_path / "orders-0").exists()
    with broker_process(tmp_path) as broker, Client(broker.address) as client:
        assert fetch(client, "orders") == ([], 0)
        assert produce(client, "orders", batch_of(b"first")) == (ErrorCode.NONE, 0)
        assert (tmp_path / "orders-0").exists()
        broker.kill()
    with broker_process(tmp_path) as broker, Client(broker.address) as client:
        assert fetch(client, "orders") == ([b"first"], 1)


def test_duplicates_are_known_across_a_kill(tmp_path: Path) -> None:
    batch = batch_of(b"once", producer_id=7, producer_epoch=0, base_sequence=0)
    with broker_process(tmp_path, is_measured=True) as broker, Client(broker.address) as client:
        create(client, "orders")
        assert produce(client, "orders", batch) == (ErrorCode.NONE, 0)
        broker.kill()
    with broker_process(tmp_path, is_measured=True) as broker, Client(broker.address) as client:
        assert produce(client, "orders", batch) == (ErrorCode.NONE, 0)

        assert fetch(client, "orders") == ([b"once"], 1)


def test_a_topic_of_the_configuration_is_there_at_start(tmp_path: Path) -> None:
    config = tmp_path / "odradek.toml"
    config.write_text('[topics.orders]\npartitions = 3\n"retention.ms" = "1000"\n')
    broker = BrokerProcess.from_config(tmp_path / "data", config)
    try:
        with Client(broker.wait_ready()) as client:
            response = client.ask(MetadataRequest(topics=[MetadataRequestTopic(name="orders")]), 9)
    finally:
        _, said = broker.terminate()
        broker.close()

    assert isinstance(response, MetadataResponse)
    assert len(response.topics[0].partitions) == 3
    assert "has no effect" not in said


@pytest.mark.parametrize(
    ("option", "expected"),
    [
        ("num.partition=4", "unknown broker key 'num.partition' (did you mean 'num.partitions'?)"),
        ("num.partitions=many", "num.partitions"),
        ("zookeeper.connect=localhost:2181", "zookeeper.connect"),
        ("odradek.storage=glacier", "must be one of: memory, segment"),
        ("authorizer.class.name=a.b.StandardAuthorizer", "ACLs are not built yet, and everybody would be allowed"),
    ],
)
def test_a_bad_setting_stops_the_start_with_one_line(tmp_path: Path, option: str, expected: str) -> None:
    broker = BrokerProcess(tmp_path, option, is_measured=True)
    status, err = broker.finish()

    assert status != 0
    assert expected in err
    assert "Traceback" not in err
    assert len(err.strip().splitlines()) == 1


def test_a_broker_that_strangers_reach_says_so_in_one_line(tmp_path: Path) -> None:
    broker = BrokerProcess(tmp_path / "open", listen="0.0.0.0:0", is_measured=True)
    broker.wait_ready()
    _, said = broker.terminate()

    (line,) = (line for line in said.splitlines() if "WARNING" in line)
    assert "whoever reaches port " in line


def test_a_broker_says_what_serves_where_and_what_it_found(tmp_path: Path) -> None:
    first = BrokerProcess(tmp_path)
    with Client(first.wait_ready()) as client:
        create(client, "orders")
        assert produce(client, "orders", batch_of(b"v")) == (ErrorCode.NONE, 0)
    first.kill()
    said = []
    for _ in range(2):
        broker = BrokerProcess(tmp_path, is_measured=True)
        broker.wait_ready()
        said.append(broker.terminate()[1])
    recovered, clean = said

    assert f"INFO serve: odradek {__version__} serves node_id=1 listeners=PLAINTEXT://127.0.0.1:" in recovered
    assert f"data={tmp_path}" in recovered
    assert "did not end cleanly: 1 of 1 logs were checked and recovered topics=1 partitions=1" in recovered
    assert "INFO serve: every log was closed cleanly topics=1 partitions=1" in clean


def test_every_line_of_a_broker_is_json_when_asked(tmp_path: Path) -> None:
    broker = BrokerProcess(tmp_path, "super.users=User:a", more=("--log-format", "json"), is_measured=True)
    broker.wait_ready()
    _, said = broker.terminate()
    entries = [json.loads(line) for line in said.splitlines()]

    assert [entry["level"] for entry in entries] == ["WARNING", "INFO", "INFO", "INFO"]
    assert entries[1]["message"] == f"odradek {__version__} serves"
    assert entries[1]["data"] == str(tmp_path)
    assert entries[2]["message"] == "no topic was found"
    assert entries[-1]["message"].startswith("stopping (SIGTERM)")


def test_a_port_in_use_stops_the_start_with_one_line(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        broker = BrokerProcess(tmp_path, listen=f"127.0.0.1:{taken.getsockname()[1]}", is_measured=True)
        status, err = broker.finish()

    assert status != 0
    assert "in use" in err
    assert "Traceback" not in err


def test_a_second_broker_on_the_same_directory_is_refused_and_the_first_goes_on(tmp_path: Path) -> None:
    with broker_process(tmp_path, is_measured=True) as first:
        status, err = BrokerProcess(tmp_path, is_measured=True).finish()
        assert not (tmp_path / ".kafka_cleanshutdown").exists(), "the second would make the first skip its recovery"
        with Client(first.address) as client:
            create(client, "orders")

            assert produce(client, "orders", batch_of(b"one")) == (ErrorCode.NONE, 0)
    assert status != 0
    assert "in use by another broker" in err
    assert "Traceback" not in err


def test_garbage_on_the_port_disturbs_nobody_else(tmp_path: Path) -> None:
    with broker_process(tmp_path, is_measured=True) as broker, Client(broker.address) as client:
        create(client, "orders")
        for garbage in (b"GET / HTTP/1.1\r\n\r\n", b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff", b"\x00\x00\x00\x04abcd"):
            with socket.create_connection(client.socket.getpeername(), 30) as stranger:
                stranger.sendall(garbage)
                assert stranger.recv(1) == b""

        assert produce(client, "orders", batch_of(b"one")) == (ErrorCode.NONE, 0)


@pytest.mark.parametrize("loop", ["auto", "portable"])
def test_a_clean_end_does_not_wait_for_a_consumers_long_poll(tmp_path: Path, loop: str) -> None:
    options = (f"odradek.network.loop={loop}", "odradek.shutdown.timeout.ms=60000")
    with (
        broker_process(tmp_path, *options, is_measured=True) as broker,
        Client(broker.address) as client,
    ):
        create(client, "orders")
        wanted = FetchPartition(partition=0, partition_max_bytes=1 << 20)
        poll = FetchRequest(max_wait_ms=50_000, min_bytes=1, topics=[FetchTopic(topic="orders", partitions=[wanted])])
        client.send(poll, 11)
        with Client(broker.address) as other:
            create(other, "orders")  # what lay in a socket before this was asked is taken before it is answered

        status, _ = broker.terminate()

        assert status == 0
        assert client.receive_frame()
