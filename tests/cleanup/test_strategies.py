"""Strategies, expiry and policies of strangers over real segment files: what stays, what goes, and when."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import attrs
import pytest
import trio

from odradek.kernel.api import CleanupPlan, CleanupPolicy, Compaction, Expiry, LogState, RecordView
from odradek.kernel.cleanup.compactor import Compactor
from odradek.kernel.cleanup.log_states import Policies
from odradek.kernel.cleanup.metrics import cleanup_metrics
from odradek.kernel.cleanup.retention import Retention
from odradek.kernel.records.batch import read_header
from tests.cleanup.compacted import (
    SETTINGS,
    CompactedTopic,
    Seen,
    Wanted,
    compactor_on,
    in_process,
    retention_on,
)

EXPIRES = "odradek.expires.at"


@pytest.fixture
def topic(tmp_path: Path) -> Iterator[CompactedTopic]:
    topic = CompactedTopic(tmp_path)
    yield topic
    topic.hosted.lifecycle.close()


def strategy(topic: CompactedTopic, name: str, *policies: str) -> None:
    values = {"odradek.compaction.strategy": name, "odradek.compaction.header": "v", "odradek.ttl.lag.ms": 0}
    topic.configure(cleanup_policy=policies or ("compact",), values=values)


def expiring(topic: CompactedTopic, *policies: str, lag_ms: int = 0) -> None:
    topic.configure(cleanup_policy=policies or ("ttl",), values={"odradek.ttl.lag.ms": lag_ms})


def versioned(key: bytes, value: bytes, *versions: bytes | None) -> Wanted:
    return Wanted(key, value, headers=tuple(("v", version) for version in versions))


def living(topic: CompactedTopic, key: bytes | None, value: bytes, life_ms: int) -> Wanted:
    return Wanted(key, value, headers=((EXPIRES, b"%d" % (topic.hosted.clock.now_ms() + life_ms)),))


def values(topic: CompactedTopic) -> list[bytes | None]:
    return [seen.value for seen in topic.uncommitted()]


def compactor_of(topic: CompactedTopic, policies: Mapping[str, CleanupPolicy]) -> Compactor:
    """Make one whose workers are processes."""
    settings = attrs.evolve(SETTINGS, io_buffer_size=1 << 19)
    return compactor_on(topic.hosted, in_process, policies=Policies(policies), settings=lambda: settings)


def retain(topic: CompactedTopic) -> Retention:
    retention = retention_on(topic.hosted)
    trio.run(retention.clean)
    return retention


# -------------------------------------------------------------------------------------------------------- strategies


def test_the_largest_timestamp_wins_and_of_equal_ones_the_last(topic: CompactedTopic) -> None:
    strategy(topic, "timestamp")
    topic.write([Wanted(b"a", b"9", 9), Wanted(b"b", b"first", 5), Wanted(b"a", b"3", 3), Wanted(b"b", b"second", 5)])
    topic.roll()
    topic.compact()

    assert topic.uncommitted() == [Seen(0, 9, b"a", b"9"), Seen(3, 5, b"b", b"second")]


def test_an_old_record_that_is_clean_beats_a_new_one(topic: CompactedTopic) -> None:
    strategy(topic, "timestamp")
    topic.write([Wanted(b"a", b"9", 9), Wanted(b"b", b"1", 1)])
    topic.roll()
    topic.compact()
    topic.write([Wanted(b"a", b"8", 8), Wanted(b"b", b"2", 2)])
    topic.roll()
    topic.compact()

    assert topic.uncommitted() == [Seen(0, 9, b"a", b"9"), Seen(3, 2, b"b", b"2")]


def test_the_last_record_of_the_log_may_lose_and_the_log_ends_where_it_did(topic: CompactedTopic) -> None:
    strategy(topic, "timestamp")
    topic.put([(b"z", b"0")])
    topic.write([Wanted(b"a", b"9", 9)], producer_id=7)
    topic.write([Wanted(b"a", b"1", 1)], producer_id=7)
    topic.roll()
    topic.compact()
    last = read_header(topic.batches()[-1])

    assert [seen.offset for seen in topic.uncommitted()] == [0, 1]
    assert (last.last_offset, last.records_count, last.last_sequence) == (2, 0, 1)
    assert topic.replica.log.log_end_offset == 3


def test_a_number_in_a_header_wins_over_none_and_the_last_header_counts(topic: CompactedTopic) -> None:
    strategy(topic, "header")
    topic.write(
        [
            versioned(b"number", b"7", b"7"),
            versioned(b"number", b"missing"),
            versioned(b"number", b"malformed", b"7.5"),
            versioned(b"binary", b"300", b"\0\0\0\0\0\0\x01\x2c"),
            versioned(b"binary", b"29", b"29"),
            versioned(b"none", b"first", b"x"),
            versioned(b"none", b"second"),
            versioned(b"two", b"2", b"9", b"2"),
            versioned(b"two", b"3", b"3"),
        ]
    )
    topic.roll()
    topic.compact()

    assert values(topic) == [b"7", b"300", b"second", b"3"]


def test_a_tombstone_wins_by_the_same_rule_and_goes_once_nothing_is_left_to_beat(topic: CompactedTopic) -> None:
    strategy(topic, "timestamp")
    topic.write([Wanted(b"a", None, 9), Wanted(b"a", b"late", 3), Wanted(b"z", b"", 1)])
    topic.roll()
    topic.compact()
    assert values(topic) == [None, b""]
    topic.hosted.clock.advance(86_400_000)
    topic.write([Wanted(b"a", b"later still", 4)])
    topic.roll()
    topic.compact()
    assert values(topic) == [None, b""], "its time has come, but it has just beaten another"
    topic.write([Wanted(b"y", b"", 4)])
    topic.roll()
    topic.compact()
    assert values(topic) == [b"", b""]


def test_several_passes_with_little_memory_leave_the_same_as_one(topic: CompactedTopic) -> None:
    strategy(topic, "timestamp")
    for number in range(120):
        topic.write([Wanted(b"%d" % (number % 40), b"%d" % number, (number * 7) % 60)])
    topic.roll()
    small = topic.make_compactor(memory_bytes=32 * 20)
    best: dict[bytes, Seen] = {}
    for seen in topic.uncommitted():
        if seen.key not in best or (seen.timestamp, seen.offset) > (best[seen.key].timestamp, best[seen.key].offset):
            best[seen.key] = seen
    passes = 0
    while topic.compact(small):
        passes += 1

    assert passes > 2
    assert topic.uncommitted() == sorted(best.values())


# ------------------------------------------------------------------------------------------------------------ expiry


def test_expired_records_go_with_or_without_a_key_and_all_others_stay(topic: CompactedTopic) -> None:
    expiring(topic)
    topic.write(
        [
            living(topic, b"a", b"goes", 50),
            living(topic, None, b"goes too", 60),
            living(topic, b"a", b"stays", 5_000),
            Wanted(b"a", b"has no time"),
            Wanted(b"a", b"has no number", headers=((EXPIRES, b"tomorrow"),)),
            Wanted(b"a", None),
        ]
    )
    topic.roll()
    topic.put([(b"b", b"in the active segment")])
    topic.hosted.clock.advance(100)
    topic.compact()

    assert [seen.offset for seen in topic.uncommitted()] == [2, 3, 4, 5, 6]
    assert values(topic)[0] == b"stays"
    assert read_header(topic.batches()[0]).delete_horizon_ms is None, "a record without a value is no tombstone here"


def test_a_segment_is_read_once_and_again_when_its_next_record_is_due(topic: CompactedTopic) -> None:
    expiring(topic, lag_ms=1_000)
    topic.write([living(topic, b"a", b"1", 500), living(topic, b"b", b"2", 700), living(topic, b"c", b"3", 9_000)])
    topic.roll()
    assert topic.compact()
    read = topic.compactor.statistics.bytes_read
    assert read > 0
    assert topic.compactor.statistics.bytes_written == 0, "nothing is written where nothing goes"
    for _ in range(14):
        assert not topic.compact()
        topic.hosted.clock.advance(100)
    assert topic.compactor.statistics.bytes_read == read
    topic.hosted.clock.advance(200)
    assert topic.compact()
    assert values(topic) == [b"3"], "what has expired meanwhile goes too"
    assert not topic.compact()


def test_segments_in_which_nothing_goes_keep_their_files(topic: CompactedTopic) -> None:
    expiring(topic)
    for life_ms in (50, 5_000, 60):
        topic.write([living(topic, b"a", b"%d" % life_ms, life_ms)])
        topic.roll()
    topic.put([(b"z", b"")])
    topic.hosted.clock.advance(1_000)
    topic.compact()

    assert values(topic) == [b"5000", b""]
    assert [(s.base_offset, s.size_bytes > 0) for s in topic.replica.log.segments()][1] == (1, True)


def test_segments_at_the_start_of_which_nothing_is_left_are_deleted(topic: CompactedTopic) -> None:
    expiring(topic)
    topic.write([living(topic, b"a", b"1", 50)])
    topic.write([living(topic, b"a", b"2", 50)])
    topic.roll()
    topic.write([Wanted(b"b", b"3")])
    topic.roll()
    topic.put([(b"z", b"")])
    topic.hosted.clock.advance(1_000)
    topic.compact()
    assert [segment.size_bytes == 0 for segment in topic.replica.log.segments()] == [True, False, False]
    retain(topic)

    assert topic.replica.log.log_start_offset == 2
    assert values(topic) == [b"3", b""]


def test_expired_records_of_transactions_go_and_the_others_are_seen_as_before(topic: CompactedTopic) -> None:
    expiring(topic)
    topic.write([living(topic, b"a", b"goes", 50), Wanted(b"a", b"1")], producer_id=7, is_transactional=True)
    topic.roll()
    topic.end(7, is_commit=False)
    topic.write([living(topic, b"b", b"goes", 50), Wanted(b"b", b"2")], producer_id=7, is_transactional=True)
    topic.end(7, is_commit=True)
    topic.roll()
    topic.put([(b"z", b"")])
    topic.hosted.clock.advance(1_000)
    topic.compact()

    assert [seen.value for seen in topic.committed()] == [b"2", b""]
    assert values(topic) == [b"1", b"2", b""]
    assert len(topic.replica.producers.transactions.aborted()) == 1


def test_beside_compaction_an_expired_record_still_beats_the_older_ones_of_its_key(topic: CompactedTopic) -> None:
    expiring(topic, "compact", "ttl")
    topic.put([(b"a", b"old"), (b"b", b"old")])
    topic.roll()
    topic.write([living(topic, b"a", b"new", 50), Wanted(b"z", b"")])
    topic.roll()
    topic.hosted.clock.advance(1_000)
    topic.compact()

    assert values(topic) == [b"old", b""]
    assert [seen.key for seen in topic.uncommitted()] == [b"b", b"z"]


def test_beside_compaction_a_record_that_expires_later_makes_a_pass_however_little_is_dirty(
    topic: CompactedTopic,
) -> None:
    expiring(topic, "ttl", "compact")
    topic.write([living(topic, b"a", b"1", 500), Wanted(b"z", b"")])
    topic.roll()
    topic.put([(b"y", b"")])
    assert topic.compact()
    assert not topic.compact()
    topic.hosted.clock.advance(500)
    assert topic.compact()
    assert values(topic) == [b"", b""]
    assert not topic.compact()


# --------------------------------------------------------------------------------------------------------- strangers


class Newest:
    """Keeps the newest two records of each key: counts them, old ones too, and lets the first ones go."""

    def __init__(self, memory_bytes: int, records_max: int, load_factor: float) -> None:
        self.left: dict[bytes, int] = {}

    def note(self, key: bytes, record: RecordView) -> bool:
        self.left[key] = self.left.get(key, 0) + 1
        return True

    def weigh(self, key: bytes, record: RecordView) -> None:
        if key in self.left:
            self.left[key] += 1

    def keeps(self, key: bytes, record: RecordView) -> bool:
        if key not in self.left:
            return True
        self.left[key] -= 1
        return self.left[key] < 2


class NewestPolicy(CleanupPolicy):
    compacts = True
    requires_keys = True

    def plan(self, log: LogState) -> CleanupPlan:
        end_offset = log.segments[-1].base_offset
        if log.first_dirty_offset >= end_offset or end_offset > min(log.last_stable_offset, log.rewritable_end):
            return CleanupPlan()
        return CleanupPlan(compaction=Compaction(log.first_dirty_offset, end_offset, 1.0, Newest))


def due_at_its_timestamp(record: RecordView) -> int:
    return record.timestamp


class OldPolicy(CleanupPolicy):
    expires = True

    def plan(self, log: LogState) -> CleanupPlan:
        closed = [s.base_offset for s in log.segments if s.next_offset <= log.rewritable_end and not s.is_active]
        return CleanupPlan(
            expiry=Expiry(due_at_its_timestamp, [base for base in closed if log.due_ms.get(base, 0) <= log.now_ms])
        )


def test_a_stranger_keeps_the_newest_records_of_a_key(topic: CompactedTopic) -> None:
    topic.configure(cleanup_policy=("newest",))
    compactor = compactor_of(topic, {"newest": NewestPolicy()})
    topic.put([(b"a", b"1"), (b"b", b"1"), (b"a", b"2"), (b"a", b"3")])
    topic.roll()
    topic.compact(compactor)
    assert values(topic) == [b"1", b"2", b"3"]
    topic.put([(b"a", b"4")])
    topic.roll()
    topic.compact(compactor)

    assert [(seen.key, seen.value) for seen in topic.uncommitted()] == [(b"b", b"1"), (b"a", b"3"), (b"a", b"4")]


def test_a_stranger_drops_single_records_for_reasons_of_its_own(topic: CompactedTopic) -> None:
    topic.configure(cleanup_policy=("old",))
    now_ms = topic.hosted.clock.now_ms()
    topic.write([Wanted(b"a", b"1", now_ms - 5), Wanted(None, b"2", now_ms + 500)])
    topic.roll()
    topic.compact(compactor_of(topic, {"old": OldPolicy()}))

    assert values(topic) == [b"2"]


def test_a_topic_whose_policy_is_not_offered_is_told_of_and_its_other_policies_go_on(
    topic: CompactedTopic, caplog: pytest.LogCaptureFixture
) -> None:
    topic.configure(cleanup_policy=("compact", "newest"))
    topic.put([(b"a", b"1"), (b"a", b"2")])
    topic.roll()
    assert topic.compact()
    retention = retain(topic)
    retain(topic)
    told = {metric.name: metric.read()[()] for _, metric in cleanup_metrics(retention, topic.compactor)}

    assert values(topic) == [b"2"]
    assert told["odradek_cleanup_topics_without_policy"] == 1
    assert ["'newest'" in record.getMessage() for record in caplog.records if record.levelname == "ERROR"] == [True] * 2
