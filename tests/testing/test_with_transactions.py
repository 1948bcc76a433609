"""A test of something transactional, here by Odradek's own client on trio."""

# -- snippet transactions --
import trio

from odradek.client import Consumer, Producer
from odradek.testing.running_broker import RunningBroker


def test_what_a_failed_transaction_wrote_is_not_read(odradek_broker: RunningBroker) -> None:
    servers = {"bootstrap.servers": odradek_broker.bootstrap}

    async def bill_and_read() -> list[bytes | None]:
        async with Producer({**servers, "transactional.id": "biller"}) as producer:
            await producer.begin_transaction()
            await producer.send("bills", "half a bill", partition=0)
            await producer.abort_transaction()
            async with producer.transaction():
                await producer.send("bills", "a bill", partition=0)
        async with Consumer({**servers, "isolation.level": "read_committed"}) as consumer:
            consumer.assign([("bills", 0)])
            consumer.seek(("bills", 0), 0)
            return [record.value for record in await consumer.poll(timeout_ms=5_000)]

    assert trio.run(bill_and_read) == [b"a bill"]


# -- end of the snippet --
