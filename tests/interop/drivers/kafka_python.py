"""Driver of kafka-python."""

from __future__ import annotations

import functools
import importlib
import sys
from typing import TYPE_CHECKING, Any

from .json_lines import DriverError, headers_of, record_of, reset_of, serve, tell_positioned, to_bytes

if TYPE_CHECKING:
    from collections.abc import Callable

# The client has no type hints.
kafka: Any = importlib.import_module("kafka")
kafka_admin: Any = importlib.import_module("kafka.admin")

BOOTSTRAP = sys.argv[1] if len(sys.argv) > 1 else ""
LIMIT_S = 50
ACKS = {"0": 0, "1": 1, "all": "all"}


def error_of(error: Exception) -> DriverError:
    """Reduce an exception."""
    return DriverError(getattr(error, "errno", -1) if isinstance(error, kafka.errors.KafkaError) else -1, str(error))


def produce(
    *, topic: str, records: list[dict[str, Any]], compression: str, acks: str, idempotent: bool, max_request_bytes: int
) -> list[int | None]:
    """Produce records to partition 0; return their offsets."""
    producer = kafka.KafkaProducer(
        bootstrap_servers=BOOTSTRAP,
        compression_type=None if compression == "none" else compression,
        acks=ACKS[acks],
        enable_idempotence=idempotent,
        max_request_size=max_request_bytes,
        linger_ms=5,
    )
    try:
        futures = [
            producer.send(
                topic,
                value=to_bytes(record["value"]),
                key=to_bytes(record["key"]),
                headers=headers_of(record),
                partition=0,
                timestamp_ms=record["timestamp"],
            )
            for record in records
        ]
        producer.flush(LIMIT_S)
        return [future.get(LIMIT_S).offset for future in futures]
    finally:
        producer.close(LIMIT_S)


def take_position(consumer: Any, partition: Any, position: str | dict[str, int]) -> None:
    """Stand where reading begins."""
    if position == "beginning":
        consumer.seek_to_beginning(partition)
    elif position == "end":
        consumer.seek_to_end(partition)
        consumer.position(partition)
        tell_positioned()
    elif isinstance(position, dict) and "offset" in position:
        consumer.seek(partition, position["offset"])
    elif isinstance(position, dict):
        consumer.seek(partition, consumer.offsets_for_times({partition: position["timestamp"]})[partition].offset)


def consume(*, topic: str, position: str | dict[str, int], count: int, isolation: str) -> list[dict[str, Any]]:
    """Read `count` records of partition 0."""
    consumer = kafka.KafkaConsumer(
        bootstrap_servers=BOOTSTRAP,
        group_id=None,
        auto_offset_reset=reset_of(position),
        isolation_level=isolation,
        consumer_timeout_ms=LIMIT_S * 1000,
    )
    records: list[dict[str, Any]] = []
    try:
        partition = kafka.TopicPartition(topic, 0)
        consumer.assign([partition])
        take_position(consumer, partition, position)
        for found in consumer:
            records.append(record_of(found.offset, found.timestamp, found.key, found.value, found.headers))
            if len(records) == count:
                return records
    finally:
        consumer.close()
    raise DriverError(-1, f"{len(records)} of {count} records in time")


@functools.cache
def admin() -> Any:
    """Return the admin client, one for the process."""
    return kafka.KafkaAdminClient(bootstrap_servers=BOOTSTRAP)


def topic_configs(*, topic: str) -> dict[str, str]:
    """Return a topic's configs."""
    resource = kafka_admin.ConfigResource(kafka_admin.ConfigResourceType.TOPIC, topic)
    found = admin().describe_configs([resource], config_filter=kafka_admin.ConfigFilterType.ALL)
    return {name: entry["value"] for name, entry in found["topic"][topic].items()}


def offsets(*, topic: str, at: str | int) -> int:
    """Return the offset of a position."""
    spec = getattr(kafka_admin.OffsetSpec, at.upper()) if isinstance(at, str) else at
    partition = kafka.TopicPartition(topic, 0)
    found: int = admin().list_partition_offsets({partition: spec})[partition].offset
    return found


def delete_records(*, topic: str, before: int) -> int:
    """Delete the records before an offset; return the log start offset."""
    partition = kafka.TopicPartition(topic, 0)
    low: int = admin().delete_records({partition: before})[partition]["low_watermark"]
    return low


def describe_cluster() -> dict[str, Any]:
    """Return broker ids and the controller."""
    cluster = admin().describe_cluster()
    nodes = [node.get("broker_id", node.get("node_id")) for node in cluster["brokers"]]
    return {"brokers": nodes, "controller": cluster["controller_id"]}


OPERATIONS: dict[str, Callable[..., Any]] = {
    "produce": produce,
    "consume": consume,
    "create_topic": lambda *, topic, partitions, configs: bool(
        admin().create_topics({topic: {"num_partitions": partitions, "replication_factor": 1, "configs": configs}})
    ),
    "list_topics": lambda: sorted(admin().list_topics()),
    "describe_topic": lambda *, topic: len(admin().describe_topics([topic])[0]["partitions"]),
    "delete_topic": lambda *, topic: bool(admin().delete_topics([topic])),
    "create_partitions": lambda *, topic, partitions: bool(admin().create_partitions({topic: partitions})),
    "topic_configs": topic_configs,
    "set_topic_config": lambda *, topic, key, value: bool(
        admin().alter_configs([kafka_admin.ConfigResource(kafka_admin.ConfigResourceType.TOPIC, topic, {key: value})])
    ),
    "offsets": offsets,
    "delete_records": delete_records,
    "describe_cluster": describe_cluster,
    "broker_version": lambda: list(admin().get_broker_version_data(1).broker_version),
}

if __name__ == "__main__":
    serve(OPERATIONS, error_of)
