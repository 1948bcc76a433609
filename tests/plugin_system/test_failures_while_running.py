"""What a plugin does wrong while the broker serves costs its own topics, and the log names the plugin."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from odradek.kernel.errors import ErrorCode
from odradek.kernel.wire.messages.api_00_produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from odradek.kernel.wire.messages.api_02_list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from odradek.kernel.wire.messages.api_44_incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)

from ..broker.broker_process import Client, batch_of
from ..broker.test_contained_failures import create_topic
from ..broker.test_live_config import TOPIC
from ..broker.test_process import fetch, produce

CONFIG = """
[plugins]
enable = ["*", "guilty_plugin"]
[broker]
"log.retention.check.interval.ms" = 100
"log.retention.ms" = -1
"""


NOWHERE = ("--listen", "127.0.0.1:0", "--data-dir", "data")


class Broker:
    """`odradek serve` with the guilty plugin, whose log is read as it comes."""

    def __init__(self, folder: Path) -> None:
        (folder / "odradek.toml").write_text(CONFIG)
        self.log = (folder / "log.txt").open("w+")
        self.process = subprocess.Popen(
            [sys.executable, "-m", "odradek", "serve", "--config", "odradek.toml", *NOWHERE],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(Path(__file__).parent)},
            stdout=subprocess.PIPE,
            stderr=self.log,
            text=True,
        )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line.startswith("ready "), self.lines()
        self.address = line.split()[1]

    def lines(self) -> list[str]:
        self.log.flush()
        return Path(self.log.name).read_text().splitlines()

    def line_with(self, pattern: str) -> str:
        """Return the first line of the log with this in it."""
        for _ in range(300):
            found = [line for line in self.lines() if re.search(pattern, line)]
            if found:
                return found[0]
            try:
                self.process.wait(0.05)
            except subprocess.TimeoutExpired:
                continue
            raise AssertionError(f"the broker ended: {self.lines()}")
        raise AssertionError(f"no line says {pattern}: {self.lines()}")

    def close(self) -> None:
        self.process.kill()
        self.process.communicate()
        self.log.close()


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    broker = Broker(tmp_path_factory.mktemp("guilty"))
    yield broker
    broker.close()


@pytest.fixture
def client(broker: Broker) -> Iterator[Client]:
    with Client(broker.address) as client:
        yield client


def innocent(client: Client, name: str) -> None:
    """See that a topic of segments is served."""
    assert create_topic(client, name) == ErrorCode.NONE
    assert produce(client, name, batch_of(b"fine")) == (ErrorCode.NONE, 0)
    assert fetch(client, name) == ([b"fine"], 1)


def time_of(client: Client, *topics: str) -> dict[str, int]:
    """Look for a time in several topics at once; return the codes."""
    wanted = [ListOffsetsTopic(name=name, partitions=[ListOffsetsPartition(timestamp=5)]) for name in topics]
    response = client.ask(ListOffsetsRequest(topics=wanted), 7)
    assert isinstance(response, ListOffsetsResponse)
    return {topic.name: topic.partitions[0].error_code for topic in response.topics}


def set_keys(client: Client, topic: str, **configs: str) -> None:
    """Set keys of a topic that exists, all at once."""
    keys = [AlterableConfig(name=name.replace("_", "."), value=value) for name, value in configs.items()]
    resource = AlterConfigsResource(resource_type=TOPIC, resource_name=topic, configs=keys)
    response = client.ask(IncrementalAlterConfigsRequest(resources=[resource]), 1)
    assert isinstance(response, IncrementalAlterConfigsResponse)
    assert response.responses[0].error_code == ErrorCode.NONE


def refusal(client: Client, topic: str) -> str | None:
    """Produce what is refused; return what the producer is told."""
    data = [TopicProduceData(name=topic, partition_data=[PartitionProduceData(index=0, records=batch_of(b"no"))])]
    response = client.ask(ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=data), 9)
    assert isinstance(response, ProduceResponse)
    return response.responses[0].partition_responses[0].error_message


OFFLINE = ErrorCode.KAFKA_STORAGE_ERROR
BROKEN = ErrorCode.UNKNOWN_SERVER_ERROR
"""Of what never was there: a client that tried again for its two minutes would be told nothing else."""


@pytest.mark.parametrize(
    ("fault", "place", "first_answer"),
    [
        ("open", "in fail", BROKEN),
        ("append", "in fail", OFFLINE),
        ("write", "in fail", OFFLINE),
        ("flush", "in fail", OFFLINE),
        ("read", "in fail", ErrorCode.NONE),
        ("time", "in fail", ErrorCode.NONE),
    ],
)
def test_a_storage_that_raises_takes_its_partition_offline_and_no_other(
    broker: Broker, client: Client, fault: str, place: str, first_answer: ErrorCode
) -> None:
    guilty, other = f"guilty.{fault}", f"other.{fault}"
    innocent(client, other)
    settings = {"flush_messages": "1"} if fault == "flush" else {}
    assert create_topic(client, guilty, odradek_storage="guilty", **settings) == ErrorCode.NONE
    code, _ = produce(client, guilty, batch_of(b"never read"))
    assert code == first_answer
    if fault == "time":
        assert time_of(client, guilty, other) == {guilty: OFFLINE, other: ErrorCode.NONE}
    if fault == "read":
        with pytest.raises(AssertionError):
            fetch(client, guilty)
    line = broker.line_with(rf"partition .*guilty\.{fault}.*offline")

    assert produce(client, guilty, batch_of(b"again"))[0] == (BROKEN if fault == "open" else OFFLINE)
    assert fetch(client, other) == ([b"fine"], 1)
    assert "plugin=guilty_plugin" in line
    assert place in line
    assert f"the stranger's bug in {fault}" in line


def test_a_log_that_lacks_methods_takes_its_partition_offline(broker: Broker, client: Client) -> None:
    innocent(client, "whole")
    assert create_topic(client, "guilty.half", odradek_storage="guilty") == ErrorCode.NONE
    line = broker.line_with("guilty.half.*offline")

    assert produce(client, "guilty.half", batch_of(b"nowhere"))[0] == BROKEN
    assert "plugin 'guilty_plugin': a log of storage 'guilty' cannot be used: <object object" in line
    assert "has no `partition`, `directory`" in line


def test_a_plugin_that_blocks_is_named_with_the_place_and_what_to_do(broker: Broker, client: Client) -> None:
    assert create_topic(client, "guilty.block", odradek_storage="guilty") == ErrorCode.NONE
    assert produce(client, "guilty.block", batch_of(b"late")) == (ErrorCode.NONE, 0)
    line = broker.line_with("holds the broker up")

    assert "plugin 'guilty_plugin' holds the broker up" in line
    assert re.search(r'place="guilty_plugin.py:\d+ in append"', line)
    assert "a thread of `broker.machine`" in line
    innocent(client, "after_the_hold_up")


def test_a_policy_that_raises_leaves_its_log_as_it_is(broker: Broker, client: Client) -> None:
    assert create_topic(client, "policy", cleanup_policy="guilty") == ErrorCode.NONE
    assert produce(client, "policy", batch_of(b"kept")) == (ErrorCode.NONE, 0)
    line = broker.line_with("bug in plan")

    assert "plugin=guilty_plugin" in line
    assert fetch(client, "policy") == ([b"kept"], 1)


def test_a_stage_that_raises_refuses_its_batch(broker: Broker, client: Client) -> None:
    assert create_topic(client, "stage") == ErrorCode.NONE
    assert produce(client, "stage", batch_of(b"refused"))[0] == ErrorCode.UNKNOWN_SERVER_ERROR
    line = broker.line_with("bug in accept")

    assert "plugin=guilty_plugin" in line
    innocent(client, "beside_the_stage")


@pytest.mark.parametrize(
    ("topic", "told"),
    [
        (
            "no_stage",
            r"append stage 'guilty' cannot be made at .*guilty_plugin\.py:\d+: RuntimeError\(",
        ),
        ("half_a_stage", r"what append stage 'guilty' makes cannot be used: <object .* has no `accept`"),
    ],
)
def test_a_stage_that_cannot_be_made_refuses_at_once_and_leaves_what_is_there_to_be_read(
    tmp_path: Path, topic: str, told: str
) -> None:
    broker = Broker(tmp_path)
    with Client(broker.address) as client:
        for name in (topic, f"{topic}.again"):
            assert create_topic(client, name) == ErrorCode.NONE
            assert produce(client, name, batch_of(b"refused"))[0] == BROKEN
            assert fetch(client, name) == ([], 0)
        told_to_producer = refusal(client, topic)
        innocent(client, "beside")
    lines = [line for line in broker.lines() if "append stage" in line]
    broker.close()

    assert told_to_producer == "the append stage 'guilty' cannot be made; the broker's log says why"
    assert len(lines) == 1, "told once"
    assert re.search(rf"plugin 'guilty_plugin': {told}", lines[0])


@pytest.mark.parametrize(
    ("policy", "told", "told_to_producer"),
    [
        (
            "none",
            r"plugin 'guilty_plugin': retry policy 'none' cannot be made at .*guilty_plugin\.py:\d+: RuntimeError\(",
            "the retry policy 'none' cannot be made; the broker's log says why",
        ),
        (
            "half",
            r"plugin 'guilty_plugin': what retry policy 'half' makes cannot be used: <object .* has no `delay_ms`",
            "the retry policy 'half' cannot be made; the broker's log says why",
        ),
        ("guilty", r"append to policies\.guilty-0 failed.*bug in delay_ms.*plugin=guilty_plugin", None),
    ],
)
def test_a_retry_policy_that_fails_refuses_failed_records_until_it_is_corrected(
    broker: Broker, client: Client, policy: str, told: str, told_to_producer: str | None
) -> None:
    topic = f"policies.{policy}"
    innocent(client, topic)
    set_keys(client, topic, odradek_retry_topic="t", odradek_retry_group="g", odradek_retry_policy=policy)

    assert produce(client, topic, batch_of(b"refused"))[0] == BROKEN
    assert refusal(client, topic) == told_to_producer
    assert fetch(client, topic) == ([b"fine"], 1)
    broker.line_with(told)
    innocent(client, f"beside.the.policy.{policy}")

    set_keys(client, topic, odradek_retry_policy="levels")
    assert produce(client, topic, batch_of(b"waits"))[0] == ErrorCode.NONE


def test_a_stage_that_gives_what_is_no_batch_is_named(broker: Broker, client: Client) -> None:
    assert create_topic(client, "no_batch") == ErrorCode.NONE
    assert produce(client, "no_batch", batch_of(b"refused"))[0] == ErrorCode.UNKNOWN_SERVER_ERROR
    line = broker.line_with("append to no_batch-0 failed")

    assert re.search(r"plugin 'guilty_plugin': its append stage at .*guilty_plugin\.py:\d+ gave no valid batch", line)


def test_a_policy_that_gives_no_plan_is_named(broker: Broker, client: Client) -> None:
    assert create_topic(client, "no_plan", cleanup_policy="guilty") == ErrorCode.NONE
    assert produce(client, "no_plan", batch_of(b"kept")) == (ErrorCode.NONE, 0)
    line = broker.line_with("gave None, not a CleanupPlan")

    assert re.search(r"plugin 'guilty_plugin': the cleanup policy at .*guilty_plugin\.py:\d+ gave None", line)


def test_a_service_that_raises_is_started_again(broker: Broker) -> None:
    line = broker.line_with("bug in a service")

    assert "service guilty_plugin: guilty service crashed" in line


def test_a_notification_that_raises_changes_nothing(broker: Broker, client: Client) -> None:
    innocent(client, "listener")
    line = broker.line_with("bug in a notification")

    assert "plugin guilty_plugin: odradek_leader_changed failed" in line
