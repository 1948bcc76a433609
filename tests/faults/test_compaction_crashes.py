"""Crashes, two and three in a row, while compaction takes the past out of a log with transactions.

A broker is killed before any one of its file operations, started again, killed in its recovery or in its next pass,
and so on: what read_committed must see never changes. All directories that a kill can leave are gathered in one run
(the directory is looked at before each operation), equal ones are taken once, and each is where the next run begins.
The gate takes every so manieth of those in which a swap was under way; `-m sweep` takes all.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple, TypeAlias

import pytest

from odradek.kernel.machine.files import OsFiles, read_file
from odradek.plugins.storage_segment.engine import SegmentEngine
from odradek.testing.faults import FaultyFiles
from tests.cleanup.compacted import CompactedTopic, latest

Contents: TypeAlias = frozenset[tuple[str, bytes | None]]
"""A directory: the path of each file in it with its bytes, of each directory with None."""

RETENTION_MS = 100
COMMITTED = {b"b": b"after an abort", b"c": b"plain", b"d": b"2", b"f": b"after another", b"g": b"end"}
PASSES = 4


class Run(NamedTuple):
    """What one start of the broker, with one pass, may leave: at its end, and where it is killed."""

    end: Contents
    killed: set[Contents]


def make_topic(directory: Path, passes: int, files: FaultyFiles | None = None) -> CompactedTopic:
    topic = CompactedTopic(directory, segment_bytes=1 << 16, segment_index_bytes=240, files=files)
    topic.configure(delete_retention_ms=RETENTION_MS)
    topic.hosted.clock.advance(1_000 + passes * 2 * RETENTION_MS)
    return topic


def fill(topic: CompactedTopic) -> None:
    """Write segments with aborted transactions, each followed by a committed one of the same producer."""
    topic.put([(b"a", b"aborted")], producer_id=7, is_transactional=True)
    topic.end(7, is_commit=False)
    topic.put([(b"b", b"after an abort")], producer_id=7, is_transactional=True)
    topic.end(7, is_commit=True)
    topic.put([(b"c", b"plain"), (b"d", b"1")])
    topic.roll()
    topic.put([(b"d", b"2")])
    topic.put([(b"e", b"aborted across segments")], producer_id=8, is_transactional=True)
    topic.roll()
    topic.end(8, is_commit=False)
    topic.put([(b"f", b"after another")], producer_id=8, is_transactional=True)
    topic.end(8, is_commit=True)
    topic.put([(b"h", b"1")], producer_id=7)
    topic.roll()
    topic.put([(b"h", None)], producer_id=7)
    topic.roll()
    topic.put([(b"g", b"end")], producer_id=7)


def contents_of(directory: str, under: str = "") -> Iterator[tuple[str, bytes | None]]:
    with os.scandir(f"{directory}/{under}") as entries:  # thousands of times: without the comfort of `Path`
        for entry in entries:
            name = under + entry.name
            if entry.is_dir():
                yield name, None
                yield from contents_of(directory, f"{name}/")
            elif entry.name.endswith(".cleaned"):
                yield name, b""  # removed by the next start, whatever it holds
            elif not entry.name.endswith((".deleted", ".tmp")):  # removed by the next start
                yield name, read_file(OsFiles(), Path(entry.path))


def lay_out(contents: Contents, directory: Path) -> None:
    for name, data in sorted(contents):
        if data is None:
            (directory / name).mkdir()
        else:
            (directory / name).write_bytes(data)


def check(topic: CompactedTopic) -> None:
    seen = topic.committed()

    assert latest(seen) == COMMITTED
    assert not [each for each in seen if each.value and b"aborted" in each.value]


def abandon(topic: CompactedTopic) -> None:
    engine = topic.hosted.replicas.engines["segment"]
    assert isinstance(engine, SegmentEngine)
    engine.abandon()


def run(before: Contents, passes: int) -> Run:
    """Start a broker over a directory and have it compact once, by its own plan."""
    with TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as name:  # fast
        directory = Path(name)
        lay_out(before, directory)
        files = FaultyFiles(directory)
        killed: set[Contents] = set()
        look = files.before_each = lambda: killed.add(frozenset(contents_of(name)))
        topic = make_topic(directory, passes, files)
        check(topic)
        files.before_each = lambda: None
        topic.put([(b"g", b"end")])  # something new, so that the policy plans a pass
        topic.roll()
        topic.replica.keep_producers()
        topic.flush()
        files.before_each = look
        assert topic.compact()
        check(topic)
        end = frozenset(contents_of(name))
        abandon(topic)
        files.crash()
        return Run(end, killed - {before, end})


def filled() -> Contents:
    with TemporaryDirectory() as name:
        topic = make_topic(Path(name), 0)
        fill(topic)
        topic.replica.keep_producers()
        topic.flush()
        abandon(topic)
        return frozenset(contents_of(name))


def crash_all(crashes_max: int, *, every: int = 1) -> None:
    """Go through all passes, killed up to so many times.

    With `every` > 1 it goes on with every so manieth directory of those in which a swap was under way.
    """
    begun: dict[Contents, int] = {filled(): 0}
    for passes in range(PASSES):
        left: dict[Contents, int] = {}
        for contents, crashes in begun.items():
            found = run(contents, passes)
            left[found.end] = min(crashes, left.get(found.end, crashes))
            if crashes < crashes_max:
                for each in found.killed:
                    left[each] = min(crashes + 1, left.get(each, crashes + 1))
        whole = [each for each in left if not left[each]]
        others = sorted((each for each in left if left[each] and (every == 1 or is_swapping(each))), key=sorted_text)
        begun = {each: left[each] for each in (*whole, *others[passes % every :: every])}


def is_swapping(contents: Contents) -> bool:
    return any(name.endswith(".log.swap") for name, _ in contents)


def sorted_text(contents: Contents) -> str:
    """Return what puts directories in an order that is the same in every process."""
    return repr(sorted(contents, key=lambda entry: entry[0]))


def test_no_pair_of_crashes_hides_what_was_committed() -> None:
    crash_all(2, every=2)


@pytest.mark.sweep
def test_no_three_crashes_hide_what_was_committed() -> None:
    crash_all(3)
