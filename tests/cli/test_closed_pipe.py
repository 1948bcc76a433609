"""A reader that has seen enough (`odradek ... | head -1`) is no failure: status 0, and not a word."""

import os
import subprocess
import sys

import pytest

from odradek.testing.running_broker import RunningBroker

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
    import shlex

    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "odradek", *shlex.split(line)],
            input=text,
            stdout=writer,
            stderr=subprocess.PIPE,
            env={name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"},
            text=True,
            check=False,
        )
    finally:
        os.close(writer)
    return done.returncode, done.stderr


@pytest.mark.parametrize("line", WITHOUT_BROKER)
def test_a_closed_pipe_ends_a_command_quietly(line: str) -> None:
    status, said = run_into_closed_pipe(line)

    assert said == ""
    assert status == (2 if line == "topics" else 0)


def test_a_closed_pipe_ends_commands_of_a_cluster_quietly(cli_broker: RunningBroker) -> None:
    ends = {line: run_into_closed_pipe(f"{line} -b {cli_broker.bootstrap}", "one\ntwo\n") for line in WITH_BROKER}

    assert dict.fromkeys(WITH_BROKER, (0, "")) == ends
