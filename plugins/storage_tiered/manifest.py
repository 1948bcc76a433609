"""Pure core: the manifest of a partition: which segments lie in the store, and where the whole log begins.

    log_start_offset                 end_offset
          │  ┌──────────┬───────────┬────┐ ┈┈┈┈┈┈┈┈┈┈┈┈┈┈ only local
          ▼  │ segment  │ segment   │    │
        ─────┴──────────┴───────────┴────┴────────────────> offsets

A manifest never changes: operations give another one, `manifests.put_next` stores it under the next version. Segments
are in the order of their offsets and do not overlap; between two of them there may be a gap, which `gaps` tells.

`README.md` of this plugin describes the stored form field by field.

.. versionadded:: 0.1
"""

from __future__ import annotations

from bisect import bisect_right
from itertools import pairwise
from typing import TYPE_CHECKING

import attrs

from odradek.kernel.api import TopicIdPartition, id_text, parse_id

from .documents import CorruptDocumentError, Fields, decode_document, encode_document
from .names import FILE_KINDS, LOG, segment_file_name

if TYPE_CHECKING:
    import uuid
    from collections.abc import Collection, Iterator, Mapping, Sequence


@attrs.frozen
class StoredFile:
    """A file of a segment, as an object.

    Attributes:
        size_bytes: The object's size.
        crc32c: CRC-32C of the object's bytes.
    """

    size_bytes: int
    crc32c: int


@attrs.frozen
class StoredSegment:
    """A segment in the store.

    Attributes:
        uid: Of the upload: no other upload, of whatever segment, has the same.
        base_offset: The first offset that it stands for.
        next_offset: The offset after the last one that it stands for.
        max_timestamp: The largest timestamp of its records, -1 when there is none.
        leader_epochs: Leader epochs of its records, each with the first offset of it in this segment.
        files: Its files by kind (`names.FILE_KINDS`); `log` is always there, `snapshot` is the producers' state
            after its last record.
    """

    uid: str
    base_offset: int
    next_offset: int
    max_timestamp: int
    leader_epochs: tuple[tuple[int, int], ...]
    files: Mapping[str, StoredFile]

    def __attrs_post_init__(self) -> None:
        if not 0 <= self.base_offset < self.next_offset:
            raise ValueError(f"a segment from offset {self.base_offset} up to {self.next_offset}")
        if LOG not in self.files or not self.files.keys() <= set(FILE_KINDS):
            raise ValueError(f"the segment at offset {self.base_offset} has the files {sorted(self.files)}")
        for (epoch, start), (later_epoch, later_start) in pairwise(self.leader_epochs):
            if not (epoch < later_epoch and start < later_start):
                raise ValueError(f"the leader epochs of the segment at offset {self.base_offset} are out of order")
        if not all(self.base_offset <= start < self.next_offset for _, start in self.leader_epochs):
            raise ValueError(f"a leader epoch of the segment at offset {self.base_offset} begins outside of it")

    @property
    def size_bytes(self) -> int:
        """The size of its records: what retention by size counts."""
        return self.files[LOG].size_bytes


