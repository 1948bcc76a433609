"""The stage of a retry topic tells of clients that drop headers, and refuses what it cannot read."""

from __future__ import annotations

import logging
import random
import sys
import threading

import pytest

from odradek.kernel.contracts.append_stage import Diverted
from odradek.kernel.records.produced import InvalidBatchError
from odradek.kernel.records.record import Record
from odradek.kernel.retry.return_counts import ReturnCounts
from odradek.kernel.retry.stage import RetryStage
from odradek.plugins.retry.levels import Levels

from .failed_batches import ATTEMPTS, NOW_MS, OWNER, Failed, produced


@pytest.fixture
def stage() -> RetryStage:
    return RetryStage(
        OWNER, Levels([100], ATTEMPTS), now_ms=lambda: NOW_MS, chance=random.Random(0), breaker=None, place="p"
    )


def record(value: bytes, key: bytes | None = None) -> Record:
    return Record(0, 0, key, value, ())


def test_all_of_a_batch_is_taken_out(stage: RetryStage) -> None:
    diverted = stage.accept(memoryview(produced([Failed(b"a"), Failed(b"b", is_dead=True)])))

    assert isinstance(diverted, Diverted)
    assert diverted.behind is not None


def test_a_damaged_batch_is_refused(stage: RetryStage) -> None:
    damaged = produced([Failed(b"a")])
    damaged[61] = 0x7F

    with pytest.raises(InvalidBatchError):
        stage.accept(memoryview(damaged))


def test_large_batches_are_judged_elsewhere(stage: RetryStage) -> None:
    assert stage.is_brief(memoryview(produced([Failed(b"a")])))
    assert not stage.is_brief(memoryview(produced([Failed(b"a" * 100_000)])))


def test_who_drops_headers_is_told_of_once(stage: RetryStage, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    for _ in range(ATTEMPTS):
        stage.accept(memoryview(produced([Failed(b"again"), Failed(b"counted", attempts=1)])))
    assert not caplog.records

    for _ in range(3):
        stage.accept(memoryview(produced([Failed(b"again")])))

    (told,) = caplog.records
    assert "topic 'orders'" in told.getMessage()
    assert "group 'billing'" in told.getMessage()


def test_records_are_known_by_key_and_value() -> None:
    counts = ReturnCounts()
    seen = [record(b"v"), record(b"v", b"k"), record(b"w"), record(b"v"), record(b"v", b"k" * 100)]

    assert [counts.note(each) for each in seen] == [1, 1, 1, 2, 1]


def test_what_came_first_is_forgotten_first() -> None:
    counts = ReturnCounts(known_max=2)

    assert [counts.note(record(value)) for value in (b"a", b"b", b"a", b"c", b"a", b"b")] == [1, 1, 2, 1, 3, 1]


def test_any_thread_may_count() -> None:
    """One that looks for what came first, while others forget it, must not stumble."""
    counts = ReturnCounts(known_max=2)
    records = [record(b"%d" % number) for number in range(50)]
    failures: list[Exception] = []

    def count() -> None:
        try:
            for number in range(10_000):
                counts.note(records[number % len(records)])
        except Exception as error:
            failures.append(error)

    interval_s = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=count) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval_s)

    assert failures == []
