"""A log directory whose disk has really no room left, and a broker's process that goes on with the other one."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from odradek.kernel.errors import ErrorCode
from odradek.kernel.wire.messages.api_19_create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from odradek.kernel.wire.messages.api_35_describe_log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse

from .broker_process import Client, batch_of, broker_process
from .small_disk import SmallDisk, small_disk_or_skip
from .test_process import fetch, produce

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

VALUE_BYTES = 50_000
"""So many fit a disk of 2 MiB that an index entry is due before it is full."""
PARTITIONS = 2
TRIES = 300
"""A minute's worth: a broker looks for room every ten seconds."""


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    with small_disk_or_skip(tmp_path / "small", "2m") as disk:
        yield disk


def value_of(number: int) -> bytes:
    return (b"%d " % number * VALUE_BYTES)[:VALUE_BYTES]


def errors_of_directories(client: Client) -> dict[str, int]:
    """Return the error of each log directory, by its last name."""
    answer = client.ask(DescribeLogDirsRequest(topics=None), 4)
    assert isinstance(answer, DescribeLogDirsResponse)
    return {result.log_dir.rpartition("/")[2]: result.error_code for result in answer.results}


def test_a_full_disk_costs_its_own_partitions_and_nothing_that_was_acknowledged(
    tmp_path: Path, disk: SmallDisk
) -> None:
    large = tmp_path / "large"
    settings = (f"log.dirs={large},{tmp_path / 'small'}", f"metadata.log.dir={large}")
    acknowledged: dict[int, list[bytes]] = {partition: [] for partition in range(PARTITIONS)}
    with broker_process(None, *settings, within=disk.command) as broker, Client(broker.address) as client:
        topic = CreatableTopic(name="t", num_partitions=PARTITIONS, replication_factor=1)
        client.ask(CreateTopicsRequest(topics=[topic], timeout_ms=30_000), 5)
        for partition in range(PARTITIONS):
            assert produce(client, "t", batch_of(value_of(0)), partition=partition) == (ErrorCode.NONE, 0)
            acknowledged[partition].append(value_of(0))
        (unlucky,) = (int(path.name[2:]) for path in disk.seen.glob("t-*"))
        (lucky,) = (int(path.name[2:]) for path in large.glob("t-*"))
        code, number = int(ErrorCode.NONE), 0
        while code == ErrorCode.NONE:
            code, offset = produce(client, "t", batch_of(value_of(number)), partition=unlucky)
            if code == ErrorCode.NONE:
                assert offset == len(acknowledged[unlucky])
                acknowledged[unlucky].append(value_of(number))
            number += 1
        assert code == ErrorCode.KAFKA_STORAGE_ERROR
        assert 10 < len(acknowledged[unlucky]) <= 2 * 2**20 // VALUE_BYTES
        assert produce(client, "t", batch_of(b"once more"), partition=unlucky)[0] == ErrorCode.KAFKA_STORAGE_ERROR
        for number in range(1, 60):
            assert produce(client, "t", batch_of(value_of(number)), partition=lucky) == (ErrorCode.NONE, number)
            acknowledged[lucky].append(value_of(number))
        status, said = broker.terminate()

    assert status == 0
    assert "no room" in said.lower() or "No space left" in said
    assert [(path / ".kafka_cleanshutdown").exists() for path in (large, disk.seen)] == [True, False]
    disk.grow("64m")
    with broker_process(None, *settings, within=disk.command) as broker, Client(broker.address) as client:
        found = {partition: fetch(client, "t", partition=partition)[0] for partition in acknowledged}
        assert found == acknowledged
        for partition, values in acknowledged.items():
            assert produce(client, "t", batch_of(b"on"), partition=partition) == (ErrorCode.NONE, len(values))
        assert errors_of_directories(client) == {"large": 0, "small": 0}


def fill_up(client: Client) -> list[bytes]:
    """Produce until the disk is full; return what was acknowledged."""
    acknowledged: list[bytes] = []
    code = int(ErrorCode.NONE)
    while code == ErrorCode.NONE:
        value = value_of(len(acknowledged))
        code, _ = produce(client, "t", batch_of(value))
        if code == ErrorCode.NONE:
            acknowledged.append(value)
    assert code == ErrorCode.KAFKA_STORAGE_ERROR
    return acknowledged


def produce_in_the_end(client: Client, value: bytes) -> None:
    """Produce as a client does: again and again, until the partition takes it."""
    for _ in range(TRIES):
        if produce(client, "t", batch_of(value))[0] == ErrorCode.NONE:
            return
        time.sleep(0.2)
    pytest.fail("the partition does not come back")


def test_a_broker_that_has_one_disk_alone_starts_while_it_is_full_and_lower_retention_makes_room(
    tmp_path: Path, disk: SmallDisk
) -> None:
    disk.grow("8m")
    small = tmp_path / "small"
    often = ("log.retention.check.interval.ms=1000", "log.initial.task.delay.ms=0")
    segments = {"segment.bytes": "1048576", "file.delete.delay.ms": "0"}
    with broker_process(small, within=disk.command) as broker, Client(broker.address) as client:
        configs = [CreatableTopicConfig(name=name, value=value) for name, value in segments.items()]
        topic = CreatableTopic(name="t", num_partitions=1, replication_factor=1, configs=configs)
        client.ask(CreateTopicsRequest(topics=[topic], timeout_ms=30_000), 5)
        acknowledged = fill_up(client)
        broker.terminate()
    with broker_process(small, within=disk.command) as broker, Client(broker.address) as client:
        assert fetch(client, "t")[0] == acknowledged  # a start without room loses nothing
        broker.terminate()
    settings = (*often, "log.retention.bytes=3000000")
    with broker_process(small, *settings, within=disk.command) as broker, Client(broker.address) as client:
        produce_in_the_end(client, b"on")
        status, _ = broker.terminate()
    assert status == 0


def test_a_partition_comes_back_by_itself_when_its_disk_has_room(tmp_path: Path, disk: SmallDisk) -> None:
    disk.grow("5m")
    with broker_process(tmp_path / "small", within=disk.command) as broker, Client(broker.address) as client:
        topic = CreatableTopic(name="t", num_partitions=1, replication_factor=1)
        client.ask(CreateTopicsRequest(topics=[topic], timeout_ms=30_000), 5)
        acknowledged = fill_up(client)
        disk.grow("64m")
        produce_in_the_end(client, b"on")

        assert fetch(client, "t")[0] == [*acknowledged, b"on"]
