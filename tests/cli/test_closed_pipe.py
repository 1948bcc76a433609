"""Output that cannot be written: a reader that has seen enough (`odradek ... | head -1`) is no failure, a full disk is.

Either way a command ends with a status that it documents; the interpreter's own for this case, 120, is none.
"""

import os
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager

import pytest

from odradek.cli import drop_unwritten, note
from odradek.testing.running_broker import RunningBroker

from .outputs import closed_pipe, full_disk, run_with

WITHOUT_BROKER = [
    "--help",
    "--version",
    "topics",
    "topics create --help",
    "plugins",
    "config describe",
    "config describe --json",
    "config describe log.segment.bytes",
    "assign simulate -e 'topic orders 10; join a b'",
    "completion bash",
]
WITH_BROKER = [
    "topics list",
    "topics list --json",
    "topics create closed-pipe",
    "topics describe closed-pipe",
    "produce closed-pipe -k a --report",
    "consume closed-pipe",
    "consume closed-pipe --json",
    "configs describe broker 1 --all",
    "groups list",
    "transactions list",
    "delay list closed-pipe",
    "perf produce closed-pipe -n 10",
    "perf consume closed-pipe -n 10",
    "topics delete closed-pipe",
]


def run_into_closed_pipe(line: str, text: str = "") -> tuple[int, str]:
    """Run a command whose standard output nobody reads; return its status and what it said."""
    with closed_pipe() as writer:
        done = run_with(line, text=text, out=writer)
    return done.returncode, done.stderr


@pytest.mark.parametrize("line", WITHOUT_BROKER)
def test_a_closed_pipe_ends_a_command_quietly(line: str) -> None:
    status, said = run_into_closed_pipe(line)

    assert said == ""
    assert status == (2 if line == "topics" else 0)


def test_a_closed_pipe_ends_commands_of_a_cluster_quietly(cli_broker: RunningBroker) -> None:
    ends = {line: run_into_closed_pipe(f"{line} -b {cli_broker.bootstrap}", "one\ntwo\n") for line in WITH_BROKER}

    assert dict.fromkeys(WITH_BROKER, (0, "")) == ends


@pytest.mark.parametrize("line", WITHOUT_BROKER)
def test_a_full_disk_ends_a_command_with_an_error(line: str) -> None:
    with full_disk() as full:
        done = run_with(line, out=full)

    assert done.stderr == "odradek: No space left on device\n"
    assert done.returncode == (2 if line == "topics" else 1)


@pytest.mark.parametrize("opened", [closed_pipe, full_disk])
@pytest.mark.parametrize("line", ["no-such-command", "topics --no-such-option", "config describe no.such.key"])
def test_an_error_that_cannot_be_told_is_one_all_the_same(
    line: str, opened: Callable[[], AbstractContextManager[int]]
) -> None:
    with opened() as nowhere:
        done = run_with(line, err=nowhere)

    assert (done.returncode, done.stdout) == (2, "")


@pytest.mark.parametrize("opened", [closed_pipe, full_disk])
def test_a_note_that_cannot_be_written_holds_nothing_up(
    opened: Callable[[], AbstractContextManager[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened() as nowhere, os.fdopen(os.dup(nowhere), "w") as stream:
        monkeypatch.setattr(sys, "stderr", stream)
        note("told")
        drop_unwritten(stream)
