"""Driver of aiokafka; its asyncio stays in this process."""

from __future__ import annotations

import asyncio  # noqa: TID251 - aiokafka runs on nothing else
import importlib
import sys
from typing import TYPE_CHECKING, Any

from .json_lines import DriverError, headers_of, record_of, reset_of, serve, tell_positioned, to_bytes

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

# The client has no type hints.
aiokafka: Any = importlib.import_module("aiokafka")
aiokafka_admin: Any = importlib.import_module("aiokafka.admin")
resources: Any = importlib.import_module("aiokafka.admin.config_resource")

BOOTSTRAP = sys.argv[1] if len(sys.argv) > 1 else ""
LIMIT_S = 50
ACKS = {"0": 0, "1": 1, "all": "all"}


def error_of(error: Exception) -> DriverError:
    """Reduce an exception."""
    return DriverError(getattr(error, "errno", -1) if isinstance(error, aiokafka.errors.KafkaError) else -1, str(error))


async def produce(
    *, topic: str, records: list[dict[str, Any]], compression: str, acks: str, idempotent: bool, max_request_bytes: int
) -> list[int | None]:
    """Produce records to partition 0; return their offsets."""
    producer = aiokafka.AIOKafkaProducer(
        bootstrap_servers=BOOTSTRAP,
        compression_type=None if compression == "none" else compression,
        acks=ACKS[acks],
        enable_idempotence=idempotent,
        max_request_size=max_request_bytes,
        linger_ms=5,
    )
    await producer.start()
    try:
        futures = [
            await producer.send(
                topic,
                value=to_bytes(record["value"]),
                key=to_bytes(record["key"]),
                headers=headers_of(record),
                partition=0,
                timestamp_ms=record["timestamp"],
            )
            for record in records
        ]
        delivered = [await future for future in futures]
        return [metadata.offset if metadata else None for metadata in delivered]
    finally:
        await producer.stop()


async def take_position(consumer: Any, partition: Any, position: str | dict[str, int]) -> None:
    """Stand where reading begins."""
    if position == "beginning":
        await consumer.seek_to_beginning(partition)
    elif position == "end":
        await consumer.seek_to_end(partition)
        tell_positioned()
    elif isinstance(position, dict) and "offset" in position:
        consumer.seek(partition, position["offset"])
    elif isinstance(position, dict):
        found = await consumer.offsets_for_times({partition: position["timestamp"]})
        consumer.seek(partition, found[partition].offset)


async def consume(*, topic: str, position: str | dict[str, int], count: int, isolation: str) -> list[dict[str, Any]]:
    """Read `count` records of partition 0."""
    consumer = aiokafka.AIOKafkaConsumer(
        bootstrap_servers=BOOTSTRAP, group_id=None, auto_offset_reset=reset_of(position), isolation_level=isolation
    )
    partition = aiokafka.TopicPartition(topic, 0)
    records: list[dict[str, Any]] = []
    consumer.assign([partition])
    await consumer.start()
    try:
        await take_position(consumer, partition, position)
        while len(records) < count:
            found = await asyncio.wait_for(consumer.getone(partition), LIMIT_S)
            records.append(record_of(found.offset, found.timestamp, found.key, found.value, found.headers))
    finally:
        await consumer.stop()
    return records


def with_admin(operation: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    """Give an operation an admin client that is closed afterwards."""

    async def run(**arguments: Any) -> Any:
        admin = aiokafka_admin.AIOKafkaAdminClient(bootstrap_servers=BOOTSTRAP)
        await admin.start()
        try:
            return await operation(admin, **arguments)
        finally:
            await admin.close()

    return run


def check(code: int) -> None:
    """Raise the error of a code."""
    if code:
        raise aiokafka.errors.for_code(code)


async def create_topic(admin: Any, *, topic: str, partitions: int, configs: dict[str, str]) -> None:
    """Create a topic."""
    response = await admin.create_topics([aiokafka_admin.NewTopic(topic, partitions, 1, topic_configs=configs)])
    check(response.topic_errors[0][1])


async def delete_topic(admin: Any, *, topic: str) -> None:
    """Delete a topic."""
    response = await admin.delete_topics([topic])
    check(response.topic_error_codes[0][1])


async def list_topics(admin: Any) -> list[str]:
    """Return the topics' names."""
    return sorted(await admin.list_topics())


async def describe_topic(admin: Any, *, topic: str) -> int:
    """Return the number of partitions."""
    (description,) = await admin.describe_topics([topic])
    return len(description["partitions"])


async def create_partitions(admin: Any, *, topic: str, partitions: int) -> None:
    """Add partitions."""
    await admin.create_partitions({topic: aiokafka_admin.NewPartitions(partitions)})


async def topic_configs(admin: Any, *, topic: str) -> dict[str, str]:
    """Return a topic's configs."""
    (response,) = await admin.describe_configs([resources.ConfigResource(resources.ConfigResourceType.TOPIC, topic)])
    code, _message, _type, _name, entries = response.resources[0][:5]
    check(code)
    return {entry[0]: entry[1] for entry in entries}


async def set_topic_config(admin: Any, *, topic: str, key: str, value: str) -> None:
    """Set one config of a topic, and so reset the others: it is the old AlterConfigs."""
    (response,) = await admin.alter_configs(
        [resources.ConfigResource(resources.ConfigResourceType.TOPIC, topic, {key: value})]
    )
    check(response.resources[0][0])


async def delete_records(admin: Any, *, topic: str, before: int) -> int:
    """Delete the records before an offset; return the log start offset."""
    partition = aiokafka.TopicPartition(topic, 0)
    low: int = (await admin.delete_records({partition: aiokafka_admin.RecordsToDelete(before)}))[partition]
    return low


async def describe_cluster(admin: Any) -> dict[str, Any]:
    """Return broker ids and the controller."""
    cluster = await admin.describe_cluster()
    return {"brokers": [node["node_id"] for node in cluster["brokers"]], "controller": cluster["controller_id"]}


async def offsets(*, topic: str, at: str | int) -> int:
    """Return the offset of a position."""
    consumer = aiokafka.AIOKafkaConsumer(bootstrap_servers=BOOTSTRAP, group_id=None)
    partition = aiokafka.TopicPartition(topic, 0)
    consumer.assign([partition])
    await consumer.start()
    try:
        if isinstance(at, int):
            found = (await consumer.offsets_for_times({partition: at}))[partition].offset
        else:
            edges = {"earliest": consumer.beginning_offsets, "latest": consumer.end_offsets}
            found = (await edges[at]([partition]))[partition]
    finally:
        await consumer.stop()
    return int(found)


COROUTINES: dict[str, Callable[..., Any]] = {
    "produce": produce,
    "consume": consume,
    "create_topic": with_admin(create_topic),
    "list_topics": with_admin(list_topics),
    "describe_topic": with_admin(describe_topic),
    "delete_topic": with_admin(delete_topic),
    "create_partitions": with_admin(create_partitions),
    "topic_configs": with_admin(topic_configs),
    "set_topic_config": with_admin(set_topic_config),
    "offsets": offsets,
    "delete_records": with_admin(delete_records),
    "describe_cluster": with_admin(describe_cluster),
}


def blocking(runner: asyncio.Runner, coroutine: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that runs a coroutine to its end."""
    return lambda **arguments: runner.run(coroutine(**arguments))


if __name__ == "__main__":
    with asyncio.Runner() as one_loop:
        serve({name: blocking(one_loop, coroutine) for name, coroutine in COROUTINES.items()}, error_of)
