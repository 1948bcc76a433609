"""`odradek compare`: a small comparison from end to end, and what is wrong told before anything runs."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import attrs
import pytest
from rich.console import Console

from odradek.cli import compare_text
from odradek.cli.compare_text import Watcher, print_report
from odradek.lab.compare.comparison import Step
from odradek.lab.compare.figures import ALL, FAULT_PERCENTILES, UNAVAILABLE
from odradek.lab.compare.one_run import RunResult
from odradek.lab.compare.workload import parse_workload
from tests.cli.conftest import Odradek
from tests.lab.compare.results import combination, figures, report, usual_report

WORKLOAD = """
records = 3000
keys = 50
key_skew = 1.0
tombstones = 0.02
value_bytes = 400
paced_records = 40
paced_rate = 400
read_s = 0.1
quiet_s = 1.5
settle_s = 10
topic = { "internal.segment.bytes" = 100000, "min.cleanable.dirty.ratio" = 0.01 }
"""
TRANSACTIONS = """
records = 200
transaction_records = 20
aborted = 0.3
keys = 10
paced_records = 5
paced_rate = 100
read_s = 0
quiet_s = 0.1
"""


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Compare two storages under two policies, once for all tests; return what was written."""
    folder = tmp_path_factory.mktemp("compared")
    (folder / "mine.toml").write_text(WORKLOAD)
    done = subprocess.run(
        [
            *(sys.executable, "-m", "odradek", "compare"),
            *("--vary", "odradek.storage=segment,memory", "--vary", "cleanup.policy=delete,compact"),
            *("--set", "replica.high.watermark.checkpoint.interval.ms=200"),
            *("--workload", str(folder / "mine.toml"), "--rounds", "1", "--seed", "5", "--dir", str(folder)),
            *("--html", str(folder / "page.html"), "--json", str(folder / "figures.json")),
        ],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return {
        "out": done.stdout,
        "err": done.stderr,
        "page": (folder / "page.html").read_text(),
        "left": sorted(path.name for path in folder.iterdir()),
        **json.loads((folder / "figures.json").read_text()),
    }


def medians(compared: dict[str, Any], label: str) -> dict[str, float | None]:
    (one,) = (row for row in compared["combinations"] if row["label"] == label)
    return {name: spread and spread["median"] for name, spread in one["figures"].items()}


OF_CLUSTERS = {UNAVAILABLE.name, *(each.name for each in FAULT_PERCENTILES), "bytes_per_record", "doubled", "given_up"}
LABELS = ["segment · delete", "segment · compact", "memory · delete", "memory · compact"]
UNKNOWN_ELSEWHERE = {"produce_cpu", "read_cpu", "cpu", "memory", "write_amplification", "read_amplification"}


def is_written_to_a_disk(folder: Path) -> bool:
    """Whether Linux counts what this process writes there: not where the file system is in memory."""

    def written() -> int:
        counts = dict(line.split(": ") for line in Path("/proc/self/io").read_text().splitlines())
        return int(counts["write_bytes"])

    before = written()
    (folder / "a megabyte").write_bytes(bytes(2**20))
    return written() - before >= 2**20


def test_every_combination_has_every_figure(compared: dict[str, Any], tmp_path: Path) -> None:
    assert [row["label"] for row in compared["combinations"]] == LABELS
    for label in LABELS:
        found = medians(compared, label)
        missing = {name for name, value in found.items() if value is None} - {"store", *OF_CLUSTERS}
        if not sys.platform.startswith("linux"):
            missing -= UNKNOWN_ELSEWHERE
        elif not is_written_to_a_disk(tmp_path):
            missing -= {"write_amplification", "read_amplification"}
        in_memory = {"cold_read_bytes", "read_amplification"} if label.startswith("memory") else set()
        assert missing <= in_memory


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux tells")
def test_a_cold_read_is_said_to_be_warm_where_files_are_in_memory_and_nowhere_else(
    compared: dict[str, Any], tmp_path: Path
) -> None:
    told = {row["label"]: any("are warm ones" in note for note in row["notes"]) for row in compared["combinations"]}
    is_warm = not is_written_to_a_disk(tmp_path)

    assert told == {label: is_warm and label.startswith("segment") for label in LABELS}


def test_figures_make_sense(compared: dict[str, Any]) -> None:
    deleting, compacting = (medians(compared, f"segment · {policy}") for policy in ("delete", "compact"))
    for found in (medians(compared, label) for label in LABELS):
        assert (found["produce_records"] or 0) > 100
        assert 0 < (found["ack_p50"] or 0) <= (found["ack_p99"] or 0) <= (found["ack_p99.9"] or 0) < 60_000
        assert (found["acknowledged"], found["lost"], found["wrong"]) == (3_040, 0, 0)
        assert (found["there"] or 0) + (found["removed"] or 0) == 3_040

    assert (deleting["removed"], deleting["lost_by_kill"], deleting["there_after_kill"]) == (0, 0, 3_040)
    assert (compacting["removed"] or 0) > 500
    assert compacting["lost_by_kill"] == 0
    assert (compacting["disk"] or 0) < (deleting["disk"] or 0) < 2 * (deleting["produced"] or 0)


def test_what_is_kept_in_memory_is_lost_by_a_kill_whatever_the_policy(compared: dict[str, Any]) -> None:
    for policy in ("delete", "compact"):
        found = medians(compared, f"memory · {policy}")
        assert (found["there_after_kill"], found["lost_by_kill"]) == (0, found["there"])
    assert medians(compared, "memory · delete")["lost_by_kill"] == 3_040
    assert (medians(compared, "memory · delete")["disk"] or 0) < 100_000


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux tells")
def test_what_the_broker_used_is_known(compared: dict[str, Any]) -> None:
    found = medians(compared, "segment · delete")

    assert (found["cpu"] or 0) > 0
    assert 10e6 < (found["memory"] or 0) < 1e9


def test_the_same_seed_sends_the_same_bytes(compared: dict[str, Any]) -> None:
    sent = {medians(compared, label)["produced"] for label in LABELS}

    assert len(sent) == 1


def test_tables_fit_a_hundred_columns(compared: dict[str, Any]) -> None:
    assert max(map(len, compared["out"].splitlines())) <= 100
    assert "\x1b" not in compared["out"] + compared["err"]
    assert "memory · compact" in compared["out"]
    assert "Too few rounds" in compared["out"]


def test_progress_is_told_a_line_a_run(compared: dict[str, Any]) -> None:
    runs = [line for line in compared["err"].splitlines() if line.startswith("round 1  ")]

    assert len(runs) == 4


def test_the_page_and_the_figures_are_written_and_nothing_else_stays(compared: dict[str, Any]) -> None:
    assert compared["left"] == ["figures.json", "mine.toml", "page.html"]
    assert compared["page"].startswith("<!doctype html>")
    assert compared["page"].count("<svg") == compared["page"].count("</svg>") >= 8
    assert parse_workload(compared["workload"]["toml"], "again.toml").records == 3_000


@pytest.mark.skipif(not hasattr(signal, "SIGSTOP"), reason="this system cannot stop a process")
def test_a_cluster_whose_leader_is_killed_is_measured_and_nothing_of_it_stays(command: Odradek, tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text("records = 300\npartitions = 1\npaced_records = 200\npaced_rate = 100\n")
    done = command.run(
        *("compare", "--vary", "odradek.election=quorum", "--brokers", "3", "--replicas", "3"),
        *("--faults", "leader-killed", "-w", str(tmp_path / "mine.toml"), "-r", "1"),
        *("--json", str(tmp_path / "figures.json"), "--html", str(tmp_path / "page.html"), "--dir", str(tmp_path)),
    )
    written = json.loads((tmp_path / "figures.json").read_text())
    found = medians(written, "quorum · leader-killed")

    assert done.status == 0, done.err
    assert "1 run of some " in done.err
    assert (found["acknowledged"], found["there"]) == (500, 500)
    assert (found["lost"], found["doubled"], found["wrong"]) == (0, 0, 0)
    assert 0 < (found["p50_ms"] or 0) <= (found["p99_ms"] or 0) <= (found["p999_ms"] or 0)
    assert 0 < (found["unavailable_s"] or 0) < 60
    assert (found["bytes_per_record"] or 0) > 3 * 100
    assert written["cluster"] == {"brokers": 3, "replicas": 3}
    assert "Time without service" in (tmp_path / "page.html").read_text()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["figures.json", "mine.toml", "page.html"]


def test_transactions_are_compared_and_a_failure_is_a_row_that_says_why(command: Odradek, tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(TRANSACTIONS)
    done = command.run(
        *("compare", "--vary", "message.timestamp.type=CreateTime", "--vary", "max.message.bytes=1048588,60"),
        *("-w", str(tmp_path / "mine.toml"), "-r", "1", "--json", "-", "--dir", str(tmp_path), "--seconds", "1"),
        *("--set", "num.partitions=3"),
    )
    written = json.loads(done.out)
    fine, refused = written["combinations"]
    records = written["workload"]["records"]

    assert done.status == 1
    assert fine["failed"] is None
    assert (fine["figures"]["lost"]["median"], fine["figures"]["wrong"]["median"]) == (0, 0)
    assert 0 < fine["figures"]["acknowledged"]["median"] <= records + 5
    assert "larger than" in refused["failed"] or "too large" in refused["failed"], refused["failed"]
    assert f"odradek: {refused['label']}: " in done.err


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ((), "nothing to compare (--vary odradek.storage=segment,memory"),
        (("--vary", "odradek.storage=segmnt"), "did you mean 'segment'?"),
        (("--vary", "odradek.storag=segment"), "did you mean 'odradek.storage'?"),
        (("--vary", "odradek.storage=segment", "--set", "zzz=1"), "--set zzz: unknown key 'zzz'"),
        (("--vary", "odradek.storage=segment", "-w", "bulc"), "did you mean 'bulk'?"),
        (("--vary", "odradek.storage=segment", "-w", "no/such.toml"), "No such file or directory"),
        (("--vary", "odradek.storage=segment", "--html", "no/such/folder/page.html"), "no file can be written there"),
        (("--vary", "odradek.storage=segment", "--json", "/"), "no file can be written there"),
        (("--vary", "odradek.storage=segment", "--dir", "no/such"), "there is no such folder"),
        (("--vary", "odradek.storage=segment", "--config", "no/such.toml"), "cannot read the configuration"),
        (("--vary", "segment.ms=1", "--rounds", "0"), "expected at least 1"),
        (("--vary", "segment.ms=1", "-n", "5", "--seconds", "5"), "not allowed with argument"),
        (("--vary", "segment.ms=1000", "--brokers", "2", "--replicas", "3"), "there are 2 brokers for them"),
        (("--vary", "segment.ms=1000", "--faults", "leader-kiled"), "did you mean 'leader-killed'?"),
        (("--vary", "segment.ms=1000", "--brokers", "3", "-w", "transactions"), "neither transactions nor tomb"),
        (
            ("--vary", "min.compaction.lag.ms=9", "--set", "max.compaction.lag.ms=5"),
            "no combination can be run: conflict topic config setting",
        ),
    ],
)
def test_what_is_wrong_is_told_before_anything_runs(command: Odradek, arguments: tuple[str, ...], told: str) -> None:
    done = command.run("compare", *arguments)

    assert done.status in {1, 2}
    assert told in done.err
    assert done.out == ""


def test_a_file_of_a_workload_is_checked(command: Odradek, tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text('[topic]\n"segment.byte" = 5')
    unknown = command.run("compare", "--vary", "segment.ms=1", "-w", str(tmp_path / "mine.toml"))
    (tmp_path / "mine.toml").write_text('[producer]\n"lingr.ms" = 5')
    producer = command.run("compare", "--vary", "segment.ms=1", "-w", str(tmp_path / "mine.toml"))

    assert (unknown.status, producer.status) == (2, 2)
    assert "unknown key 'segment.byte' (did you mean 'segment.bytes'?)" in unknown.err
    assert "lingr.ms" in producer.err


def test_workloads_are_printed_as_files_to_begin_with(command: Odradek) -> None:
    done = command.run("compare", "--workloads")
    files = done.out.split("\n\n# ")

    assert done.status == 0
    assert parse_workload(files[0].partition("\n")[2], "some.toml").name == "small"
    assert len(files) == 7


@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_an_interruption_ends_everything_and_shows_what_was_measured(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text("records = 50\npaced_records = 0\nread_s = 0\nquiet_s = 0.1\n")
    command = [sys.executable, "-m", "odradek", "compare", "--vary", "segment.ms=1000", "--rounds", "1000"]
    with subprocess.Popen(
        [*command, "-w", str(tmp_path / "mine.toml"), "--dir", str(tmp_path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        first = process.stderr.readline()
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=300)

    assert first.startswith("round 1  segment.ms=1000: produce"), first
    assert process.returncode == 130
    assert "mine: 50 records, 1 combination, 1 round of 1000, seed 1" in out
    assert [path.name for path in tmp_path.iterdir()] == ["mine.toml"]


def test_a_terminal_shows_better_and_worse(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    console = Console(force_terminal=True, width=100, highlight=False)
    monkeypatch.setattr(compare_text, "CommandConsole", lambda **_: console)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    print_report(usual_report())
    shown = capsys.readouterr().out

    assert "\x1b[32m" in shown  # better
    assert "\x1b[33m" in shown  # worse
    assert "\x1b[1;31m5 (0-5)" in shown or "\x1b[1;31m" in shown  # lost
    assert "not run: the broker did not start" in shown


def test_many_wide_figures_stand_below_each_other(capsys: pytest.CaptureFixture[str]) -> None:
    wide = [figures(1e9 + number * 1e7) for number in (1, 2, 3)]
    print_report(report((combination("a" * 60, "b" * 60), wide, ""), (combination("c"), wide, "")))
    lines = capsys.readouterr().out.splitlines()

    assert max(map(len, lines)) <= 100
    assert all(any(figure.title in line for line in lines) for figure in ALL)


def test_a_bar_shows_how_far_a_comparison_is(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = io.StringIO()
    monkeypatch.setattr(
        compare_text,
        "CommandConsole",
        lambda **_: Console(file=screen, force_terminal=True, no_color=True, highlight=False, width=120),
    )
    step = Step(1, 6, 0, combination("segment"))
    with Watcher() as watcher:
        watcher.note(attrs.evolve(step, phase="read", share=0.5))
        watcher.note(attrs.evolve(step, phase="find out how many records"))
        watcher.note(attrs.evolve(step, result=RunResult(figures(), ())))
        watcher.note(attrs.evolve(step, failed="it died"))

    assert "run 2 of 6  segment" in screen.getvalue()
    assert "round 1  segment: produce" in screen.getvalue()
    assert "it died" in screen.getvalue()
