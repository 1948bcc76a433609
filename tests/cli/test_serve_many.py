"""Brokers of one command whose processes end: what is told of it, who is started again, and when all end."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TypeAlias

import pytest

from odradek.cli import EXIT_DONE, EXIT_FAILED, report
from odradek.cli.options import EXIT_USAGE
from odradek.cli.serve_many import FOUNDING, MAY_HOLD_PORTS, METADATA_LOG, may_found
from odradek.kernel.broker import read_broker_options
from odradek.kernel.config.roles import parse_roles, takes_id
from odradek.kernel.controller import founding_checkpoint
from odradek.kernel.errors import ConfigError, UnansweredError

from .conftest import Odradek
from .outputs import closed_pipe, full_disk

Opened: TypeAlias = Callable[[], AbstractContextManager[int]]

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")

PROGRAM = """
import os, pathlib, signal, sys
from odradek.cli.serve_many import Child, Fleet
from odradek.kernel.errors import ConfigError, UnansweredError
from odradek.kernel.machine.clock import SystemClock

lives = pathlib.Path(sys.argv[1])

def end_all():
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    os.kill(os.getppid(), signal.SIGTERM)
    signal.sigwait({signal.SIGTERM})

def serve(options, watched, note_ready):
    lives.mkdir()
    FIRST
    return 0

def serve_again(options, watched, note_ready):
    if not lives.exists():
        return serve(options, watched, note_ready)
    end_all()
    return 0

os._exit(Fleet([Child(1, None)], serve_again, clock=SystemClock()).run([signal.SIGTERM]))
"""
"""A broker whose first life is `FIRST`, and whose second one has the command end.

It ends without a flush of what could not be told: that is the command line's (`test_closed_pipe`).
"""

WRONG = 'raise ConfigError("this port is taken", where="--listen")'


FORK_FAILS_ONCE = """
import errno, os
fork = os.fork

def fail():
    os.fork = fork
    raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))

os.fork = fail
"""


def lived(first: str, lives: Path, *, before: str = "", err: int = subprocess.PIPE) -> tuple[int, str]:
    """Let a broker live; return the command's exit status and what it told."""
    program = before + PROGRAM.replace("FIRST", first)
    command = [sys.executable, "-c", program, str(lives)]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=err, text=True, timeout=60, check=False)
    return done.returncode, done.stderr


def test_who_is_set_wrongly_says_so_and_ends_all(tmp_path: Path) -> None:
    status, told = lived(WRONG, tmp_path / "lives")

    assert status == EXIT_USAGE
    assert "odradek: --listen: this port is taken\n" in told
    assert "started again" not in told


@pytest.mark.parametrize(
    ("first", "says"),
    [
        (f"note_ready(); {WRONG}", "odradek: --listen: this port is taken\n"),
        ('raise UnansweredError("no controller answered")', "odradek: no controller answered\n"),
        ('raise ExceptionGroup("of a nursery", [OSError(28, "No space left")])', "odradek: No space left\n"),
        ("1 / 0", "ZeroDivisionError"),
    ],
    ids=["wrong settings once it has served", "nobody answers", "the system refuses", "a bug"],
)
def test_who_may_do_better_next_time_says_why_it_ended_and_is_started_again(
    first: str, says: str, tmp_path: Path
) -> None:
    status, told = lived(first, tmp_path / "lives")

    assert status == EXIT_DONE
    assert says in told
    assert "it is started again in 0.5 s" in told


@pytest.mark.parametrize("opened", [closed_pipe, full_disk])
def test_who_ends_is_started_again_where_nothing_can_be_told(opened: Opened, tmp_path: Path) -> None:
    with opened() as nowhere:
        status, _told = lived("return 1", tmp_path / "lives", err=nowhere)

    assert status == EXIT_DONE
    assert (tmp_path / "lives").exists()


@pytest.mark.parametrize("opened", [closed_pipe, full_disk])
def test_who_is_set_wrongly_ends_all_where_nothing_can_be_told(opened: Opened, tmp_path: Path) -> None:
    with opened() as nowhere:
        status, _told = lived(WRONG, tmp_path / "lives", err=nowhere)

    assert status == EXIT_USAGE


def test_a_broker_for_which_there_is_no_process_is_tried_again(tmp_path: Path) -> None:
    status, told = lived("end_all()", tmp_path / "lives", before=FORK_FAILS_ONCE)

    assert status == EXIT_DONE
    assert told == (
        "odradek: broker 1 cannot be started: Resource temporarily unavailable; it is tried again in 0.5 s\n"
        "odradek: stopping 1 brokers (SIGTERM); again: without waiting for clients\n"
    )


IN_TURN = """
import os, signal, sys
from odradek.cli.serve_many import Child, Fleet
from odradek.kernel.machine.clock import SystemClock

def serve(options, watched, note_ready):
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    os.write(pipe[1], b"r")
    signal.sigwait({signal.SIGTERM})
    os.write(1, f"{options}\\n".encode())
    return 0

pipe = os.pipe()
if os.fork() == 0:
    for _ in range(4):
        os.read(pipe[0], 1)
    os.kill(os.getppid(), signal.SIGTERM)
    os._exit(0)
children = [Child(1, "first", turn=2), Child(2, "second", turn=1), Child(3, "third"), Child(4, "fourth")]
os._exit(Fleet(children, serve, clock=SystemClock()).run([signal.SIGTERM]))
"""


