"""`odradek format` and `odradek cluster-id`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from odradek.kernel.types import id_text, parse_id

ID = "ABCDEFGHIJKLMNOPQRSTUw"


@pytest.fixture
def properties(tmp_path: Path) -> Path:
    """The configuration of a controller."""
    path = tmp_path / "server.properties"
    path.write_text(
        "process.roles=broker,controller\nnode.id=1\n"
        "listeners=PLAINTEXT://127.0.0.1:19092,CONTROLLER://127.0.0.1:19093\n"
        "controller.listener.names=CONTROLLER\ncontroller.quorum.bootstrap.servers=127.0.0.1:19093\n"
        f"log.dirs={tmp_path / 'data'}\n"
    )
    return path


def test_a_drawn_id_is_one_that_kafka_takes(command: Any) -> None:
    done = command.run("cluster-id")

    assert done.status == 0
    assert id_text(parse_id(done.out.strip())) == done.out.strip()


def test_directories_are_formatted_once(command: Any, properties: Path, tmp_path: Path) -> None:
    done = command.run("format", "-t", ID, "-c", str(properties), "--standalone")
    again = command.run("format", "-t", ID, "-c", str(properties), "--standalone")
    ignored = command.run("format", "-t", ID, "-c", str(properties), "--standalone", "--ignore-formatted")

    assert (done.status, done.out) == (0, f"formatted dynamic metadata voter directory {tmp_path / 'data'}\n")
    assert again.status == 1
    assert "is already formatted" in again.err
    assert (ignored.status, ignored.out) == (0, "all of the log directories are formatted already\n")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["-t", ID], "so one of these has to say who votes"),
        (["-t", "an id", "-s"], "'an id' is no id of a cluster"),
        (["-t", "", "-s"], "'' is no id of a cluster"),
        (["-t", ID, "-I", "1@127.0.0.1:19093"], "'1@127.0.0.1:19093' is no controller"),
    ],
)
def test_wrong_words_change_nothing(
    command: Any, properties: Path, tmp_path: Path, words: list[str], says: str
) -> None:
    done = command.run("format", "-c", str(properties), *words)

    assert done.status == 2
    assert says in done.err
    assert not (tmp_path / "data").exists()
