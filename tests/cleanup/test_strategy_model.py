"""Every strategy, ttl and delete beside compaction, against a model: what readers make of a log stays what it was.

A reader takes of each key the record that wins, and nothing when that is a tombstone or has expired; without `compact`
every record that has not expired. No pass, whole or cut short, and no restart may change that; afterwards what must be
gone is gone.
"""

from __future__ import annotations

import random
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import attrs
import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st

from odradek.kernel.cleanup.compaction_job import CompactionJob, Step
from odradek.kernel.cleanup.workers import ThreadWorker
from odradek.kernel.errors import StorageError
from odradek.kernel.machine.system.machine import real_machine
from odradek.kernel.records.compression import CompressionType
from odradek.kernel.records.key_table import NO_VERSION, last_header, number_of
from odradek.testing.faults import FaultyFiles, PowerLoss
from tests.cleanup.compacted import CompactedTopic, Seen, Wanted, compactor_on, retention_on

VERSION, EXPIRES = "version", "odradek.expires.at"
KEYS = st.sampled_from([b"a", b"b", b"c", b"long" * 20])
VALUES = st.none() | st.sampled_from([b"", b"1", b"22"])
VERSIONS = st.sampled_from([None, b"x", b"-3", b"0", b"7", b"\0" * 7 + b"\x05", b"12"])
LIVES = st.sampled_from([None, None, -10, 30, 100])
RECORD = st.tuples(KEYS, VALUES, st.integers(-30, 30), VERSIONS, LIVES)
RECORDS = st.lists(RECORD, min_size=1, max_size=4)
CODECS = st.sampled_from([CompressionType.NONE, CompressionType.NONE, CompressionType.LZ4])
STEP = st.one_of(
    st.tuples(st.just("put"), RECORDS, st.integers(-1, 2), CODECS),
    st.tuples(st.just("put"), RECORDS, st.integers(5, 6), CODECS),
    st.tuples(st.just("end"), st.integers(5, 6), st.booleans()),
    st.tuples(st.just("roll")),
    st.tuples(st.just("compact"), st.sampled_from([1 << 20, 32 * 18])),
    st.tuples(st.just("compact in part"), st.integers(1, 4)),
    st.tuples(st.just("pass"), st.sampled_from([1, 50, 200])),
    st.tuples(st.just("restart")),
    st.tuples(st.just("delete"), st.sampled_from([0, 300, 900])),
)


@attrs.frozen
class Kind:
    """What a topic is configured for."""

    name: str
    policies: tuple[str, ...]
    strategy: str = "offset"

    def version_of(self, seen: Seen) -> int:
        if self.strategy == "timestamp":
            return seen.timestamp
        if self.strategy == "header":
            number = number_of(last_header(seen.headers, VERSION))
            return NO_VERSION if number is None else number
        return 0

    def told(self, records: list[Seen], now_ms: int) -> list[Seen]:
        """Return what a reader takes from records."""
        if "compact" in self.policies:
            best: dict[bytes, Seen] = {}
            for seen in records:
                other = best.get(seen.key)
                if other is None or (self.version_of(seen), seen.offset) >= (self.version_of(other), other.offset):
                    best[seen.key] = seen
            records = sorted(seen for seen in best.values() if seen.value is not None)
        return [seen for seen in records if not self.has_expired(seen, now_ms)]

    def has_expired(self, seen: Seen, now_ms: int) -> bool:
        value = last_header(seen.headers, EXPIRES)
        return "ttl" in self.policies and value is not None and int(value) <= now_ms


KINDS = [
    Kind("by timestamp", ("compact",), "timestamp"),
    Kind("by header", ("compact",), "header"),
    Kind("ttl", ("ttl",)),
    Kind("compact, ttl", ("compact", "ttl")),
    Kind("by header, ttl", ("compact", "ttl"), "header"),
    Kind("compact, delete", ("compact", "delete")),
    Kind("all three, by timestamp", ("ttl", "delete", "compact"), "timestamp"),
]


class CutShort(ThreadWorker):
    """Fails after some steps, as a worker does that is killed between two segments."""

    steps = 1

    def __init__(self, job: CompactionJob) -> None:
        super().__init__(job, real_machine())
        self.left = self.steps

    def next_step(self) -> Step:
        self.left -= 1
        if self.left < 0:
            raise OSError("killed")
        return super().next_step()


