"""A partitioner of one's own: records with an integer key go to partition `key mod partitions`, all others by hash.

Run it against any broker: `python examples/custom_partitioner.py 127.0.0.1:9092`.
"""

from __future__ import annotations

import sys
from typing import Any

import trio

from odradek.client import Admin, BrokerError, NewTopic, Producer
from odradek.client.partitioners import partition_for_key

TOPIC = "numbered"


class IntegerKeyPartitioner:
    """Chooses partitions by the number that the key is."""

    def partition(
        self, topic: str, key: Any, key_bytes: bytes | None, value: Any, value_bytes: bytes | None, cluster: Any
    ) -> int:
        """Return `key mod partitions`; a key that is no number goes where Kafka's own partitioner would send it."""
        count = len(cluster.topics[topic].partitions)
        try:
            return int(key) % count
        except (TypeError, ValueError):
            return partition_for_key(key_bytes or b"", count)


async def main(bootstrap: str) -> dict[str, int]:
    """Send a few records and return the partition of each key."""
    settings = {"bootstrap.servers": bootstrap}
    async with Admin(settings) as admin:
        try:
            await admin.create_topic(NewTopic(TOPIC, partitions_count=3))
        except BrokerError as error:
            print(error)  # it is there from an earlier run
    chosen: dict[str, int] = {}
    async with Producer({**settings, "partitioner.class": IntegerKeyPartitioner()}) as producer:
        for key in ("0", "1", "2", "3", "4", "a word"):
            metadata = await producer.send(TOPIC, f"value of {key}", key=key)
            chosen[key] = metadata.partition
            print(f"key {key!r} -> partition {metadata.partition}, offset {metadata.offset}")
    return chosen


if __name__ == "__main__":
    trio.run(main, sys.argv[1])
