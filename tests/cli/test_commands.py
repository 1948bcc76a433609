"""What every command has in common, and the commands that ask no broker."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from odradek.cli import COMMANDS, innermost, report
from odradek.kernel.errors import ConfigError, ErrorCode, KafkaError, PluginError, StorageError

HEAVY = ("trio", "rich", "attrs", "pluggy", "importlib.metadata", "odradek.kernel.broker.broker", "difflib")
ACTIONS = [
    ["topics", "list"],
    ["topics", "create"],
    ["topics", "describe"],
    ["topics", "alter"],
    ["topics", "delete"],
    ["topics", "adopt"],
    ["cluster", "describe"],
    ["configs", "describe"],
    ["configs", "alter"],
    ["config", "describe"],
    ["plugins", "list"],
]


def test_the_help_of_all_loads_nothing_heavy() -> None:
    script = (
        "import sys; from odradek.cli import main\n"
        "try: main(['--help'])\nexcept SystemExit: pass\n"
        "print(sorted(sys.modules), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    loaded = set(done.stderr.replace("'", " ").replace(",", " ").split())

    assert not loaded & set(HEAVY)
    assert all(command in done.stdout for command in COMMANDS)


def test_python_m_odradek_is_the_command() -> None:
    done = subprocess.run([sys.executable, "-m", "odradek", "--version"], capture_output=True, text=True, check=True)

    assert done.stdout.startswith("odradek ")


@pytest.mark.parametrize("action", [[name] for name in COMMANDS] + ACTIONS, ids=" ".join)
def test_every_help_can_be_printed(command: Any, action: list[str]) -> None:
    done = command.run(*action, "--help")

    assert done.status == 0
    assert done.out.startswith(f"usage: odradek {' '.join(action)}")
    assert max(map(len, done.out.splitlines())) <= 90


@pytest.mark.parametrize("action", [[name] for name in COMMANDS if name != "log"] + ACTIONS, ids=" ".join)
def test_every_help_has_examples_and_tells_the_exit_status(command: Any, action: list[str]) -> None:
    done = command.run(*action, "--help")

    assert f"\n  odradek {' '.join(action)}" in done.out
    assert "exit status: 0" in done.out


def test_without_a_command_the_help_is_shown_and_the_status_is_that_of_wrong_usage(command: Any) -> None:
    done = command.run()

    assert (done.status, done.out.startswith("usage: odradek")) == (2, True)


def test_a_mistyped_command_is_answered_with_the_nearest(command: Any) -> None:
    done = command.run("topic", "list")

    assert done.status == 2
    assert done.err == "odradek: there is no command 'topic' (did you mean 'topics'?)\n"


@pytest.mark.parametrize(
    ("arguments", "other"),
    [
        (("config", "alter"), "odradek configs"),
        (("configs", "describe", "log.segment.bytes"), "odradek config describe"),
        (("configs", "alter", "log.segment.bytes"), "odradek config describe"),
    ],
    ids=lambda value: value if isinstance(value, str) else " ".join(value),
)
def test_of_two_commands_with_almost_one_name_each_names_the_other(
    command: Any, arguments: tuple[str, ...], other: str
) -> None:
    done = command.run(*arguments)

    assert (done.status, done.out) == (2, "")
    assert done.err.endswith(f": {other})\n")


@pytest.mark.parametrize(
    "arguments",
    [
        ("perf", "produce", "t", "-n", "0"),
        ("perf", "produce", "t", "--size", "-1"),
        ("perf", "produce", "t", "--rate", "fast"),
        ("consume", "t", "-p", "-1"),
        ("consume", "t", "-c", "0"),
        ("produce", "t", "-p", "x"),
        ("topics", "create", "t", "-p", "0"),
        ("serve", "--data-dir", ""),
    ],
    ids=" ".join,
)
def test_values_that_make_no_sense_are_refused_at_once(command: Any, arguments: tuple[str, ...]) -> None:
    done = command.run(*arguments)

    assert (done.status, done.out) == (2, "")
    assert "error: argument " in done.err


@pytest.mark.parametrize(
    ("error", "status", "text"),
    [
        (KeyboardInterrupt(), 130, ""),
        (ExceptionGroup("", [ConfigError("wrong", where="file, line 3")]), 2, "odradek: file, line 3: wrong\n"),
        (BaseExceptionGroup("", [ValueError(), KeyboardInterrupt()]), 130, ""),
        (
            ExceptionGroup("", [StorageError("full"), ExceptionGroup("", [ConfigError("wrong"), OSError(2, "gone")])]),
            2,
            "odradek: full\nodradek: wrong\nodradek: gone\n",
        ),
        (KafkaError(ErrorCode.INVALID_CONFIG, "so"), 1, "odradek: INVALID_CONFIG: so\n"),
        (PluginError("p", "is broken"), 1, "odradek: plugin 'p': is broken\n"),
        (FileNotFoundError(2, "No such file or directory", "x"), 1, "odradek: x: No such file or directory\n"),
    ],
)
def test_errors_end_in_one_line_and_a_status(
    error: BaseException, status: int, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert report(innermost(error)) == status
    assert capsys.readouterr().err == text


def test_a_bug_among_other_errors_keeps_the_traceback() -> None:
    with pytest.raises(ExceptionGroup):
        report(ExceptionGroup("", [ConfigError("wrong"), ZeroDivisionError()]))


def test_a_bug_keeps_its_traceback() -> None:
    with pytest.raises(ZeroDivisionError):
        report(ZeroDivisionError())


def test_a_reader_who_has_seen_enough_is_no_error() -> None:
    script = f"'{sys.executable}' -m odradek config describe --json | head -c 1; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)

    assert done.stderr == ""


CLOSED = """
import os, pathlib, sys
from odradek.cli import main
status = main(["config", "describe", "num.partitions"])
nowhere = [number for number in range(3) if os.fstat(number).st_rdev == os.stat(os.devnull).st_rdev]
pathlib.Path(sys.argv[1]).write_text(f"{status} {nowhere}")
"""


@pytest.mark.parametrize(("closed", "nowhere"), [(">&-", [1]), ("<&- 2>&-", [0, 2]), ("<&- >&- 2>&-", [0, 1, 2])])
def test_a_standard_stream_that_is_closed_leads_nowhere(closed: str, nowhere: list[int], tmp_path: Path) -> None:
    script, said = tmp_path / "script.py", tmp_path / "said"
    script.write_text(CLOSED)
    command = f"'{sys.executable}' '{script}' '{said}' {closed}"
    done = subprocess.run(["bash", "-c", command], stdin=subprocess.PIPE, capture_output=True, text=True, check=True)

    assert done.stderr == ""
    assert said.read_text() == f"0 {nowhere}"


# ------------------------------------------------------------------------------ plugins


def test_plugins_are_listed_with_who_ships_them(command: Any) -> None:
    done = command.run("plugins", "list", "--json")
    rows = {row["name"]: row for row in json.loads(done.out)}

    assert rows["storage_segment"]["state"] == "active"
    assert "storages" in rows["storage_segment"]["hooks"]
    assert rows["storage_segment"]["commands"] == ["log"]
    assert rows["storage_segment"]["distribution"].startswith("odradek ")


def test_the_command_of_a_plugin_works_like_any_other(command: Any, tmp_path: Path) -> None:
    (tmp_path / "leader-epoch-checkpoint").write_text("0\n1\n3 42\n")
    done = command.run("log", "dump", str(tmp_path), "--json")

    assert done.status == 0
    assert (done.json["leader_epoch"], done.json["start_offset"]) == (3, 42)


def test_a_disabled_plugin_and_a_broken_one_show_as_such(command: Any, tmp_path: Path) -> None:
    file = tmp_path / "odradek.toml"
    file.write_text('[plugins]\nenable = ["storage_segment", "no.such.module"]\n')
    done = command.run("plugins", "list", "--config", str(file))
    states = {line.split()[0]: line.split()[1] for line in done.out.splitlines()[1:]}

    assert done.status == 1
    assert states["storage_memory"] == "disabled"
    assert states["no.such.module"] == "broken"
    assert "cannot be imported" in done.out


# ------------------------------------------------------------------------------ config


def test_one_key_is_explained(command: Any) -> None:
    done = command.run("config", "describe", "num.partitions")

    assert done.status == 0
    assert done.out.startswith("num.partitions (broker)\n    int, default 1")


def test_patterns_and_scopes_choose_keys(command: Any) -> None:
    rows = command.run("config", "describe", "segment.*", "--scope", "topic", "--json").json

    assert {"segment.bytes", "segment.ms"} <= {row["name"] for row in rows}
    assert {row["scope"] for row in rows} == {"topic"}


def test_all_keys_are_listed(command: Any) -> None:
    done = command.run("config", "describe")

    assert len(done.out.splitlines()) > 300


def test_a_mistyped_key_is_answered_with_the_nearest(command: Any) -> None:
    done = command.run("config", "describe", "num.partitins")

    assert done.status == 2
    assert done.err == "odradek: there is no key 'num.partitins' (did you mean 'num.partitions'?)\n"
