"""Pure core: the file that says which brokers shall have which partitions, as Kafka's tools write and read it.

    {"version":1,"partitions":[{"topic":"orders","partition":0,"replicas":[1,2,3]}]}

*Source:* `kafka-reassign-partitions` of Kafka 4.3. Its `log_dirs`, one a replica, may be there and say "any": which of
a broker's directories takes a replica is the broker's choice.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from odradek.kernel.errors import ConfigError
from odradek.kernel.types import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Mapping

VERSION: Final = 1
ANY_DIRECTORY: Final = "any"


def as_json(assignments: Mapping[TopicPartition, tuple[int, ...]]) -> dict[str, Any]:
    """Return what the file says, for JSON."""
    partitions = [
        {"topic": each.topic, "partition": each.partition, "replicas": list(replicas)}
        for each, replicas in sorted(assignments.items())
    ]
    return {"version": VERSION, "partitions": partitions}


def one_line(assignments: Mapping[TopicPartition, tuple[int, ...]]) -> str:
    """Return the file's text as Kafka's tools write it."""
    return json.dumps(as_json(assignments), separators=(",", ":"))


def parse(text: str, source: str) -> dict[TopicPartition, tuple[int, ...]]:
    """Read a file.

    Args:
        text: What it says.
        source: Its name, for errors.

    Raises:
        ConfigError: It is none, names a partition twice or a broker twice, or wants certain directories.
    """
    try:
        read = json.loads(text)
    except ValueError as error:
        hint = "`odradek reassign generate` and kafka-reassign-partitions write such files"
        raise ConfigError(f"no JSON: {error}", where=source, hint=hint) from error
    if not isinstance(read, dict) or not isinstance(read.get("partitions"), list):
        raise ConfigError('expected {"version":1,"partitions":[...]}', where=source)
    if read.get("version", VERSION) != VERSION:
        raise ConfigError(f"version {read['version']} is not known, only {VERSION}", where=source)
    assignments: dict[TopicPartition, tuple[int, ...]] = {}
    for number, item in enumerate(read["partitions"]):
        partition, replicas = _parse_item(item, f"{source}: partitions[{number}]")
        if partition in assignments:
            raise ConfigError(f"{partition} is named twice", where=source)
        assignments[partition] = replicas
    return assignments


def _parse_item(item: object, where: str) -> tuple[TopicPartition, tuple[int, ...]]:
    if not isinstance(item, dict):
        raise ConfigError("expected an object", where=where)
    topic, partition, replicas = item.get("topic"), item.get("partition"), item.get("replicas")
    if not isinstance(topic, str) or not topic:
        raise ConfigError('"topic" is no name', where=where)
    if not isinstance(partition, int) or not _is_number(partition):
        raise ConfigError('"partition" is no number of 0 or more', where=where)
    if not isinstance(replicas, list) or not replicas or not all(map(_is_number, replicas)):
        raise ConfigError('"replicas" is no list of broker ids', where=where)
    if len({*replicas}) < len(replicas):
        raise ConfigError(f"a broker has one replica of a partition: {replicas}", where=where)
    directories = item.get("log_dirs", [])
    if not isinstance(directories, list) or any(each != ANY_DIRECTORY for each in directories):
        hint = 'leave "log_dirs" out, or move within brokers by kafka-reassign-partitions'
        raise ConfigError("certain log directories cannot be asked for here", where=where, hint=hint)
    return TopicPartition(topic, partition), tuple(replicas)


def _is_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
