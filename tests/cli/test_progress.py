"""Long work tells a person how far it has come: on a terminal's standard error, and nowhere else."""

from __future__ import annotations

import os
import pty
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import pytest

from odradek.kernel.machine import progress
from odradek.kernel.machine.progress import ProgressLine
from odradek.testing.running_broker import running_broker

if TYPE_CHECKING:
    from collections.abc import Iterator

    from odradek.testing.running_broker import RunningBroker

COUNT = 20_000
LINE = "x" * 19 + "\n"
NEW_LINE = "\r\x1b[K"
KAFKAS = Path(__file__).parents[1] / "plugins" / "storage_segment" / "golden" / "kafka-4.3.1"
END = "(end)"


class Terminal:
    """A terminal that standard error is from `watch` on: pytest takes it back between the fixtures and the test."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, ours: int, screen: TextIO) -> None:
        self._monkeypatch = monkeypatch
        self._ours = ours
        self._screen = screen

    def watch(self) -> None:
        """Have standard error written here, and each look at the progress shown."""
        self._monkeypatch.setenv("TERM", "xterm")
        self._monkeypatch.setattr(progress, "SHOW_EVERY_S", 0)
        self._monkeypatch.setattr(sys, "stderr", self._screen)

    def read(self) -> str:
        """Return what was written since the last time; a terminal hands it over a little later, and in pieces."""
        print(END, end="", file=self._screen, flush=True)
        shown = ""
        while not shown.endswith(END):
            shown += os.read(self._ours, 1 << 20).decode()
        return shown.removesuffix(END)


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[Terminal]:
    ours, theirs = pty.openpty()
    with os.fdopen(theirs, "w") as screen:
        yield Terminal(monkeypatch, ours, screen)
        monkeypatch.undo()
    os.close(ours)


@pytest.fixture
def lines(tmp_path: Path) -> Path:
    """Return a file of many lines."""
    file = tmp_path / "lines.txt"
    file.write_text(LINE * COUNT)
    return file


@pytest.fixture(scope="module")
def broker() -> Iterator[RunningBroker]:
    with running_broker({"num.partitions": 2}) as running:
        yield running


class Time:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def test_the_line_is_shown_each_half_second_and_taken_away(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    time = Time()
    line = ProgressLine(time)
    for time.now_s in (0.0, 0.4, 0.6, 0.9, 1.2):
        line.show(lambda: f"at {time.now_s}")
    line.clear()
    line.clear()

    assert capsys.readouterr().err == f"{NEW_LINE}at 0.6{NEW_LINE}at 1.2{NEW_LINE}"


@pytest.mark.parametrize(("is_terminal", "term"), [(False, "xterm"), (True, "dumb")])
def test_nothing_is_shown_where_nobody_watches_or_a_line_cannot_be_taken_away(
    is_terminal: bool, term: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: is_terminal)
    monkeypatch.setenv("TERM", term)
    monkeypatch.setattr(progress, "SHOW_EVERY_S", 0)
    line = ProgressLine()
    line.show(lambda: "half of it")
    line.clear()

    assert capsys.readouterr().err == ""


def test_a_line_is_no_longer_than_the_terminal_is_wide(monkeypatch: pytest.MonkeyPatch, terminal: Terminal) -> None:
    terminal.watch()
    monkeypatch.setattr(os, "get_terminal_size", lambda _: os.terminal_size((20, 25)))
    ProgressLine().show(lambda: "x" * 100)

    assert terminal.read() == NEW_LINE + "x" * 19


def test_produce_shows_how_much_of_its_files_is_read_and_what_is_written(
    lines: Path, broker: RunningBroker, command: Any, terminal: Terminal
) -> None:
    terminal.watch()
    done = command.run("produce", "shown", str(lines), str(lines), "--create", "-b", broker.bootstrap)
    first, *shown, last, told = terminal.read().split(NEW_LINE)

    assert (done.status, done.out, first) == (0, "", "")
    assert shown[0].startswith("  8%  65.5 kB of 800 kB, ")
    assert last.startswith("100%  800 kB of 800 kB, ")
    assert " records, " in last
    assert last.endswith(" MB/s")
    assert told.startswith("wrote 40,000 records")


def test_produce_shows_what_it_reads_from_a_pipe_without_an_end(
    broker: RunningBroker, command: Any, terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal.watch()
    reading, writing = os.pipe()
    with os.fdopen(reading) as stream:
        os.write(writing, (LINE * 1000).encode())
        os.close(writing)
        monkeypatch.setattr(sys, "stdin", stream)
        done = command.run("produce", "piped", "--create", "--report", "-b", broker.bootstrap)
    first, *shown, last = terminal.read().split(NEW_LINE)

    assert (first, last) == ("", "")
    assert all("%" not in line for line in shown)
    assert shown[-1].startswith("20 kB, ")
    assert done.json["records"] == 1000


def test_consume_into_a_file_shows_how_far_it_is(
    lines: Path,
    broker: RunningBroker,
    command: Any,
    terminal: Terminal,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    terminal.watch()
    command.run("produce", "read", str(lines), "--create", "-b", broker.bootstrap)
    terminal.read()
    with (tmp_path / "copy.txt").open("w") as copy:
        monkeypatch.setattr(sys, "stdout", copy)
        status = command.run("consume", "read", "-b", broker.bootstrap).status
    first, *shown, last = terminal.read().split(NEW_LINE)

    assert (status, first, last) == (0, "", "")
    assert shown[-1].startswith(f"100%  {COUNT:,} records, ")
    assert (tmp_path / "copy.txt").read_text() == lines.read_text()


def test_consume_to_what_is_no_file_shows_records_alone(
    lines: Path, broker: RunningBroker, command: Any, terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal.watch()
    command.run("produce", "seen", str(lines), "--create", "-b", broker.bootstrap)
    terminal.read()
    with Path(os.devnull).open("w") as nowhere:
        monkeypatch.setattr(sys, "stdout", nowhere)
        status = command.run("consume", "seen", "-b", broker.bootstrap).status

    assert (status, terminal.read()) == (0, "")


def test_a_replay_of_dead_letters_shows_how_far_it_is(
    broker: RunningBroker, command: Any, terminal: Terminal, tmp_path: Path
) -> None:
    letters = tmp_path / "letters.txt"
    letters.write_text(LINE * 100)
    command.run("topics", "create", "orders", "-b", broker.bootstrap)
    owner = "odradek.retry.dead.letters.of=orders.g.retry"
    command.run("topics", "create", "orders.g.dlq", "-p", "1", "-c", owner, "-b", broker.bootstrap)
    command.run("produce", "orders.g.dlq", str(letters), "-b", broker.bootstrap)
    terminal.watch()
    done = command.run("dlq", "replay", "orders", "--group", "g", "-b", broker.bootstrap)
    first, *shown, last = terminal.read().split(NEW_LINE)

    assert (done.status, first, last) == (0, "", "")
    assert shown[-1] == "100%  100 dead letters"
    assert done.out == "100 dead letters replayed to orders\n"


def test_a_dump_into_a_file_shows_how_far_it_is(
    command: Any, terminal: Terminal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal.watch()
    with (tmp_path / "dump.txt").open("w") as dump:
        monkeypatch.setattr(sys, "stdout", dump)
        status = command.run("log", "dump", str(KAFKAS)).status
    first, *shown, last = terminal.read().split(NEW_LINE)
    parts = [int(line[:4].removesuffix("%")) for line in shown]
    logs = [line[6:] for line in shown]

    assert (status, first, last) == (0, "", "")
    assert len(shown) == (tmp_path / "dump.txt").read_text().count("  batch: ")
    assert parts == sorted(parts)
    assert parts[0] < 20 < 60 < parts[-1] <= 100
    assert logs == sorted(logs)


def test_a_dump_to_a_terminal_shows_rows_alone(command: Any, terminal: Terminal) -> None:
    terminal.watch()

    assert (command.run("log", "dump", str(KAFKAS)).status, terminal.read()) == (0, "")


def test_adopting_shows_which_partition_is_copied(command: Any, terminal: Terminal, tmp_path: Path) -> None:
    terminal.watch()
    done = command.run("topics", "adopt", str(KAFKAS), "--topic", "golden", "--data-dir", str(tmp_path))

    assert done.status == 0
    assert terminal.read().split(NEW_LINE) == ["", "adopting golden-0, 1 of 2", "adopting golden-1, 2 of 2", ""]
