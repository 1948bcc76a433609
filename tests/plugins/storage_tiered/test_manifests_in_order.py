"""Two leaders at a time make one line of manifests, and whoever was deposed changes nothing."""

from __future__ import annotations

import itertools
import random
from typing import TYPE_CHECKING

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.kernel.api import RemoteStoreError, StoreRefusedError
from odradek.plugins.storage_tiered.documents import CorruptDocumentError, LaterFormatError
from odradek.plugins.storage_tiered.manifest import encode_manifest
from odradek.plugins.storage_tiered.manifests import (
    KEPT_VERSIONS,
    FencedError,
    ManifestMovedError,
    load_newest,
    put_next,
    stored_versions,
    take_over,
)
from odradek.plugins.storage_tiered.names import manifest_name
from odradek.plugins.storage_tiered.stores import open_store
from odradek.testing.object_stores import FaultyObjectStore, MemoryObjectStore, StoreFault
from tests.plugins.storage_tiered.manifest_values import CLUSTER_ID, PARTITION, bounds, manifest, segment

if TYPE_CHECKING:
    from collections.abc import Callable

    from odradek.kernel.api import ObjectStore
    from odradek.plugins.storage_tiered.manifest import Manifest
    from tests.plugins.storage_tiered.s3 import S3Server


def take(store: ObjectStore, leader_epoch: int) -> Manifest:
    return take_over(store, PARTITION, cluster_id=CLUSTER_ID, leader_epoch=leader_epoch)


def test_versions_follow_each_other_and_the_newest_is_found() -> None:
    store = MemoryObjectStore()
    assert load_newest(store, PARTITION) is None

    first = put_next(store, manifest(segment(0, 10)))
    second = put_next(store, first.with_segment(segment(10, 20)))

    assert (first.version, second.version) == (1, 2)
    assert load_newest(store, PARTITION) == second


def test_the_newest_few_versions_stay() -> None:
    store = MemoryObjectStore()
    made = manifest()
    for offset in range(10):
        made = put_next(store, made.with_segment(segment(offset, offset + 1)))

    assert stored_versions(store, PARTITION) == list(range(11 - KEPT_VERSIONS, 11))


def fenced_by_an_open_version(store: ObjectStore) -> None:
    old = put_next(store, take(store, 1).with_segment(segment(0, 10)))
    new = put_next(store, take(store, 2).with_segment(segment(10, 20, "of the new leader")))

    with pytest.raises(FencedError, match="under leader epoch 2, this broker's is 1"):
        put_next(store, old.with_segment(segment(10, 20, "of the old leader")))
    with pytest.raises(FencedError):
        take(store, 1)
    assert load_newest(store, PARTITION) == new


def fenced_after_its_version_was_cleaned_up(store: ObjectStore) -> None:
    old = put_next(store, take(store, 1).with_segment(segment(0, 10)))
    new = take(store, 2)
    for offset in range(10, 20):
        new = put_next(store, new.with_segment(segment(offset, offset + 1)))

    with pytest.raises(FencedError):
        put_next(store, old.with_segment(segment(10, 20, "of the old leader")))
    assert load_newest(store, PARTITION) == new
    assert bounds(put_next(store, new.with_segment(segment(20, 21))))[-1] == (20, 21)


def a_slow_old_leader_delays_but_does_not_win(store: ObjectStore) -> None:
    old = put_next(store, take(store, 1).with_segment(segment(0, 10)))
    seen = load_newest(store, PARTITION)
    assert seen is not None
    written = put_next(store, old.with_segment(segment(10, 20)))

    with pytest.raises(ManifestMovedError):
        put_next(store, seen.with_leader_epoch(2).with_segment(segment(10, 20, "too early")))
    taken = take(store, 2)
    assert (taken.version, taken.segments) == (written.version + 1, written.segments)
    with pytest.raises(FencedError):
        put_next(store, written.with_segment(segment(20, 30)))


