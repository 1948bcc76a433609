"""Shell: options that several commands share, and the form of their help."""

from __future__ import annotations

import argparse
import sys
import textwrap
from itertools import takewhile
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NoReturn

from odradek.kernel.errors import ConfigError

from . import mistakes

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

WIDTH: Final = 79
DEFAULT_BOOTSTRAP: Final = "127.0.0.1:9092"
_TAKES_THE_REST: Final = (argparse.PARSER, argparse.REMAINDER)
EXIT_USAGE: Final = 2
PORT_MAX: Final = 0xFFFF
EXIT_STATUS: Final = "0 done, 1 it went wrong, 2 wrong usage or configuration, 130 interrupted"


class CommandParser(argparse.ArgumentParser):
    """A parser that takes options between operands: `odradek produce orders -K : orders.txt`.

    argparse itself gives an operand that may be absent nothing at all, once an option follows the one before it.

    Attributes:
        hint: What to do about its errors; may be empty.
        meant: Options that it has not, by which people ask for something all the same, to what to write.
    """

    hint: str = ""
    meant: Mapping[str, str] = MappingProxyType({})
    _is_intermixed = False

    def error(self, message: str) -> NoReturn:
        """End with an error, and with the hint."""
        super().error(f"{message} ({self.hint})" if self.hint else message)

    # Pyright misses `namespace` for the stub's overload that takes it by keyword alone.
    def parse_known_args(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, args: Any = None, namespace: Any = None
    ) -> Any:
        """Read the options, then the operands out of what is left; where actions follow, those read the rest.

        What nobody knows ends here: whoever asked sees the usage of this command, not that of the outermost one.
        """
        if self._is_intermixed:
            return super().parse_known_args(args, namespace)
        words = sys.argv[1:] if args is None else list(args)
        actions = next((each for each in self._get_positional_actions() if each.nargs in _TAKES_THE_REST), None)
        if actions is not None:
            if not words and actions.required:
                self.print_help()
                self.exit(EXIT_USAGE)
            read, left = super().parse_known_args(words, namespace)
        else:
            # First, as an operand that is missing beside a misspelt option is hardly what the person wants to hear of.
            self._refuse(word for word in takewhile(lambda word: word != "--", words) if self._is_unknown(word))
            self._is_intermixed = True  # it calls this method
            try:
                read, left = self.parse_known_intermixed_args(words, namespace)
            finally:
                self._is_intermixed = False
        self._refuse(word for word in left if word.startswith("-"))
        if left:
            self.error(f"too many words: {' '.join(left)}")
        return read, left

    def _is_unknown(self, word: str) -> bool:
        """Whether a word can be nothing but an option, and there is none that begins so."""
        name = word.partition("=")[0]
        is_option = name.startswith("--") and " " not in word
        return is_option and not any(known.startswith(name) for known in self._option_string_actions)

    def _refuse(self, options: Iterable[str]) -> None:
        for word in options:
            name = word.partition("=")[0]
            self.error(f"there is no option {name!r}{mistakes.of_option(name, self._names(), self.meant)}")

    def _names(self) -> dict[str, bool]:
        """Return the names of options and operands, and which of them are operands."""
        options = dict.fromkeys(self._option_string_actions, False)
        return options | {str(each.metavar or each.dest): True for each in self._get_positional_actions()}

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """See that a value is one of the choices, if there are any; argparse calls this."""
        if action.choices is None or value in action.choices:
            return
        choices = [str(choice) for choice in action.choices]
        if action.nargs == argparse.PARSER:
            self.error(f"there is no {value!r}{mistakes.of_choice(value, choices, tell_all=True)}")
        hint = mistakes.of_choice(value, choices)
        raise argparse.ArgumentError(action, f"{value!r} is none of {', '.join(choices)}{hint}")


