"""Scripts that complete the command: bash runs its own; all three know every command, action and option."""

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from odradek.cli import COMMANDS, whole_parser
from odradek.cli.completion import script
from odradek.cli.completion_tree import nodes

TREE = list(nodes(whole_parser()))


def test_the_tree_holds_every_command_and_those_of_plugins() -> None:
    by_path = {node.path: node for node in TREE}

    assert set(COMMANDS) == set(by_path[""].commands)
    assert by_path["topics"].commands["adopt"]
    assert by_path["log"].commands
    (compress,) = (option for option in by_path["produce"].options if "--compress" in option.names)
    assert compress.names == ("-z", "--compress")
    assert "zstd" in compress.values
    assert by_path["completion"].operands == ["bash", "zsh", "fish"]


def completed(folder: Path, *words: str) -> list[str]:
    """Return what bash offers for the last of some words."""
    (folder / "completion").write_text(script("bash", TREE))
    program = """
        source "$1"; shift
        COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
        _odradek
        printf '%s\\n' "${COMPREPLY[@]}"
    """
    done = subprocess.run(
        ["bash", "-c", program, "bash", str(folder / "completion"), "odradek", *words],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""
    return done.stdout.splitlines() if done.stdout.strip() else []


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (("to",), ["topics"]),
        (("topics", "de"), ["describe", "delete"]),
        (("-v", "topics", "al"), ["alter"]),
        (("topics", "create", "--par"), ["--partitions"]),
        (("topics", "create", "orders", "--j"), ["--json"]),
        (("produce", "t", "-z", "z"), ["zstd"]),
        (("produce", "t", "--compress", "=", "g"), ["gzip"]),
        (("produce", "t", "--compress", "="), ["none", "gzip", "snappy", "lz4", "zstd"]),
        (("consume", "t", "-b", "1"), []),
        (("serve", "--config", "x"), []),
        (("log", ""), ["dump"]),
        (("completion", ""), ["bash", "zsh", "fish"]),
        (("config", "describe", "--scope", ""), ["broker", "topic", "group", r"client\ metrics"]),
    ],
)
def test_bash_completes(tmp_path: Path, words: tuple[str, ...], offered: list[str]) -> None:
    assert completed(tmp_path, *words) == offered


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_takes_its_script(command: Any, shell: str) -> None:
    done = command.run("completion", shell)

    assert done.status == 0
    assert all(name in done.out for name in COMMANDS)
    if program := shutil.which(shell):
        subprocess.run([program, "-n"], input=done.out, text=True, check=True)


def test_another_shell_is_told_which_there_are(command: Any) -> None:
    done = command.run("completion", "fsh")

    assert done.status == 2
    assert "(did you mean 'fish'?)" in done.err
