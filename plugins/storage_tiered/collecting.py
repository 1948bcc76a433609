"""Shell: removes from a bucket what nobody needs: partitions that were deleted, and garbage.

A deletion first puts a manifest that names nothing. Broken off at any later point, it leaves garbage and no holes, and
whoever collects finishes it. All of it blocks, and is for worker threads.

.. versionadded:: 0.1
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from .garbage import is_deleted, partition_garbage
from .manifests import load_newest, put_next
from .names import (
    TOPICS_PREFIX,
    ManifestName,
    SegmentFileName,
    parse_name,
    partition_prefix,
    topic_file_name,
    topic_prefix,
)

if TYPE_CHECKING:
    import uuid
    from collections.abc import Collection, Iterable

    from odradek.kernel.api import ObjectInfo, ObjectStore, TopicIdPartition


@attrs.frozen
class Collected:
    """What was removed.

    Attributes:
        objects: How many objects.
        size_bytes: How many bytes they had.
    """

    objects: int = 0
    size_bytes: int = 0

    def __add__(self, other: Collected) -> Collected:
        return Collected(self.objects + other.objects, self.size_bytes + other.size_bytes)


def remove_partition(store: ObjectStore, partition: TopicIdPartition) -> None:
    """Remove all of a partition, and with the last one of a topic what is known of the topic. May be repeated.

    Args:
        store: Where.
        partition: It was deleted, or is not tiered any more: nobody writes there.

    Raises:
        RemoteStoreError: The store fails: some is left, and no manifest names it.
    """
    newest = load_newest(store, partition)
    if newest is not None and (newest.segments or newest.abandoned):
        put_next(store, newest.without_anything())
    _remove(store, _manifests_last(store.list(partition_prefix(partition))))
    _remove_topic_file(store, partition)


def collect_partition(store: ObjectStore, partition: TopicIdPartition, *, now_ms: int, grace_ms: int) -> Collected:
    """Remove a partition's garbage. Called by its leader, between other work for it.

    Args:
        store: Where.
        partition: Which.
        now_ms: The wall clock.
        grace_ms: See `garbage.partition_garbage`.

    Raises:
        RemoteStoreError: The store fails, or the newest manifest cannot be read: then nothing is removed.
    """
    objects = list(store.list(partition_prefix(partition)))
    newest = load_newest(store, partition) if objects else None
    return _remove(store, partition_garbage(objects, newest, now_ms=now_ms, grace_ms=grace_ms))


def collect_deleted(store: ObjectStore, known: Collection[uuid.UUID], *, now_ms: int, grace_ms: int) -> Collected:
    """Finish deletions that were broken off, of topics that the cluster does not know any more. Lists the bucket.

    Args:
        store: Where.
        known: The ids of all topics of the cluster.
        now_ms: The wall clock.
        grace_ms: See `garbage.partition_garbage`.

    Raises:
        RemoteStoreError: The store fails, or a manifest cannot be read.
    """
    found: dict[TopicIdPartition, list[ObjectInfo]] = {}
    for info in store.list(TOPICS_PREFIX):
        name = parse_name(info.name)
        if isinstance(name, SegmentFileName | ManifestName) and name.partition.topic_id not in known:
            found.setdefault(name.partition, []).append(info)
    collected = Collected()
    for partition, objects in found.items():
        if is_deleted(objects, load_newest(store, partition), now_ms=now_ms, grace_ms=grace_ms):
            collected += _remove(store, _manifests_last(objects))
            _remove_topic_file(store, partition)
    return collected


def _remove_topic_file(store: ObjectStore, partition: TopicIdPartition) -> None:
    """Remove what is known of a topic when nothing else of it is there."""
    topic_file = topic_file_name(partition.topic, partition.topic_id)
    if {info.name for info in store.list(topic_prefix(partition.topic, partition.topic_id))} == {topic_file}:
        store.delete(topic_file)


def _manifests_last(objects: Iterable[ObjectInfo]) -> list[ObjectInfo]:
    """Return objects in the order in which they go; the newest manifest is the last, as it says that nothing counts."""
    return sorted(objects, key=lambda info: (isinstance(parse_name(info.name), ManifestName), info.name))


def _remove(store: ObjectStore, objects: Iterable[ObjectInfo]) -> Collected:
    collected = Collected()
    for info in objects:
        store.delete(info.name)
        collected += Collected(1, info.size_bytes)
    return collected
