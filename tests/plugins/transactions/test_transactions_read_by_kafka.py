"""Apache Kafka's DumpLogSegments reads the transaction state that we write, and understands every record."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from odradek.kernel.api import TopicPartition
from odradek.kernel.records.builder import BatchBuilder
from odradek.kernel.testing.shard_harness import LoggedRecord

from .driven import DrivenShard

PEERS = Path(os.environ.get("ODRADEK_PEERS") or Path(__file__).parents[4] / "shared" / "peers") / "peers.py"
RECORD = re.compile(r"^\| offset: .* key: (?P<key>.*) payload: (?P<payload>.*)$", re.MULTILINE)


def dump(segment: Path) -> str:
    """Return what Kafka's tool says of a segment of the transaction state."""
    if not PEERS.exists() or shutil.which("java") is None:
        reason = f"Apache Kafka's tools are not on this machine: ODRADEK_PEERS, java ({PEERS})"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    tool = [sys.executable, str(PEERS), "tool", "DumpLogSegments", "--transaction-log-decoder", "--files", str(segment)]
    return subprocess.run(tool, capture_output=True, text=True, check=True).stdout


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
