"""What the policy `delete` plans, against what Apache Kafka's rules say."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.kernel.api import NOTHING_TO_CLEAN, CleanupSettings, LogState, SegmentInfo, TopicPartition
from odradek.plugins.cleanup import odradek_cleanup_policies
from odradek.plugins.cleanup.delete import DeletePolicy

NOW_MS = 1_000_000


def log_of(
    *segments: tuple[int, int, int], retention_ms: int = -1, retention_bytes: int = -1, high_watermark: int = 1 << 40
) -> LogState:
    """Describe a log of segments (size, records, largest timestamp), the last one active."""
    infos, offset = [], 0
    for number, (size_bytes, records, timestamp) in enumerate(segments):
        is_active = number == len(segments) - 1
        infos.append(SegmentInfo(offset, offset + records, size_bytes, timestamp, NOW_MS - 5_000, is_active))
        offset += records
    return LogState(
        partition=TopicPartition("t", 0),
        segments=infos,
        settings=CleanupSettings(retention_ms=retention_ms, retention_bytes=retention_bytes),
        log_start_offset=0,
        last_stable_offset=min(high_watermark, offset),
        high_watermark=min(high_watermark, offset),
        first_dirty_offset=0,
        rewritable_end=offset,
        now_ms=NOW_MS,
    )


def deleted_below(log: LogState) -> int | None:
    plan = DeletePolicy().plan(log)
    return plan.deletion.below if plan.deletion is not None else None


OLD, NEW = NOW_MS - 1_001, NOW_MS - 1_000


def test_the_policy_has_kafkas_name() -> None:
    assert isinstance(odradek_cleanup_policies()["delete"], DeletePolicy)


def test_a_segment_goes_when_its_largest_timestamp_is_longer_ago_than_the_retention() -> None:
    assert deleted_below(log_of((9, 10, OLD), (9, 10, NEW), (9, 10, OLD), retention_ms=1_000)) == 10


def test_without_a_timestamp_the_files_last_change_counts() -> None:
    assert deleted_below(log_of((9, 10, -1), (9, 1, NOW_MS), retention_ms=4_999)) == 10
    assert deleted_below(log_of((9, 10, -1), (9, 1, NOW_MS), retention_ms=5_000)) is None


def test_the_active_segment_goes_too_when_all_are_old_but_not_when_it_is_empty() -> None:
    assert deleted_below(log_of((9, 10, OLD), (9, 5, OLD), retention_ms=1_000)) == 15
    assert deleted_below(log_of((9, 10, OLD), (0, 0, -1), retention_ms=0)) == 10
    assert deleted_below(log_of((0, 0, -1), retention_ms=0)) is None


def test_nothing_above_the_high_watermark_goes() -> None:
    log = log_of((9, 10, OLD), (9, 10, OLD), (9, 10, OLD), retention_ms=0, retention_bytes=0, high_watermark=19)

    assert deleted_below(log) == 10


@pytest.mark.parametrize(
    ("retention_bytes", "below"), [(300, None), (299, None), (200, 10), (199, 10), (100, 20), (0, 30), (-1, None)]
)
def test_segments_go_while_the_log_is_not_smaller_than_the_retention_without_them(
    retention_bytes: int, below: int | None
) -> None:
    log = log_of((100, 10, NEW), (100, 10, NEW), (100, 10, NEW), retention_bytes=retention_bytes)

    assert deleted_below(log) == below


def test_what_wants_more_wins_and_says_why() -> None:
    log = log_of((100, 10, OLD), (100, 10, NEW), (100, 10, NEW), retention_ms=1_000, retention_bytes=100)
    plan = DeletePolicy().plan(log)

    assert plan.deletion is not None
    assert (plan.deletion.below, plan.deletion.reason) == (20, "larger than retention.bytes=100")


def test_without_limits_there_is_nothing_to_clean() -> None:
    assert DeletePolicy().plan(log_of((9, 10, 0), (9, 10, 0))) == NOTHING_TO_CLEAN


@given(
    st.lists(st.tuples(st.integers(0, 50), st.integers(0, 5), st.integers(-1, NOW_MS)), min_size=1, max_size=8),
    st.integers(-1, NOW_MS),
    st.integers(-1, 200),
    st.integers(0, 40),
)
def test_what_stays_is_a_suffix_of_whole_segments_that_holds_all_that_is_not_committed(
    segments: list[tuple[int, int, int]], retention_ms: int, retention_bytes: int, high_watermark: int
) -> None:
    log = log_of(*segments, retention_ms=retention_ms, retention_bytes=retention_bytes, high_watermark=high_watermark)
    below = deleted_below(log)

    assert below is None or (below <= log.high_watermark and below in {segment.next_offset for segment in log.segments})
    if below is not None and retention_ms < 0:
        left = sum(segment.size_bytes for segment in log.segments if segment.next_offset > below)
        assert left >= retention_bytes
