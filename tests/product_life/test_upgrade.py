"""Every data directory of a released format is served by the broker of today, whole, cleanly ended or not."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from odradek.kernel.errors import ErrorCode
from odradek.kernel.wire.messages.api_03_metadata import MetadataRequest, MetadataResponse
from odradek.kernel.wire.messages.api_32_describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)

from ..broker.broker_process import Client, broker_process
from .contents import BATCHES, BROKER_CONFIG, DELETED, TOPICS, KeptBatch, batch_bytes, consume, produce

FORMATS = Path(__file__).parent / "formats"
TOPIC, BROKER = 2, 4


def check_topics(client: Client) -> None:
    response = client.ask(MetadataRequest(topics=None), 9)
    assert isinstance(response, MetadataResponse)
    found = {topic.name: len(topic.partitions) for topic in response.topics}

    assert found == {name: partitions for name, (partitions, _configs) in TOPICS.items()}
    assert DELETED not in found


def check_configs(client: Client, kind: int, name: str, expected: dict[str, str]) -> None:
    resource = DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=list(expected))
    response = client.ask(DescribeConfigsRequest(resources=[resource]), 4)
    assert isinstance(response, DescribeConfigsResponse)
    (result,) = response.results

    assert {config.name: config.value for config in result.configs} == expected


def check_records(client: Client) -> None:
    expected: dict[tuple[str, int], dict[int, bytes]] = {
        (name, partition): {} for name, (partitions, _configs) in TOPICS.items() for partition in range(partitions)
    }
    for batch in BATCHES:
        expected[batch.topic, batch.partition] |= dict(enumerate(batch.values, batch.base_offset))

    assert {where: consume(client, *where) for where in expected} == expected


def check_producers(client: Client) -> None:
    """The last batch again is known; the next is taken; one that leaves a gap is refused."""
    *_, last = BATCHES
    after = KeptBatch(last.topic, 0, last.base_offset + 1, (b"next",), base_sequence=last.base_sequence + 1)
    gap = KeptBatch(last.topic, 0, 0, (b"gap",), base_sequence=last.base_sequence + 9)

    assert produce(client, last.topic, 0, batch_bytes(last)) == (0, last.base_offset)
    assert produce(client, last.topic, 0, batch_bytes(after)) == (0, after.base_offset)
    assert produce(client, last.topic, 0, batch_bytes(gap))[0] == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


@pytest.mark.parametrize("ended", ["cleanly", "by a crash"])
@pytest.mark.parametrize("version", sorted(path.name for path in FORMATS.iterdir()))
def test_a_data_directory_of_a_released_format_is_served_whole(tmp_path: Path, version: str, ended: str) -> None:
    data = tmp_path / "data"
    shutil.copytree(FORMATS / version, data)
    if ended == "by a crash":
        (data / ".kafka_cleanshutdown").unlink()
    with broker_process(data) as broker, Client(broker.address) as client:
        check_topics(client)
        check_configs(client, TOPIC, "configured", TOPICS["configured"][1])
        check_configs(client, BROKER, "1", BROKER_CONFIG)
        check_records(client)
        check_producers(client)


def test_the_version_that_is_released_is_remembered() -> None:
    from odradek import __version__

    released = __version__.rpartition(".")[0]

    assert (FORMATS / released).is_dir(), f"python -m tests.product_life.make_format {released}"
