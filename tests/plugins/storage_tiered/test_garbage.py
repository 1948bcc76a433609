"""The garbage collector takes what no manifest names, after its grace time, and nothing else."""

from __future__ import annotations

import itertools
import uuid

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.kernel.api import ObjectStore, RemoteStoreError, TopicIdPartition
from odradek.plugins.storage_tiered.bucket import StoredTopic, put_topic
from odradek.plugins.storage_tiered.collecting import (
    Collected,
    collect_deleted,
    collect_partition,
    empty_partition,
    is_emptied,
    remove_partition,
)
from odradek.plugins.storage_tiered.documents import CorruptDocumentError
from odradek.plugins.storage_tiered.manifest import Manifest
from odradek.plugins.storage_tiered.manifests import FencedError, load_newest, put_next
from odradek.plugins.storage_tiered.names import manifest_name, partition_prefix, segment_file_name
from odradek.testing.object_stores import FaultyObjectStore, MemoryObjectStore, StoreFault
from tests.plugins.storage_tiered.manifest_values import CLUSTER_ID, PARTITION, manifest, segment

GRACE_MS = 1000


def put_objects(store: MemoryObjectStore, made: Manifest) -> None:
    for name in made.object_names():
        store.put(name, b"x" * 100)


def filled_store() -> tuple[MemoryObjectStore, Manifest]:
    """Return a store with a topic of one partition and three segments."""
    store = MemoryObjectStore()
    put_topic(store, StoredTopic(CLUSTER_ID, PARTITION.topic, PARTITION.topic_id, 1, {}))
    made = manifest(segment(0, 10), segment(10, 20), segment(20, 30))
    put_objects(store, made)
    return store, put_next(store, made)


def left_over(uid: str, kind: str = "log", partition: TopicIdPartition = PARTITION) -> str:
    return segment_file_name(partition, 10, uid, kind)


def collect(store: MemoryObjectStore, now_ms: int) -> Collected:
    return collect_partition(store, PARTITION, now_ms=now_ms, grace_ms=GRACE_MS)


def test_what_no_manifest_names_goes_after_its_grace_time() -> None:
    store, _ = filled_store()
    before = set(store.objects)
    store.now_ms = 5000
    for name in (left_over("given-up"), left_over("given-up", "index")):
        store.put(name, b"12345")

    assert collect(store, 5999) == Collected()
    assert collect(store, 6000) == Collected(2, 10)
    assert set(store.objects) == before


def test_a_segment_that_left_the_manifest_goes() -> None:
    store, made = filled_store()
    put_next(store, made.without_below(20))

    assert collect(store, 9999).objects == 2
    assert [name for name in store.objects if name.endswith(".log")] == [
        segment_file_name(PARTITION, 20, "uid-20", "log")
    ]


def test_what_a_segment_was_rewritten_from_goes() -> None:
    store, made = filled_store()
    rewritten = made.with_replacement({"uid-0", "uid-10"}, [segment(0, 20, "new")])
    put_objects(store, rewritten)
    put_next(store, rewritten)

    assert collect(store, 9999).objects == 2
    assert store.get(segment_file_name(PARTITION, 0, "new", "log"))


def test_a_partition_of_which_nothing_was_ever_named_is_cleaned_too() -> None:
    store = MemoryObjectStore()
    store.put(left_over("first-try"), b"x")

    assert collect(store, 9999) == Collected(1, 1)


def test_manifests_of_long_ago_go_and_the_newest_few_stay() -> None:
    store, made = filled_store()
    for _ in range(9):
        made = put_next(store, made)
    store.put(manifest_name(PARTITION, 3), b"left by a delete that failed")
    collect(store, 9999)

    assert manifest_name(PARTITION, 3) not in store.objects
    assert load_newest(store, PARTITION) == made


def test_nothing_goes_when_the_newest_manifest_cannot_be_read() -> None:
    store, _ = filled_store()
    store.put(manifest_name(PARTITION, 2), b"damaged")
    store.put(left_over("given-up"), b"x")
    before = dict(store.objects)

    with pytest.raises(CorruptDocumentError):
        collect(store, 9999)
    assert store.objects == before


def test_objects_of_somebody_else_are_left_alone() -> None:
    store, _ = filled_store()
    names = [f"{partition_prefix(PARTITION)}note.txt", "backup/of/mine"]
    for name in names:
        store.put(name, b"x")
    collect(store, 9999)
    collect_deleted(store, {}, now_ms=9999, grace_ms=GRACE_MS)

    assert set(names) <= set(store.objects)


def test_a_deleted_partition_is_gone_and_its_topic_with_the_last_of_them() -> None:
    store, made = filled_store()
    other = PARTITION._replace(partition=4)
    put_next(store, attrs.evolve(made, version=0, partition=4))
    remove_partition(store, PARTITION)
    remove_partition(store, PARTITION)

    assert {name.split("/")[3] for name in store.objects} == {"4", "topic.json"}
    remove_partition(store, other)
    assert store.objects == {}


def test_a_deletion_that_is_broken_off_leaves_no_holes_and_is_finished_later() -> None:
    fail_at = 0
    for fail_at in itertools.count(1):
        inner, made = filled_store()
        store = FaultyObjectStore(inner, fail_at=fail_at, fault=StoreFault.UNREACHABLE, lasts=True)
        try:
            remove_partition(store, PARTITION)
        except RemoteStoreError:
            found = load_newest(inner, PARTITION)
            named = set() if found is None else set(found.object_names())

            assert named in (set(), set(made.object_names()))
            assert named <= set(inner.objects)
            if found is None or found.segments:
                continue
            assert collect_deleted(inner, {}, now_ms=GRACE_MS - 1, grace_ms=GRACE_MS) == Collected()
            collect_deleted(inner, {}, now_ms=GRACE_MS, grace_ms=GRACE_MS)
            assert inner.objects == {}
        else:
            break

    assert fail_at > 8


