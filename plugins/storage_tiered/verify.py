"""Shell: looks through a bucket and says what is wrong: `odradek tiered verify`.

Nothing is changed. What is wrong is an error when something that was acknowledged cannot be read, and a warning when
nothing is lost. A broker may go on using the bucket meanwhile: what vanishes while it is looked at is looked up again.

| kind | means |
|---|---|
| bucket | `odradek.json` is missing or cannot be read |
| topic | `topic.json` is missing, cannot be read, or is another cluster's |
| manifest | the newest manifest cannot be read |
| later-format | it was written by a later odradek |
| gap | no segment stands for some offsets between others |
| empty | the same in a compacted topic: a segment of which nothing was left is not sent |
| missing | an object that the manifest names is not there |
| size | an object has another size than the manifest says |
| checksum | an object's bytes are not those that were put |
| orphan | objects that no manifest names: the garbage collector takes them after its grace time |
| foreign | objects that this project did not put there |

.. versionadded:: 0.1
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Final

import attrs

from odradek.kernel.api import ObjectMissingError, RemoteStoreError, StoreRefusedError, StoreUnavailableError, id_text

from .bucket import load_cluster_id, load_topic
from .documents import LaterFormatError
from .manifests import load_newest
from .names import (
    BUCKET_FILE,
    LOG,
    SegmentFileName,
    TopicName,
    parse_name,
    segment_file_name,
    topic_file_name,
)
from .stores import store_threads
from .uploads import sum_object

if TYPE_CHECKING:
    import uuid
    from collections.abc import Callable, Collection, Iterator
    from concurrent.futures import ThreadPoolExecutor

    from odradek.kernel.api import ObjectStore, TopicIdPartition

    from .manifest import Manifest, StoredSegment

_WARNINGS: Final = frozenset({"empty", "foreign", "orphan", "topic"})


@attrs.frozen
class Finding:
    """Something that is wrong.

    Attributes:
        kind: See the table above.
        place: A partition, a topic or an object.
        text: What is wrong.
    """

    kind: str
    place: str
    text: str

    @property
    def is_error(self) -> bool:
        """Whether something cannot be read."""
        return self.kind not in _WARNINGS


@attrs.frozen
class PartitionReport:
    """What is there of a partition.

    Attributes:
        partition: Which.
        manifest: Its newest manifest; None when there is none, or it cannot be read.
        findings: What is wrong with it.
    """

    partition: TopicIdPartition
    manifest: Manifest | None
    findings: tuple[Finding, ...]


@attrs.frozen
class BucketReport:
    """What is in a bucket.

    Attributes:
        url: The store.
        cluster_id: Whose it is; empty when that is not known.
        partitions: By topic and number.
        findings: What is wrong beyond single partitions.
        bytes_read: How much was read to compare checksums.
    """

    url: str
    cluster_id: str
    partitions: tuple[PartitionReport, ...]
    findings: tuple[Finding, ...]
    bytes_read: int

    @property
    def all_findings(self) -> list[Finding]:
        """Everything that is wrong."""
        return [*self.findings, *(finding for report in self.partitions for finding in report.findings)]

    @property
    def is_sound(self) -> bool:
        """Whether nothing is lost."""
        return not any(finding.is_error for finding in self.all_findings)


@attrs.define
class _Partition:
    """A partition's objects: sizes by name, and which of them are files of segments."""

    sizes: dict[str, int] = attrs.field(factory=dict)
    files: set[str] = attrs.field(factory=set)


@attrs.define
class _Contents:
    """A bucket's objects by partition, its topics, those among them that are compacted, and what is not ours."""

    partitions: dict[TopicIdPartition, _Partition] = attrs.field(factory=dict)
    topics: set[tuple[str, uuid.UUID]] = attrs.field(factory=set)
    compacted: set[uuid.UUID] = attrs.field(factory=set)
    foreign: list[str] = attrs.field(factory=list)


