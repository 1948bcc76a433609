"""`odradek consume --group`: what is written is committed, however the command ends."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from itertools import count
from typing import TYPE_CHECKING, Any

import pytest

from tests.waiting import until

from .outputs import closed_pipe, full_disk, run_with

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager
    from pathlib import Path

    from odradek.testing.running_broker import RunningBroker

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
        assert process.stderr.read().decode() == f"assigned {filled} 0-1\n"
    assert sorted(lines) == [b"a\n", b"b\n", b"c\n", b"d\n", b"e\n", b"f\n"]
    assert odradek.ok("consume", filled, "--group", group).out == ""


@pytest.mark.parametrize(
    ("opened", "ended"), [(full_disk, (1, "odradek: No space left on device\n")), (closed_pipe, (0, ""))]
)
def test_what_could_not_be_written_is_not_committed(
    odradek: Any,
    filled: str,
    cli_broker: RunningBroker,
    opened: Callable[[], AbstractContextManager[int]],
    ended: tuple[int, str],
) -> None:
    group = f"g-{filled}"
    with opened() as nowhere:
        done = run_with(f"consume {filled} --group {group} -b {cli_broker.bootstrap}", out=nowhere)

    assert (done.returncode, done.stderr) == ended
    assert sorted(odradek.ok("consume", filled, "--group", group).out.split()) == list("abcdef")


def share_of(process: subprocess.Popen[str], topic: str) -> str:
    """Return the one partition that a member tells of once it shares them; it may have had both for a while."""
    assert process.stderr is not None
    told: list[str] = []
    while not told or told[-1] not in (f"assigned {topic} 0\n", f"assigned {topic} 1\n"):
        told.append(process.stderr.readline())
        assert told[-1].startswith(("assigned", "revoked")), told
    return told[-1].split()[-1]


def test_who_follows_is_told_of_rebalances_and_known_by_a_name_of_its_own(
    odradek: Any, filled: str, cli_broker: RunningBroker
) -> None:
    group = f"g-{filled}"
    command = [sys.executable, "-m", "odradek", "consume", filled, "-F", "-g", group, "-b", cli_broker.bootstrap]
    with (
        subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as first,
        subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as second,
    ):
        assert second.stderr is not None
        shares = {share_of(first, filled), share_of(second, filled)}
        (described,) = odradek.ok("groups", "describe", group, "--json").json
        os.kill(second.pid, signal.SIGINT)
        assert second.wait(10) == 130
        assert second.stderr.read() == ""
        os.kill(first.pid, signal.SIGINT)
        assert first.wait(10) == 130

    assert shares == {"0", "1"}
    host = socket.gethostname()
    assert {member["client_id"] for member in described["members"]} == {
        f"odradek-{host}-{process.pid}" for process in (first, second)
    }


def wait_for_all(process: subprocess.Popen[str], topic: str) -> None:
    """Return when a member tells that it has both partitions."""
    assert process.stderr is not None
    told: set[str] = set()
    while told != {"0", "1"}:
        what, _topic, numbers = process.stderr.readline().split()
        told = told - set(numbers.split("-")) if what == "revoked" else told | set(numbers.split("-"))


def end(process: subprocess.Popen[str]) -> None:
    """End a command by Ctrl-C."""
    os.kill(process.pid, signal.SIGINT)
    assert process.wait(10) == 130


def test_a_partition_that_comes_back_is_not_committed_backwards(
    odradek: Any, filled: str, cli_broker: RunningBroker, tmp_path: Path
) -> None:
    group = f"g-{filled}"
    command = [sys.executable, "-m", "odradek", "consume", filled, "-F", "-g", group, "-b", cli_broker.bootstrap]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as first:
        assert first.stdout is not None
        assert sorted(first.stdout.readline() for _ in range(6)) == [f"{letter}\n" for letter in "abcdef"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as second:
            assert second.stdout is not None
            partition = share_of(second, filled)
            more = tmp_path / "more"
            more.write_text("g\n")
            odradek.ok("produce", filled, str(more), "-p", partition)
            assert second.stdout.readline() == "g\n"
            end(second)
        share_of(first, filled)
        wait_for_all(first, filled)
        end(first)

    assert odradek.ok("consume", filled, "--group", group).out == ""


def test_what_was_written_is_committed_before_its_partition_goes(filled: str, cli_broker: RunningBroker) -> None:
    command = [sys.executable, "-m", "odradek", "consume", filled, "-F", "-g", f"g-{filled}"]
    command += ["-b", cli_broker.bootstrap]
    with (
        cli_broker.fail_next("OffsetCommit", "COORDINATOR_LOAD_IN_PROGRESS", times=100) as fault,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as first,
    ):
        assert first.stdout is not None
        lines = [first.stdout.readline() for _ in range(6)]
        until(lambda: fault.met_count > 0)
        fault.stop()
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as second:
            shares = {share_of(first, filled), share_of(second, filled)}
            end(second)
            assert second.stdout is not None
            doubled = second.stdout.read()
        end(first)
        doubled += first.stdout.read()

    assert sorted(lines) == [f"{letter}\n" for letter in "abcdef"]
    assert shares == {"0", "1"}
    assert doubled == ""


@pytest.mark.parametrize("options", [["-p", "0"], ["-u", "5"], ["-o", "5"], ["-o", "-3"]], ids=" ".join)
def test_a_group_says_who_reads_what(odradek: Any, filled: str, options: list[str]) -> None:
    done = odradek("consume", filled, "--group", "g", *options)

    assert done.status == 2
    assert "exclude each other" in done.err


def test_a_group_is_asked_for_by_its_option(odradek: Any, filled: str) -> None:
    done = odradek("consume", filled, "-X", "group.id=by-setting", "-c", "1")

    assert (done.status, done.out) == (2, "")
    assert "--group by-setting" in done.err
    assert "by-setting" not in odradek.ok("groups", "list").out


def test_a_topic_that_is_not_there_is_told_at_once(odradek: Any) -> None:
    done = odradek("consume", "no-such-topic", "--group", "g")

    assert done.status == 1
    assert "there is no topic" in done.err
