"""Compaction of one partition over real segment files: what stays, what goes, and when."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

from odradek.kernel.partitions.transaction_index import (
    TRANSACTION_INDEX_KIND,
    AbortedTransaction,
    decode_transaction_index,
)
from odradek.kernel.records.batch import read_header
from odradek.kernel.records.compression import CompressionType
from odradek.plugins.storage_segment.engine import SegmentEngine
from tests.cleanup.compacted import CompactedTopic, Wanted, latest
from tests.partitions.hosted import Hosted

DAY_MS = 86_400_000


@pytest.fixture
def topic(tmp_path: Path) -> Iterator[CompactedTopic]:
    topic = CompactedTopic(tmp_path)
    yield topic
    topic.hosted.lifecycle.close()


def bases(topic: CompactedTopic) -> list[int]:
    return [segment.base_offset for segment in topic.replica.log.segments()]


def closed_bytes(topic: CompactedTopic) -> int:
    return sum(segment.size_bytes for segment in topic.replica.log.segments() if not segment.is_active)


def shown(topic: CompactedTopic) -> list[tuple[int, bytes, bytes | None]]:
    return [(seen.offset, seen.key, seen.value) for seen in topic.uncommitted()]


def test_of_each_key_the_newest_record_stays_at_its_offset_and_segments_are_merged(topic: CompactedTopic) -> None:
    topic.put([(b"a", b"1"), (b"b", b"1")])
    topic.roll()
    topic.put([(b"a", b"2")])
    topic.roll()
    topic.put([(b"a", b"3")])
    topic.compact()

    assert shown(topic) == [(1, b"b", b"1"), (2, b"a", b"2"), (3, b"a", b"3")]
    assert (bases(topic), topic.replica.log.clean_end) == ([0, 3], 3)


def test_what_a_pass_reads_and_writes_is_counted(topic: CompactedTopic) -> None:
    for number in range(3):
        topic.put([(b"a", b"%d" % number), (b"of segment %d" % number, b"")])
        topic.put([(b"b", b"%d" % number)])
        topic.roll()
    before = closed_bytes(topic)
    topic.compact()

    statistics = topic.compactor.statistics
    assert (statistics.bytes_read, statistics.bytes_written) == (before, closed_bytes(topic))
    assert 0 < statistics.bytes_written < before


def test_what_is_clean_is_not_compacted_again(topic: CompactedTopic) -> None:
    topic.put([(b"a", b"1"), (b"a", b"2")])
    topic.roll()

    assert topic.compact()
    assert not topic.compact()


def test_a_batch_that_loses_nothing_keeps_its_bytes(topic: CompactedTopic) -> None:
    topic.put([(b"a", b"1"), (b"b", b"1")], compression=CompressionType.GZIP)
    topic.roll()
    before = topic.batches()
    topic.compact()

    assert topic.batches() == before


@pytest.mark.parametrize("compression", list(CompressionType))
def test_a_batch_that_loses_some_is_compressed_as_before(topic: CompactedTopic, compression: CompressionType) -> None:
    topic.put([(b"a", b"1"), (b"b", b"1" * 100), (b"a", b"2")], compression=compression)
    topic.roll()
    topic.compact()
    header = read_header(topic.batches()[0])

    assert header.compression_id == compression
    assert (header.base_offset, header.last_offset, header.records_count) == (0, 2, 2)
    assert shown(topic) == [(1, b"b", b"1" * 100), (2, b"a", b"2")]


def test_a_tombstone_stays_for_delete_retention_from_the_first_pass_on(topic: CompactedTopic) -> None:
    topic.put([(b"a", b"1")])
    topic.put([(b"a", None)])
    topic.put([(b"b", b"1")])
    topic.roll()
    times = {seen.offset: seen.timestamp for seen in topic.uncommitted()}
    topic.compact()
    horizon_ms = topic.hosted.clock.now_ms() + DAY_MS

    assert shown(topic) == [(1, b"a", None), (2, b"b", b"1")]
    assert [read_header(batch).delete_horizon_ms for batch in topic.batches()] == [horizon_ms, None]
    assert {seen.offset: seen.timestamp for seen in topic.uncommitted()}.items() <= times.items()
    topic.hosted.clock.advance(DAY_MS - 1)
    topic.compact_again()
    assert shown(topic) == [(1, b"a", None), (2, b"b", b"1")]
    topic.hosted.clock.advance(1)
    topic.compact_again()
    assert shown(topic) == [(2, b"b", b"1")]


def test_the_last_batch_of_a_producer_stays_without_its_records_so_that_its_sequence_lives(
    topic: CompactedTopic, tmp_path: Path
) -> None:
    topic.put([(b"a", b"1"), (b"b", b"1")], producer_id=7)
    topic.put([(b"a", b"2"), (b"b", b"2")])
    topic.roll()
    topic.compact()
    empty, kept = [read_header(batch) for batch in topic.batches()]

    assert (empty.producer_id, empty.base_sequence, empty.last_sequence, empty.records_count) == (7, 0, 1, 0)
    assert kept.records_count == 2
    again = topic.restart(tmp_path)
    again.sequences[7] = 2
    again.put([(b"c", b"1")], producer_id=7)
    assert [seen.key for seen in again.uncommitted()] == [b"a", b"b", b"c"]
    topic.hosted = again.hosted


def test_aborted_records_go_and_their_marker_stays_until_nothing_of_them_is_left(topic: CompactedTopic) -> None:
    topic.put([(b"a", b"old")])
    topic.put([(b"a", b"aborted")], producer_id=7, is_transactional=True)
    topic.end(7, is_commit=False)
    topic.put([(b"b", b"1")], producer_id=7, is_transactional=True)
    topic.end(7, is_commit=True)
    topic.roll()
    topic.put([(b"z", b"end")])
    before = latest(topic.committed())
    topic.compact()

    assert shown(topic) == [(0, b"a", b"old"), (3, b"b", b"1"), (5, b"z", b"end")]
    assert latest(topic.committed()) == before
    assert len(topic.replica.producers.transactions.aborted()) == 1
    topic.compact_again()
    assert topic.replica.producers.transactions.aborted() == ()
    topic.hosted.clock.advance(DAY_MS)
    topic.compact_again()
    assert [read_header(batch).base_offset for batch in topic.batches()] == [0, 3, 4, 5]
    assert latest(topic.committed()) == before


def put_aborted(topic: CompactedTopic, *producer_ids: int) -> list[AbortedTransaction]:
    """Fill a segment for each producer, with a transaction that it aborts, and go on; return the index."""
    for producer_id in producer_ids:
        topic.put([(b"key", b"kept by %d" % producer_id)])
        topic.put([(b"key", b"aborted")], producer_id=producer_id, is_transactional=True)
        topic.end(producer_id, is_commit=False)
        topic.roll()
    for producer_id in producer_ids:
        topic.put([(b"%d" % producer_id, b"later")], producer_id=producer_id, is_transactional=True)
        topic.end(producer_id, is_commit=True)
    aborted = list(topic.replica.producers.transactions.aborted())
    assert len(aborted) == len(producer_ids)
    return aborted


def indexed(topic: CompactedTopic) -> dict[int, list[AbortedTransaction]]:
    """Return what each segment's transaction index holds."""
    log = topic.replica.log
    return {
        offset: decode_transaction_index(log.read_sidecar(offset, TRANSACTION_INDEX_KIND))
        for offset in log.sidecars(TRANSACTION_INDEX_KIND)
    }