@attrs.frozen
class Manifest:
    """What of one partition lies in the store.

    Attributes:
        version: Its number; 0 for one that is not stored yet.
        cluster_id: Whose.
        topic: The topic's name.
        topic_id: The topic's id.
        partition: The partition's number.
        leader_epoch: Of the leader that wrote it.
        log_start_offset: Where the whole log begins, in whatever tier.
        segments: In the order of their offsets.
        abandoned: Segments that are part of no log any more (`forks.py`): their objects stay.
        emptied_version: The last version that named nothing because the topic was not tiered any more; 0 for none.
            What a broker knows from before that, it does not know.
    """

    version: int
    cluster_id: str
    topic: str
    topic_id: uuid.UUID
    partition: int
    leader_epoch: int
    log_start_offset: int
    segments: tuple[StoredSegment, ...] = ()
    abandoned: tuple[StoredSegment, ...] = ()
    emptied_version: int = 0

    def __attrs_post_init__(self) -> None:
        for segment, later in pairwise(self.segments):
            if segment.next_offset > later.base_offset:
                raise ValueError(
                    f"the segment at offset {segment.base_offset} reaches up to {segment.next_offset}, "
                    f"into the one at {later.base_offset}"
                )
        if len({each.uid for each in (*self.segments, *self.abandoned)}) < len(self.segments) + len(self.abandoned):
            raise ValueError("two segments have the same uid")
        if self.log_start_offset < 0 or (self.segments and self.segments[0].next_offset <= self.log_start_offset):
            raise ValueError(f"a segment lies below the log start offset {self.log_start_offset}")

    @property
    def topic_id_partition(self) -> TopicIdPartition:
        """The partition that it speaks of."""
        return TopicIdPartition(self.topic_id, self.topic, self.partition)

    @property
    def end_offset(self) -> int:
        """The offset after the last one in the store; 0 when nothing is there."""
        return self.segments[-1].next_offset if self.segments else 0

    @property
    def size_bytes(self) -> int:
        """The size of the records of all its segments."""
        return sum(segment.size_bytes for segment in self.segments)

    @property
    def names_anything(self) -> bool:
        """Whether it names an object."""
        return bool(self.segments or self.abandoned)

    @property
    def gaps(self) -> list[tuple[int, int]]:
        """Ranges of offsets, `[start, end)`, that lie between its segments and in none of them."""
        return [
            (segment.next_offset, later.base_offset)
            for segment, later in pairwise(self.segments)
            if segment.next_offset < later.base_offset
        ]

    def segments_from(self, offset: int) -> Sequence[StoredSegment]:
        """Return the segments that a reader from `offset` on meets."""
        return self.segments[bisect_right(self.segments, offset, key=lambda segment: segment.next_offset) :]

    def unbroken_end(self, offset: int) -> int:
        """Return up to where its segments stand for all offsets from `offset` on; that one, where none does for it."""
        end = offset
        for segment in self.segments_from(offset):
            if segment.base_offset > end:
                break
            end = segment.next_offset
        return end

    def object_names(self) -> Iterator[str]:
        """Iterate over the names of the objects that it names."""
        for segment in (*self.segments, *self.abandoned):
            for kind in segment.files:
                yield segment_file_name(self.topic_id_partition, segment.base_offset, segment.uid, kind)

    # -- what changes -------------------------------------------------------------------------------------------------

    def with_segment(self, segment: StoredSegment) -> Manifest:
        """Return one with a segment more, behind all others.

        Raises:
            ValueError: It does not lie behind the others, or lies below the log start offset.
        """
        return attrs.evolve(self, segments=(*self.segments, segment))

    def without_below(self, offset: int) -> Manifest:
        """Return one whose log begins at `offset`, or where it begins now if that is later.

        Segments that lie wholly below are not in it.
        """
        start = max(offset, self.log_start_offset)
        abandoned = tuple(segment for segment in self.abandoned if segment.next_offset > start)
        return attrs.evolve(
            self, log_start_offset=start, segments=tuple(self.segments_from(start)), abandoned=abandoned
        )

    def without_anything(self) -> Manifest:
        """Return one of a log that ends where this one does, and of which nothing is in the store."""
        return attrs.evolve(self.without_below(self.end_offset), abandoned=())

    def emptied(self, log_start_offset: int) -> Manifest:
        """Return the next one of a log that goes on without a tier, from `log_start_offset` on."""
        start = max(log_start_offset, self.log_start_offset)
        following = self.version + 1
        return attrs.evolve(self, log_start_offset=start, segments=(), abandoned=(), emptied_version=following)

    def with_replacement(self, uids: Collection[str], segments: Sequence[StoredSegment]) -> Manifest:
        """Return one with other segments in the place of some: a compaction rewrote them.

        Args:
            uids: Of the segments to replace, which follow each other.
            segments: What stands for their offsets now, in order. When compaction left none, the segment before them
                stands for their offsets too.

        Raises:
            ValueError: It has no such segments, or something lies between them, or the new ones do not fit between
                those before and after, or nothing would stand for the first offsets.
        """
        places = [index for index, segment in enumerate(self.segments) if segment.uid in uids]
        if len(places) != len(uids) or not places or places[-1] - places[0] != len(places) - 1:
            raise ValueError("the segments to replace are not there, or do not follow each other")
        before, after = self.segments[: places[0]], self.segments[places[-1] + 1 :]
        start, end = self.segments[places[0]].base_offset, self.segments[places[-1]].next_offset
        if not all(start <= segment.base_offset and segment.next_offset <= end for segment in segments):
            raise ValueError(f"a segment stands for more than the replaced offsets, {start} to {end}")
        if not segments and not before:
            raise ValueError(f"nothing stands for the offsets from {start} up to {end} any more")
        if not segments:
            before = (*before[:-1], attrs.evolve(before[-1], next_offset=end))
        return attrs.evolve(self, segments=(*before, *segments, *after))

    def with_leader_epoch(self, leader_epoch: int) -> Manifest:
        """Return one of a leader of this epoch.

        Raises:
            ValueError: It was written by a later one.
        """
        if leader_epoch < self.leader_epoch:
            raise ValueError(f"leader epoch {leader_epoch} after {self.leader_epoch}")
        return attrs.evolve(self, leader_epoch=leader_epoch)


