"""Shell: removes from a bucket what nobody needs: partitions that were deleted or switched off, and garbage.

A removal first puts a manifest that names nothing. Broken off at any later point, it leaves garbage and no holes, and
whoever collects finishes it. All of it blocks, and is for worker threads.

.. versionadded:: 0.1
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import attrs

from odradek.kernel.api import ObjectMissingError

from .documents import CorruptDocumentError
from .garbage import is_deleted, partition_garbage
from .manifest import names_nothing
from .manifests import load_newest, load_to_change, load_version, put_next, stored_versions
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
    from collections.abc import Iterable, Mapping

    from odradek.kernel.api import ObjectInfo, ObjectStore, TopicIdPartition


@attrs.frozen
class Collected:
    """What was removed.

    Attributes:
        objects: How many objects.
        size_bytes: How many bytes they had.
        left: Partitions of topics that are not tiered of which segments are named all the same: those who heard of it
            have not led them since.
    """

    objects: int = 0
    size_bytes: int = 0
    left: tuple[TopicIdPartition, ...] = ()

    def __add__(self, other: Collected) -> Collected:
        left = (*self.left, *other.left)
        return Collected(self.objects + other.objects, self.size_bytes + other.size_bytes, left)


def remove_partition(store: ObjectStore, partition: TopicIdPartition) -> None:
    """Remove all of a partition, and with the last one of a topic what is known of the topic. May be repeated.

    Args:
        store: Where.
        partition: Its topic was deleted: nobody writes there, ever.

    Raises:
        RemoteStoreError: The store fails: some is left, and no manifest names it.
    """
    newest = load_newest(store, partition)
    if newest is not None and newest.names_anything:
        put_next(store, newest.without_anything())
    _remove(store, _manifests_last(store.list(partition_prefix(partition))))
    _remove_topic_file(store, partition)


def empty_partition(
    store: ObjectStore, partition: TopicIdPartition, *, leader_epoch: int, log_start_offset: int
) -> None:
    """Remove what was sent of a partition whose topic is not tiered any more. Called by its leader. May be repeated.

    The last word is a manifest that names nothing, and stays: versions go on from there should the topic be tiered
    again, and who missed that it was not finds out (`Manifest.emptied_version`). Only what manifests named goes; what
    they never did is left to `collect_deleted`.

    Args:
        store: Where.
        partition: Which.
        leader_epoch: Under which this broker leads it.
        log_start_offset: Where its log, which is only local now, begins.

    Raises:
        FencedError: A later leader was there: it may have sent something since.
        ManifestMovedError: An upload of this broker was under way: to be tried again.
        RemoteStoreError: The store fails: some is left, and no manifest names it.
    """
    newest = load_to_change(store, partition, leader_epoch)
    if newest is None:
        return
    if newest.names_anything:
        newest = put_next(store, newest.with_leader_epoch(leader_epoch).emptied(log_start_offset))
    for version in stored_versions(store, partition):
        if version < newest.version:
            with suppress(ObjectMissingError, CorruptDocumentError):
                for name in load_version(store, partition, version).object_names():
                    store.delete(name)


def is_emptied(store: ObjectStore, partition: TopicIdPartition) -> bool:
    """Say whether nothing of a partition counts any more.

    Raises:
        RemoteStoreError: The store fails, or the newest manifest cannot be read.
    """
    return names_nothing(load_newest(store, partition))


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


def collect_deleted(store: ObjectStore, known: Mapping[uuid.UUID, bool], *, now_ms: int, grace_ms: int) -> Collected:
    """Finish deletions that were broken off, and remove the garbage of topics that are not tiered. Lists the bucket.

    Args:
        store: Where.
        known: Of all topics of the cluster, by id, whether they are tiered: then their leaders collect.
        now_ms: The wall clock.
        grace_ms: See `garbage.partition_garbage`.

    Raises:
        RemoteStoreError: The store fails, or a manifest cannot be read.
    """
    found: dict[TopicIdPartition, list[ObjectInfo]] = {}
    for info in store.list(TOPICS_PREFIX):
        name = parse_name(info.name)
        if isinstance(name, SegmentFileName | ManifestName) and not known.get(name.partition.topic_id):
            found.setdefault(name.partition, []).append(info)
    collected = Collected()
    for partition, objects in found.items():
        newest = load_newest(store, partition)
        if partition.topic_id in known:
            collected += _remove(store, partition_garbage(objects, newest, now_ms=now_ms, grace_ms=grace_ms))
            if not names_nothing(newest):
                collected += Collected(left=(partition,))
        elif is_deleted(objects, newest, now_ms=now_ms, grace_ms=grace_ms):
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
