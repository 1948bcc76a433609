"""What the policy `compact` plans: how much is dirty, from where to where, and when it is worth a pass."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from odradek.kernel.api import CleanupSettings, LogState, SegmentInfo, TopicPartition
from odradek.plugins.cleanup.compact import CompactPolicy

NOW_MS = 1_000_000


def log_of(
    *sizes: int,
    first_dirty: int = 0,
    stable: int | None = None,
    timestamps: tuple[int, ...] = (),
    first_timestamps: Mapping[int, int] | None = None,
    records: tuple[int, ...] = (),
    expired: bool = False,
    **settings: float,
) -> LogState:
    """Describe a log of segments of these sizes, ten records each unless `records` says so; the last is active."""
    infos, offset = [], 0
    for number, size_bytes in enumerate(sizes):
        count = records[number] if records else 10
        timestamp = timestamps[number] if timestamps else 1
        infos.append(SegmentInfo(offset, offset + count, size_bytes, timestamp, 1, number == len(sizes) - 1))
        offset += count
    return LogState(
        partition=TopicPartition("t", 0),
        segments=infos,
        settings=CleanupSettings(cleanup_policy=("compact",), **settings),  # type: ignore[arg-type]
        log_start_offset=0,
        last_stable_offset=offset if stable is None else stable,
        high_watermark=offset,
        first_dirty_offset=first_dirty,
        rewritable_end=offset,
        now_ms=NOW_MS,
        first_timestamps=first_timestamps or {},
        has_expired_records=expired,
    )


def planned(log: LogState) -> tuple[int, int, float] | None:
    compaction = CompactPolicy().plan(log).compaction
    return None if compaction is None else (compaction.first_dirty_offset, compaction.end_offset, compaction.urgency)


def test_all_closed_segments_of_a_log_that_was_never_compacted_are_dirty() -> None:
    assert planned(log_of(100, 300, 50)) == (0, 20, 1.0)


def test_what_is_dirty_is_held_against_all_that_could_be_compacted_and_not_the_active_segment() -> None:
    log = log_of(100, 300, 5_000, first_dirty=10, min_cleanable_dirty_ratio=0.74)

    assert planned(log) == (10, 20, 0.75)


def test_a_log_that_is_dirty_by_just_the_ratio_is_left_alone() -> None:
    """As in Kafka: more than the ratio."""
    assert planned(log_of(100, 300, 9, first_dirty=10, min_cleanable_dirty_ratio=0.75)) is None


def test_of_a_pass_that_ended_within_a_segment_the_whole_segment_is_dirty() -> None:
    log = log_of(100, 300, 9, first_dirty=15, min_cleanable_dirty_ratio=0.7)

    assert planned(log) == (15, 20, 0.75)


def test_the_segments_before_the_one_in_which_a_pass_ended_stay_clean() -> None:
    log = log_of(100, 200, 100, 9, first_dirty=15, min_cleanable_dirty_ratio=0.7)

    assert planned(log) == (15, 30, 0.75)


def test_a_pass_that_ended_at_a_segments_last_record_leaves_that_record_dirty() -> None:
    assert planned(log_of(100, 100, 9, first_dirty=19, min_cleanable_dirty_ratio=0.4)) == (19, 20, 0.5)


def test_where_all_was_compacted_there_is_nothing_to_do() -> None:
    assert planned(log_of(100, 300, 9, first_dirty=20, min_cleanable_dirty_ratio=0)) is None


def test_dirty_segments_without_a_byte_are_not_worth_a_pass() -> None:
    """Not a division by zero either, where nothing is clean."""
    assert planned(log_of(0, 9, first_dirty=0, min_cleanable_dirty_ratio=0)) is None
    assert planned(log_of(100, 0, 9, first_dirty=10, min_cleanable_dirty_ratio=0)) is None


def test_a_mark_at_the_logs_end_counts() -> None:
    assert planned(log_of(100, 9, first_dirty=20, min_cleanable_dirty_ratio=0)) is None


def test_a_mark_beyond_the_logs_end_means_that_the_log_is_another_and_wholly_dirty() -> None:
    assert planned(log_of(100, 9, first_dirty=21)) == (0, 10, 1.0)


def test_nothing_is_compacted_from_the_first_offset_of_an_open_transaction_on() -> None:
    assert planned(log_of(100, 100, 100, 9, stable=25)) == (0, 20, 1.0)
    assert planned(log_of(100, 100, 9, stable=9)) is None


@pytest.mark.parametrize(
    ("timestamp", "expected"),
    [(NOW_MS - 500, (0, 20, 1.0)), (NOW_MS - 499, (0, 10, 1.0)), (NOW_MS + 3_600_000, (0, 10, 1.0))],
)
def test_a_segment_that_is_too_young_ends_what_is_compacted(
    timestamp: int, expected: tuple[int, int, float] | None
) -> None:
    """One whose timestamps lie in the future is young until they have come, as in Kafka."""
    assert planned(log_of(9, 9, 9, timestamps=(1, timestamp, 1), min_compaction_lag_ms=500)) == expected


def test_without_a_lag_no_segment_is_too_young_whatever_its_timestamps_say() -> None:
    assert planned(log_of(9, 9, 9, timestamps=(1, NOW_MS + 3_600_000, 1), min_compaction_lag_ms=0)) == (0, 20, 1.0)


def test_a_young_segment_that_was_compacted_holds_nothing_up() -> None:
    log = log_of(100, 300, 9, timestamps=(NOW_MS, 1, 1), first_dirty=10, min_compaction_lag_ms=500)

    assert planned(log) == (10, 20, 0.75)


@pytest.mark.parametrize(
    ("first_timestamp", "is_late"),
    [(NOW_MS - 501, True), (NOW_MS - 500, False), (NOW_MS + 3_600_000, False), (0, False), (-1, False)],
)
def test_a_dirty_record_that_waited_for_the_longest_lag_is_compacted_however_little_is_dirty(
    first_timestamp: int, is_late: bool
) -> None:
    """A timestamp of 0, one of the future and none at all say nothing of how long it waited."""
    log = log_of(1_000, 1, 9, first_dirty=10, first_timestamps={10: first_timestamp}, max_compaction_lag_ms=500)

    assert (planned(log) is not None) is is_late


def test_how_long_a_clean_segment_waited_does_not_count() -> None:
    assert planned(log_of(1_000, 1, 9, first_dirty=10, first_timestamps={0: 1}, max_compaction_lag_ms=500)) is None


def test_records_that_expired_are_compacted_away_where_nothing_is_dirty() -> None:
    assert planned(log_of(100, 100, 9, first_dirty=20, expired=True)) == (20, 20, 0.0)
    assert planned(log_of(100, 100, 9, first_dirty=10, expired=True)) == (10, 20, 0.0)
    assert planned(log_of(9, first_dirty=0, expired=True)) is None, "the active segment is all there is"


def test_a_pass_for_expired_records_begins_no_later_than_it_ends() -> None:
    """A transaction below what was compacted may be open again after a truncation."""
    assert planned(log_of(100, 100, 9, first_dirty=20, stable=15, expired=True)) == (10, 10, 0.0)
