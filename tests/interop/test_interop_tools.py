"""Apache Kafka's own command line tools, each a process of its own."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import attrs
import pytest

from ..kafka_tools import kafka_command
from .records import create_topic

if TYPE_CHECKING:
    from collections.abc import Sequence

pytestmark = pytest.mark.interop


@attrs.frozen
class Tool:
    """One run of a tool.

    Attributes:
        words: Its command line; `{address}` and `{topic}` are filled in.
        says: What it must print.
    """

    words: str
    says: Sequence[str]


TOOLS = {
    "describe a topic": Tool(
        "TopicCommand --bootstrap-server {address} --describe --topic {topic}",
        ["PartitionCount: 1", "Leader: 1", "Isr: 1"],
    ),
    "alter a config": Tool(
        "ConfigCommand --bootstrap-server {address} --alter --topic {topic} --add-config retention.ms=99999",
        ["Completed updating config for topic {topic}"],
    ),
    "produce": Tool(
        "ProducerPerformance --bootstrap-server {address} --topic {topic} --num-records 1000 --record-size 100 "
        "--throughput -1",
        ["1000 records sent"],
    ),
    "metadata quorum": Tool(
        "MetadataQuorumCommand --bootstrap-server {address} describe --status", ["LeaderId:", "HighWatermark:"]
    ),
    "API versions": Tool("BrokerApiVersionsCommand --bootstrap-server {address}", ["Produce(0): 0 to 13 [usable: 13]"]),
}


def run(command: Sequence[str]) -> str:
    """Run a program of the folder of peers that has to succeed; return what it printed."""
    done = subprocess.run(kafka_command(*command), capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


@pytest.mark.parametrize("tool", TOOLS.values(), ids=TOOLS)
def test_kafkas_tools_take_us_for_kafka(tool: Tool, address: str, topic: str) -> None:
    create_topic(address, topic)

    printed = run(["tool", *tool.words.format(address=address, topic=topic).split()])

    assert [text for text in tool.says if text.format(topic=topic) not in printed] == [], printed
