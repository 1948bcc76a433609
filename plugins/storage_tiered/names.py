"""Pure core: how objects are called in a bucket, and what a name says.

```text
odradek.json                                               whose bucket this is
topics/<topic>/<topic id>/topic.json                       partitions and configs, for a restore
topics/<topic>/<topic id>/<partition>/manifest/<version>.json
topics/<topic>/<topic id>/<partition>/segments/<base offset>-<uid>.<kind>
```

Versions and offsets have 20 digits, so that names in order are numbers in order; topic ids are Kafka's text of an id.
Topic and id are two parts of the path, for together they may be longer than a file system lets a name be.

.. versionadded:: 0.1
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import attrs

from odradek.kernel.api import TopicIdPartition, id_text, parse_id

if TYPE_CHECKING:
    import uuid

BUCKET_FILE: Final = "odradek.json"
"""The object that says whose bucket it is."""

TOPICS_PREFIX: Final = "topics/"
"""What the names of everything else begin with."""

LOG: Final = "log"
"""The kind of the file with the records."""

INDEX: Final = "index"
"""The kind of the offset index."""

TIME_INDEX: Final = "timeindex"
"""The kind of the time index."""

TRANSACTION_INDEX: Final = "txnindex"
"""The kind of the list of aborted transactions."""

SNAPSHOT: Final = "snapshot"
"""The kind of the producers' state."""

FILE_KINDS: Final = (LOG, INDEX, TIME_INDEX, TRANSACTION_INDEX, SNAPSHOT)
"""Kinds of the files of a segment; they end their names here as they do on a disk."""

_TOPIC: Final = rf"{TOPICS_PREFIX}(?P<topic>[a-zA-Z0-9._-]+)/(?P<id>[a-zA-Z0-9_-]{{22}})/"
_NAME: Final = re.compile(
    rf"{_TOPIC}(?:(?P<file>topic\.json)|(?P<partition>0|[1-9][0-9]{{0,9}})/(?:manifest/(?P<version>[0-9]{{20}})\.json"
    rf"|segments/(?P<base>[0-9]{{20}})-(?P<uid>[a-zA-Z0-9_-]+)\.(?P<kind>{'|'.join(FILE_KINDS)})))"
)


@attrs.frozen
class TopicName:
    """The name of a topic's `topic.json`, read."""

    topic: str
    topic_id: uuid.UUID


@attrs.frozen
class ManifestName:
    """The name of a manifest, read."""

    partition: TopicIdPartition
    version: int


@attrs.frozen
class SegmentFileName:
    """The name of a file of a segment, read."""

    partition: TopicIdPartition
    base_offset: int
    uid: str
    kind: str


def topic_prefix(topic: str, topic_id: uuid.UUID) -> str:
    """Return what the names of all objects of a topic begin with."""
    return f"{TOPICS_PREFIX}{topic}/{id_text(topic_id)}/"


def topic_file_name(topic: str, topic_id: uuid.UUID) -> str:
    """Return the name of what is kept about a topic."""
    return f"{topic_prefix(topic, topic_id)}topic.json"


def partition_prefix(partition: TopicIdPartition) -> str:
    """Return what the names of all objects of a partition begin with."""
    return f"{topic_prefix(partition.topic, partition.topic_id)}{partition.partition}/"


def manifest_prefix(partition: TopicIdPartition) -> str:
    """Return what the names of a partition's manifests begin with."""
    return f"{partition_prefix(partition)}manifest/"


def manifest_name(partition: TopicIdPartition, version: int) -> str:
    """Return the name of a manifest."""
    return f"{manifest_prefix(partition)}{version:020d}.json"


def segments_prefix(partition: TopicIdPartition) -> str:
    """Return what the names of the files of a partition's segments begin with."""
    return f"{partition_prefix(partition)}segments/"


def segment_file_name(partition: TopicIdPartition, base_offset: int, uid: str, kind: str) -> str:
    """Return the name of a file of a segment.

    Args:
        partition: Whose segment.
        base_offset: The segment's.
        uid: The upload's: URL-safe base 64 as `id_text` gives it.
        kind: One of `FILE_KINDS`.
    """
    return f"{segments_prefix(partition)}{base_offset:020d}-{uid}.{kind}"


def parse_name(name: str) -> TopicName | ManifestName | SegmentFileName | None:
    """Return what a name says; None for the bucket's own file, and for what this project did not put there."""
    found = _NAME.fullmatch(name)
    if found is None:
        return None
    topic, topic_id = found["topic"], parse_id(found["id"])
    if found["file"] is not None:
        return TopicName(topic, topic_id)
    partition = TopicIdPartition(topic_id, topic, int(found["partition"]))
    if found["version"] is not None:
        return ManifestName(partition, int(found["version"]))
    return SegmentFileName(partition, int(found["base"]), found["uid"], found["kind"])
