"""Command lines are read as people write them: every example of every help, and options anywhere."""

import argparse
import re
import shlex
from collections.abc import Iterator
from typing import Any

import pytest

from odradek.cli import COMMANDS, build_parser


def parsers(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    """Yield a parser and those of its actions."""
    yield parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for inner in action.choices.values():
                yield from parsers(inner)


def examples(name: str) -> list[list[str]]:
    """Return the command lines that the helps of a command and its actions show."""
    (command,) = (parser for parser in parsers(build_parser([name])) if parser.prog == f"odradek {name}")
    shown = "\n".join((parser.epilog or "").partition("examples:\n")[2] for parser in parsers(command))
    whole = re.sub(r"\\\n\s+", "", shown)
    lines = [part for line in re.findall(r"^  (\S.*)$", whole, re.MULTILINE) for part in line.split(" | ")]
    return [shlex.split(re.split(" [<>] ", line)[0])[1:] for line in lines if line.startswith("odradek ")]


@pytest.mark.parametrize("name", COMMANDS)
def test_every_example_of_a_help_is_understood(name: str) -> None:
    shown = examples(name)

    assert shown
    for line in shown:
        assert "run" in build_parser(line).parse_args(line)


@pytest.mark.parametrize(
    ("line", "read"),
    [
        ("produce -z gzip t -K : a b", {"topic": "t", "files": ["a", "b"], "compress": "gzip", "key_delimiter": ":"}),
        ("produce t a -X linger.ms=1 b", {"topic": "t", "files": ["a", "b"], "client_options": ["linger.ms=1"]}),
        ("produce t -k x", {"topic": "t", "files": [], "key": "x"}),
        ("produce t -k x -- -a", {"topic": "t", "files": ["-a"], "key": "x"}),
        ("configs describe topic -b h:1 t", {"kind": "topic", "name": "t", "bootstrap": "h:1"}),
        ("topics delete t -b h:1 u", {"topics": ["t", "u"], "bootstrap": "h:1"}),
        ("topics list --json", {"pattern": "*", "json": True}),
        ("log dump a --json b", {"json": True}),
    ],
)
def test_options_may_stand_between_operands(line: str, read: dict[str, Any]) -> None:
    parsed = vars(build_parser(line.split()).parse_args(line.split()))

    assert {name: parsed[name] for name in read} == read


@pytest.mark.parametrize("line", ["produce", "produce -k x", "topics delete", "groups reset g t", "topics list a b"])
def test_operands_and_choices_that_are_needed_are_still_asked_for(line: str) -> None:
    with pytest.raises(SystemExit):
        build_parser(line.split()).parse_args(line.split())


PARTITIONS = "there is no option '--partitons' (did you mean '--partitions'?)"
MISTAKES = {
    "topics create orders --partitons 3": ("topics create", PARTITIONS),
    "topics create --partitons 3": ("topics create", PARTITIONS),
    "topics create --partitons=3 orders": ("topics create", PARTITIONS),
    "topics list --jsno": ("topics list", "there is no option '--jsno' (did you mean '--json'?)"),
    "topics list -y": ("topics list", "there is no option '-y'"),
    "topics lst": (
        "topics",
        "there is no 'lst' (did you mean 'list'?; there are: list, create, describe, alter, delete, adopt)",
    ),
    "topics --jsno list": ("topics", "there is no option '--jsno'"),
    "topics create --topic orders": ("topics create", "there is no option '--topic' (TOPIC is written without it)"),
    "topics list a b c": ("topics list", "too many words: b c"),
    "serve --port 9093": ("serve", "there is no option '--port' (--listen HOST:PORT)"),
    "serve --log-level info": ("serve", "there is no option '--log-level' (-v; twice: everything)"),
    "serve orders": ("serve", "too many words: orders"),
    "consume t --from-begining": ("consume", "there is no option '--from-begining'"),
    "produce t --compress gzp": (
        "produce",
        "argument -z/--compress: 'gzp' is none of none, gzip, snappy, lz4, zstd (did you mean 'gzip'?)",
    ),
    "log dmp x": ("log", "there is no 'dmp' (did you mean 'dump'?; there are: dump)"),
    "tiered verfy": ("tiered", "there is no 'verfy' (did you mean 'verify'?; there are: verify, restore)"),
    "--vresion": ("", "there is no option '--vresion' (did you mean '--version'?)"),
}
"""Command line to whose usage it gets and what it is told."""


@pytest.mark.parametrize("line", MISTAKES)
def test_a_mistake_gets_the_usage_of_what_was_asked_and_the_nearest_name(line: str, command: Any) -> None:
    name, told = MISTAKES[line]
    program = f"odradek {name}".strip()

    done = command.run(*line.split())

    assert done.status == 2
    assert done.err.startswith(f"usage: {program} ")
    assert f"{program}: error: {told}" in done.err


@pytest.mark.parametrize("name", ["topics", "groups", "configs", "log"])
def test_a_command_without_its_action_shows_which_there_are(name: str, command: Any) -> None:
    done = command.run(name)

    assert done.status == 2
    assert done.out == command.run(name, "--help").out


def test_plugins_alone_lists_them(command: Any) -> None:
    assert command.run("plugins") == command.run("plugins", "list")
    assert command.run("plugins").status == 0