def verify_bucket(
    store: ObjectStore,
    *,
    topics: Collection[str] = (),
    reads_objects: bool = True,
    on_progress: Callable[[int, int, str], None] = lambda done, total, partition: None,
) -> BucketReport:
    """Look through a bucket.

    Args:
        store: The bucket.
        topics: Names of the topics that are wanted; empty for all.
        reads_objects: Whether checksums are compared, for which everything is read.
        on_progress: Called before each partition with how many are done, how many there are, and its name.

    Raises:
        StoreUnavailableError: The store cannot be reached.
        StoreRefusedError: It refuses.
    """
    contents = _list_bucket(store, topics)
    cluster_id, findings = _bucket_findings(store, contents)
    for name, topic_id in sorted(contents.topics):
        findings += _topic_findings(store, name, topic_id, cluster_id, contents)
    reports = []
    bytes_read = 0
    with store_threads() as threads:
        for number, partition in enumerate(sorted(contents.partitions, key=lambda each: (each.topic, *each))):
            on_progress(number, len(contents.partitions), str(partition))
            report, size = _verify_partition(store, partition, contents, threads, reads_objects=reads_objects)
            reports.append(report)
            bytes_read += size
    on_progress(len(contents.partitions), len(contents.partitions), "")
    if contents.foreign and not topics:
        example = min(contents.foreign)
        text = f"{len(contents.foreign)} objects are not of this project, such as {example}"
        findings.append(Finding("foreign", example, text))
    return BucketReport(store.url, cluster_id, tuple(reports), tuple(findings), bytes_read)


def _list_bucket(store: ObjectStore, topics: Collection[str]) -> _Contents:
    contents = _Contents()
    for info in store.list(""):
        name = parse_name(info.name)
        if name is None:
            if info.name != BUCKET_FILE:
                contents.foreign.append(info.name)
            continue
        of_topic = name if isinstance(name, TopicName) else name.partition
        if topics and of_topic.topic not in topics:
            continue
        contents.topics.add((of_topic.topic, of_topic.topic_id))
        if isinstance(name, TopicName):
            continue
        found = contents.partitions.setdefault(name.partition, _Partition())
        found.sizes[info.name] = info.size_bytes
        if isinstance(name, SegmentFileName):
            found.files.add(info.name)
    return contents


def _bucket_findings(store: ObjectStore, contents: _Contents) -> tuple[str, list[Finding]]:
    try:
        cluster_id = load_cluster_id(store)
    except (StoreUnavailableError, StoreRefusedError):
        raise
    except RemoteStoreError as exc:
        return "", [Finding("bucket", BUCKET_FILE, str(exc))]
    if cluster_id is None:
        what = "its topics cannot be restored" if contents.topics else "nothing was ever put there, or the URL is wrong"
        return "", [Finding("bucket", BUCKET_FILE, f"{BUCKET_FILE} is not there: {what}")]
    return cluster_id, []


def _topic_findings(
    store: ObjectStore, topic: str, topic_id: uuid.UUID, cluster_id: str, contents: _Contents
) -> list[Finding]:
    name = topic_file_name(topic, topic_id)
    try:
        found = load_topic(store, topic, topic_id)
    except (StoreUnavailableError, StoreRefusedError):
        raise
    except ObjectMissingError:
        return [Finding("topic", name, f"{name} is not there: a restore guesses partitions, and configs are lost")]
    except RemoteStoreError as exc:
        return [Finding("topic", name, str(exc))]
    if "compact" in found.configs.get("cleanup.policy", ""):
        contents.compacted.add(topic_id)
    if cluster_id and found.cluster_id != cluster_id:
        return [Finding("topic", name, f"{name} is of the cluster {found.cluster_id}, the bucket of {cluster_id}")]
    return []


