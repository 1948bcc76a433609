"""Pure core: what may follow each command, read from its parser, for scripts that complete command lines."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Final, cast

import attrs

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

FILE: Final = "<file>"
ANYTHING: Final = "<anything>"
_METAVARS_OF_FILES: Final = {"FILE", "DIR", "PATH", "SCRIPT"}


@attrs.frozen
class Option:
    """One option.

    Attributes:
        names: With their dashes.
        summary: What its help says, on one line.
        values: What may follow it: nothing for a flag, `FILE`, `ANYTHING`, or the choices.
    """

    names: Sequence[str]
    summary: str
    values: Sequence[str] = ()


@attrs.frozen
class Node:
    """A command, or an action of one.

    Attributes:
        path: The words that lead here, without the program's name.
        commands: What may follow, to summaries.
        options: Its options, those of the words before not among them.
        operands: What its operands may be: `FILE`, or choices; empty when nobody can know.
    """

    path: str
    commands: Mapping[str, str]
    options: Sequence[Option]
    operands: Sequence[str]


def nodes(parser: argparse.ArgumentParser, path: str = "") -> Iterator[Node]:
    """Yield a parser and all that follow its words, outermost first."""
    commands: dict[str, str] = {}
    inner: dict[str, argparse.ArgumentParser] = {}
    options: list[Option] = []
    operands: list[str] = []
    for action in parser._actions:  # noqa: SLF001 - there is no public way to ask a parser what it takes
        if action.nargs == argparse.PARSER:
            inner = dict(cast("Mapping[str, argparse.ArgumentParser]", action.choices))
            choices = cast("argparse._SubParsersAction[argparse.ArgumentParser]", action)._choices_actions  # noqa: SLF001
            summaries = {choice.dest: choice.help for choice in choices}
            commands = {name: _one_line(summaries.get(name)) for name in inner}
        elif action.option_strings:
            values = _values(action) if action.nargs != 0 else ()
            options.append(Option(tuple(action.option_strings), _one_line(action.help), values))
        else:
            operands += [value for value in _values(action) if value != ANYTHING]
    yield Node(path, commands, options, operands)
    for name, command in inner.items():
        yield from nodes(command, f"{path} {name}".strip())


def _values(action: argparse.Action) -> Sequence[str]:
    if action.choices is not None:
        return tuple(map(str, action.choices))
    return (FILE,) if action.metavar in _METAVARS_OF_FILES else (ANYTHING,)


def _one_line(text: str | None) -> str:
    """Return a help as a plain line: argparse doubles its percent signs."""
    return " ".join((text or "").split()).replace("%%", "%")
