"""Driver of confluent-kafka, that is librdkafka."""

from __future__ import annotations

import functools
import importlib
import sys
from typing import TYPE_CHECKING, Any

from .json_lines import DriverError, headers_of, record_of, reset_of, serve, tell_positioned, to_bytes

if TYPE_CHECKING:
    from collections.abc import Callable

# The client's type hints are incomplete, or not there: what comes from them is Any.
kafka: Any = importlib.import_module("confluent_kafka")
kafka_admin: Any = importlib.import_module("confluent_kafka.admin")

BOOTSTRAP = sys.argv[1] if len(sys.argv) > 1 else ""
LIMIT_S = 50


def error_of(error: Exception) -> DriverError:
    """Reduce an exception."""
    inner: Any = error.args[0] if isinstance(error, kafka.KafkaException) else None
    return DriverError(-1, str(error)) if inner is None else DriverError(inner.code(), inner.str())


def produce(
    *,
    topic: str,
    records: list[dict[str, Any]],
    compression: str,
    acks: str,
    idempotent: bool,
    max_request_bytes: int,
    partition: int = 0,
) -> list[int | None]:
    """Produce records to one partition; return their offsets."""
    offsets: list[int | None] = []
    errors: list[Any] = []

    def delivered(error: Any, message: Any) -> None:
        if error is not None:
            errors.append(error)
        offsets.append(message.offset())

    producer = kafka.Producer(
        {
            "bootstrap.servers": BOOTSTRAP,
            "compression.type": compression,
            "acks": acks,
            "enable.idempotence": idempotent,
            "message.max.bytes": max_request_bytes,
            "linger.ms": 5,
        }
    )
    for record in records:
        producer.produce(
            topic,
            value=to_bytes(record["value"]),
            key=to_bytes(record["key"]),
            partition=partition,
            on_delivery=delivered,
            timestamp=record["timestamp"],
            headers=headers_of(record),
        )
    if producer.flush(LIMIT_S):
        raise DriverError(-1, "not delivered in time")
    if errors:
        raise kafka.KafkaException(errors[0])
    return offsets


def start_of(consumer: Any, topic: str, position: str | dict[str, int]) -> int:
    """Return where to begin, in librdkafka's words."""
    if isinstance(position, str):
        return int(kafka.OFFSET_END if position == "end" else kafka.OFFSET_BEGINNING)
    if "offset" in position:
        return position["offset"]
    (found,) = consumer.offsets_for_times([kafka.TopicPartition(topic, 0, position["timestamp"])], LIMIT_S)
    offset: int = found.offset
    return offset


def consume(*, topic: str, position: str | dict[str, int], count: int, isolation: str) -> list[dict[str, Any]]:
    """Read `count` records of partition 0."""
    consumer = kafka.Consumer(
        {
            "bootstrap.servers": BOOTSTRAP,
            "group.id": "unused",
            "enable.auto.commit": False,
            "auto.offset.reset": {"none": "error"}.get(reset_of(position), "earliest"),
            "enable.partition.eof": True,
            "isolation.level": isolation,
        }
    )
    records: list[dict[str, Any]] = []
    try:
        consumer.assign([kafka.TopicPartition(topic, 0, start_of(consumer, topic, position))])
        told = False
        while len(records) < count:
            message = consumer.poll(LIMIT_S)
            if message is None:
                raise DriverError(-1, f"{len(records)} of {count} records in time")
            error = message.error()
            if error is None:
                timestamp = message.timestamp()[1]
                headers = message.headers() or ()
                records.append(record_of(message.offset(), timestamp, message.key(), message.value(), headers))
            elif error.code() != kafka.KafkaError._PARTITION_EOF:
                raise kafka.KafkaException(error)
            elif position == "end" and not told:
                told = True
                tell_positioned()
    finally:
        consumer.close()
    return records


@functools.cache
def admin() -> Any:
    """Return the admin client, one for the process: a future outlives no client."""
    return kafka_admin.AdminClient({"bootstrap.servers": BOOTSTRAP})


def one(futures: dict[Any, Any]) -> Any:
    """Return the result of the only future."""
    (future,) = futures.values()
    return future.result(LIMIT_S)


def create_topic(*, topic: str, partitions: int, configs: dict[str, str]) -> None:
    """Create a topic."""
    one(admin().create_topics([kafka_admin.NewTopic(topic, partitions, 1, config=configs)]))


def describe_topic(*, topic: str) -> int:
    """Return the number of partitions."""
    return len(one(admin().describe_topics(kafka.TopicCollection([topic]))).partitions)


def topic_configs(*, topic: str) -> dict[str, str]:
    """Return a topic's configs."""
    entries = one(admin().describe_configs([kafka_admin.ConfigResource(kafka_admin.ResourceType.TOPIC, topic)]))
    return {name: entry.value for name, entry in entries.items()}


def set_topic_config(*, topic: str, key: str, value: str) -> None:
    """Set one config of a topic."""
    to_set = kafka_admin.AlterConfigOpType.SET
    entry = kafka_admin.ConfigEntry(key, value, incremental_operation=to_set)
    resource = kafka_admin.ConfigResource(kafka_admin.ResourceType.TOPIC, topic, incremental_configs=[entry])
    one(admin().incremental_alter_configs([resource]))


def offsets(*, topic: str, at: str | int) -> int:
    """Return the offset of a position."""
    specs = {
        "earliest": kafka_admin.OffsetSpec.earliest,
        "latest": kafka_admin.OffsetSpec.latest,
        "max_timestamp": kafka_admin.OffsetSpec.max_timestamp,
    }
    spec = specs[at]() if isinstance(at, str) else kafka_admin.OffsetSpec.for_timestamp(at)
    found = one(admin().list_offsets({kafka.TopicPartition(topic, 0): spec}))
    offset: int = found.offset
    return offset


def delete_records(*, topic: str, before: int) -> int:
    """Delete the records before an offset; return the log start offset."""
    low: int = one(admin().delete_records([kafka.TopicPartition(topic, 0, before)])).low_watermark
    return low


def describe_cluster() -> dict[str, Any]:
    """Return broker ids and the controller."""
    cluster = admin().describe_cluster().result(LIMIT_S)
    return {"brokers": [node.id for node in cluster.nodes], "controller": cluster.controller.id}


OPERATIONS: dict[str, Callable[..., Any]] = {
    "produce": produce,
    "consume": consume,
    "create_topic": create_topic,
    "list_topics": lambda: sorted(admin().list_topics(timeout=LIMIT_S).topics),
    "describe_topic": describe_topic,
    "delete_topic": lambda *, topic: one(admin().delete_topics([topic])),
    "create_partitions": lambda *, topic, partitions: one(
        admin().create_partitions([kafka_admin.NewPartitions(topic, partitions)])
    ),
    "topic_configs": topic_configs,
    "set_topic_config": set_topic_config,
    "offsets": offsets,
    "delete_records": delete_records,
    "describe_cluster": describe_cluster,
}

if __name__ == "__main__":
    serve(OPERATIONS, error_of)
