"""A log directory whose disk has really no room left, and a broker's process that goes on with the other one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from odradek.kernel.errors import ErrorCode
from odradek.kernel.wire.messages.api_19_create_topics import CreatableTopic, CreateTopicsRequest
from odradek.kernel.wire.messages.api_35_describe_log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse

from .broker_process import Client, batch_of, broker_process
from .small_disk import NoSmallDiskError, SmallDisk, small_disk
from .test_process import fetch, produce

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

VALUE_BYTES = 50_000
"""So many fit a disk of 2 MiB that an index entry is due before it is full."""
PARTITIONS = 2


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    folder = tmp_path / "small"
    folder.mkdir()
    try:
        with small_disk(folder, "2m") as disk:
            yield disk
    except NoSmallDiskError as error:
        pytest.skip(f"a full disk cannot be had on this machine: {error}")


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
        for number in range(60):
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