@pytest.mark.parametrize(
    "scenario",
    [fenced_by_an_open_version, fenced_after_its_version_was_cleaned_up, a_slow_old_leader_delays_but_does_not_win],
)
class TestFencing:
    def test_it_holds_in_memory(self, scenario: object) -> None:
        assert callable(scenario)
        scenario(MemoryObjectStore())

    @pytest.mark.interop
    def test_it_holds_on_s3(self, scenario: object, s3: S3Server) -> None:
        assert callable(scenario)
        scenario(open_store(f"s3://{s3.new_bucket()}", s3.settings))


def test_who_repeats_what_seemed_to_fail_goes_on() -> None:
    inner = MemoryObjectStore()
    store = FaultyObjectStore(inner, fail_at=1, fault=StoreFault.ANSWER_LOST)
    wanted = manifest(segment(0, 10))
    with pytest.raises(RemoteStoreError):
        put_next(store, wanted)

    assert put_next(store, wanted).version == 1
    assert stored_versions(inner, PARTITION) == [1]


def test_who_wants_something_else_after_what_seemed_to_fail_loads_again() -> None:
    store = FaultyObjectStore(MemoryObjectStore(), fail_at=1, fault=StoreFault.ANSWER_LOST)
    with pytest.raises(RemoteStoreError):
        put_next(store, manifest(segment(0, 10)))
    with pytest.raises(ManifestMovedError):
        put_next(store, manifest(segment(0, 10), segment(10, 20)))

    assert bounds(take(store, 5)) == [(0, 10)]


def test_a_manifest_that_was_damaged_on_its_way_is_put_again() -> None:
    for fault in (StoreFault.BYTES_CHANGED, StoreFault.BYTES_MISSING):
        store = FaultyObjectStore(MemoryObjectStore(), fail_at=1, fault=fault)
        made = put_next(store, manifest(segment(0, 10)))

        assert load_newest(store, PARTITION) == made


def test_a_store_that_always_damages_manifests_is_told() -> None:
    store = FaultyObjectStore(MemoryObjectStore(), fail_at=1, fault=StoreFault.BYTES_MISSING, lasts=True)

    with pytest.raises(CorruptDocumentError, match="does not read back as it was put"):
        put_next(store, manifest(segment(0, 10)))


def test_a_damaged_newest_manifest_is_told_and_no_older_one_taken() -> None:
    store = MemoryObjectStore()
    put_next(store, put_next(store, manifest(segment(0, 10))))
    name = manifest_name(PARTITION, 2)
    store.put(name, store.get(name)[:-10])

    with pytest.raises(CorruptDocumentError, match=f"the manifest of partition orders-3 .{name} in memory://test."):
        take(store, 9)


def test_a_manifest_of_a_later_odradek_is_told_with_partition_and_remedy() -> None:
    store = MemoryObjectStore()
    data = encode_manifest(manifest(version=1)).replace(b'"format_version": 1', b'"format_version": 9')
    store.put(manifest_name(PARTITION, 1), data)

    with pytest.raises(LaterFormatError, match=r"partition orders-3 .* format version 9.*upgrade this one"):
        load_newest(store, PARTITION)


def test_a_manifest_under_the_name_of_another_is_told() -> None:
    store = MemoryObjectStore()
    store.put(manifest_name(PARTITION, 2), encode_manifest(manifest(version=1)))

    with pytest.raises(CorruptDocumentError, match="is version 1 of orders-3"):
        load_newest(store, PARTITION)


def meddling(act: Callable[[MemoryObjectStore], object], when: str, times: int) -> FaultyObjectStore:
    """Return a store in which another one acts just before an operation."""
    inner = MemoryObjectStore()
    put_next(inner, manifest(segment(0, 10)))
    store, left = FaultyObjectStore(inner), [times]

    def meddle(method: str, name: str) -> None:
        if method == when and left[0]:
            left[0] -= 1
            act(inner)

    store.before_each = meddle
    return store


