"""`odradek consume --group`: what is written is committed, however the command ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from itertools import count
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from odradek.kernel.testing.running_broker import RunningBroker

NUMBERS = count()


@pytest.fixture
def filled(odradek: Any, tmp_path: Path) -> str:
    """Return a topic with six lines in two partitions."""
    topic = f"shared-{next(NUMBERS)}"
    odradek.ok("topics", "create", topic, "-p", "2")
    for partition, lines in ((0, "a\nb\nc\n"), (1, "d\ne\nf\n")):
        file = tmp_path / "input"
        file.write_text(lines)
        odradek.ok("produce", topic, str(file), "-p", str(partition))
    return topic


def test_a_group_goes_on_where_it_stopped(odradek: Any, filled: str) -> None:
    group = f"g-{filled}"
    first = odradek.ok("consume", filled, "--group", group, "-c", "4").out.split()
    second = odradek.ok("consume", filled, "--group", group, "-X", "group.protocol=consumer").out.split()
    third = odradek.ok("consume", filled, "--group", group).out.split()

    assert len(first) == 4
    assert sorted(first + second) == list("abcdef")
    assert third == []


def test_an_interrupted_member_has_committed_what_it_wrote(
    odradek: Any, filled: str, cli_broker: RunningBroker
) -> None:
    group = f"g-{filled}"
    command = [sys.executable, "-m", "odradek", "consume", filled, "--follow", "-g", group, "-b", cli_broker.bootstrap]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        lines = [process.stdout.readline() for _ in range(6)]
        os.kill(process.pid, signal.SIGINT)

        assert process.wait(10) == 130
        assert process.stderr.read() == b""
    assert sorted(lines) == [b"a\n", b"b\n", b"c\n", b"d\n", b"e\n", b"f\n"]
    assert odradek.ok("consume", filled, "--group", group).out == ""


@pytest.mark.parametrize("options", [["-p", "0"], ["-u", "5"], ["-o", "5"], ["-o", "-3"]], ids=" ".join)
def test_a_group_says_who_reads_what(odradek: Any, filled: str, options: list[str]) -> None:
    done = odradek("consume", filled, "--group", "g", *options)

    assert done.status == 2
    assert "exclude each other" in done.err


def test_a_topic_that_is_not_there_is_told_at_once(odradek: Any) -> None:
    done = odradek("consume", "no-such-topic", "--group", "g")

    assert done.status == 1
    assert "there is no topic" in done.err