@pytest.mark.parametrize("opened", [None, closed_pipe, full_disk])
def test_brokers_end_in_their_turns(opened: Opened | None) -> None:
    with nullcontext(subprocess.PIPE) if opened is None else opened() as err:
        done = subprocess.run(
            [sys.executable, "-c", IN_TURN], stdout=subprocess.PIPE, stderr=err, text=True, timeout=60, check=False
        )
    told = done.stdout.split()

    assert done.returncode == EXIT_DONE
    assert sorted(told[:2]) == ["fourth", "third"]
    assert told[2:] == ["second", "first"]


HOLDING = """
import argparse, os, pathlib, re, signal, socket, sys, time
from odradek.cli.serve_many import run_many
from odradek.kernel.broker import read_broker_options
from odradek.kernel.machine.system.network import SystemNetwork

def read_options(options, data_dir):
    return read_broker_options(config=None, environment={}, options=options, data_dir=data_dir)

def serve(options, watched, note_ready):
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    port = int(re.search(r":([0-9]+)", str(options.config.value("listeners")))[1])
    with socket.socket() as stranger:
        try:
            stranger.bind(("127.0.0.1", port))
        except OSError:
            os.write(1, b"held\\n")
    with SystemNetwork().listen("127.0.0.1", port, backlog=1, receive_buffer_bytes=0):
        os.write(1, b"listens\\n")
    (data_dir / f"listens-{port}").touch()
    while len([*data_dir.glob("listens-*")]) < 2:  # whoever is told to end before it blocks the signal dies of it
        time.sleep(0.01)
    os.kill(os.getppid(), signal.SIGTERM)
    signal.sigwait({signal.SIGTERM})
    return 0

data_dir = pathlib.Path(sys.argv[1])
arguments = argparse.Namespace(brokers=2, listen=["127.0.0.1:0"], data_dir=data_dir, options=[])
sys.exit(run_many(arguments, read_options, serve, [signal.SIGTERM]))
"""


@pytest.mark.skipif(not MAY_HOLD_PORTS, reason="another socket that is bound would keep the broker from listening")
def test_a_port_that_was_given_out_is_nobodys_but_its_brokers(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", HOLDING, str(tmp_path)], capture_output=True, text=True, timeout=60)

    assert done.returncode == EXIT_DONE, done.stderr
    assert sorted(done.stdout.split()) == ["held", "held", "listens", "listens"], done.stderr


def test_who_kept_the_metadata_alone_goes_on_so_and_a_new_cluster_is_founded(tmp_path: Path) -> None:
    assert may_found(tmp_path, 3)
    for number in (1, 2):
        (tmp_path / str(number) / METADATA_LOG).mkdir(parents=True)
    assert not may_found(tmp_path, 3)
    (tmp_path / "2" / METADATA_LOG / FOUNDING).touch()
    assert may_found(tmp_path, 3)


def test_the_file_of_a_founding_is_called_so() -> None:
    assert founding_checkpoint.FILE_NAME == FOUNDING


def test_a_controller_that_does_not_answer_is_no_wrong_usage() -> None:
    assert report(UnansweredError("no controller answered")) == EXIT_FAILED
    assert report(ConfigError("no number")) == EXIT_USAGE


@pytest.mark.parametrize("key", ["advertised.listeners", "metadata.log.dir"])
def test_what_a_file_says_alike_of_brokers_that_need_it_apart_is_refused(key: str, tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text(f"{key}=PLAINTEXT://127.0.0.1:29092\n")
    command = ["serve", "--brokers", "2", "--listen", "127.0.0.1:0", "--data-dir", str(tmp_path), "--config", str(file)]
    done = subprocess.run([sys.executable, "-m", "odradek", *command], capture_output=True, text=True, timeout=60)

    assert done.returncode == EXIT_USAGE
    assert f"{file}, line 1: {key} would be the same for all brokers" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (["--join", ""], "argument --join: expected HOST:PORT, not ''"),
        (["--join", "one:9092,two"], "argument --join: expected HOST:PORT, not 'two'"),
        (["--join", "one:9092", "--brokers", "3"], "--join one:9092: --brokers founds a cluster"),
        (["--join", "one:9092", "--set", "process.roles=controller"], "--join one:9092 says it already"),
    ],
)
def test_a_join_that_cannot_be_is_refused(command: Odradek, arguments: list[str], what: str) -> None:
    done = command.run("serve", *arguments)

    assert done.status == EXIT_USAGE
    assert what in done.err


@pytest.mark.parametrize("listen", [[], ["127.0.0.1:9192"]])
def test_who_joins_is_a_broker_without_an_id_whatever_the_file_says_of_controllers(
    listen: list[str], tmp_path: Path
) -> None:
    file = tmp_path / "server.properties"
    file.write_text("process.roles=broker,controller\ncontroller.listener.names=INNER\nnum.partitions=7\n")
    config = read_broker_options(
        config=file, environment={}, options=[], listen=listen, join="one:9092,two:9092"
    ).config

    assert takes_id(config)
    assert [str(each) for each in parse_roles(config).controllers] == ["one:9092", "two:9092"]
    assert (config.get_list("controller.listener.names"), config.get_int("num.partitions")) == (("INNER",), 7)
