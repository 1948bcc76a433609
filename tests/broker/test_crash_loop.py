"""A producer that goes on through kills: what was acknowledged is there once, in order, whatever the moment."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from odradek.kernel.errors import ErrorCode
from odradek.kernel.wire.codec import decode
from odradek.kernel.wire.headers import decode_response_header
from odradek.kernel.wire.messages.api_00_produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)

from .broker_process import Client, batch_of, broker_process
from .test_process import create, fetch

LIVES = 4
IN_FLIGHT = 5
VERSION = 9


class Producer:
    """An idempotent producer with five requests in flight; after a crash it sends again what was not acknowledged."""

    def __init__(self) -> None:
        self.next_sequence = 0
        self.unacknowledged: list[int] = []
        self.acknowledged: list[bytes] = []

    @staticmethod
    def value(sequence: int) -> bytes:
        return b"record %d" % sequence

    def send(self, client: Client, sequence: int) -> None:
        batch = batch_of(self.value(sequence), producer_id=1, producer_epoch=0, base_sequence=sequence)
        data = [TopicProduceData(name="t", partition_data=[PartitionProduceData(index=0, records=batch)])]
        client.send(ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=data), VERSION)

    def produce(self, client: Client, count: int) -> None:
        """Send again what is owed, then more; return once `count` records were acknowledged in this life."""
        for sequence in self.unacknowledged:
            self.send(client, sequence)
        for _ in range(count):
            while len(self.unacknowledged) < IN_FLIGHT:
                self.send(client, self.next_sequence)
                self.unacknowledged.append(self.next_sequence)
                self.next_sequence += 1
            frame = client.receive_frame()
            _, position = decode_response_header(frame, 0, VERSION)
            answer = decode(ProduceResponse, memoryview(frame), VERSION, position=position)
            assert answer.responses[0].partition_responses[0].error_code == ErrorCode.NONE
            self.acknowledged.append(self.value(self.unacknowledged.pop(0)))


@pytest.mark.parametrize("seed", [1, 2])
def test_acknowledged_records_are_there_once_and_in_order_through_kills(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    producer = Producer()
    for _ in range(LIVES):
        # An index entry for every batch, so that kills meet the indexes too.
        with broker_process(tmp_path, "log.index.interval.bytes=1") as broker, Client(broker.address) as client:
            create(client, "t")
            values, _ = fetch(client, "t")
            assert values[: len(producer.acknowledged)] == producer.acknowledged
            assert len(values) <= len(producer.acknowledged) + IN_FLIGHT
            producer.produce(client, chance.randrange(50, 400))
            broker.kill()

    with broker_process(tmp_path) as broker, Client(broker.address) as client:
        values, _ = fetch(client, "t")

    expected = [Producer.value(sequence) for sequence in range(len(values))]
    assert values == expected
    assert len(values) >= len(producer.acknowledged)
