"""A test with trio: Odradek's own client; the broker has a trio run of its own, in another thread."""

# -- snippet trio --
import trio

from odradek.client import Consumer, Producer
from odradek.testing.running_broker import RunningBroker


def test_what_is_produced_is_consumed(odradek_broker: RunningBroker) -> None:
    async def produce_and_consume() -> list[bytes | None]:
        async with Producer({"bootstrap.servers": odradek_broker.bootstrap}) as producer:
            for number in range(10):
                await producer.send("with-trio", b"%d" % number, partition=0)
        async with Consumer({"bootstrap.servers": odradek_broker.bootstrap}) as consumer:
            consumer.assign([("with-trio", 0)])
            consumer.seek(("with-trio", 0), 0)
            values: list[bytes | None] = []
            while len(values) < 10:
                values += [record.value for record in await consumer.poll()]
            return values

    assert trio.run(produce_and_consume) == [b"%d" % number for number in range(10)]


# -- end of the snippet --
