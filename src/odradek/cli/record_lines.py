r"""Pure core: what `odradek produce` reads: records out of delimited text or out of lines of JSON.

    text          value, or KEY<key delimiter>VALUE with -K; records end with the delimiter of -D, a line feed
    JSON          {"key": "k", "value": "v", "headers": [["name", "value"]], "timestamp": 0, "partition": 1}

All members of the JSON are optional but `value`; topic and offset are ignored, so that what `odradek consume --json`
wrote may be produced again as it is; others are refused. Bytes that are no UTF-8 stand as `{"base64": "..."}`; a value
that is any other JSON is taken as its text.
"""

from __future__ import annotations

import base64
import binascii
import json
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from odradek.kernel.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_MEMBERS: Final = ("value", "key", "headers", "timestamp", "partition", "topic", "offset")


class ReadRecord(NamedTuple):
    """A record to produce; None for what the client is to choose, or for null."""

    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    timestamp: int | None = None
    partition: int | None = None


class DelimitedReader:
    """Takes records out of pieces of text as they arrive; one owner.

    Args:
        delimiter: What ends a record; empty when the whole input is one record.
        key_delimiter: What stands between key and value; None when there are no keys.
        key: The key of records that bring none.
        is_empty_null: Whether an empty key or value is null.
    """

    def __init__(
        self,
        *,
        delimiter: bytes = b"\n",
        key_delimiter: bytes | None = None,
        key: bytes | None = None,
        is_empty_null: bool = False,
    ) -> None:
        self._delimiter = delimiter
        self._key_delimiter = key_delimiter
        self._key = key
        self._is_empty_null = is_empty_null
        self._rest = b""

    def feed(self, data: bytes) -> Iterator[ReadRecord]:
        """Yield the records that are whole now."""
        self._rest += data
        if not self._delimiter:
            return
        *whole, self._rest = self._rest.split(self._delimiter)
        for text in whole:
            yield self._record(text)

    def finish(self) -> Iterator[ReadRecord]:
        """Yield the record that no delimiter ended, if there is one."""
        if self._rest:
            rest, self._rest = self._rest, b""
            yield self._record(rest)

    def _record(self, text: bytes) -> ReadRecord:
        key: bytes | None = self._key
        value: bytes | None = text
        if self._key_delimiter is not None:
            before, found, after = text.partition(self._key_delimiter)
            if found:
                key, value = before, after
        if self._is_empty_null:
            key, value = key or None, value or None
        return ReadRecord(key, value)


class JsonReader:
    """Takes records out of lines of JSON as they arrive; one owner."""

    def __init__(self) -> None:
        self._lines = DelimitedReader()
        self._line = 0

    def feed(self, data: bytes) -> Iterator[ReadRecord]:
        """Yield the records that are whole now.

        Raises:
            ConfigError: A line is no record; it is named by its number.
        """
        yield from self._read(self._lines.feed(data))

    def finish(self) -> Iterator[ReadRecord]:
        """Yield the record of the last line, if no line feed ended it; raises as `feed` does."""
        yield from self._read(self._lines.finish())

    def _read(self, lines: Iterable[ReadRecord]) -> Iterator[ReadRecord]:
        for line in lines:
            self._line += 1
            text = line.value or b""
            if text.strip():
                try:
                    yield _parse(json.loads(text))
                except (ValueError, TypeError) as error:
                    raise ConfigError(str(error), where=f"line {self._line}") from error


def _parse(shown: Any) -> ReadRecord:
    if not isinstance(shown, dict) or "value" not in shown:
        raise ValueError('expected a JSON object with a "value"')
    if unknown := sorted(shown.keys() - _MEMBERS):
        raise ValueError(f'unknown "{unknown[0]}" (known are {", ".join(_MEMBERS)})')
    headers = shown.get("headers") or []
    pairs = headers.items() if isinstance(headers, dict) else headers
    return ReadRecord(
        _bytes(shown.get("key")),
        _bytes(shown["value"]),
        tuple((str(name), _bytes(value)) for name, value in pairs),
        _int(shown, "timestamp"),
        _int(shown, "partition"),
    )


def _int(shown: dict[str, Any], name: str) -> int | None:
    value = shown.get(name)
    if value is not None and (isinstance(value, bool) or not isinstance(value, int)):
        raise ValueError(f'"{name}" is no whole number')
    return value


def _bytes(shown: Any) -> bytes | None:
    match shown:
        case None:
            return None
        case str():
            return shown.encode(errors="surrogateescape")
        case {"base64": str(text), **others} if not others:
            try:
                return base64.b64decode(text, validate=True)
            except binascii.Error as error:
                raise ValueError(f"not base64: {error}") from error
        case _:
            return json.dumps(shown, ensure_ascii=False, separators=(",", ":")).encode()