def document(
    parser: argparse.ArgumentParser,
    text: str,
    examples: Sequence[tuple[str, str]] = (),
    *,
    notes: str = "",
    exit_status: str = EXIT_STATUS,
) -> None:
    """Give a command its help: what it does, examples, what its exit status says.

    Args:
        parser: The command's.
        text: What it does, in paragraphs between empty lines.
        examples: Command lines, without the leading `odradek`, each with what it does.
        notes: Lines that stand as they are between the options and the examples.
        exit_status: What the exit status says.
    """
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.description = "\n\n".join(textwrap.fill(" ".join(part.split()), WIDTH) for part in text.split("\n\n"))
    parts = [textwrap.dedent(notes).strip()] if notes else []
    if examples:
        lines = [f"  odradek {command}\n      {what}" for command, what in examples]
        parts.append("examples:\n" + "\n".join(lines))
    parts.append(textwrap.fill(f"exit status: {exit_status}", WIDTH, subsequent_indent="  "))
    parser.epilog = "\n\n".join(parts)


def add_client_options(parser: argparse.ArgumentParser) -> None:
    """Let a command be told which broker to talk to, and how."""
    group = parser.add_argument_group("connection")
    group.add_argument(
        "-b",
        "--bootstrap",
        default=DEFAULT_BOOTSTRAP,
        metavar="HOST:PORT",
        help=f"a broker of the cluster, or several between commas (default {DEFAULT_BOOTSTRAP})",
    )
    group.add_argument(
        "-X",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        dest="client_options",
        help="a setting of the client under its name in Kafka, such as -X linger.ms=5; may be given several times",
    )


def natural(text: str) -> int:
    """Read a whole number that is not negative, for argparse.

    Raises:
        argparse.ArgumentTypeError: It is none.
    """
    if not text.isascii() or not text.isdigit():
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number of 0 or more")
    return int(text)


def positive(text: str) -> int:
    """Read a whole number above 0, for argparse.

    Raises:
        argparse.ArgumentTypeError: It is none.
    """
    number = natural(text)
    if not number:
        raise argparse.ArgumentTypeError("expected at least 1")
    return number


def host_port(text: str) -> tuple[str, int]:
    """Read `HOST:PORT`, for argparse; an IPv6 host stands in brackets.

    Raises:
        argparse.ArgumentTypeError: It is none.
    """
    host, _, port = text.strip().rpartition(":")
    if not host.strip("[]") or not port.isascii() or not port.isdigit() or int(port) > PORT_MAX:
        raise argparse.ArgumentTypeError(f"expected HOST:PORT, not {text!r}")
    return host.strip("[]"), int(port)


def directory(text: str) -> Path:
    """Read the path of a directory, for argparse.

    Raises:
        argparse.ArgumentTypeError: It is empty, as a script's variable may be; a path made of it would be `.`.
    """
    if not text:
        raise argparse.ArgumentTypeError("it is empty (. is the working directory)")
    return Path(text)


def add_json_option(parser: argparse.ArgumentParser) -> None:
    """Let a command write JSON."""
    parser.add_argument("--json", action="store_true", help="write JSON, for scripts")


def client_settings(arguments: argparse.Namespace, **defaults: object) -> dict[str, object]:
    """Return the settings of a client: what the command wants, under what the command line says.

    Args:
        arguments: Parsed by a parser with `add_client_options`.
        defaults: The command's own wishes, dots as they are or as underscores.

    Raises:
        ConfigError: An option is no `key=value`.
    """
    settings: dict[str, object] = {key.replace("_", "."): value for key, value in defaults.items()}
    return {**settings, "bootstrap.servers": arguments.bootstrap, **pairs(arguments.client_options, "-X")}


def pairs(texts: Sequence[str], option: str) -> dict[str, str]:
    """Read `key=value` options.

    Raises:
        ConfigError: One is none.
    """
    read = {}
    for text in texts:
        key, separator, value = text.partition("=")
        if not separator or not key.strip():
            raise ConfigError("expected key=value", where=f"{option} {text}")
        read[key.strip()] = value
    return read


class ShowVersion(argparse.Action):
    """Prints the version, and what does its work in Python for want of a compiler, and ends."""

    def __init__(self, option_strings: Sequence[str], dest: str, help: str) -> None:  # noqa: A002 - argparse's name
        super().__init__(option_strings, argparse.SUPPRESS, nargs=0, default=argparse.SUPPRESS, help=help)

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        """Print and end."""
        from odradek import __version__
        from odradek.kernel.machine.system.compiled_parts import missing_parts, told

        print(f"odradek {__version__}")
        if line := told(missing_parts()):
            print(line)
        parser.exit()
