r"""Pure core: how `odradek consume` writes a record: by a format as kcat has it, or as a line of JSON.

| in a format | becomes | | in a format | becomes |
| --- | --- | --- | --- | --- |
| `%s` | value | | `%t` | topic |
| `%S` | value's size in bytes, -1 for null | | `%p` | partition |
| `%k` | key | | `%o` | offset |
| `%K` | key's size in bytes, -1 for null | | `%T` | timestamp, milliseconds since 1970 |
| `%h` | headers, `name=value,name=value` | | `%%` | a percent sign |
| `\n \r \t \\` | as in C | | `\xNN` | the byte NN |

In JSON a key, value or header that is not UTF-8 stands as `{"base64": "..."}`; `record_lines.py` reads all this back.

*Source:* the formats of kcat's `-f`.
"""

from __future__ import annotations

import base64
import json
import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from odradek.kernel.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

JsonBytes: TypeAlias = "str | dict[str, str] | None"

_PIECE: Final = re.compile(r"%(.?)|\\(x[0-9A-Fa-f]{2}|.?)", re.DOTALL)
_ESCAPES: Final = {"n": b"\n", "r": b"\r", "t": b"\t", "\\": b"\\", "0": b"\0"}


class ShownRecord(NamedTuple):
    """A record with all that may be shown of it."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes | None]]

    @classmethod
    def of(cls, record: Any) -> ShownRecord:
        """Return what a consumer of our client was given, its deserializers having left the bytes alone."""
        return cls(
            record.topic,
            record.partition,
            record.offset,
            record.timestamp,
            record.key,
            record.value,
            record.headers,
        )


def compile_format(text: str, *, null: bytes = b"") -> Callable[[ShownRecord], bytes]:
    """Return the function that writes a record by a format.

    Args:
        text: The format.
        null: What stands for a key or value that is null.

    Raises:
        ConfigError: The format has an unknown `%` or backslash in it.
    """
    pieces: list[bytes | Callable[[ShownRecord], bytes]] = []
    position = 0
    for match in _PIECE.finditer(text):
        pieces.append(text[position : match.start()].encode())
        pieces.append(_token(match[1], null) if match[1] is not None else _escape(match[2]))
        position = match.end()
    pieces.append(text[position:].encode())

    def write(record: ShownRecord) -> bytes:
        return b"".join(piece if isinstance(piece, bytes) else piece(record) for piece in pieces)

    return write


def unescape(text: str) -> bytes:
    r"""Return a delimiter's bytes: `\n`, `\t`, `\x00` and the like as in C.

    Raises:
        ConfigError: It has an unknown backslash in it.
    """
    parts = []
    position = 0
    for match in re.finditer(r"\\(x[0-9A-Fa-f]{2}|.?)", text, re.DOTALL):
        parts += [text[position : match.start()].encode(), _escape(match[1])]
        position = match.end()
    return b"".join((*parts, text[position:].encode()))


def _token(letter: str, null: bytes) -> bytes | Callable[[ShownRecord], bytes]:
    def headers(record: ShownRecord) -> bytes:
        return b",".join(
            name.encode(errors="surrogateescape") + b"=" + (null if value is None else value)
            for name, value in record.headers
        )

    tokens: dict[str, bytes | Callable[[ShownRecord], bytes]] = {
        "%": b"%",
        "s": lambda record: null if record.value is None else record.value,
        "S": lambda record: b"-1" if record.value is None else b"%d" % len(record.value),
        "k": lambda record: null if record.key is None else record.key,
        "K": lambda record: b"-1" if record.key is None else b"%d" % len(record.key),
        "t": lambda record: record.topic.encode(),
        "p": lambda record: b"%d" % record.partition,
        "o": lambda record: b"%d" % record.offset,
        "T": lambda record: b"%d" % record.timestamp,
        "h": headers,
    }
    if letter not in tokens:
        known = " ".join(f"%{known}" for known in tokens)
        raise ConfigError(f"unknown %{letter} in the format", hint=f"known are {known}")
    return tokens[letter]


def _escape(text: str) -> bytes:
    if len(text) > 1:
        return bytes([int(text[1:], 16)])
    if text not in _ESCAPES:
        raise ConfigError(f"unknown \\{text}", hint=r"known are \n \r \t \0 \\ \xNN")
    return _ESCAPES[text]


def json_line(record: ShownRecord) -> bytes:
    """Return a record as one line of JSON, its line feed included."""
    shown: dict[str, object] = {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp": record.timestamp,
        "key": json_bytes(record.key),
        "value": json_bytes(record.value),
    }
    if record.headers:
        shown["headers"] = [[name, json_bytes(value)] for name, value in record.headers]
    return json.dumps(shown, ensure_ascii=False).encode(errors="surrogateescape") + b"\n"


def shown_text(data: bytes | None) -> str | None:
    """Return bytes as text for people, whatever they are: what is no UTF-8 escaped."""
    return None if data is None else bytes(data).decode(errors="backslashreplace")


def json_bytes(data: bytes | None) -> JsonBytes:
    """Return bytes as text where they are UTF-8, else as `{"base64": ...}`."""
    if data is None:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode()}
