"""A group member of aiokafka; its asyncio stays in this process."""

from __future__ import annotations

import asyncio  # noqa: TID251 - aiokafka runs on nothing else
import importlib
from typing import Any

from .member_lines import HEARTBEAT_MS, POLL_S, Member

aiokafka: Any = importlib.import_module("aiokafka")

ASSIGNORS = {
    "range": ("aiokafka.coordinator.assignors.range", "RangePartitionAssignor"),
    "roundrobin": ("aiokafka.coordinator.assignors.roundrobin", "RoundRobinPartitionAssignor"),
}


async def main() -> None:
    """Read until told to leave."""
    member = Member()
    options = member.options
    module, name = ASSIGNORS[options.assignor]
    consumer = aiokafka.AIOKafkaConsumer(
        options.topic,
        bootstrap_servers=options.bootstrap,
        group_id=options.group,
        group_instance_id=options.instance,
        partition_assignment_strategy=[getattr(importlib.import_module(module), name)],
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        session_timeout_ms=options.session,
        heartbeat_interval_ms=HEARTBEAT_MS,
    )
    await consumer.start()
    while not member.is_leaving.is_set():
        polled = await consumer.getmany(timeout_ms=int(POLL_S * 1000))
        member.owns(each.partition for each in consumer.assignment())
        found = [(each.partition, each.offset, each.value) for records in polled.values() for each in records]
        if found:
            await consumer.commit()
        member.read(found)
    await consumer.stop()
    member.left()


if __name__ == "__main__":
    asyncio.run(main())
