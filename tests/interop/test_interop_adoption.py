"""A whole data directory of Apache Kafka becomes ours: its groups go on where they were."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
import trio

from odradek.client import Consumer, Producer

from ..broker.broker_process import broker_process
from .brokers import SETTINGS, kafka_at

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.interop


async def produce(address: str, count: int) -> None:
    async with Producer({"bootstrap.servers": address}) as producer:
        for number in range(count):
            await producer.enqueue("orders", str(number), partition=0)


async def read_as_group(address: str, count: int) -> list[int]:
    """Read some records as a member of a group, and commit them."""
    settings = {"bootstrap.servers": address, "group.id": "billing", "auto.offset.reset": "earliest"}
    async with Consumer({**settings, "max.poll.records": 1, "enable.auto.commit": False}) as consumer:
        consumer.subscribe(["orders"])
        found: list[int] = []
        while len(found) < count:
            found += [int(record.value or b"") for record in await consumer.poll()]
        await consumer.commit()
    return found


def test_a_group_goes_on_where_it_was_in_kafka(tmp_path: Path) -> None:
    with kafka_at(tmp_path) as kafka:
        trio.run(produce, kafka.address, 10)
        in_kafka = trio.run(read_as_group, kafka.address, 6)
        kafka.kill()
    adopt = [sys.executable, "-m", "odradek", "topics", "adopt", str(tmp_path / "kafka" / "1")]
    subprocess.run([*adopt, "--data-dir", str(tmp_path / "data")], check=True, capture_output=True)
    with broker_process(tmp_path / "data", *SETTINGS) as broker:
        here = trio.run(read_as_group, broker.address, 4)

    assert in_kafka + here == list(range(10))
