"""`odradek demo --cluster`: the whole of it once, and its parts."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import unicodedata
from pathlib import Path

import pytest
import trio

from odradek.cli.demo import cluster_work
from odradek.cli.demo.cluster_work import LoadRun, longest_pause
from odradek.client import Admin
from odradek.testing.running_broker import running_broker


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return where the demo makes its temporary folder."""
    return tmp_path_factory.mktemp("demo")


@pytest.fixture(scope="module")
def told(folder: Path) -> subprocess.CompletedProcess[str]:
    """Run the demo as a script would: its output is no terminal."""
    command = [sys.executable, "-m", "odradek", "demo", "--cluster"]
    environment = {**os.environ, "ODRADEK_LISTENERS": "no listener", "TMPDIR": str(folder)}
    return subprocess.run(command, capture_output=True, text=True, timeout=240, check=False, env=environment)


def test_every_check_holds_and_the_status_says_so(told: subprocess.CompletedProcess[str]) -> None:
    assert told.returncode == 0, told.stdout + told.stderr
    assert "All 12 checks hold" in told.stdout
    assert told.stderr == ""


def test_the_output_is_plain_where_no_terminal_is(told: subprocess.CompletedProcess[str]) -> None:
    assert {char for char in told.stdout if unicodedata.category(char) == "Cc"} == {"\n"}
    assert max(map(len, told.stdout.splitlines())) <= 100


@pytest.mark.parametrize(
    "promised",
    [
        "leads partitions",
        "kill -9 of the controller",
        "is the controller now",
        "had its next acknowledged record",
        "recovers its logs",
        "SIGTERM",
        "each where its acknowledgement said, none lost",
        "none is there twice",
        "the three copies on disk are the same",
        "odradek serve --brokers 3",
    ],
)
def test_what_a_reader_should_see_is_there(told: subprocess.CompletedProcess[str], promised: str) -> None:
    assert promised in " ".join(told.stdout.split())


def test_what_the_two_that_end_led_is_led_by_others(told: subprocess.CompletedProcess[str]) -> None:
    killed, drained = (
        [re.split(r"  +", line.strip()) for line in table.splitlines()]
        for table in re.findall(r"   partition  leader .*\n((?: +\d+  .*\n)+)", told.stdout)
    )

    first, last = re.findall(r"third broker (\d) \(pid", " ".join(told.stdout.split()))
    assert len(killed) == len(drained) == 6
    for rows, gone in ((killed, first), (drained, last)):
        led_on_by = [row[2] for row in rows if row[1] == gone]
        assert led_on_by
        assert set(led_on_by) <= {"1", "2", "3"} - {gone}
    assert len([row for row in killed if row[1] == first]) == 2


def test_nothing_stays_behind(told: subprocess.CompletedProcess[str], folder: Path) -> None:
    assert told.returncode == 0
    assert list(folder.iterdir()) == []


def test_the_longest_pause_begins_with_the_accident() -> None:
    assert longest_pause([1.0, 9.0, 10.5, 11.0], began_s=10.0) == 0.5
    assert longest_pause([1.0], began_s=10.0) == 0.0
    assert LoadRun(times={0: [10.25], 1: [10.5]}, began_s=10.0).longest_pause_s([0, 1]) == 0.5


def test_a_broker_that_has_not_heard_of_the_topic_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    describe = Admin.describe_topic

    async def make_then_describe(self: Admin, name: str) -> object:
        try:
            return await describe(self, name)
        finally:
            monkeypatch.setattr(Admin, "describe_topic", describe)
            await cluster_work.create_topic(broker.bootstrap, "t", 2, 1, {})

    monkeypatch.setattr(Admin, "describe_topic", make_then_describe)

    with running_broker() as broker:
        found = trio.run(cluster_work.partitions_of, broker.bootstrap, "t")

    assert [each.leader_id for each in found] == [1, 1]
