"""When the first record of a segment is to go is told of each segment that a pass wrote or looked through."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from odradek.kernel.cleanup.compaction_job import (
    CompactionDone,
    CompactionJob,
    GroupRewritten,
    SegmentLooked,
    Step,
    compact,
)
from odradek.kernel.contracts.cleanup import Compaction
from odradek.kernel.machine.system.threads import SystemThreads
from odradek.kernel.machine.throttle import Throttle
from odradek.kernel.records.key_table import KeyTable
from odradek.kernel.records.record_view import NEVER_DUE, RecordView
from tests.cleanup.compacted import CompactedTopic, Wanted

NOW_MS: Final = 1_000_000
LATER_MS: Final = 2_000_000
NEVER: Final = 0
"""Of a record with this timestamp."""


def due_at_its_timestamp(record: RecordView) -> int:
    return record.timestamp if record.timestamp != NEVER else NEVER_DUE


@pytest.fixture
def topic(tmp_path: Path) -> Iterator[CompactedTopic]:
    topic = CompactedTopic(tmp_path, segment_bytes=300)
    yield topic
    topic.hosted.lifecycle.close()


def write(topic: CompactedTopic, *segments: list[tuple[bytes, int]]) -> None:
    """Write segments of records, each with a key and when it is to go; each too large to be merged with another."""
    for segment in segments:
        topic.write([Wanted(key, bytes(100), due_ms) for key, due_ms in segment])
        topic.roll()


def steps(topic: CompactedTopic, compaction: Compaction | None) -> list[Step]:
    topic.flush()
    log = topic.replica.log
    job = CompactionJob(
        compaction=compaction,
        rewrite=log.begin_rewrite(log.log_end_offset),
        aborted=(),
        last_records={},
        memory_bytes=1 << 20,
        load_factor=0.9,
        buffer_bytes=500,
        bytes_per_second=1e300,
        segment_bytes=300,
        segment_index_bytes=1_000,
        delete_retention_ms=86_400_000,
        now_ms=NOW_MS,
        expiries=[due_at_its_timestamp],
    )
    return list(compact(job, Throttle(lambda: 1e300, lambda: 0.0, SystemThreads().new_event())))


def dues(steps: list[Step]) -> list[int]:
    return [step.due_ms for step in steps if isinstance(step, GroupRewritten | SegmentLooked)]


def test_a_pass_tells_of_each_segment_when_its_first_record_is_to_go(topic: CompactedTopic) -> None:
    write(
        topic,
        [(b"a", LATER_MS + 5), (b"b", LATER_MS)],
        [(b"c", NEVER), (b"d", NEVER)],
        [(b"e", LATER_MS + 9), (b"f", NOW_MS - 1)],
    )
    end = topic.replica.log.log_end_offset
    found = steps(topic, Compaction(0, end, 1.0, KeyTable))

    assert isinstance(found[-1], CompactionDone)
    assert dues(found) == [LATER_MS, NEVER_DUE, LATER_MS + 9]


def test_a_look_for_what_has_expired_tells_of_segments_that_stay_and_of_new_ones(topic: CompactedTopic) -> None:
    write(
        topic,
        [(b"a", LATER_MS), (b"b", NEVER)],
        [(b"c", NEVER), (b"d", NEVER)],
        [(b"e", LATER_MS + 9), (b"f", NOW_MS - 1)],
        [(b"g", NOW_MS), (b"h", NEVER)],
    )
    found = steps(topic, None)

    assert [type(step) for step in found] == [SegmentLooked] * 2 + [GroupRewritten] * (len(found) - 3) + [
        CompactionDone
    ]
    assert dues(found)[:2] == [LATER_MS, NEVER_DUE]
    assert min(dues(found)[2:]) == LATER_MS + 9
