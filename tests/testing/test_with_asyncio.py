"""A test with asyncio: aiokafka; the broker is in another thread and doesn't mind."""

# -- snippet asyncio --
import asyncio  # noqa: TID251 - the test is somebody else's

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

from odradek.testing.running_broker import RunningBroker


def test_what_is_produced_is_consumed(odradek_broker: RunningBroker) -> None:
    async def produce_and_consume() -> list[bytes | None]:
        async with AIOKafkaProducer(bootstrap_servers=odradek_broker.bootstrap) as producer:
            for number in range(10):
                await producer.send_and_wait("with-asyncio", b"%d" % number, partition=0)
        async with AIOKafkaConsumer(bootstrap_servers=odradek_broker.bootstrap) as consumer:
            partition = TopicPartition("with-asyncio", 0)
            consumer.assign([partition])
            consumer.seek(partition, 0)
            return [(await consumer.getone()).value for _ in range(10)]

    assert asyncio.run(produce_and_consume()) == [b"%d" % number for number in range(10)]


# -- end of the snippet --