class World:
    """A topic of a kind over real segment files."""

    def __init__(self, kind: Kind, directory: Path, topic: CompactedTopic | None = None) -> None:
        self.kind = kind
        self.directory = directory
        self.topic = topic or CompactedTopic(directory, segment_bytes=400)
        self.configure()
        self.open: set[int] = set()

    def configure(self, **settings: object) -> None:
        values = {
            "odradek.compaction.strategy": self.kind.strategy,
            "odradek.compaction.header": VERSION,
            "odradek.ttl.lag.ms": 0,
        }
        self.topic.configure(cleanup_policy=self.kind.policies, values=values, **settings)

    @property
    def now_ms(self) -> int:
        return self.topic.hosted.clock.now_ms()

    def told(self) -> list[Seen]:
        return self.kind.told(self.topic.committed(), self.now_ms)

    def check_told(self, before: list[Seen]) -> None:
        """A reader takes what it took before.

        Where not the offset decides, an expired winner may have gone before what it would beat was compacted: that is
        seen then, like a record that comes later.
        """
        told = self.told()
        if self.kind.strategy != "offset" and "ttl" in self.kind.policies:
            clean_end = self.topic.replica.log.clean_end
            told = [seen for seen in told if seen in before or seen.offset < clean_end]
        assert told == before

    def put(self, drawn: list[tuple[object, ...]], producer_id: int, codec: CompressionType) -> None:
        records = []
        for key, value, drift, version, life in drawn:
            assert isinstance(drift, int)
            headers = [(VERSION, version)] if version is not None else []
            if isinstance(life, int):
                headers.append((EXPIRES, b"%d" % (self.now_ms + life)))
            records.append(Wanted(key, value, self.now_ms + drift, tuple(headers)))  # type: ignore[arg-type] # drawn
        is_transactional = producer_id >= 5
        if is_transactional:
            self.open.add(producer_id)
        self.topic.write(records, producer_id=producer_id, is_transactional=is_transactional, compression=codec)

    def end(self, producer_id: int, is_commit: bool) -> None:
        if producer_id in self.open:
            self.open.discard(producer_id)
            self.topic.end(producer_id, is_commit=is_commit)

    def restart(self) -> None:
        sequences = self.topic.sequences
        self.topic = self.topic.restart(self.directory)
        self.topic.sequences = sequences
        self.configure()

    def compact(self, memory_bytes: int = 1 << 20) -> bool:
        return self.topic.compact(self.topic.make_compactor(memory_bytes))

    def compact_in_part(self, steps: int) -> None:
        worker = type("CutShortThere", (CutShort,), {"steps": steps})
        self.topic.compact(compactor_on(self.topic.hosted, worker))

    def delete(self, retention_bytes: int) -> None:
        """Have retention run; a reader loses what lies in the segments that go, and nothing else."""
        before = self.topic.committed()
        self.configure(retention_bytes=retention_bytes)
        trio.run(retention_on(self.topic.hosted).clean)
        self.configure()
        start = self.topic.replica.log.log_start_offset

        assert self.topic.committed() == [seen for seen in before if seen.offset >= start]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
@settings(max_examples=12)
@given(steps=st.lists(STEP, max_size=20))
def test_what_readers_make_of_a_log_stays_what_it_was(kind: Kind, steps: list[tuple[object, ...]]) -> None:
    check(kind, steps)


@pytest.mark.sweep
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
@settings(max_examples=500)
@given(steps=st.lists(STEP, max_size=40))
def test_what_readers_make_of_any_log_stays_what_it_was(kind: Kind, steps: list[tuple[object, ...]]) -> None:
    check(kind, steps)


def check(kind: Kind, steps: list[tuple[object, ...]]) -> None:
    """Do the steps; what readers make of the log changes by writing, deletion and time only."""
    with tempfile.TemporaryDirectory() as folder:
        world = World(kind, Path(folder))
        do: dict[str, Callable[..., object]] = {
            "put": world.put,
            "end": world.end,
            "roll": lambda: world.topic.roll(),
            "compact": world.compact,
            "compact in part": world.compact_in_part,
            "pass": lambda time_ms: world.topic.hosted.clock.advance(time_ms),
            "restart": world.restart,
            "delete": world.delete,
        }
        for name, *arguments in steps:
            before = world.told()
            do[str(name)](*arguments)
            if name in ("compact", "compact in part", "restart", "roll"):
                world.check_told(before)
        settle(world)
        world.topic.hosted.lifecycle.close()


