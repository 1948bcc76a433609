"""Apache Kafka's DumpLogSegments reads the transaction indexes and producer snapshots that we write."""

from __future__ import annotations

import os
import random
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from odradek.kernel.api import LogConfig
from odradek.kernel.partitions.producer_snapshot import SNAPSHOT_KIND
from odradek.kernel.partitions.transaction_index import AbortedTransaction

from .transactional_logs import Broker

PEERS = Path(os.environ.get("ODRADEK_PEERS") or Path(__file__).parents[3] / "shared" / "peers") / "peers.py"
CONFIG = LogConfig(segment_bytes=6_000, segment_index_bytes=240, index_interval_bytes=500)
ABORTED = re.compile(
    r"version: 0 producerId: (?P<producer>\d+) firstOffset: (?P<first>\d+) lastOffset: (?P<last>\d+) "
    r"lastStableOffset: (?P<stable>\d+)"
)
OPEN = re.compile(r"producerId: (\d+) producerEpoch.*currentTxnFirstOffset: (?:\w+\[)?(\d*)")


def kafka(*words: str) -> str:
    """Run one of Kafka's tools and return what it says."""
    if not PEERS.exists() or shutil.which("java") is None:
        reason = f"Apache Kafka's tools are not on this machine: ODRADEK_PEERS, java ({PEERS})"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    command = [sys.executable, str(PEERS), *words]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout


def transact(broker: Broker, source: random.Random) -> None:
    """Let eight producers run transactions of both versions beside each other; some stay open."""
    epochs, sequences = [0] * 8, [0] * 8
    for _ in range(500):
        producer = source.randrange(8)
        if source.random() < 0.8:
            count = source.randrange(1, 4)
            values = ["value"] * count
            broker.produce(values, producer, epochs[producer], sequences[producer], txn=True)
            sequences[producer] += count
        else:
            version = 2 * (producer % 2)
            epochs[producer] += version // 2
            sequences[producer] *= not version
            broker.end(producer, epochs[producer], commit=source.random() < 0.3, version=version)
        if source.random() < 0.5:
            broker.turn()
    broker.turn()


@pytest.mark.interop
def test_kafka_reads_our_transaction_indexes(tmp_path: Path) -> None:
    broker = Broker(tmp_path, CONFIG)
    transact(broker, random.Random(11))
    aborted = list(broker.replica.producers.aborted())
    producers = {state.producer_id: state for state in broker.replica.producers.states()}
    directory = broker.replica.log.directory
    assert directory is not None
    broker.manager.close()
    indexes = sorted(directory.glob("*.txnindex"))
    (snapshot,) = directory.glob(f"*.{SNAPSHOT_KIND}")
    report = kafka("verify-log", str(tmp_path))
    damaged = [line for line in report.splitlines() if line.startswith("damaged") and "Non-consecutive" not in line]
    dumped = kafka("tool", "DumpLogSegments", "--files", ",".join(map(str, [*indexes, snapshot])))
    told = [
        AbortedTransaction(*(int(found[name]) for name in ("producer", "first", "last", "stable")))
        for found in ABORTED.finditer(dumped)
    ]
    opened = {int(producer): int(offset or -1) for producer, offset in OPEN.findall(dumped)}

    assert damaged == []
    assert "files read" in report
    assert len(indexes) > 3
    assert told == aborted
    assert opened == {
        number: state.transaction.first_offset if state.transaction else -1 for number, state in producers.items()
    }
