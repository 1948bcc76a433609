"""Compaction against a dictionary: random keys, tombstones, transactions, passes; crashes between file operations."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.kernel.records.compression import CompressionType
from odradek.testing.faults import FaultyFiles, PowerLoss
from tests.cleanup.compacted import CompactedTopic, Seen, latest

KEYS = st.sampled_from([b"a", b"b", b"c", b"", b"long" * 20])
RECORDS = st.lists(st.tuples(KEYS, st.none() | st.sampled_from([b"", b"1", b"22"])), min_size=1, max_size=4)
CODECS = st.sampled_from([CompressionType.NONE, CompressionType.NONE, CompressionType.LZ4])
STEP = st.one_of(
    st.tuples(st.just("put"), RECORDS, st.integers(-1, 2), CODECS),
    st.tuples(st.just("put in a transaction"), RECORDS, st.integers(5, 7), CODECS),
    st.tuples(st.just("end"), st.integers(5, 7), st.booleans()),
    st.tuples(st.just("roll")),
    st.tuples(st.just("compact"), st.sampled_from([1 << 20, 24 * 18])),
    st.tuples(st.just("pass"), st.sampled_from([1, 50, 200])),
    st.tuples(st.just("restart")),
)


class Model:
    """What was written, and what of it may be seen."""

    def __init__(self, topic: CompactedTopic, directory: Path) -> None:
        self.topic = topic
        self.directory = directory
        self.table: dict[bytes, bytes] = {}
        self.open: dict[int, list[tuple[bytes, bytes | None]]] = {}
        self.written: dict[int, Seen] = {}

    def put(self, records: list[tuple[bytes, bytes | None]], producer_id: int, codec: CompressionType) -> None:
        offset, now_ms = self.topic.replica.log.log_end_offset, self.topic.hosted.clock.now_ms()
        is_transactional = producer_id >= 5
        self.topic.put(records, producer_id=producer_id, is_transactional=is_transactional, compression=codec)
        for number, (key, value) in enumerate(records):
            self.written[offset + number] = Seen(offset + number, now_ms + number, key, value)
        if is_transactional:
            self.open.setdefault(producer_id, []).extend(records)
        else:
            self.apply(records)

    def apply(self, records: list[tuple[bytes, bytes | None]]) -> None:
        for key, value in records:
            if value is None:
                self.table.pop(key, None)
            else:
                self.table[key] = value

    def end(self, producer_id: int, is_commit: bool) -> None:
        if producer_id in self.open:
            self.topic.end(producer_id, is_commit=is_commit)
            del self.open[producer_id]

    def restart(self) -> None:
        sequences = self.topic.sequences
        self.topic = self.topic.restart(self.directory)
        self.topic.configure(delete_retention_ms=100)
        self.topic.sequences = sequences

    def check(self) -> None:
        """A record that is there is one that was written, and none is missing that a reader needs."""
        found = self.topic.uncommitted()
        clean_end = self.topic.replica.log.clean_end

        assert [self.written[seen.offset] for seen in found] == found
        assert [offset for offset in self.written if offset >= clean_end] == [
            seen.offset for seen in found if seen.offset >= clean_end
        ]
        below = [seen.key for seen in found if seen.offset < clean_end]
        assert len(below) == len(set(below))


def committed_table(topic: CompactedTopic) -> dict[bytes, bytes]:
    return latest(topic.committed())


@given(st.lists(STEP, max_size=30))
def test_every_reader_sees_what_the_model_allows(steps: list[tuple[object, ...]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        model = Model(CompactedTopic(Path(folder), segment_bytes=400), Path(folder))
        model.topic.configure(delete_retention_ms=100)
        do: dict[str, Callable[..., object]] = {
            "put": model.put,
            "put in a transaction": model.put,
            "end": model.end,
            "roll": lambda: model.topic.roll(),
            "compact": lambda memory_bytes: model.topic.compact(model.topic.make_compactor(memory_bytes)),
            "pass": lambda time_ms: model.topic.hosted.clock.advance(time_ms),
            "restart": model.restart,
        }
        for name, *arguments in steps:
            before = committed_table(model.topic)
            do[str(name)](*arguments)
            if name in ("compact", "restart", "roll"):
                assert committed_table(model.topic) == before
            model.check()
        for producer_id in list(model.open):
            model.end(producer_id, False)
        model.topic.roll()
        expected = committed_table(model.topic)
        model.topic.compact()
        model.topic.hosted.clock.advance(1_000)
        model.topic.roll()
        for _ in range(3):
            if model.topic.replica.log.log_end_offset:
                model.topic.replica.log.note_clean_end(0)
                model.topic.compact()
        model.check()
        assert committed_table(model.topic) == expected
        again = model.topic.batches()
        model.topic.replica.log.note_clean_end(0)
        model.topic.compact()
        assert model.topic.batches() == again
        model.topic.hosted.lifecycle.close()


def fill(topic: CompactedTopic) -> None:
    """Write three segments with superseded records, a tombstone, and transactions of both ends."""
    topic.put([(b"a", b"1"), (b"b", b"1")], producer_id=1)
    topic.put([(b"a", b"aborted")], producer_id=7, is_transactional=True)
    topic.end(7, is_commit=False)
    topic.roll()
    topic.put([(b"b", None), (b"c", b"1")], producer_id=1)
    topic.put([(b"d", b"committed")], producer_id=7, is_transactional=True)
    topic.end(7, is_commit=True)
    topic.roll()
    topic.put([(b"c", b"2")])
    topic.roll()
    topic.put([(b"e", b"end")])
    topic.replica.log.flush()
    topic.hosted.replicas.engines["segment"].checkpoint({})


def compaction_operations(directory: Path) -> tuple[int, int]:
    """Return the first and the last number of the operations that a compaction does."""
    directory = directory / "before"  # as deep as where it is to crash: whether each parent is there is asked, too
    directory.mkdir(parents=True)
    files = FaultyFiles(directory)
    topic = CompactedTopic(directory, files=files)
    fill(topic)
    first = files.operations
    topic.compact()
    last = files.operations
    topic.hosted.lifecycle.close()
    return first + 1, last


def check_after_crash(directory: Path) -> None:
    topic = CompactedTopic(directory)
    try:
        assert latest(topic.committed()) == {b"a": b"1", b"c": b"2", b"d": b"committed", b"e": b"end"}
        assert topic.replica.log.log_end_offset == 10
        topic.compact()
        assert latest(topic.committed()) == {b"a": b"1", b"c": b"2", b"d": b"committed", b"e": b"end"}
        marks = (".cleaned", ".swap")
        assert not [path for folder in topic.hosted.dirs for path in Path(folder).rglob("*") if path.suffix in marks]
    finally:
        topic.hosted.lifecycle.close()


def crash_at(number: int, loss: PowerLoss | None, directory: Path) -> None:
    """Compact, and have the power go, or an operation fail, at one operation."""
    import random

    before, after = directory / "before", directory / "after"
    before.mkdir(parents=True)
    after.mkdir()
    files = FaultyFiles(before, fail_at=0 if loss else number, power_lost_at=number if loss else 0)
    topic = CompactedTopic(before, files=files)
    fill(topic)
    topic.compact()
    if loss is None:
        topic.hosted.lifecycle.close()
        check_after_crash(before)
        return
    files.after_power_loss(after, loss, random.Random(number))
    check_after_crash(after)


def numbers(directory: Path) -> range:
    first, last = compaction_operations(directory)
    return range(first, last + 1)


@pytest.mark.parametrize("loss", [None, *PowerLoss])
def test_a_crash_at_a_step_of_compaction_loses_nothing(tmp_path: Path, loss: PowerLoss | None) -> None:
    every = numbers(tmp_path / "whole")
    for number in every[:: max(len(every) // 12, 1)]:
        crash_at(number, loss, tmp_path / str(number))


@pytest.mark.sweep
@pytest.mark.parametrize("loss", [None, *PowerLoss])
def test_a_crash_at_every_step_of_compaction_loses_nothing(tmp_path: Path, loss: PowerLoss | None) -> None:
    for number in numbers(tmp_path / "whole"):
        crash_at(number, loss, tmp_path / str(number))
