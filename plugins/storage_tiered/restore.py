"""Shell: reads from a bucket alone what a broker needs to serve its topics again: `odradek tiered restore`.

Segments stay in the store. What a data directory gets of a partition is an empty log that begins where the store's part
ends, the newest manifest beside it, as a broker that tiers keeps it, and what readers of transactions and producers
need: the transaction indexes, and the producers' state at the end. So it takes as long as reading the small objects,
however much there is; a reader brings near what it reads.

Nothing is written to the store. The first broker that leads a restored partition stores a manifest under a leader epoch
above the last one there, by which a broker of before, should one still live, finds itself deposed.

.. versionadded:: 0.1
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import attrs

from odradek.kernel.api import (
    CorruptRecordsError,
    ObjectMissingError,
    RemoteStoreError,
    RestoredPartition,
    RestoredSidecar,
    RestoredTopic,
    TopicIdPartition,
    id_text,
)

from .beginnings import small_files_of
from .bucket import StoredTopic, load_cluster_id, load_topic
from .local_state import TIER_KIND, LocalState, encode_state
from .manifests import load_newest
from .names import TopicName, parse_name, segment_file_name
from .small_files import get_small_file
from .stores import store_threads

if TYPE_CHECKING:
    import uuid
    from collections.abc import Callable, Collection, Mapping, Sequence

    from odradek.kernel.api import ObjectStore

    from .manifest import Manifest, StoredSegment

_TIERED: Final = "remote.storage.enable"


class RestoreError(RemoteStoreError):
    """A bucket cannot be restored from as it is, or not what was asked for; the text says why and what to do."""


@attrs.frozen
class FoundTopic:
    """A topic of a bucket.

    Attributes:
        topic: As the kernel restores it.
        manifests: The newest manifest of each partition, None for one of which nothing was ever stored.
    """

    topic: RestoredTopic
    manifests: Sequence[Manifest | None]

    @property
    def records_end(self) -> int:
        """How many offsets its partitions have in the store, together."""
        return sum(m.end_offset - m.log_start_offset for m in self.manifests if m is not None and m.segments)


@attrs.define
class _Listed:
    """What a list of the bucket tells of a topic: how many partitions it has at least."""

    partitions_count: int = 0


def read_topics(
    store: ObjectStore,
    *,
    only: Collection[str] = (),
    on_progress: Callable[[int, int, str], None] = lambda done, total, partition: None,
) -> tuple[str, list[FoundTopic]]:
    """Return whose a bucket is, and its topics.

    Args:
        store: The bucket.
        only: The topics that are wanted, by name, or by `name/id` where there are several of a name; empty for all.
        on_progress: Called after each partition with how many are done, how many there are, and its name.

    Raises:
        RestoreError: The bucket is nobody's, a wanted topic is not there or there twice, an object is missing.
        RemoteStoreError: The store fails, or a manifest cannot be read.
    """
    cluster_id = load_cluster_id(store)
    if cluster_id is None:
        raise RestoreError(f"{store.url} holds no tiers: there is no odradek.json; is the prefix right?")
    listed, sizes = _list_bucket(store)
    topics = [_load_topic(store, cluster_id, *key, listed[key]) for key in _choose(store, listed, only)]
    wanted = [
        TopicIdPartition(each.topic_id, each.topic, number) for each in topics for number in range(each.partitions)
    ]
    read: list[tuple[Manifest | None, RestoredPartition]] = []
    with store_threads() as threads:
        for partition, result in zip(
            wanted, threads.map(lambda each: _read_partition(store, each, sizes), wanted), strict=True
        ):
            read.append(result)
            on_progress(len(read), len(wanted), str(partition))
    found = []
    for topic in topics:
        of_topic, read = read[: topic.partitions], read[topic.partitions :]
        configs = {**topic.configs, _TIERED: "true"}
        restored = RestoredTopic(topic.topic, topic.topic_id, configs, [partition for _, partition in of_topic])
        found.append(FoundTopic(restored, [manifest for manifest, _ in of_topic]))
    return cluster_id, found


def _list_bucket(store: ObjectStore) -> tuple[dict[tuple[str, uuid.UUID], _Listed], dict[str, int]]:
    listed: dict[tuple[str, uuid.UUID], _Listed] = {}
    sizes = {}
    for info in store.list(""):
        name = parse_name(info.name)
        if name is None:
            continue
        sizes[info.name] = info.size_bytes
        if isinstance(name, TopicName):
            listed.setdefault((name.topic, name.topic_id), _Listed())
            continue
        topic = listed.setdefault((name.partition.topic, name.partition.topic_id), _Listed())
        topic.partitions_count = max(topic.partitions_count, name.partition.partition + 1)
    return listed, sizes


def _choose(
    store: ObjectStore, listed: Collection[tuple[str, uuid.UUID]], only: Collection[str]
) -> list[tuple[str, uuid.UUID]]:
    """Return the topics that are wanted, by name and id, in order."""
    missing = [each for each in only if each not in {name for key in listed for name in _names_of(key)}]
    if missing:
        known = ", ".join(sorted({topic for topic, _ in listed})) or "none"
        raise RestoreError(f"{store.url} holds no topic {missing[0]}; it has {known}")
    chosen = sorted(key for key in listed if not only or set(_names_of(key)) & set(only))
    by_name: dict[str, list[str]] = {}
    for topic, topic_id in chosen:
        by_name.setdefault(topic, []).append(f"{topic}/{id_text(topic_id)}")
    for topic, ids in by_name.items():
        if len(ids) > 1:
            raise RestoreError(
                f"{store.url} holds {len(ids)} topics with the name {topic}, of which one was deleted before the other "
                f"was made: say which with --topic {' or --topic '.join(ids)}"
            )
    return chosen


def _names_of(key: tuple[str, uuid.UUID]) -> tuple[str, str]:
    return key[0], f"{key[0]}/{id_text(key[1])}"


def _load_topic(store: ObjectStore, cluster_id: str, topic: str, topic_id: uuid.UUID, listed: _Listed) -> StoredTopic:
    """Return what is known of a topic; where nothing is, as many partitions as there are objects of."""
    try:
        stored = load_topic(store, topic, topic_id)
    except ObjectMissingError:
        return StoredTopic(cluster_id, topic, topic_id, listed.partitions_count, {})
    return attrs.evolve(stored, partitions=max(stored.partitions, listed.partitions_count))


def _read_partition(
    store: ObjectStore, partition: TopicIdPartition, sizes: Mapping[str, int]
) -> tuple[Manifest | None, RestoredPartition]:
    manifest = load_newest(store, partition)
    return manifest, _restored_partition(store, partition, manifest, sizes)


def _restored_partition(
    store: ObjectStore, partition: TopicIdPartition, manifest: Manifest | None, sizes: Mapping[str, int]
) -> RestoredPartition:
    if manifest is None:
        return RestoredPartition(0, -1)
    _check_objects(store, partition, manifest, sizes)
    state = RestoredSidecar(0, TIER_KIND, encode_state(LocalState(manifest, manifest.log_start_offset)))
    small_files = small_files_of(manifest.segments, lambda segment, kind: _get(store, partition, segment, kind))
    next_offset = max(manifest.end_offset, manifest.log_start_offset)
    return RestoredPartition(next_offset, manifest.leader_epoch, [state, *small_files])


def _check_objects(
    store: ObjectStore, partition: TopicIdPartition, manifest: Manifest, sizes: Mapping[str, int]
) -> None:
    for segment in manifest.segments:
        for kind, file in segment.files.items():
            name = segment_file_name(partition, segment.base_offset, segment.uid, kind)
            if sizes.get(name) != file.size_bytes:
                found = f"{sizes[name]} bytes" if name in sizes else "nothing"
                raise RestoreError(
                    f"partition {partition} cannot be restored: its manifest names {name} with {file.size_bytes} "
                    f"bytes, and there is {found}; `odradek tiered verify` tells all that is wrong, and --topic "
                    "restores other topics"
                )


def _get(store: ObjectStore, partition: TopicIdPartition, segment: StoredSegment, kind: str) -> bytes:
    try:
        return get_small_file(store, partition, segment, kind)
    except CorruptRecordsError as error:
        raise RestoreError(
            f"partition {partition} cannot be restored: {error}; --topic restores other topics"
        ) from error