def test_where_segments_are_merged_each_aborted_transaction_of_theirs_stays_once_and_as_long_as_it_is_needed(
    topic: CompactedTopic,
) -> None:
    aborted = put_aborted(topic, 5, 6, 7)
    before = topic.committed()
    topic.compact()

    assert bases(topic) == [0, 9], "three segments are one"
    assert list(topic.replica.producers.transactions.aborted()) == aborted
    assert indexed(topic) == {0: aborted}
    assert latest(topic.committed()) == latest(before)

    topic.compact_again()
    assert topic.replica.producers.transactions.aborted() == ()
    assert indexed(topic) == {}


def test_segments_that_are_not_merged_have_the_aborted_transactions_of_their_own_markers(tmp_path: Path) -> None:
    topic = CompactedTopic(tmp_path, segment_bytes=600)
    try:
        aborted = put_aborted(topic, *range(6))
        topic.compact()

        found = indexed(topic)
        assert len(found) > 1
        assert list(topic.replica.producers.transactions.aborted()) == aborted
        assert sorted(itertools.chain(*found.values()), key=lambda each: each.last_offset) == aborted
        ends = [*sorted(found)[1:], topic.replica.log.log_end_offset]
        for (base_offset, each), end in zip(sorted(found.items()), ends, strict=True):
            assert all(base_offset <= transaction.last_offset < end for transaction in each)
    finally:
        topic.hosted.lifecycle.close()