def names_nothing(newest: Manifest | None) -> bool:
    """Say of a partition's newest manifest, None where there is none, whether nothing in the store counts by it."""
    return newest is None or not newest.names_anything


def new_manifest(
    partition: TopicIdPartition, *, cluster_id: str, leader_epoch: int, log_start_offset: int = 0
) -> Manifest:
    """Return the manifest of a partition of which nothing is in the store."""
    return Manifest(
        0, cluster_id, partition.topic, partition.topic_id, partition.partition, leader_epoch, log_start_offset
    )


def encode_manifest(manifest: Manifest) -> bytes:
    """Return a manifest as it is stored."""
    abandoned = {"abandoned": [_segment_fields(each) for each in manifest.abandoned]} if manifest.abandoned else {}
    emptied = {"emptied_version": manifest.emptied_version} if manifest.emptied_version else {}
    return encode_document(
        {
            "version": manifest.version,
            "cluster_id": manifest.cluster_id,
            "topic": manifest.topic,
            "topic_id": id_text(manifest.topic_id),
            "partition": manifest.partition,
            "leader_epoch": manifest.leader_epoch,
            "log_start_offset": manifest.log_start_offset,
            "segments": [_segment_fields(segment) for segment in manifest.segments],
            **abandoned,
            **emptied,
        }
    )


def _segment_fields(segment: StoredSegment) -> dict[str, object]:
    return {
        "uid": segment.uid,
        "base_offset": segment.base_offset,
        "next_offset": segment.next_offset,
        "max_timestamp": segment.max_timestamp,
        "leader_epochs": [list(entry) for entry in segment.leader_epochs],
        "files": {kind: {"size_bytes": f.size_bytes, "crc32c": f.crc32c} for kind, f in segment.files.items()},
    }


def decode_manifest(data: bytes, where: str) -> Manifest:
    """Return a manifest that was stored.

    Args:
        data: Its stored form.
        where: Which it is, for errors: partition and place.

    Raises:
        LaterFormatError: It was written by a later version of this project; the text says what to do.
        CorruptDocumentError: It is damaged.
    """
    fields = decode_document(data, where)
    try:
        return Manifest(
            version=fields.get("version", int),
            cluster_id=fields.get("cluster_id", str),
            topic=fields.get("topic", str),
            topic_id=parse_id(fields.get("topic_id", str)),
            partition=fields.get("partition", int),
            leader_epoch=fields.get("leader_epoch", int),
            log_start_offset=fields.get("log_start_offset", int),
            segments=tuple(_segment(row) for row in fields.rows("segments")),
            abandoned=tuple(_segment(row) for row in fields.rows("abandoned")) if "abandoned" in fields else (),
            emptied_version=fields.get("emptied_version", int) if "emptied_version" in fields else 0,
        )
    except ValueError as exc:
        raise CorruptDocumentError(f"{where} is damaged: {exc}") from exc


def _segment(row: Fields) -> StoredSegment:
    return StoredSegment(
        uid=row.get("uid", str),
        base_offset=row.get("base_offset", int),
        next_offset=row.get("next_offset", int),
        max_timestamp=row.get("max_timestamp", int),
        leader_epochs=row.pairs("leader_epochs"),
        files={
            kind: StoredFile(file.get("size_bytes", int), file.get("crc32c", int))
            for kind, file in row.objects("files").items()
        },
    )
