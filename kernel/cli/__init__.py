"""Shell: the `odradek` command.

Commands are modules of this package, imported only when they are the one that was asked for: `odradek --help` stays
quick. Each has `configure(parser)` and `run(arguments) -> exit status`.

Exit status: 0 done, 1 it went wrong, 2 the command line or the configuration is wrong, 130 interrupted.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from typing import TYPE_CHECKING, Final

from ..errors import ConfigError, KafkaError, OdradekError

if TYPE_CHECKING:
    from collections.abc import Sequence

COMMANDS: Final = {
    "serve": "run a broker in the foreground",
}
"""The kernel's commands, in the order in which `--help` lists them."""

EXIT_FAILED: Final = 1
EXIT_USAGE: Final = 2
EXIT_INTERRUPTED: Final = 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line.

    Args:
        argv: The arguments, without the program's name; the process's own by default.

    Returns:
        The exit status.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    parser = build_parser(arguments)
    parsed = parser.parse_args(arguments)
    if "run" not in parsed:
        parser.print_help()
        return EXIT_USAGE
    try:
        status: int = parsed.run(parsed)
    except (Exception, KeyboardInterrupt) as error:
        status = report(innermost(error))
    return status


def innermost(error: BaseException) -> BaseException:
    """Return the one exception that groups of one hold; a group of several as it is."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error


def report(error: BaseException) -> int:
    """Tell a person what went wrong and return the exit status.

    Raises:
        BaseException: `error` itself, when it is a bug of ours: its traceback is what helps.
    """
    match error:
        case KeyboardInterrupt():
            return EXIT_INTERRUPTED
        case BrokenPipeError():  # the reader of our output has seen enough
            sys.stderr.close()
            return EXIT_FAILED
        case ConfigError():
            print(f"odradek: {error}", file=sys.stderr)
            return EXIT_USAGE
        case KafkaError():
            print(f"odradek: {error.code.name}: {error.detail}", file=sys.stderr)
            return EXIT_FAILED
        case OdradekError():
            print(f"odradek: {error}", file=sys.stderr)
            return EXIT_FAILED
        case _:
            raise error


def build_parser(arguments: Sequence[str]) -> argparse.ArgumentParser:
    """Return the parser, complete for the command that `arguments` ask for, a list of names for the others."""
    from odradek import __version__

    parser = argparse.ArgumentParser(
        prog="odradek",
        description="An event-streaming broker that speaks the Kafka protocol.",
        epilog="`odradek COMMAND --help` tells more of each. Start with `odradek demo`.",
    )
    parser.add_argument("--version", action="version", version=f"odradek {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    asked = next((argument for argument in arguments if not argument.startswith("-")), "")
    for name, summary in COMMANDS.items():
        command = commands.add_parser(name, help=summary, description=summary)
        if name == asked:
            module = importlib.import_module(f".{name.replace('-', '_')}", __name__)
            module.configure(command)
            command.set_defaults(run=module.run)
    if asked not in COMMANDS:
        add_plugin_commands(commands)
    return parser


def add_plugin_commands(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Let installed plugins add their commands; one that cannot be loaded is reported and left out."""
    from ..plugin_manager import PluginManager, installed_plugins

    manager = PluginManager()
    for found in installed_plugins():
        try:
            manager.load([found])
        except OdradekError as error:
            print(f"odradek: {error}", file=sys.stderr)
    manager.cli_commands(commands)