def _verify_partition(
    store: ObjectStore,
    partition: TopicIdPartition,
    contents: _Contents,
    threads: ThreadPoolExecutor,
    *,
    reads_objects: bool,
) -> tuple[PartitionReport, int]:
    try:
        manifest = load_newest(store, partition)
    except (StoreUnavailableError, StoreRefusedError):
        raise
    except RemoteStoreError as exc:
        kind = "later-format" if isinstance(exc, LaterFormatError) else "manifest"
        return PartitionReport(partition, None, (Finding(kind, str(partition), str(exc)),)), 0
    findings: list[Finding] = []
    bytes_read = 0
    if manifest is not None:
        kind = "empty" if partition.topic_id in contents.compacted else "gap"
        for start, end in manifest.gaps:
            findings.append(Finding(kind, str(partition), f"no segment stands for the offsets {start} to {end - 1}"))
        look = functools.partial(_segment_findings, store, partition, reads_objects=reads_objects)
        named = (*manifest.segments, *manifest.abandoned)
        for segment, wrong in zip(named, threads.map(look, named), strict=True):
            if wrong and _has_left(store, partition, segment):
                continue
            findings += wrong
            bytes_read += sum(file.size_bytes for file in segment.files.values()) if reads_objects else 0
    findings += _orphans(partition, contents.partitions[partition], manifest)
    return PartitionReport(partition, manifest, tuple(findings)), bytes_read


def _segment_findings(
    store: ObjectStore, partition: TopicIdPartition, segment: StoredSegment, *, reads_objects: bool
) -> list[Finding]:
    return list(_look_at_files(store, partition, segment, reads_objects=reads_objects))


def _look_at_files(
    store: ObjectStore, partition: TopicIdPartition, segment: StoredSegment, *, reads_objects: bool
) -> Iterator[Finding]:
    for kind, file in sorted(segment.files.items()):
        name = segment_file_name(partition, segment.base_offset, segment.uid, kind)
        try:
            size_bytes = store.size(name)
            crc32c = sum_object(store, name).crc32c if reads_objects and size_bytes == file.size_bytes else file.crc32c
        except ObjectMissingError:
            yield Finding("missing", name, f"{name} is not there, and the manifest names it")
            continue
        if size_bytes != file.size_bytes:
            yield Finding("size", name, f"{name} has {size_bytes} bytes, and {file.size_bytes} by the manifest")
        elif crc32c != file.crc32c:
            yield Finding("checksum", name, f"{name} has the CRC-32C {crc32c}, and {file.crc32c} by the manifest")


def _has_left(store: ObjectStore, partition: TopicIdPartition, segment: StoredSegment) -> bool:
    """Say whether the newest manifest names a segment no longer: it expired, or was rewritten, meanwhile."""
    newest = load_newest(store, partition)
    return newest is None or all(each.uid != segment.uid for each in (*newest.segments, *newest.abandoned))


def _orphans(partition: TopicIdPartition, found: _Partition, manifest: Manifest | None) -> list[Finding]:
    named = frozenset(manifest.object_names()) if manifest is not None else frozenset()
    orphans = sorted(found.files - named)
    if not orphans:
        return []
    size_bytes = sum(found.sizes[name] for name in orphans)
    text = f"{len(orphans)} objects with {size_bytes} bytes are named by no manifest, such as {orphans[0]}"
    return [Finding("orphan", str(partition), text)]


def report_as_json(report: BucketReport) -> dict[str, object]:
    """Return a report as `--json` prints it."""
    return {
        "store": report.url,
        "cluster_id": report.cluster_id,
        "is_sound": report.is_sound,
        "bytes_read": report.bytes_read,
        "partitions": [_partition_as_json(each) for each in report.partitions],
        "findings": [
            {"kind": each.kind, "is_error": each.is_error, "place": each.place, "text": each.text}
            for each in report.all_findings
        ],
    }


def _partition_as_json(report: PartitionReport) -> dict[str, object]:
    manifest = report.manifest
    shown: dict[str, object] = {
        "topic": report.partition.topic,
        "topic_id": id_text(report.partition.topic_id),
        "partition": report.partition.partition,
    }
    if manifest is not None:
        shown |= {
            "manifest_version": manifest.version,
            "leader_epoch": manifest.leader_epoch,
            "log_start_offset": manifest.log_start_offset,
            "end_offset": manifest.end_offset,
            "segments": len(manifest.segments),
            "abandoned": len(manifest.abandoned),
            "size_bytes": manifest.size_bytes,
            "listing": [
                {
                    "base_offset": each.base_offset,
                    "next_offset": each.next_offset,
                    "size_bytes": each.size_bytes,
                    "object": segment_file_name(report.partition, each.base_offset, each.uid, LOG),
                }
                for each in manifest.segments
            ],
        }
    return shown
