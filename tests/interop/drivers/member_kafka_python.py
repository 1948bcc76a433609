"""A group member of kafka-python."""

from __future__ import annotations

import importlib
from typing import Any

from .member_lines import HEARTBEAT_MS, POLL_S, Member

kafka: Any = importlib.import_module("kafka")

ASSIGNORS = {
    "range": ("kafka.coordinator.assignors.range", "RangePartitionAssignor"),
    "roundrobin": ("kafka.coordinator.assignors.roundrobin", "RoundRobinPartitionAssignor"),
}


def main() -> None:
    """Read until told to leave."""
    member = Member()
    options = member.options
    module, name = ASSIGNORS[options.assignor]
    consumer = kafka.KafkaConsumer(
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
    while not member.is_leaving.is_set():
        polled = consumer.poll(timeout_ms=int(POLL_S * 1000))
        member.owns(each.partition for each in consumer.assignment())
        found = [(each.partition, each.offset, each.value) for records in polled.values() for each in records]
        if found:
            consumer.commit()
        member.read(found)
    consumer.close()
    member.left()


if __name__ == "__main__":
    main()
