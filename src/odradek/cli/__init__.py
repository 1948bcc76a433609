"""Shell: the `odradek` command.

Commands are modules of this package, imported only when they are the one that was asked for: `odradek --help` stays
quick. Each has `configure(parser)` and `run(arguments) -> exit status`. A command that a plugin brings is looked for
among the plugins only when the kernel has none of its name.

Exit status: 0 done, 1 it went wrong, 2 the command line or the configuration is wrong, 130 interrupted.
"""

from __future__ import annotations

import gc
import importlib
import os
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from odradek.kernel.errors import ConfigError, KafkaError, OdradekError, PluginError, UnansweredError

from .mistakes import nearest
from .options import EXIT_USAGE, CommandParser, ShowVersion

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence
    from types import ModuleType
    from typing import TextIO

COMMANDS: Final = {
    "demo": "see it work: a broker, a real data set, checked, in a few seconds",
    "serve": "run a broker in the foreground",
    "cluster": "show which brokers a cluster has and what is wrong with it, and take brokers out of use",
    "reassign": "move partitions to other brokers: make a plan, execute it, see how far it is, cancel it",
    "elect": "let preferred replicas lead again, or some replica that lacks records",
    "topics": "list, create, describe, alter, delete and adopt topics",
    "configs": "show and change the settings of topics, brokers and groups while they run",
    "groups": "list, describe (with lag) and delete groups of consumers, and reset their offsets",
    "transactions": "list, describe, find those that hang and end them",
    "delay": "list, show and withdraw records that wait until they are due, and wait for them",
    "retry": "have what a group failed given back later, and in the end kept as dead letters",
    "dlq": "list, show, replay and purge dead letters",
    "produce": "write records from files or standard input",
    "consume": "read records from any place in a topic",
    "log": "show what is inside segments, indexes and checkpoints on disk",
    "tiered": "check the bucket of tiered topics, and restore topics from it",
    "assign": "see who of a group would read what, by every assignor, as members come and go",
    "perf": "measure how fast a broker takes and gives records",
    "compare": "run one workload over combinations of settings, and show what each takes and gives",
    "sim": "run brokers and clients on virtual time, with crashes, seed by seed",
    "plugins": "list what is installed, what is active, and who ships it",
    "config": "explain every configuration key",
    "format": "make a node's log directories a cluster's by hand, as kafka-storage does",
    "cluster-id": "draw a new id for a cluster, or for a controller's directory",
    "completion": "write a script by which a shell completes these commands",
}
"""The commands that come with this distribution, in the order in which `--help` lists them."""

OF_PLUGINS: Final = frozenset({"log", "tiered"})
"""Those among them that a plugin brings: the kernel knows how they are called, not who has them."""

EXIT_DONE: Final = 0
EXIT_FAILED: Final = 1
EXIT_INTERRUPTED: Final = 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line.

    Args:
        argv: The arguments, without the program's name; the process's own by default.

    Returns:
        The exit status.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    _open_standard_streams()
    parsed: argparse.Namespace | None = None
    try:
        parser = build_parser(arguments)
        parsed = parser.parse_args(arguments)
        if "run" not in parsed:
            parser.print_help()
            _flush_output()
            return EXIT_USAGE
        status: int = parsed.run(parsed)
        sys.stdout.flush()
    except SystemExit as end:  # argparse has printed the help, the version or the usage
        status = _flush_output()
        if end.code or not status:
            raise
    except (Exception, KeyboardInterrupt, BaseExceptionGroup) as error:
        status = report(innermost(error))
        if getattr(parsed, "verbose", 0):
            show_cause(innermost(error))
    finally:
        drop_unwritten()
    return status


