"""Manifests and segments as tests need them."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

import attrs
from hypothesis import strategies as st

from odradek.kernel.api import TopicIdPartition
from odradek.plugins.storage_tiered.manifest import Manifest, StoredFile, StoredSegment, new_manifest

if TYPE_CHECKING:
    from collections.abc import Sequence

PARTITION = TopicIdPartition(uuid.UUID(int=77 << 64), "orders", 3)
CLUSTER_ID = "cluster-A"


def segment(base_offset: int, next_offset: int, uid: str = "", *, size_bytes: int = 100) -> StoredSegment:
    """Return a segment with one file."""
    return StoredSegment(
        uid=uid or f"uid-{base_offset}",
        base_offset=base_offset,
        next_offset=next_offset,
        max_timestamp=1000 + next_offset,
        leader_epochs=((base_offset // 100, base_offset),),
        files={"log": StoredFile(size_bytes, 7)},
    )


def manifest(*segments: StoredSegment, version: int = 0, leader_epoch: int = 5, log_start_offset: int = 0) -> Manifest:
    """Return a manifest of `PARTITION`."""
    empty = new_manifest(PARTITION, cluster_id=CLUSTER_ID, leader_epoch=leader_epoch, log_start_offset=log_start_offset)
    return Manifest(
        version,
        empty.cluster_id,
        empty.topic,
        empty.topic_id,
        empty.partition,
        leader_epoch,
        log_start_offset,
        tuple(segments),
    )


def bounds(made: Manifest) -> list[tuple[int, int]]:
    """Return the offsets of a manifest's segments."""
    return [(each.base_offset, each.next_offset) for each in made.segments]


@st.composite
def manifests(draw: st.DrawFn) -> Manifest:
    """Return manifests of all forms."""
    steps: Sequence[tuple[int, int]] = draw(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 9)), max_size=8))
    segments, offset = [], 0
    for gap, length in steps:
        base = offset + gap
        offset = base + length
        epochs = draw(st.lists(st.integers(base, offset - 1), unique=True, max_size=3).map(sorted))
        kinds = draw(st.sets(st.sampled_from(("index", "timeindex", "txnindex", "snapshot"))))
        files = {kind: StoredFile(draw(st.integers(0, 1 << 40)), draw(st.integers(0, (1 << 32) - 1))) for kind in kinds}
        segments.append(
            StoredSegment(
                uid=f"{base}-{draw(st.integers(0, 9))}",
                base_offset=base,
                next_offset=offset,
                max_timestamp=draw(st.integers(-1, 1 << 45)),
                leader_epochs=tuple(enumerate(epochs)),
                files={"log": StoredFile(draw(st.integers(0, 1 << 40)), 1), **files},
            )
        )
    start = draw(st.integers(0, segments[0].next_offset - 1 if segments else 99))
    made = manifest(*segments, version=draw(st.integers(0, 1 << 40)), log_start_offset=start)
    return attrs.evolve(made, emptied_version=draw(st.integers(0, made.version)))