def test_what_a_manifest_names_is_kept_although_the_cluster_does_not_know_the_topic() -> None:
    store, _ = filled_store()
    before = dict(store.objects)

    assert collect_deleted(store, {}, now_ms=99_999, grace_ms=GRACE_MS) == Collected()
    assert store.objects == before


def test_deletions_of_known_topics_are_their_leaders_affair() -> None:
    store, made = filled_store()
    put_next(store, made.without_below(30))
    before = dict(store.objects)

    assert collect_deleted(store, {PARTITION.topic_id: True}, now_ms=99_999, grace_ms=GRACE_MS) == Collected()
    assert store.objects == before


def empty(store: ObjectStore, leader_epoch: int = 5, log_start_offset: int = 20) -> None:
    empty_partition(store, PARTITION, leader_epoch=leader_epoch, log_start_offset=log_start_offset)


def test_of_what_was_switched_off_an_empty_manifest_stays_and_the_versions_go_on() -> None:
    store, made = filled_store()
    assert not is_emptied(store, PARTITION)

    empty(store)
    empty(store)

    newest = load_newest(store, PARTITION)
    assert newest is not None
    assert (newest.version, newest.emptied_version, newest.log_start_offset) == (made.version + 1, made.version + 1, 20)
    assert is_emptied(store, PARTITION)
    assert not [name for name in store.objects if "/segments/" in name]
    later = put_next(store, attrs.evolve(newest, segments=(segment(20, 30, "anew"),)))
    assert (later.version, later.emptied_version) == (made.version + 2, made.version + 1)
    assert load_newest(store, PARTITION) == later
    assert is_emptied(MemoryObjectStore(), PARTITION), "nothing was ever sent"


def test_what_a_later_leader_has_sent_is_not_removed() -> None:
    store, made = filled_store()
    put_next(store, made.with_leader_epoch(7))
    before = dict(store.objects)

    with pytest.raises(FencedError):
        empty(store, leader_epoch=6)
    assert store.objects == before


def test_what_is_sent_anew_while_the_rest_is_removed_stays() -> None:
    memory, _ = filled_store()

    class SentMeanwhile(MemoryObjectStore):
        """The objects of `memory`; somebody sends anew before the first of them is removed."""

        def delete(self, name: str) -> None:
            newest = load_newest(self, PARTITION)
            assert newest is not None
            if not newest.segments:
                following = attrs.evolve(newest, leader_epoch=9, segments=(segment(20, 30, "anew"),))
                put_objects(self, following)
                put_next(self, following)
            super().delete(name)

    store = SentMeanwhile()
    store.objects.update(memory.objects)

    empty(store)

    newest = load_newest(store, PARTITION)
    assert newest is not None
    assert set(newest.object_names()) == {name for name in store.objects if "/segments/" in name} != set()


def test_a_removal_that_is_broken_off_leaves_no_holes_and_is_gone_on_with() -> None:
    fail_at = 0
    for fail_at in itertools.count(1):
        inner, _ = filled_store()
        store = FaultyObjectStore(inner, fail_at=fail_at, fault=StoreFault.BUSY)
        try:
            empty(store)
        except RemoteStoreError:
            found = load_newest(inner, PARTITION)
            assert found is not None
            assert set(found.object_names()) <= set(inner.objects)
            empty(inner)
        else:
            break
        assert not [name for name in inner.objects if "/segments/" in name]

    assert fail_at > 8


def test_the_garbage_of_a_topic_that_is_not_tiered_is_collected_by_whoever_looks() -> None:
    store, _ = filled_store()
    empty(store)
    before = set(store.objects)
    store.put(left_over("given-up"), b"12345")

    assert collect_deleted(store, {PARTITION.topic_id: False}, now_ms=GRACE_MS - 1, grace_ms=GRACE_MS) == Collected()
    assert collect_deleted(store, {PARTITION.topic_id: False}, now_ms=GRACE_MS, grace_ms=GRACE_MS) == Collected(1, 5)
    assert set(store.objects) == before


steps = st.lists(
    st.one_of(
        st.tuples(st.just("upload"), st.booleans()),
        st.tuples(st.just("expire"), st.integers(0, 40)),
        st.tuples(st.just("wait"), st.integers(1, 2000)),
        st.tuples(st.just("collect"), st.just(0)),
    ),
    max_size=25,
)


@given(steps)
def test_whatever_happens_what_the_newest_manifest_names_is_there(plan: list[tuple[str, int]]) -> None:
    store, made = MemoryObjectStore(), manifest()
    partition = TopicIdPartition(uuid.UUID(int=77 << 64), "orders", 3)
    for number, (what, value) in enumerate(plan):
        if what == "upload":
            base = max(made.end_offset, made.log_start_offset)
            following = made.with_segment(segment(base, base + 5, f"u{number}"))
            put_objects(store, following)
            if value:  # or else it is given up
                made = put_next(store, following)
        elif what == "expire":
            made = put_next(store, made.without_below(value))
        elif what == "wait":
            store.now_ms += value
        else:
            collect(store, store.now_ms)
        newest = load_newest(store, partition)

        assert newest is None or set(newest.object_names()) <= set(store.objects)
    collect(store, store.now_ms + GRACE_MS)

    assert {name for name in store.objects if name.endswith(".log")} == set(made.object_names())