def _open_standard_streams() -> None:
    """Let standard streams that were closed (`odradek serve >&-`) lead nowhere.

    Files take the lowest numbers that are free: without this a log's file could be what is written to as an error.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), mode, encoding="utf-8"))


def innermost(error: BaseException) -> BaseException:
    """Return the one exception that tells what happened: an interruption, or the only one of a group."""
    while isinstance(error, BaseExceptionGroup):
        interrupted = error.subgroup(KeyboardInterrupt)
        if interrupted is None and len(error.exceptions) > 1:
            break
        error = (interrupted or error).exceptions[0]
    return error


def report(error: BaseException) -> int:
    """Tell a person what went wrong, a line for each error of a group, and return the (highest) exit status.

    Raises:
        BaseException: `error` itself, when it is a bug of ours: its traceback is what helps.
    """
    match error:
        case BaseExceptionGroup() if error.split((OdradekError, OSError))[1] is None:
            return max(report(inner) for inner in error.exceptions)
        case KeyboardInterrupt():
            return EXIT_INTERRUPTED
        case BrokenPipeError():  # the reader of our output has seen enough
            return EXIT_DONE
        case UnansweredError():
            text, status = str(error), EXIT_FAILED
        case ConfigError():
            text, status = str(error), EXIT_USAGE
        case KafkaError():
            text, status = f"{error.code.name}: {error.detail}", EXIT_FAILED
        case OdradekError():
            text, status = str(error), EXIT_FAILED
        case OSError():
            place = f"{error.filename}: " if error.filename else ""
            text, status = f"{place}{error.strerror or error}", EXIT_FAILED
        case _:
            raise error
    say(text)
    return status


def say(text: str) -> None:
    """Tell a person that something is not as it should be, in a line that says of whom it comes."""
    note(f"odradek: {text}")


def note(text: str) -> None:
    """Tell a person a line that is no result: standard output is for what was asked for, and may be another program's.

    That it cannot be written (the disk is full, whoever read it is gone) holds nothing up.
    """
    with suppress(OSError):
        print(text, file=sys.stderr, flush=True)


def show_cause(error: BaseException) -> None:
    """Show the traceback of what made a plugin fail, for its author; of other errors one line says all."""
    if isinstance(error, PluginError) and error.__cause__ is not None:
        import traceback

        traceback.print_exception(error.__cause__)


def _flush_output() -> int:
    """Write what is still buffered; return the status for how that went: a reader that is gone changes nothing."""
    try:
        sys.stdout.flush()
    except OSError as error:
        return report(error)
    return EXIT_DONE


def drop_unwritten(*streams: TextIO) -> None:
    """Try to write what is still buffered, of these or both, and let go what nobody takes: no more is written then.

    The end of the process would try it once more, and make of a failure a status that tells nothing: 120.
    """
    for stream in streams or (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):  # or it is closed
            _drop(stream)


def _drop(stream: TextIO) -> None:
    """Let what is still buffered go nowhere, so that flushing it at the end of the process does not fail again."""
    with suppress(OSError, ValueError):  # it is no file
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


def _empty_parser() -> argparse.ArgumentParser:
    return CommandParser(
        prog="odradek",
        description="An event-streaming broker that speaks the Kafka protocol.",
        epilog="`odradek COMMAND --help` says more about each. Plugins may bring more commands: `odradek plugins list` "
        "shows them. Start with `odradek demo`.",
    )


def build_parser(arguments: Sequence[str]) -> argparse.ArgumentParser:
    """Return the parser, complete for the command that `arguments` ask for, a list of names for the others.

    Where they begin with a command nobody gets to see the others, and they are left out: each is a parser of its own.

    Raises:
        ConfigError: There is no such command.
    """
    parser = _empty_parser()
    parser.add_argument("--version", action=ShowVersion, help="show the version, and what is not compiled here")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    asked = next((argument for argument in arguments if not argument.startswith("-")), "")
    asks_plugins = bool(asked) and (asked not in COMMANDS or asked in OF_PLUGINS)
    is_first = bool(asked) and arguments[0] == asked and not asks_plugins
    for name, summary in COMMANDS.items():
        if (asks_plugins and name in OF_PLUGINS) or (is_first and name != asked):
            continue  # the plugin adds it itself, or nobody sees it
        command = commands.add_parser(name, help=summary, description=summary)
        if name == asked:
            module = _imported(name)
            module.configure(command)
            command.set_defaults(run=module.run)
    if asks_plugins:
        add_plugin_commands(commands)
        _check_command(asked, list(commands.choices))
    return parser


def _imported(name: str) -> ModuleType:
    """Import a command, without a collection: what imports make stays, and looking through it takes a tenth of them."""
    module = _module_of(name)
    if f"{__name__}{module}" in sys.modules or not gc.isenabled():
        return importlib.import_module(module, __name__)
    gc.disable()
    try:
        return importlib.import_module(module, __name__)
    finally:
        gc.freeze()  # else the first collection looks through all of it
        gc.enable()


def _module_of(name: str) -> str:
    return f".{name.replace('-', '_')}"


def whole_parser() -> argparse.ArgumentParser:
    """Return the parser complete for every command, those of plugins too."""
    parser = _empty_parser()
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    for name, summary in COMMANDS.items():
        if name not in OF_PLUGINS:
            importlib.import_module(_module_of(name), __name__).configure(commands.add_parser(name, help=summary))
    add_plugin_commands(commands)
    return parser


def _check_command(asked: str, known: Sequence[str]) -> None:
    """See that somebody has the command.

    Raises:
        ConfigError: Nobody has; the hint names what was probably meant.
    """
    if asked in known:
        return
    if asked in COMMANDS:
        raise ConfigError(f"the plugin that brings `odradek {asked}` is not installed", hint="odradek plugins list")
    found = nearest(asked, [*known, *COMMANDS])
    hint = f"did you mean {found!r}?" if found else "odradek --help lists them"
    raise ConfigError(f"there is no command {asked!r}", hint=hint)


def add_plugin_commands(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Let installed plugins add their commands; one that cannot be loaded is reported and left out."""
    from odradek.kernel.plugin_system.manager import PluginManager, installed_plugins

    from .restoring import restore_topics

    manager = PluginManager()
    for found in installed_plugins():
        try:
            manager.load([found])
        except OdradekError as error:
            say(str(error))
    manager.cli_commands(commands, restore_topics)
