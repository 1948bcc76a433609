"""Consume, transform, produce: each order is billed exactly once, though the biller fails in the middle of its work.

The bills and the offsets of the orders are one transaction: either both are there, or neither. A consumer that reads
committed records never sees the bills of a transaction that failed.

Run it against any broker: `python examples/exactly_once.py 127.0.0.1:9092`.
"""

from __future__ import annotations

import sys
import uuid

import trio

from odradek.client import Admin, Consumer, NewTopic, Producer

ORDERS_COUNT = 40
FAILURES = (5, 17, 30)
"""Before these orders the biller dies, once each."""


class PowerCutError(Exception):
    """What happens to billers."""


class Biller:
    """Bills orders; may be killed and started again at any time."""

    def __init__(self, bootstrap: str, name: str) -> None:
        """Remember where orders come from and bills go to."""
        self.orders, self.bills = f"orders-{name}", f"bills-{name}"
        self.failures = set(FAILURES)
        self.servers: dict[str, object] = {"bootstrap.servers": bootstrap}
        self.consumer_settings: dict[str, object] = {
            **self.servers,
            "group.id": f"billers-{name}",
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
            "enable.auto.commit": False,  # the producer commits
            "max.poll.records": 4,
        }
        self.producer_settings: dict[str, object] = {**self.servers, "transactional.id": f"biller-{name}"}

    async def run(self) -> None:
        """Bill what was ordered since the last bill."""
        async with Producer(self.producer_settings) as producer, Consumer(self.consumer_settings) as consumer:
            consumer.subscribe([self.orders])
            last = -1
            while last < ORDERS_COUNT - 1:
                records = await consumer.poll(timeout_ms=500)
                if not records:
                    continue
                async with producer.transaction():
                    for record in records:
                        number = int(record.value)
                        await producer.enqueue(self.bills, f"bill for order {number}", key=str(number))
                        if number in self.failures:
                            self.failures.remove(number)
                            await producer.flush()  # the bill is written, but its transaction will be aborted
                            raise PowerCutError
                    await producer.send_offsets(consumer.consumed(), consumer.group_metadata)
                last = int(records[-1].value)


async def main(bootstrap: str) -> list[str]:
    """Place orders, have them billed by a biller that dies three times, and return the bills."""
    biller = Biller(bootstrap, uuid.uuid4().hex[:8])
    async with Admin(biller.servers) as admin:
        await admin.create_topic(NewTopic(biller.orders, partitions_count=1))
        await admin.create_topic(NewTopic(biller.bills, partitions_count=1))
    async with Producer(biller.servers) as producer:
        for number in range(ORDERS_COUNT):
            await producer.enqueue(biller.orders, str(number), partition=0)
    is_done = False
    while not is_done:
        try:
            await biller.run()
            is_done = True
        except PowerCutError:
            print("the biller died, and is started again")
    bills: list[str] = []
    async with Consumer({**biller.consumer_settings, "group.id": None}) as consumer:
        consumer.assign([(biller.bills, 0)])
        while len(bills) < ORDERS_COUNT:
            bills += [record.value.decode() for record in await consumer.poll()]
        bills += [record.value.decode() for record in await consumer.poll(timeout_ms=200)]
    print(f"{ORDERS_COUNT} orders, {len(bills)} bills, {len(set(bills))} different ones")
    return bills


if __name__ == "__main__":
    trio.run(main, sys.argv[1])
