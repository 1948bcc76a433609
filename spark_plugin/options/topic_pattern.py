r"""Pure core: `subscribePattern`: a regular expression of Java's, read by Python's `re` where both mean the same.

Most expressions for topics do. What means another thing in Python, or nothing, is refused with what to write instead:
classes within classes, `\p{...}`, `\Q...\E`, named groups as Java writes them, flags in the middle.

As in Spark's Kafka connector (4.2.0, with the offsets read by the admin client, its default), an expression need match
only *some part* of a name: `orders` finds `orders-eu` too, and `^orders$` does not.

*Source:* `java.util.regex.Pattern` of Java 17; the `re` module of Python 3.11; the connector itself, by running it.
"""

from __future__ import annotations

import re
from typing import Final

from ..errors import OptionError

__all__ = ["compile_pattern"]

OPTION: Final = "subscribePattern"

_JAVA_ESCAPES: Final = {
    "p": "name the characters, for instance [A-Za-z]",
    "P": "name the characters, for instance [^A-Za-z]",
    "Q": "escape the characters one by one, for instance a\\.b",
    "E": "escape the characters one by one, for instance a\\.b",
    "z": "write $",
    "G": "there is no previous match here",
    "R": "no topic has line breaks",
    "X": "write .",
    "h": "no topic has blanks",
    "H": "write .",
    "V": "write .",
    "k": "write the group out again",
    "c": "no topic has control characters",
    "e": "no topic has control characters",
    "N": "name the characters",
    "0": "name the character itself",
}
"""Escapes that Java knows and Python does not, or knows otherwise, with what to do instead."""

_TOKEN: Final = re.compile(r"\\(?P<escape>.)|(?P<class>\[\^?\]?)|(?P<group>\(\?[^)]{0,12})", re.DOTALL)
_CLASS_TOKEN: Final = re.compile(r"\\(?P<escape>.)|(?P<end>\])|(?P<nested>\[)|(?P<both>&&)", re.DOTALL)
_FLAGS: Final = re.compile(r"\(\?(?P<flags>[A-Za-z-]*)(?P<end>[:)])")
_PYTHON_FLAGS: Final = frozenset("ims")


def compile_pattern(pattern: str) -> re.Pattern[str]:
    """Return the expression for Python; `search` it in names.

    Raises:
        OptionError: It is empty, wrong, or means another thing in Python.
    """
    text = pattern.strip()
    if not text:
        raise OptionError(
            OPTION, f"Pattern to subscribe is empty as specified value for option '{OPTION}' is '{pattern}'"
        )
    _refuse_what_differs(text)
    try:
        # Of Java's classes \d, \w and \s mean ASCII.
        return re.compile(text, re.ASCII)
    except (re.error, RecursionError, OverflowError) as error:
        raise _refused(text, f"it is no regular expression: {error}") from None


def _refuse_what_differs(text: str) -> None:
    position = 0
    while found := _TOKEN.search(text, position):
        position = found.end()
        if found["escape"]:
            _refuse_escape(text, found["escape"])
        elif found["class"]:
            position = _end_of_class(text, position)
        else:
            _refuse_group(text, found.start())
            position = found.start() + 2


def _end_of_class(text: str, position: int) -> int:
    while found := _CLASS_TOKEN.search(text, position):
        position = found.end()
        if found["end"]:
            return position
        if found["nested"] or found["both"]:
            raise _refused(text, "'[' and '&&' in a class join and cross classes in Java alone: list the characters")
        _refuse_escape(text, found["escape"])
    return len(text)


def _refuse_escape(text: str, letter: str) -> None:
    if letter in _JAVA_ESCAPES:
        raise _refused(text, f"'\\{letter}' is Java's alone: {_JAVA_ESCAPES[letter]}")


def _refuse_group(text: str, start: int) -> None:
    if re.match(r"\(\?<[A-Za-z]", text[start:]):
        raise _refused(text, "a named group '(?<name>' is Java's alone: write '('")
    found = _FLAGS.match(text, start)
    if found is None or not found["flags"]:
        return
    if not set(found["flags"].replace("-", "")) <= _PYTHON_FLAGS:
        raise _refused(text, f"the flags '{found[0]}' mean another thing in Python: i, m and s are understood")
    if found["end"] == ")" and (start > 0 or "-" in found["flags"]):
        raise _refused(text, f"flags like '{found[0]}' stand at the very beginning, or as '(?i:...)' where they hold")


def _refused(text: str, why: str) -> OptionError:
    return OptionError(OPTION, f"option '{OPTION}' is '{text}', which is not understood: {why}")
