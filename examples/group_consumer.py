"""A group of consumers that shares a topic: two members, then one of them leaves, and nothing is read twice or missed.

Run it against any broker: `python examples/group_consumer.py 127.0.0.1:9092`.
"""

from __future__ import annotations

import sys
import uuid
from collections import Counter

import trio

from odradek.client import Admin, Consumer, NewTopic, Producer, RebalanceListener, TopicPartition

RECORDS_COUNT = 60


class Reporter(RebalanceListener):
    """Says which partitions come and go; called within `poll`, so that it may commit."""

    def __init__(self, name: str) -> None:
        """Remember whose partitions these are."""
        self.name = name

    def on_partitions_assigned(self, partitions: frozenset[TopicPartition]) -> None:
        """These are new."""
        print(f"{self.name} gets {sorted(map(str, partitions))}")

    def on_partitions_revoked(self, partitions: frozenset[TopicPartition]) -> None:
        """Somebody else gets these next."""
        print(f"{self.name} gives up {sorted(map(str, partitions))}")


class Member:
    """One member: reads until it is told to leave."""

    def __init__(self, name: str, settings: dict[str, object], seen: Counter[str], has_all: trio.Event) -> None:
        """Remember; nothing is opened yet."""
        self.name = name
        self.settings = settings
        self.seen = seen
        self.has_all = has_all
        self.has_partitions = trio.Event()
        self.must_leave = trio.Event()

    async def run(self, topic: str) -> None:
        """Join the group and read what falls to this member; polls commit what the polls before returned."""
        async with Consumer({**self.settings, "client.id": self.name}) as consumer:
            consumer.subscribe([topic], listener=Reporter(self.name))
            while not self.must_leave.is_set():
                for record in await consumer.poll(timeout_ms=100):
                    self.seen[record.value.decode()] += 1
                if len(self.seen) == RECORDS_COUNT:
                    self.has_all.set()
                if consumer.assignment:
                    self.has_partitions.set()
        print(f"{self.name} has left")


async def main(bootstrap: str, protocol: str = "consumer") -> Counter[str]:
    """Send records while members come and go; return how often each was read."""
    topic = f"shared-{uuid.uuid4().hex[:8]}"
    servers: dict[str, object] = {"bootstrap.servers": bootstrap}
    settings: dict[str, object] = {
        **servers,
        "group.id": f"readers-of-{topic}",
        "group.protocol": protocol,
        "auto.offset.reset": "earliest",
    }
    if protocol == "classic":
        settings |= {"partition.assignment.strategy": "cooperative-sticky", "heartbeat.interval.ms": 300}
    seen: Counter[str] = Counter()
    async with Admin(servers) as admin:
        await admin.create_topic(NewTopic(topic, partitions_count=4))
    async with Producer(servers) as producer, trio.open_nursery() as nursery:
        has_all = trio.Event()
        members = [Member(name, settings, seen, has_all) for name in ("anna", "ben")]
        for member in members:
            nursery.start_soon(member.run, topic)
            await member.has_partitions.wait()
        for number in range(RECORDS_COUNT // 2):
            await producer.send(topic, str(number), partition=number % 4)
        members[0].must_leave.set()
        for number in range(RECORDS_COUNT // 2, RECORDS_COUNT):
            await producer.send(topic, str(number), partition=number % 4)
        await has_all.wait()
        members[1].must_leave.set()
    print(f"{len(seen)} records, {sum(seen.values())} reads")
    return seen


if __name__ == "__main__":
    trio.run(main, sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "consumer")