def test_a_committed_transaction_after_an_aborted_one_that_is_clean_is_noted(topic: CompactedTopic) -> None:
    topic.put([(b"a", b"aborted")], producer_id=7, is_transactional=True)
    topic.end(7, is_commit=False)
    topic.roll()
    topic.compact()
    topic.put([(b"a", b"1")])
    topic.put([(b"a", b"2")], producer_id=7, is_transactional=True)
    topic.end(7, is_commit=True)
    topic.roll()
    topic.put([(b"z", b"end")])
    topic.compact()

    assert shown(topic) == [(3, b"a", b"2"), (5, b"z", b"end")]


def test_nothing_at_or_above_the_last_stable_offset_is_touched(topic: CompactedTopic) -> None:
    topic.put([(b"a", b"1"), (b"a", b"2")])
    topic.roll()
    topic.put([(b"a", b"open")], producer_id=7, is_transactional=True)
    topic.put([(b"a", b"3"), (b"a", b"4")])
    topic.roll()
    topic.compact()

    assert [offset for offset, _, _ in shown(topic)] == [1, 2, 3, 4]
    assert topic.replica.log.clean_end == 2


def test_young_segments_wait_for_min_compaction_lag(topic: CompactedTopic) -> None:
    topic.configure(min_compaction_lag_ms=1_000)
    topic.put([(b"a", b"1"), (b"a", b"2")])
    topic.roll()

    assert not topic.compact()
    topic.hosted.clock.advance(1_000)
    assert topic.compact()


def test_a_record_waits_for_max_compaction_lag_from_the_first_dirty_batch_on(topic: CompactedTopic) -> None:
    topic.configure(min_cleanable_dirty_ratio=1.0, max_compaction_lag_ms=1_000)
    topic.put([(b"a", b"1")])
    topic.hosted.clock.advance(900)
    topic.put([(b"a", b"2")])
    topic.roll()

    assert not topic.compact()
    topic.hosted.clock.advance(100)
    assert topic.compact(), "the last record is young, the first one is not"
    assert shown(topic) == [(1, b"a", b"2")]
    assert not topic.compact(), "what is clean has no lag"


def test_a_damaged_first_batch_makes_its_partition_uncleanable_and_leaves_it_online(topic: CompactedTopic) -> None:
    topic.configure(min_cleanable_dirty_ratio=1.0, max_compaction_lag_ms=1_000)
    topic.put([(b"a", b"1")])
    topic.roll()
    topic.replica.log.flush()
    (path,) = (path for folder in topic.hosted.dirs for path in Path(folder).glob("t-0/*0.log"))
    path.write_bytes(path.read_bytes()[:16] + b"\x09" + path.read_bytes()[17:])
    topic.compact()

    assert len(topic.compactor.uncleanable) == 1
    assert topic.replica.offline_reason is None


