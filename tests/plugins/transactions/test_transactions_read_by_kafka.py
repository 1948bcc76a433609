"""Apache Kafka's DumpLogSegments reads the transaction state that we write, and understands every record."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest

from odradek.kernel.api import TopicPartition
from odradek.kernel.records.builder import BatchBuilder
from odradek.testing.shard_harness import LoggedRecord
from tests.kafka_tools import kafka_says

from .driven import DrivenShard

if TYPE_CHECKING:
    from pathlib import Path

RECORD = re.compile(r"^\| offset: .* key: (?P<key>.*) payload: (?P<payload>.*)$", re.MULTILINE)


def dump(segment: Path) -> str:
    """Return what Kafka's tool says of a segment of the transaction state."""
    return kafka_says("tool", "DumpLogSegments", "--transaction-log-decoder", "--files", str(segment))


@pytest.mark.interop
@pytest.mark.parametrize("version", [0, 2])
def test_kafka_understands_what_we_write(version: int, tmp_path: Path) -> None:
    driven = DrivenShard(version=version)
    producer = driven.init("a").response.producer
    driven.add("a", producer, TopicPartition("t", 1), TopicPartition("t", 0), version=version)
    driven.end("a", producer, is_commit=True, version=version)
    driven.write_all()
    driven.harness.advance(604_800_000 + 3_600_000)
    builder = BatchBuilder(base_offset=0)
    logged = [entry for entry in driven.harness.log if isinstance(entry, LoggedRecord)]
    for entry in logged:
        builder.append(entry.key, entry.value, timestamp=driven.harness.now_ms)
    segment = tmp_path / "__transaction_state-0" / "00000000000000000000.log"
    segment.parent.mkdir()
    segment.write_bytes(builder.build())
    found = [(json.loads(each["key"]), each["payload"]) for each in RECORD.finditer(dump(segment))]
    values = [json.loads(payload) for _, payload in found[:-1]]

    assert len(logged) == len(found) == 5
    assert found[0][0] == {"type": "0", "data": {"transactionalId": "a"}}
    assert found[-1][1] == "<DELETE>"
    assert {value["version"] for value in values} == {str(min(version, 1))}
    assert [value["data"]["transactionStatus"] for value in values] == [0, 1, 2, 4]
    assert [value["data"]["producerEpoch"] for value in values] == ([0, 0, 0, 0] if version == 0 else [0, 0, 1, 1])
    assert values[1]["data"]["transactionPartitions"] == [{"topic": "t", "partitionIds": [0, 1]}]
