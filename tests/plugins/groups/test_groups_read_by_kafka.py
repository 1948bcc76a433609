"""Apache Kafka's DumpLogSegments reads the offsets topic that we write, and understands every record."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest

from odradek.kernel.records.builder import BatchBuilder
from odradek.testing.shard_harness import LoggedRecord
from tests.kafka_tools import kafka_says

from .driven import DrivenGroups

if TYPE_CHECKING:
    from pathlib import Path

RECORD = re.compile(r"^\| offset: .* key: (?P<key>.*) payload: (?P<payload>.*)$", re.MULTILINE)


def dump(segment: Path) -> str:
    """Return what Kafka's tool says of a segment of the offsets topic."""
    return kafka_says("tool", "DumpLogSegments", "--offsets-decoder", "--files", str(segment))


def understood(text: str) -> list[tuple[Any, Any]]:
    """Return type and data of every key and value that the tool has decoded."""
    return [
        (json.loads(found["key"]), None if found["payload"] == "<DELETE>" else json.loads(found["payload"]))
        for found in RECORD.finditer(text)
    ]


@pytest.mark.interop
def test_kafka_understands_what_we_write(tmp_path: Path) -> None:
    driven = DrivenGroups({"group.initial.rebalance.delay.ms": 0})
    joined = driven.join("a", instance_id="i", version=5)
    driven.harness.advance(0)
    driven.learn("a", joined.response)
    driven.sync("a", 1, {"a": b"\0\0\0\0\0\0\xff\xff\xff\xff"}, instance_id="i")
    driven.commit({"t": {0: 5}}, name="a", generation=1, instance_id="i", metadata="far")
    driven.commit({"t": {1: 6}}, group="alone", retention_ms=1000)
    driven.leave(("a", "i"))
    driven.harness.run(lambda shard, _: shard.delete_groups(["g"]))
    builder = BatchBuilder(base_offset=0)
    logged = [entry for entry in driven.harness.log if isinstance(entry, LoggedRecord)]
    for entry in logged:
        builder.append(entry.key, entry.value, timestamp=driven.harness.now_ms)
    segment = tmp_path / "__consumer_offsets-0" / "00000000000000000000.log"
    segment.parent.mkdir()
    segment.write_bytes(builder.build())
    found = understood(dump(segment))

    assert len(logged) == len(found)
    assert [str(key["type"]) for key, _ in found] == ["2", "2", "1", "1", "2", "1", "2"]
    (member,) = found[1][1]["data"]["members"]
    assert (member["groupInstanceId"], member["clientId"], member["sessionTimeout"]) == ("i", "client", 10_000)
    assert (found[2][1]["data"]["metadata"], found[2][1]["data"]["offset"]) == ("far", 5)
    assert driven.harness.now_ms + 1000 == found[3][1]["data"]["expireTimestamp"]
    assert [value for _, value in found[-2:]] == [None, None]