def overtake(store: MemoryObjectStore) -> None:
    """Put as many versions as make the newest of before disappear."""
    made = load_newest(store, PARTITION)
    for _ in range(KEPT_VERSIONS):
        assert made is not None
        made = put_next(store, made)


def test_a_manifest_that_is_cleaned_up_while_it_is_read_is_looked_for_again() -> None:
    found = load_newest(meddling(overtake, "get", 1), PARTITION)

    assert found is not None
    assert found.version == 1 + KEPT_VERSIONS


def test_who_is_always_overtaken_is_told() -> None:
    with pytest.raises(ManifestMovedError, match="faster than it can be read"):
        load_newest(meddling(overtake, "get", 99), PARTITION)


def test_a_new_leader_waits_until_the_old_one_stops() -> None:
    def write_once_more(store: MemoryObjectStore) -> None:
        newest = load_newest(store, PARTITION)
        assert newest is not None
        put_next(store, newest)

    assert take(meddling(write_once_more, "create", 2), 9).version == 4
    with pytest.raises(ManifestMovedError, match="faster than it can be taken over"):
        take(meddling(write_once_more, "create", 99), 9)


def test_a_version_that_vanishes_while_it_is_put_was_overtaken() -> None:
    store = meddling(overtake, "get", 1)

    with pytest.raises(ManifestMovedError):
        put_next(store, manifest(segment(0, 10), version=1))


def test_a_refusal_is_passed_on() -> None:
    store = FaultyObjectStore(MemoryObjectStore())
    store.fault = StoreFault.WRONG_CREDENTIALS

    with pytest.raises(StoreRefusedError):
        load_newest(store, PARTITION)
    with pytest.raises(StoreRefusedError):
        put_next(store, manifest())
    with pytest.raises(StoreRefusedError):
        take(store, 1)


@pytest.mark.parametrize("fault", [each for each in StoreFault if each is not StoreFault.PARTIAL_UPLOAD])
def test_whatever_operation_fails_the_line_of_versions_stays_whole(fault: StoreFault) -> None:
    for fail_at in itertools.count(1):
        inner = MemoryObjectStore()
        store = FaultyObjectStore(inner, fail_at=fail_at, fault=fault)
        offset = 0
        made: Manifest | None = None
        while offset < 8:
            try:
                made = made or take(store, 3)
                if made.end_offset > offset:
                    offset = made.end_offset  # what seemed to fail had been done
                    continue
                made = put_next(store, made.with_segment(segment(offset, offset + 1)))
                offset += 1
            except RemoteStoreError:
                made = None
        found = load_newest(inner, PARTITION)

        assert found is not None
        assert bounds(found) == [(n, n + 1) for n in range(8)]
        if store.operations < fail_at:
            break


@given(st.integers(0, 1 << 32))
def test_leaders_in_any_order_make_one_line(seed: int) -> None:
    """Each version has the one before it as its beginning, and epochs never go back."""
    source = random.Random(seed)
    store = MemoryObjectStore()
    known: dict[int, Manifest] = {}
    accepted: list[Manifest] = []
    for step in range(30):
        epoch = source.randrange(1, 6)
        try:
            if epoch not in known or source.randrange(4) == 0:
                known[epoch] = take(store, epoch)
                continue
            base = known[epoch].end_offset
            made = known[epoch].with_segment(segment(base, base + 1, f"{epoch}-{step}"))
            known[epoch] = put_next(store, made)
            accepted.append(known[epoch])
        except (FencedError, ManifestMovedError):
            known.pop(epoch, None)

    for before, after in itertools.pairwise(accepted):
        assert before.version < after.version
        assert before.leader_epoch <= after.leader_epoch
        assert after.segments[: len(before.segments)] == before.segments
    if accepted:
        newest = load_newest(store, PARTITION)
        assert newest is not None
        assert attrs.evolve(newest, version=0, leader_epoch=0).segments == accepted[-1].segments
