"""What is planned: nothing leaves a disk that is not in the store, and nothing is sent that may still change."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.kernel.api import CleanupSettings, SegmentInfo, TierSettings
from odradek.plugins.storage_tiered.local_state import LocalState, decode_state, encode_state
from odradek.plugins.storage_tiered.manifest import Manifest, StoredFile, StoredSegment, new_manifest
from odradek.plugins.storage_tiered.planning import (
    LocalCopy,
    TieredState,
    confirmed_copies,
    copy_of,
    plan_local_removal,
    plan_removal,
    plan_uploads,
    with_upload,
)
from odradek.testing.contracts.storage_base import PARTITION

if TYPE_CHECKING:
    from collections.abc import Sequence

NOW_MS = 100_000
KEEP_ALL = TierSettings(-1, -1, remote_log_copy_disable=False, cleanup=CleanupSettings())


def segment(base: int, following: int, *, size: int = 100, timestamp: int = 0, is_active: bool = False) -> SegmentInfo:
    return SegmentInfo(base, following, size, timestamp, 5, is_active)


def five_segments() -> list[SegmentInfo]:
    """Return segments of ten records and a hundred bytes, each a second younger, the last one active."""
    return [segment(i * 10, i * 10 + 10, timestamp=i * 1_000, is_active=i == 4) for i in range(5)]


def state(local: Sequence[SegmentInfo], *, sent: int = 0, settings: TierSettings = KEEP_ALL) -> TieredState:
    """Return the state of a log whose first `sent` segments are in the store."""
    return TieredState(
        local=local,
        copies={each.base_offset: copy_of(each) for each in local[:sent]},
        log_start_offset=0,
        uploadable_end=1_000,
        removable_end=1_000,
        settings=settings,
        now_ms=NOW_MS,
    )


def bases(segments: Sequence[SegmentInfo]) -> list[int]:
    return [each.base_offset for each in segments]


def test_closed_segments_are_sent_oldest_first() -> None:
    assert bases(plan_uploads(state(five_segments(), sent=1))) == [10, 20, 30]


@pytest.mark.parametrize(("end", "sent"), [(29, [0, 10]), (30, [0, 10, 20])])
def test_what_is_not_decided_is_not_sent(end: int, sent: list[int]) -> None:
    assert bases(plan_uploads(attrs.evolve(state(five_segments()), uploadable_end=end))) == sent


def test_what_is_deleted_is_not_sent() -> None:
    assert bases(plan_uploads(attrs.evolve(state(five_segments()), log_start_offset=20))) == [20, 30]


def test_a_rewritten_segment_is_sent_again() -> None:
    local = five_segments()
    before = state(local, sent=4)
    local[1] = local[1]._replace(modified_ms=6)

    assert bases(plan_uploads(attrs.evolve(before, local=local))) == [10]


def test_without_copying_nothing_is_sent() -> None:
    assert plan_uploads(state(five_segments(), settings=attrs.evolve(KEEP_ALL, remote_log_copy_disable=True))) == []


def test_local_segments_leave_by_time() -> None:
    settings = attrs.evolve(KEEP_ALL, local_retention_ms=98_500)

    assert plan_local_removal(state(five_segments(), sent=4, settings=settings)) == 20


def test_local_segments_leave_by_size() -> None:
    settings = attrs.evolve(KEEP_ALL, local_retention_bytes=250)

    assert plan_local_removal(state(five_segments(), sent=4, settings=settings)) == 20


def test_a_segment_that_was_not_sent_stays_and_all_behind_it() -> None:
    settings = attrs.evolve(KEEP_ALL, local_retention_bytes=0)

    assert plan_local_removal(state(five_segments(), sent=2, settings=settings)) == 20
    assert plan_local_removal(state(five_segments(), sent=0, settings=settings)) is None


def leaves(local: Sequence[SegmentInfo], *, sent: int = 2, removable_end: int = 1_000, **settings: int) -> int | None:
    kept = attrs.evolve(KEEP_ALL, **settings)  # type: ignore[arg-type]  # its numbers
    return plan_local_removal(attrs.evolve(state(local, sent=sent, settings=kept), removable_end=removable_end))


@pytest.mark.parametrize(
    ("timestamp", "is_old"),
    [
        (NOW_MS - 1_001, True),
        (NOW_MS - 1_000, False),  # as long ago as it is kept, and no longer
        (NOW_MS + 1_000, False),
        (0, True),  # a time like any other
    ],
)
def test_a_segment_leaves_when_its_newest_record_is_longer_ago_than_the_local_retention(
    timestamp: int, is_old: bool
) -> None:
    local = [segment(0, 10, timestamp=timestamp), segment(10, 20, is_active=True)]

    assert leaves(local, local_retention_ms=1_000) == (10 if is_old else None)


@pytest.mark.parametrize(("modified_ms", "is_old"), [(NOW_MS - 1_001, True), (NOW_MS - 1_000, False)])
def test_of_a_segment_without_timestamps_the_files_time_counts(modified_ms: int, is_old: bool) -> None:
    local = [SegmentInfo(0, 10, 100, -1, modified_ms, False), segment(10, 20, is_active=True)]

    assert leaves(local, local_retention_ms=1_000) == (10 if is_old else None)


def test_a_segment_with_the_time_zero_is_old_though_its_file_is_new() -> None:
    local = [SegmentInfo(0, 10, 100, 0, NOW_MS, False), segment(10, 20, is_active=True)]

    assert leaves(local, local_retention_ms=1_000) == 10


def test_just_as_many_bytes_stay_as_the_local_retention_says() -> None:
    local = [segment(0, 10), segment(10, 20), segment(20, 30, is_active=True)]

    assert leaves(local, local_retention_bytes=200) == 10
    assert leaves(local, local_retention_bytes=201) is None


def test_a_segment_that_ends_where_the_next_start_will_begin_to_read_may_leave() -> None:
    local = [segment(0, 10), segment(10, 20), segment(20, 30, is_active=True)]

    assert leaves(local, removable_end=10, local_retention_bytes=0) == 10
    assert leaves(local, removable_end=9, local_retention_bytes=0) is None


def test_a_segment_that_compaction_left_empty_and_the_store_never_had_is_not_sent_and_holds_nothing_up() -> None:
    local = [segment(0, 10, size=0), segment(10, 20), segment(20, 30, is_active=True)]
    planned = attrs.evolve(
        state(local, settings=attrs.evolve(KEEP_ALL, local_retention_bytes=0)), copies={10: copy_of(local[1])}
    )

    assert (plan_uploads(planned), plan_local_removal(planned)) == ([], 20)


def test_without_a_durable_snapshot_of_producers_nothing_leaves() -> None:
    settings = attrs.evolve(KEEP_ALL, local_retention_bytes=0)
    planned = state(five_segments(), sent=4, settings=settings)

    assert plan_local_removal(attrs.evolve(planned, removable_end=0)) is None
    assert plan_local_removal(attrs.evolve(planned, removable_end=25)) == 20


SEGMENTS = st.lists(st.tuples(st.integers(1, 9), st.integers(0, 300), st.integers(-1, NOW_MS)), min_size=1, max_size=9)


@given(
    shape=SEGMENTS,
    sent=st.sets(st.integers(0, 9)),
    local_ms=st.integers(-1, NOW_MS),
    local_bytes=st.integers(-1, 900),
    ends=st.tuples(st.integers(0, 60), st.integers(0, 60)),
)
def test_what_leaves_is_in_the_store_and_what_is_sent_is_settled(
    shape: list[tuple[int, int, int]], sent: set[int], local_ms: int, local_bytes: int, ends: tuple[int, int]
) -> None:
    local, base = [], 0
    for number, (length, size, timestamp) in enumerate(shape):
        local.append(segment(base, base + length, size=size, timestamp=timestamp, is_active=number == len(shape) - 1))
        base += length
    settings = attrs.evolve(KEEP_ALL, local_retention_ms=local_ms, local_retention_bytes=local_bytes)
    planned = TieredState(
        local=local,
        copies={each.base_offset: copy_of(each) for number, each in enumerate(local) if number in sent},
        log_start_offset=0,
        uploadable_end=ends[0],
        removable_end=ends[1],
        settings=settings,
        now_ms=NOW_MS,
    )
    below = plan_local_removal(planned) or 0

    for each in local:
        if each.next_offset <= below:
            assert not each.is_active
            assert each.base_offset in planned.copies or not each.size_bytes
            assert each.next_offset <= planned.removable_end
    for each in plan_uploads(planned):
        assert not each.is_active
        assert each.next_offset <= planned.uploadable_end
        assert each.base_offset not in planned.copies


def stored(base: int, following: int, uid: str) -> StoredSegment:
    return StoredSegment(uid, base, following, -1, (), {"log": StoredFile(10, 1)})


def manifest(*segments: StoredSegment) -> Manifest:
    return attrs.evolve(new_manifest(PARTITION, cluster_id="c", leader_epoch=1), segments=segments)


def test_a_segment_that_compaction_left_empty_is_sent_where_the_store_has_its_records_and_leaves_after_that() -> None:
    local = [segment(0, 10, size=0), segment(10, 20), segment(20, 30, is_active=True)]
    settings = attrs.evolve(KEEP_ALL, local_retention_bytes=0)
    planned = attrs.evolve(
        state(local, settings=settings), copies={10: copy_of(local[1])}, manifest=manifest(stored(0, 20, "a"))
    )
    assert (plan_uploads(planned), plan_local_removal(planned)) == ([], None)  # another leader's, which is one segment

    planned = attrs.evolve(planned, manifest=manifest(stored(0, 10, "a"), stored(10, 20, "b")))
    assert (bases(plan_uploads(planned)), plan_local_removal(planned)) == ([0], None)
    planned = attrs.evolve(planned, copies={each.base_offset: copy_of(each) for each in local[:2]})
    assert (plan_uploads(planned), plan_local_removal(planned)) == ([], 20)


def test_an_upload_comes_behind_or_in_the_place_of_what_was_there() -> None:
    first, second, third = stored(0, 10, "a"), stored(10, 20, "b"), stored(20, 30, "c")
    old = manifest(first, second, third)

    assert with_upload(old, stored(30, 40, "d")).segments == (*old.segments, stored(30, 40, "d"))
    assert with_upload(old, stored(10, 20, "d")).segments == (first, stored(10, 20, "d"), third)
    assert with_upload(old, stored(0, 20, "d")).segments == (stored(0, 20, "d"), third)
    assert with_upload(old, stored(10, 40, "d")).segments == (first, stored(10, 40, "d"))
    assert with_upload(manifest(second, third), stored(5, 30, "d")).segments == (stored(5, 30, "d"),)


@pytest.mark.parametrize(
    ("base", "following"),
    [
        (5, 20),  # begins within the first
        (0, 15),  # ends within the second
        (5, 15),
        (10, 15),
        (10, 45),  # ends within what was sent last
        (45, 50),  # begins within what was sent last
        (45, 60),
        (20, 35),  # goes on beyond what was there, but not to the next one
    ],
)
def test_an_upload_that_fits_no_bounds_of_what_is_there_is_refused(base: int, following: int) -> None:
    """Named, it would hide offsets of a segment that stays, or show some of them twice."""
    there = manifest(stored(0, 10, "a"), stored(10, 20, "b"), stored(20, 30, "c"), stored(40, 50, "d"))

    with pytest.raises(ValueError, match=f"segment {base} up to {following} does not fit"):
        with_upload(there, stored(base, following, "new"))


def test_copies_that_another_leader_replaced_are_no_copies() -> None:
    local = five_segments()
    copies = {each.base_offset: copy_of(each) for each in local}
    named = manifest(stored(0, 10, "a"), stored(10, 30, "b"))

    assert confirmed_copies(local, copies, named) == {0: copy_of(local[0])}


def test_what_is_kept_beside_the_log_reads_back() -> None:
    known = LocalState(manifest(stored(0, 10, "a"), stored(10, 20, "b")), 7, {10: LocalCopy(20, 100, 5)})

    assert decode_state(encode_state(known), "here") == known
    assert decode_state(encode_state(LocalState(None, 0)), "here") == LocalState(None, 0)


LEAVES_AT_ONCE = attrs.evolve(KEEP_ALL, local_retention_bytes=0)


def parted_state(local_start: int, *, settings: TierSettings = LEAVES_AT_ONCE) -> TieredState:
    """Return the state of a log whose leader before had other segments: [0, 15), [15, 25), [25, 40)."""
    parts = [stored(0, 15, "a"), stored(15, 25, "b"), stored(25, 40, "c")]
    local = [each for each in five_segments() if each.next_offset > local_start]
    made = attrs.evolve(state(local, settings=settings), manifest=manifest(*parts), stored_end=40)
    return attrs.evolve(made, local_start_offset=local_start)


@pytest.mark.parametrize(("free", "below"), [(None, 40), (40, 40), (39, 25), (25, 25), (24, 15), (14, None)])
def test_where_records_wait_the_local_log_begins_at_a_segments_end_in_the_store(
    free: int | None, below: int | None
) -> None:
    asked = []

    def may_leave(offset: int) -> int | None:
        asked.append(offset)
        return free

    assert plan_removal(parted_state(0), may_leave) == below
    assert asked == [40]


@pytest.mark.parametrize(("local_start", "below"), [(10, 15), (15, None), (20, 25)])
def test_what_the_local_log_has_of_a_parted_segment_leaves_where_records_wait(
    local_start: int, below: int | None
) -> None:
    planned = parted_state(local_start, settings=KEEP_ALL)

    assert plan_removal(planned, lambda offset: offset) == below
    assert plan_removal(planned, lambda _: None) is None
    held = attrs.evolve(planned, removable_end=10)
    assert plan_removal(held, lambda offset: offset) is None
