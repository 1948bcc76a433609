"""Faust: an agent keeps a table with a changelog topic, exactly once, and forwards what it counted.

The second run has no files of the first: its table comes back from the changelog.
Run as `program.py BOOTSTRAP PREFIX`; it creates topics of that prefix.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile

import faust
from aiokafka.admin import AIOKafkaAdminClient, NewTopic

COUNT = 24
KEYS = ("red", "green", "blue")
LIMIT_S = 90


class Order(faust.Record, serializer="json"):
    """What comes in."""

    colour: str
    amount: int


async def create(bootstrap: str, *topics: str) -> None:
    """Create topics: Faust declares those that it adds, and expects the others to be there."""
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    await admin.start()
    await admin.create_topics([NewTopic(topic, 1, 1) for topic in topics])
    await admin.close()


async def run(bootstrap: str, prefix: str, data_dir: str) -> dict[str, int]:
    """Run the application until it has counted its orders; return the totals that it forwarded last."""
    app = faust.App(
        f"{prefix}-app",
        broker=f"aiokafka://{bootstrap}",
        datadir=data_dir,
        topic_partitions=1,
        processing_guarantee="exactly_once",
        web_enabled=False,
        broker_commit_interval=0.2,
    )
    orders = app.topic(f"{prefix}-orders", value_type=Order, partitions=1)
    totals = app.topic(f"{prefix}-totals", value_type=Order, partitions=1)
    table = app.Table(f"{prefix}-table", default=int, partitions=1)
    seen: dict[str, int] = {}
    counted = 0
    done = asyncio.Event()

    @app.agent(orders)
    async def count(stream: faust.Stream[Order]) -> None:
        async for order in stream.group_by(Order.colour, partitions=1):
            table[order.colour] += order.amount
            await totals.send(key=order.colour, value=Order(colour=order.colour, amount=table[order.colour]))

    @app.agent(totals)
    async def read(stream: faust.Stream[Order]) -> None:
        nonlocal counted
        async for total in stream:
            seen[total.colour] = total.amount
            counted += 1
            if counted == COUNT:
                done.set()

    @app.task
    async def produce() -> None:
        for number in range(COUNT):
            await orders.send(value=Order(colour=KEYS[number % len(KEYS)], amount=1))

    async with app:
        await asyncio.wait_for(done.wait(), LIMIT_S)
    return seen


def main(bootstrap: str, prefix: str) -> None:
    """Run it twice, each time in an empty folder."""
    asyncio.run(create(bootstrap, f"{prefix}-orders", f"{prefix}-totals"))
    for times in (1, 2):
        with tempfile.TemporaryDirectory() as data_dir:
            seen = asyncio.run(run(bootstrap, prefix, data_dir))
        wanted = dict.fromkeys(KEYS, times * COUNT // len(KEYS))
        assert seen == wanted, f"run {times}: {seen}, wanted {wanted}"


main(*sys.argv[1:3])
print("ok")
