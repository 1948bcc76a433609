"""Topics of the configuration file, `[topics.NAME]`: what a new one is made as, and what a later start does to it."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from odradek.kernel.config.broker import ConfigSource
from odradek.kernel.errors import ErrorCode
from odradek.kernel.wire.messages.api_03_metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseTopic,
)
from odradek.kernel.wire.messages.api_32_describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from odradek.kernel.wire.messages.api_37_create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
)
from odradek.testing.running_broker import running_broker

from .broker_process import Client, batch_of
from .test_live_config import TOPIC, alter
from .test_process import fetch, produce

SECTIONS = """\
[broker]
"num.partitions" = 2

[topics.remembered]
partitions = 3
"replication.factor" = 1
"odradek.storage" = "memory"
"odradek.election" = "isr"
"cleanup.policy" = "compact"

[topics.kept]
"max.message.bytes" = 1000
"retention.ms" = -1
"""

LARGE = batch_of(bytes(2000))


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "odradek.toml"
    path.write_text(SECTIONS)
    return path


def described(client: Client, topic: str) -> dict[str, str | None]:
    """Return what is set on a topic itself."""
    request = DescribeConfigsRequest(resources=[DescribeConfigsResource(resource_type=TOPIC, resource_name=topic)])
    response = client.ask(request, 4)
    assert isinstance(response, DescribeConfigsResponse)
    (result,) = response.results
    return {each.name: each.value for each in result.configs if each.config_source == ConfigSource.DYNAMIC_TOPIC}


def metadata_of(client: Client, topic: str) -> MetadataResponseTopic:
    """Return what clients are told of a topic; it is not made by asking."""
    request = MetadataRequest(topics=[MetadataRequestTopic(name=topic)], allow_auto_topic_creation=False)
    response = client.ask(request, 12)
    assert isinstance(response, MetadataResponse)
    (found,) = response.topics
    return found


def test_a_new_topic_has_what_its_section_says(tmp_path: Path, config: Path) -> None:
    data = tmp_path / "data"
    with running_broker(data_dir=data, config=config) as broker, Client(broker.bootstrap) as client:
        assert len(metadata_of(client, "remembered").partitions) == 3
        assert len(metadata_of(client, "kept").partitions) == 2
        assert described(client, "remembered") == {
            "cleanup.policy": "compact",
            "odradek.election": "isr",
            "odradek.storage": "memory",
        }
        assert described(client, "kept") == {"max.message.bytes": "1000", "retention.ms": "-1"}

        assert produce(client, "kept", LARGE)[0] == ErrorCode.MESSAGE_TOO_LARGE
        assert produce(client, "kept", batch_of(b"a")) == (ErrorCode.NONE, 0)
        assert produce(client, "remembered", batch_of(b"without a key"))[0] == ErrorCode.INVALID_RECORD
        assert sorted(path.name for path in data.glob("*-[0-9]")) == ["__cluster_metadata-0", "kept-0"]


def test_a_second_start_leaves_a_topic_as_it_became_and_tells_what_differs(
    tmp_path: Path, config: Path, caplog: pytest.LogCaptureFixture
) -> None:
    data = tmp_path / "data"
    caplog.set_level(logging.WARNING)
    with running_broker(data_dir=data, config=config) as broker, Client(broker.bootstrap) as client:
        topic_id = metadata_of(client, "kept").topic_id
        assert produce(client, "kept", batch_of(b"a")) == (ErrorCode.NONE, 0)
    with running_broker(data_dir=data, config=config) as broker, Client(broker.bootstrap) as client:
        assert "stays as it is" not in caplog.text
        assert metadata_of(client, "kept").topic_id == topic_id
        assert fetch(client, "kept") == ([b"a"], 1)
        assert alter(client, TOPIC, "kept", "max.message.bytes", "5000") == ErrorCode.NONE
        more = CreatePartitionsTopic(name="remembered", count=4, assignments=None)
        response = client.ask(CreatePartitionsRequest(topics=[more], timeout_ms=30_000), 3)
        assert isinstance(response, CreatePartitionsResponse)
        assert response.results[0].error_code == ErrorCode.NONE

    with running_broker(data_dir=data, config=config) as broker, Client(broker.bootstrap) as client:
        assert len(metadata_of(client, "remembered").partitions) == 4
        assert described(client, "kept") == {"max.message.bytes": "5000", "retention.ms": "-1"}
        assert produce(client, "kept", LARGE) == (ErrorCode.NONE, 1)

    assert [line.message for line in caplog.records if "stays as it is" in line.message] == [
        f"{config}, line 4: topic remembered exists and stays as it is: partitions is 4, not 3",
        f"{config}, line 11: topic kept exists and stays as it is: max.message.bytes is 5000, not 1000",
    ]


def test_a_topic_that_exists_takes_nothing_of_a_section_that_came_later(
    tmp_path: Path, config: Path, caplog: pytest.LogCaptureFixture
) -> None:
    data = tmp_path / "data"
    with running_broker(data_dir=data, config=config):
        pass
    changed = SECTIONS.replace('"memory"', '"segment"').replace("compact", "delete").replace("-1", "60000")
    config.write_text(changed.replace('"max.message.bytes" = 1000', "partitions = 5"))

    with running_broker(data_dir=data, config=config) as broker, Client(broker.bootstrap) as client:
        assert described(client, "kept") == {"max.message.bytes": "1000", "retention.ms": "-1"}
        assert described(client, "remembered")["odradek.storage"] == "memory"
        assert produce(client, "remembered", batch_of(b"without a key"))[0] == ErrorCode.INVALID_RECORD
        assert len(metadata_of(client, "kept").partitions) == 2

    told = [line.message.partition(": topic ")[2] for line in caplog.records if "stays as it is" in line.message]
    assert told == [
        "remembered exists and stays as it is: odradek.storage is memory, not segment; cleanup.policy is compact, "
        "not delete",
        "kept exists and stays as it is: partitions is 2, not 5; retention.ms is -1, not 60000",
    ]