def settle(world: World) -> None:
    """Close and clean everything; check that nothing is there any more that should not be."""
    for producer_id in list(world.open):
        world.end(producer_id, False)
    world.topic.hosted.clock.advance(1_000)
    world.topic.roll()
    expected = world.told()
    compactor = world.topic.make_compactor()
    while world.topic.compact(compactor):
        pass
    assert world.told() == expected
    found = world.topic.committed()
    if "compact" in world.kind.policies:
        keys = [seen.key for seen in found]
        assert sorted(set(keys)) == sorted(keys)
    assert [seen for seen in found if world.kind.has_expired(seen, world.now_ms)] == []
    left = world.topic.batches()
    if world.topic.replica.log.log_end_offset:
        world.topic.replica.log.note_clean_end(0)
        world.topic.compact(world.topic.make_compactor())
        assert world.told() == expected
    if world.kind.policies == ("ttl",):
        assert world.topic.batches() == left, "a second look changes nothing"


def fill(world: World) -> None:
    """Write segments with records that lose to older and to newer ones, tombstones, and records that expire."""
    topic, now_ms = world.topic, world.now_ms

    def wanted(key: bytes, value: bytes | None, version: int, life: int = 0) -> Wanted:
        headers = ((VERSION, b"%d" % version), *(((EXPIRES, b"%d" % (now_ms + life)),) if life else ()))
        return Wanted(key, value, now_ms + version, headers)

    topic.write([wanted(b"a", b"old wins", 9), wanted(b"b", b"1", 1), wanted(b"gone", b"1", 1)], producer_id=1)
    topic.roll()
    topic.write([wanted(b"a", b"late", 3), wanted(b"gone", None, 5)], producer_id=1)
    topic.write([wanted(b"c", b"aborted", 0)], producer_id=7, is_transactional=True)
    topic.end(7, is_commit=False)
    topic.roll()
    topic.write([wanted(b"b", b"2", 2), wanted(b"gone", b"late", 2), wanted(b"e", b"expires", 4, 50)], producer_id=1)
    topic.roll()
    topic.write([wanted(b"e", b"late", 2), wanted(b"d", b"1", 1)], producer_id=2)
    topic.roll()
    topic.hosted.clock.advance(100)
    topic.replica.log.flush()
    topic.hosted.replicas.engines["segment"].checkpoint({})


def crash_at(kind: Kind, number: int, loss: PowerLoss | None, directory: Path) -> range:
    """Clean, and have the power go, or an operation fail, at one operation; return the numbers of those of cleaning."""
    before, after = directory / "before", directory / "after"
    before.mkdir(parents=True)
    after.mkdir()
    files = FaultyFiles(before, fail_at=0 if loss else number, power_lost_at=number if loss else 0)
    world = World(kind, before, CompactedTopic(before, files=files))
    fill(world)
    expected, now_ms, first = world.told(), world.now_ms, files.operations + 1
    compactor = world.topic.make_compactor()
    with suppress(StorageError):  # of a log that has gone offline
        while world.topic.compact(compactor):
            pass
    last, found_at = files.operations, before
    if loss is None:
        world.topic.hosted.lifecycle.close()
    else:
        files.after_power_loss(after, loss, random.Random(number))
        found_at = after
    again = World(kind, found_at, CompactedTopic(found_at))
    again.topic.hosted.clock.advance(now_ms - again.now_ms)

    assert again.told() == expected
    settle(again)
    again.topic.hosted.lifecycle.close()
    return range(first, last + 1)


CRASH_KINDS = [KINDS[1], KINDS[2], KINDS[4]]


@pytest.mark.parametrize("kind", CRASH_KINDS, ids=lambda kind: kind.name)
@pytest.mark.parametrize("loss", [None, PowerLoss.TORN])
def test_a_crash_at_a_step_changes_nothing_for_readers(tmp_path: Path, kind: Kind, loss: PowerLoss | None) -> None:
    every = crash_at(kind, 1 << 30, None, tmp_path / "whole")
    for number in every[:: max(len(every) // 4, 1)]:
        crash_at(kind, number, loss, tmp_path / str(number))


@pytest.mark.sweep
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
@pytest.mark.parametrize("loss", [None, *PowerLoss])
def test_a_crash_at_every_step_changes_nothing_for_readers(tmp_path: Path, kind: Kind, loss: PowerLoss | None) -> None:
    for number in crash_at(kind, 1 << 30, None, tmp_path / "whole"):
        crash_at(kind, number, loss, tmp_path / str(number))
