"""`odradek demo --retry`: the whole of it once, and that its checks can fail."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from typing import Any, cast

import pytest

from odradek.cli.demo.retry_scene import RETRY_TOPIC, TOPIC, RetryScene, waits
from odradek.cli.demo.retry_work import Attempt
from odradek.cli.demo.stage import Stage
from odradek.client import ConsumerRecord


def _attempt(value: bytes, number: int, seen_ms: int, reason: str = "", failed_ms: int = 0) -> Attempt:
    topic = RETRY_TOPIC if number else TOPIC
    return Attempt(ConsumerRecord(topic, 0, 0, 0, b"zone", value, (), False, 0), number, seen_ms, reason, failed_ms)


FAILED, CAME_BACK = _attempt(b"a", 0, 1_000, "no answer", 1_010), _attempt(b"a", 1, 1_520)
OTHER = _attempt(b"b", 0, 1_001)
WANTED = {b"a": 1, b"b": 0}


@pytest.fixture(scope="module")
def told() -> subprocess.CompletedProcess[str]:
    """Run the demo as a script would: its output is no terminal."""
    command = [sys.executable, "-m", "odradek", "demo", "--retry"]
    return subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)


def test_every_check_holds_and_the_status_says_so(told: subprocess.CompletedProcess[str]) -> None:
    checks_count = 7 + (importlib.util.find_spec("confluent_kafka") is not None)

    assert told.returncode == 0, told.stdout + told.stderr
    assert f"All {checks_count} checks hold" in told.stdout
    assert told.stderr == ""
    assert max(map(len, told.stdout.splitlines())) <= 100


@pytest.mark.parametrize(
    "promised",
    [
        "odradek retry enable clocks --group calendar",
        "dead letters: clocks.calendar.dlq",
        "await consumer.retry(record, reason=str(error))",
        "came after",
        "`odradek dlq list clocks --group calendar`",
        "__dlq.errors.delivery.count 4",
        "1 dead letter replayed to clocks",
        "In the third of them the worker died",
        "confluent-kafka",
    ],
)
def test_what_a_reader_should_see_is_there(told: subprocess.CompletedProcess[str], promised: str) -> None:
    assert promised in " ".join(told.stdout.split())


@pytest.mark.parametrize(
    ("attempts", "failed"),
    [
        ([FAILED, OTHER, CAME_BACK], []),
        ([FAILED, OTHER], ["all: none lost, none twice: 1 of 2 were not done, 0 were done too often"]),
        ([FAILED, OTHER, OTHER, CAME_BACK], ["all: none lost, none twice: 0 of 2 were not done, 1 were done too"]),
        (
            [FAILED, OTHER, CAME_BACK._replace(seen_ms=1_509)],
            ["none came back before its time: [(b'a', 499, 500)]"],
        ),
    ],
)
def test_what_does_not_hold_is_told(tmp_path: Path, attempts: list[Attempt], failed: list[str]) -> None:
    stage = Stage()
    scene = RetryScene(stage, cast("Any", None), tmp_path, 0)

    scene.check_done(WANTED, attempts, "all")
    scene.check_waits(attempts)

    assert [check[: len(wanted)] for check, wanted in zip(stage.failed_checks, failed, strict=True)] == failed


def test_how_long_a_record_waited_is_counted_from_when_it_was_failed() -> None:
    assert [ms for _, ms in waits([FAILED, OTHER, CAME_BACK])] == [510]
