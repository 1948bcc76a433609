r"""Pure core: Java's properties syntax, as `server.properties` is written.

Natural lines end with a line feed, a carriage return or both. A line that begins with `#` or `!` is a comment; one that
ends with an odd number of backslashes goes on in the next, whose leading blanks are dropped. The key ends at the first
blank, `=` or `:` that has no backslash; blanks and one `=` or `:` after it are skipped. `\t`, `\n`, `\r`, `\f` and
`\uXXXX` are escapes; a backslash before anything else is dropped.

*Source:* the Java SE documentation of `Properties.load`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from ..errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator

_BLANKS: Final = " \t\f"
_ESCAPES: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_LINE_END: Final = re.compile(r"\r\n|\n|\r")
_KEY: Final = re.compile(r"(?:\\.|[^\\ \t\f=:])*", re.DOTALL)
_SEPARATOR: Final = re.compile(r"[ \t\f]*[=:]?[ \t\f]*")
_ESCAPE: Final = re.compile(r"\\(u[0-9a-fA-F]{4}|.|$)", re.DOTALL)


class Property(NamedTuple):
    """One entry, with the number of the line it begins on, from 1."""

    key: str
    value: str
    line: int


def parse_properties(text: str, name: str) -> list[Property]:
    r"""Parse a properties text.

    Args:
        text: The whole text.
        name: The file's name, for errors.

    Returns:
        Every entry in the order of the file; a key may come twice, then the last one counts.

    Raises:
        ConfigError: A `\u` is not followed by four hexadecimal digits.
    """
    entries = []
    for line, number in _logical_lines(text):
        key = _KEY.match(line)
        assert key is not None, "the pattern matches the empty text"
        rest = _SEPARATOR.match(line, key.end())
        assert rest is not None, "the pattern matches the empty text"
        where = f"{name}, line {number}"
        entries.append(Property(_unescape(key[0], where), _unescape(line[rest.end() :], where), number))
    return entries


def _logical_lines(text: str) -> Iterator[tuple[str, int]]:
    """Join continued lines; drop comments and blank lines."""
    gathered = ""
    first = 0  # the number of the line that began what is gathered; 0 when nothing is
    for number, natural in enumerate(_LINE_END.split(text), start=1):
        line = natural.lstrip(_BLANKS)
        if not first:
            if not line or line[0] in "#!":
                continue
            first = number
        gathered += line
        backslashes = len(line) - len(line.rstrip("\\"))
        if backslashes % 2:
            gathered = gathered[:-1]
            continue
        yield gathered, first
        gathered, first = "", 0
    if first:
        yield gathered, first


def _unescape(text: str, where: str) -> str:
    def replace(match: re.Match[str]) -> str:
        escape = match[1]
        if len(escape) == 5:
            return chr(int(escape[1:], 16))
        if escape == "u":
            raise ConfigError(
                "a \\u must be followed by four hexadecimal digits",
                where=where,
                hint="a backslash itself is written twice",
            )
        return _ESCAPES.get(escape, escape)

    unescaped = _ESCAPE.sub(replace, text)
    # Two escapes may make one character outside the basic plane, as Java writes it.
    return unescaped.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
