"""Apache Kafka's DumpLogSegments reads the transaction indexes and producer snapshots that we write."""

from __future__ import annotations

import random
import re
from typing import TYPE_CHECKING

import pytest

from odradek.kernel.api import LogConfig
from odradek.kernel.partitions.producer_snapshot import SNAPSHOT_KIND
from odradek.kernel.partitions.transaction_index import AbortedTransaction
from tests.kafka_tools import damage_that_kafka_sees, kafka_says

from .transactional_logs import Broker

if TYPE_CHECKING:
    from pathlib import Path

CONFIG = LogConfig(segment_bytes=6_000, segment_index_bytes=240, index_interval_bytes=500)
ABORTED = re.compile(
    r"version: 0 producerId: (?P<producer>\d+) firstOffset: (?P<first>\d+) lastOffset: (?P<last>\d+) "
    r"lastStableOffset: (?P<stable>\d+)"
)
OPEN = re.compile(r"producerId: (\d+) producerEpoch.*currentTxnFirstOffset: (?:\w+\[)?(\d*)")


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
    aborted = list(broker.replica.producers.transactions.aborted())
    producers = {state.producer_id: state for state in broker.replica.producers.states()}
    directory = broker.replica.log.directory
    assert directory is not None
    broker.lifecycle.close()
    indexes = sorted(directory.glob("*.txnindex"))
    (snapshot,) = directory.glob(f"*.{SNAPSHOT_KIND}")
    damage = damage_that_kafka_sees(tmp_path)
    dumped = kafka_says("tool", "DumpLogSegments", "--files", ",".join(map(str, [*indexes, snapshot])))
    told = [
        AbortedTransaction(*(int(found[name]) for name in ("producer", "first", "last", "stable")))
        for found in ABORTED.finditer(dumped)
    ]
    opened = {int(producer): int(offset or -1) for producer, offset in OPEN.findall(dumped)}

    assert damage == []
    assert len(indexes) > 3
    assert told == aborted
    assert opened == {
        number: state.transaction.first_offset if state.transaction else -1 for number, state in producers.items()
    }
