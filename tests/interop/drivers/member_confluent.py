"""A group member of confluent-kafka, that is librdkafka."""

from __future__ import annotations

import importlib
from typing import Any

from .member_lines import HEARTBEAT_MS, POLL_S, Member

kafka: Any = importlib.import_module("confluent_kafka")


def main() -> None:
    """Read until told to leave."""
    member = Member()
    options = member.options
    settings: dict[str, Any] = {
        "bootstrap.servers": options.bootstrap,
        "group.id": options.group,
        "group.protocol": options.protocol,
        "enable.auto.commit": False,
        "auto.offset.reset": "earliest",
    }
    if options.instance:
        settings["group.instance.id"] = options.instance
    if options.protocol == "classic":
        settings["partition.assignment.strategy"] = options.assignor
        settings["session.timeout.ms"] = options.session
        settings["heartbeat.interval.ms"] = HEARTBEAT_MS
    consumer = kafka.Consumer(settings)
    is_pattern = options.subscribe == "pattern"
    consumer.subscribe([f"^{options.topic}" if is_pattern else options.topic])
    while not member.is_leaving.is_set():
        messages = consumer.consume(1000, POLL_S)
        owned = consumer.assignment()
        member.owns(f"{each.topic}:{each.partition}" if is_pattern else each.partition for each in owned)
        found = [(each.partition(), each.offset(), each.value()) for each in messages if each.error() is None]
        if found:
            consumer.commit(asynchronous=False)
        member.read(found)
    consumer.close()
    member.left()


if __name__ == "__main__":
    main()