def test_a_map_of_keys_that_is_too_small_takes_several_passes(topic: CompactedTopic) -> None:
    small = topic.make_compactor(memory_bytes=24 * 20)
    for number in range(100):
        topic.put([(b"%d" % (number % 50), b"%d" % number)])
    topic.roll()
    passes = 0
    before = latest(topic.committed())
    while topic.compact(small):
        passes += 1

    assert passes > 3
    assert latest(topic.uncommitted()) == before
    assert [seen.offset for seen in topic.uncommitted()] == list(range(50, 100)), "no pass leaves a record out"
    assert topic.replica.log.clean_end == 100


def test_a_damaged_segment_makes_its_partition_uncleanable_and_nothing_else(topic: CompactedTopic) -> None:
    topic.put([(b"a", b"1"), (b"a", b"2")])
    topic.roll()
    topic.replica.log.flush()
    (path,) = (path for folder in topic.hosted.dirs for path in Path(folder).glob("t-0/*0.log"))
    damaged = bytearray(path.read_bytes())
    damaged[-1] ^= 1
    path.write_bytes(damaged)
    topic.compact()

    assert ["CRC does not match" in reason for reason in topic.compactor.uncleanable.values()] == [True]
    assert topic.replica.offline_reason is None
    assert not topic.compact()


def test_who_reads_a_segment_that_is_replaced_reads_it_to_the_end(topic: CompactedTopic) -> None:
    topic.put([(b"a", b"1"), (b"a", b"2")])
    topic.roll()
    expected = b"".join(topic.batches())
    under_way = topic.replica.log.read(0, 1 << 20).data
    topic.compact()

    assert not isinstance(under_way, bytes | memoryview)
    assert under_way.read() == expected


def test_readers_go_on_behind_a_gap(topic: CompactedTopic) -> None:
    topic.put([(b"a", b"1")])
    topic.put([(b"a", b"2")])
    topic.roll()
    topic.put([(b"a", b"3")])
    topic.roll()
    topic.put([(b"b", b"1")])
    topic.compact()
    found = topic.replica.log.read(0, 1 << 20)

    assert isinstance(found.data, object)
    assert found.next_offset == 3
    assert shown(topic) == [(2, b"a", b"3"), (3, b"b", b"1")]


def test_what_was_cleaned_is_known_after_a_restart(topic: CompactedTopic, tmp_path: Path) -> None:
    topic.put([(b"a", b"1"), (b"a", b"2")])
    topic.roll()
    topic.compact()
    again = topic.restart(tmp_path)

    assert again.replica.log.clean_end == 2
    assert not again.compact()
    paths = [Path(folder) / "cleaner-offset-checkpoint" for folder in again.hosted.dirs]
    assert [path.read_text() for path in paths if path.exists()] == ["0\n1\nt 0 2\n"]
    topic.hosted = again.hosted


@pytest.mark.parametrize("policy", ["compact", "ttl"])
@pytest.mark.parametrize("starts_count", [0, 1, 2])
def test_what_a_pass_left_outlives_a_crash_and_starts_that_end_before_logs_are_opened(
    tmp_path: Path, policy: str, starts_count: int
) -> None:
    """As where a broker comes up without a quorum, and is stopped, and started again."""
    topic = CompactedTopic(tmp_path)
    topic.configure(cleanup_policy=(policy,), values={"odradek.ttl.lag.ms": 0})
    topic.put([(b"a", b"1")])
    topic.write([Wanted(b"k0", b"x", headers=(("odradek.expires.at", b"1"),))])
    topic.roll()
    for number in range(5):
        topic.put([(b"k%d" % number, b"kept")])
    topic.roll()
    topic.put([(b"z", b"end")])
    before = len(topic.batches())
    topic.let_segments_grow_to(200)
    assert topic.compact()
    batches = topic.batches()
    assert len(batches) == before - 1
    engine = topic.hosted.replicas.engines["segment"]
    assert isinstance(engine, SegmentEngine)
    engine.abandon()  # before a checkpoint tells that it is compacted
    for _ in range(starts_count):
        Hosted(tmp_path).lifecycle.close()
    again = CompactedTopic(tmp_path)

    assert again.batches() == batches
    again.hosted.lifecycle.close()
