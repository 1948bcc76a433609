"""Quix Streams: windows over orders, their state in RocksDB and a changelog topic, exactly once.

The second run begins with an empty state folder, so it has what the first one counted from the changelog alone.
Run as `program.py BOOTSTRAP PREFIX`; it creates topics of that prefix.
"""

from __future__ import annotations

import sys
import tempfile
from typing import Any

from confluent_kafka import Consumer
from quixstreams import Application
from quixstreams.state import State

COUNT = 30
KEYS = ("red", "green", "blue")


def application(bootstrap: str, prefix: str, state_dir: str) -> Application:
    """Return an application that processes exactly once."""
    return Application(
        broker_address=bootstrap,
        consumer_group=f"{prefix}-counters",
        auto_offset_reset="earliest",
        processing_guarantee="exactly-once",
        state_dir=state_dir,
        commit_interval=0.5,
        loglevel="WARNING",
    )


def count(value: dict[str, Any], state: State) -> dict[str, Any]:
    """Add an order to what its colour has had so far."""
    total = state.get("total", 0) + value["amount"]
    state.set("total", total)
    return {"total": total}


def run(bootstrap: str, prefix: str) -> None:
    """Produce orders, and process that many from an empty state folder."""
    with tempfile.TemporaryDirectory() as state_dir:
        app = application(bootstrap, prefix, state_dir)
        orders = app.topic(f"{prefix}-orders", value_deserializer="json")
        totals = app.topic(f"{prefix}-totals", value_serializer="json")
        with app.get_producer() as producer:
            for number in range(COUNT):
                message = orders.serialize(key=KEYS[number % len(KEYS)], value={"amount": 1})
                producer.produce(orders.name, key=message.key, value=message.value)
        app.dataframe(orders).apply(count, stateful=True).to_topic(totals)
        app.run(count=COUNT, timeout=60)


def read_totals(bootstrap: str, topic: str, expected: int) -> list[bytes]:
    """Return what committed transactions left in a topic."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": f"{topic}-reader",
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
        }
    )
    consumer.subscribe([topic])
    values: list[bytes] = []
    while len(values) < expected:
        message = consumer.poll(30)
        assert message is not None, f"{len(values)} of {expected} records came"
        assert message.error() is None, message.error()
        values.append(message.value())
    consumer.close()
    return values


bootstrap, prefix = sys.argv[1:3]
run(bootstrap, prefix)
run(bootstrap, prefix)
found = read_totals(bootstrap, f"{prefix}-totals", 2 * COUNT)
wanted = sorted(b'{"total":%d}' % total for total in range(1, 2 * COUNT // len(KEYS) + 1) for _ in KEYS)
assert sorted(found) == wanted, found
print("ok")
