"""FastStream: a subscriber of a group publishes what it makes of each order; a second run goes on after the commits.

Run as `program.py BOOTSTRAP PREFIX`; it creates topics of that prefix.
"""

from __future__ import annotations

import asyncio
import sys

from faststream import AckPolicy
from faststream.confluent import KafkaBroker
from pydantic import BaseModel

COUNT = 20
LIMIT_S = 60


class Order(BaseModel):
    """What comes in."""

    number: int


class Bill(BaseModel):
    """What goes out."""

    number: int
    total: int


async def run(bootstrap: str, prefix: str, numbers: range) -> list[int]:
    """Publish orders, and return the numbers that were billed until as many bills have come back."""
    broker = KafkaBroker(bootstrap)
    billed: list[int] = []
    bills: list[Bill] = []
    done = asyncio.Event()

    @broker.subscriber(
        f"{prefix}-orders", group_id=f"{prefix}-billers", auto_offset_reset="earliest", ack_policy=AckPolicy.ACK
    )
    @broker.publisher(f"{prefix}-bills")
    async def bill(order: Order) -> Bill:
        billed.append(order.number)
        return Bill(number=order.number, total=10 * order.number)

    @broker.subscriber(f"{prefix}-bills", group_id=f"{prefix}-readers", auto_offset_reset="earliest", batch=True)
    async def read(batch: list[Bill]) -> None:
        bills.extend(batch)
        if len(bills) >= len(numbers):
            done.set()

    async with broker:
        await broker.start()
        for number in numbers:
            await broker.publish(Order(number=number), f"{prefix}-orders", key=str(number).encode())
        await asyncio.wait_for(done.wait(), LIMIT_S)
    assert sorted(each.total for each in bills) == [10 * number for number in numbers], bills
    return billed


async def main(bootstrap: str, prefix: str) -> None:
    """Run the application twice: each time it sees the orders of its own run and no others."""
    for numbers in (range(COUNT), range(COUNT, 2 * COUNT)):
        billed = await run(bootstrap, prefix, numbers)
        assert sorted(billed) == list(numbers), f"billed {billed}, wanted {numbers}"


asyncio.run(main(*sys.argv[1:3]))
print("ok")
