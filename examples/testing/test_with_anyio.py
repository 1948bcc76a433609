"""anyio on trio, with Odradek's own client; on asyncio, with aiokafka, it is the same."""

import pytest

from odradek.client import Consumer, Producer

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend():
    return "trio"


async def test_what_is_sent_is_read(odradek_broker):
    async with Producer({"bootstrap.servers": odradek_broker.bootstrap}) as producer:
        await producer.send("with-anyio", "an order", partition=0)
    async with Consumer({"bootstrap.servers": odradek_broker.bootstrap, "auto.offset.reset": "earliest"}) as consumer:
        await consumer.assign_topics("with-anyio")
        (record,) = await consumer.poll(timeout_ms=10_000)

    assert record.value == b"an order"
