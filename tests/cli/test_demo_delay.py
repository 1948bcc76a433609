"""`odradek demo --delay`: the whole of it once, and that its checks can fail."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any, cast

import pytest

from odradek.cli.demo.delay_scene import DelayScene
from odradek.cli.demo.delay_work import Reminder, Seen
from odradek.cli.demo.stage import Stage

REMINDERS = [Reminder(b"a", b"first", 10), Reminder(b"b", b"second", 20)]
FIRST, SECOND = Seen(b"a", b"first", 10, 11), Seen(b"b", b"second", 20, 20)


@pytest.fixture(scope="module")
def told() -> subprocess.CompletedProcess[str]:
    """Run the demo as a script would: its output is no terminal."""
    command = [sys.executable, "-m", "odradek", "demo", "--delay"]
    return subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)


def test_every_check_holds_and_the_status_says_so(told: subprocess.CompletedProcess[str]) -> None:
    assert told.returncode == 0, told.stdout + told.stderr
    assert "All 9 checks hold" in told.stdout
    assert told.stderr == ""
    assert max(map(len, told.stdout.splitlines())) <= 100


@pytest.mark.parametrize(
    "promised",
    [
        "odradek.delay.enable=true",
        "odradek.deliver.at: 1",
        "`odradek delay describe` counts",
        "late (median)",
        "call-bob",
        "odradek.delay.cancel: call-bob",
        "nothing ever waits",
        "was killed where it stood",
        "none before its time, and in the order of their times",
    ],
)
def test_what_a_reader_should_see_is_there(told: subprocess.CompletedProcess[str], promised: str) -> None:
    assert promised in " ".join(told.stdout.split())


@pytest.mark.parametrize(
    ("seen", "failed"),
    [
        ([FIRST, SECOND], []),
        ([FIRST], ["all: none lost, none twice: 1 were seen of 2"]),
        ([FIRST, FIRST, SECOND], ["all: none lost, none twice: 3 were seen of 2"]),
        ([SECOND, FIRST], ["none before its time, and in the order of their times: [20, 10]..."]),
        (
            [FIRST._replace(seen_ms=9), SECOND],
            ["none before its time, and in the order of their times: [Seen(key=b'a', value=b'first', due_ms=10, "],
        ),
    ],
)
def test_what_does_not_hold_is_told(tmp_path: Path, seen: list[Seen], failed: list[str]) -> None:
    stage = Stage()
    scene = DelayScene(stage, cast("Any", None), tmp_path, 0)

    scene.check_seen(REMINDERS, seen, "all")

    assert [check[: len(wanted)] for check, wanted in zip(stage.failed_checks, failed, strict=True)] == failed
