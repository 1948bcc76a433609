"""Batches that take a broker long to judge, sent to a real one: whoever else produces is served meanwhile."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from odradek.kernel.errors import ErrorCode
from odradek.kernel.records.compression import CompressionType
from odradek.kernel.records.record import encode_record
from odradek.kernel.wire.messages.api_00_produce import PartitionProduceData, ProduceRequest, TopicProduceData
from odradek.kernel.wire.messages.api_19_create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from tests.waiting import is_readable

from ..records.bombs import batch_around
from .broker_process import Client, batch_of, broker_process
from .test_process import create, fetch, produce

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from .broker_process import BrokerProcess

RECORDS_COUNT = 15_000
SERVED = 3
"""So many requests of others are answered meanwhile, at least: where they were held up, it would be one."""


@pytest.fixture(params=["auto", "portable"])
def broker(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[BrokerProcess]:
    with broker_process(tmp_path / "data", f"odradek.network.loop={request.param}") as running:
        yield running


def slow_batch() -> bytes:
    """Return what takes half a second or more to be packed at zstd's last levels: records of words, 1.5 MB of them."""
    rng = random.Random(7)
    words = [rng.randbytes(rng.randrange(3, 9)) for _ in range(2000)]
    payload = b"".join(
        encode_record(0, index, None, b"".join(rng.choices(words, k=16))) for index in range(RECORDS_COUNT)
    )
    return bytes(batch_around(payload, RECORDS_COUNT, codec=CompressionType.NONE))


def create_slow_topic(client: Client) -> None:
    configs = {"compression.type": "zstd", "compression.zstd.level": "19", "max.message.bytes": str(8 << 20)}
    topic = CreatableTopic(
        name="slow",
        num_partitions=1,
        replication_factor=1,
        configs=[CreatableTopicConfig(name=name, value=value) for name, value in configs.items()],
    )
    client.ask(CreateTopicsRequest(topics=[topic], timeout_ms=30_000), 5)
    create(client, "slow")


def test_another_client_produces_while_a_batch_is_packed_anew(broker: BrokerProcess) -> None:
    batch = slow_batch()
    with Client(broker.address) as slow, Client(broker.address) as quick:
        create_slow_topic(slow)
        create(quick, "quick")
        data = [TopicProduceData(name="slow", partition_data=[PartitionProduceData(index=0, records=batch)])]
        slow.send(ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=data), 9)

        served = 0
        while not is_readable(slow.socket, 0):
            assert produce(quick, "quick", batch_of(b"%d" % served)) == (ErrorCode.NONE, served)
            served += 1
        assert served >= SERVED, "others are answered while the slow one waits"

        slow.receive_frame()
        values, end = fetch(quick, "slow")
        assert (len(values), end) == (RECORDS_COUNT, RECORDS_COUNT)
