"""pytest-asyncio and aiokafka: the fixture is an ordinary one, the tests are coroutines."""

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer


@pytest.mark.asyncio
async def test_what_is_sent_is_read(odradek_broker):
    async with AIOKafkaProducer(bootstrap_servers=odradek_broker.bootstrap) as producer:
        await producer.send_and_wait("with-pytest-asyncio", b"an order")
    async with AIOKafkaConsumer(
        "with-pytest-asyncio", bootstrap_servers=odradek_broker.bootstrap, auto_offset_reset="earliest"
    ) as consumer:
        record = await consumer.getone()

    assert record.value == b"an order"


@pytest.mark.asyncio
async def test_a_producer_tries_again(fresh_odradek_broker):
    fault = fresh_odradek_broker.fail_next("Produce", "NOT_ENOUGH_REPLICAS", times=2)
    async with AIOKafkaProducer(bootstrap_servers=fresh_odradek_broker.bootstrap) as producer:
        await producer.send_and_wait("orders", b"an order")

    assert fault.met_count == 2
    assert [record.value for record in fresh_odradek_broker.records("orders")] == [b"an order"]
