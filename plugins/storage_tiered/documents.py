"""Pure core: the JSON documents of a bucket: a format version, fields, and a checksum over them.

```json
{
"crc32c": 1234567890,
"format_version": 1,
"topic": "orders",
"segments": [
{"base_offset":0,"uid":"..."},
{"base_offset":100,"uid":"..."}
]
}
```

People can read them, and no damage goes unseen: `crc32c` is taken over all other fields, written without white space
and with sorted keys, so the layout may differ. The format version is read before anything else. A reader ignores fields
that it does not know, and a writer does not keep them: whoever adds a field that must outlive its unknowing rewriters
counts the format version up.

.. versionadded:: 0.1
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar, cast

import attrs
from crc32c import crc32c

from odradek.kernel.api import RemoteStoreError

if TYPE_CHECKING:
    from collections.abc import Mapping

_Kind = TypeVar("_Kind")

FORMAT_VERSION: Final = 1
"""The latest version that this code writes and reads, of each kind of document."""


class CorruptDocumentError(RemoteStoreError):
    """A document in the store, or a copy of one, is not what was put: its text says which, and what to do."""


class LaterFormatError(RemoteStoreError):
    """A document was written by a later version of this project."""


def encode_document(fields: Mapping[str, object]) -> bytes:
    """Return a document, one field a line; of a field that is a list of objects, one object a line.

    Args:
        fields: What `json` can write, but no floating-point numbers.
    """
    values = {name: _Value.of(value) for name, value in {"format_version": FORMAT_VERSION, **fields}.items()}
    lines = [f'"crc32c": {_checksum(values)}']
    for name, value in values.items():
        text = ",\n".join(value.pieces)
        lines.append(f'"{name}": [\n{text}\n]' if value.has_rows else f'"{name}": {text}')
    return ("{\n" + ",\n".join(lines) + "\n}\n").encode()


_text_of: Final = json.JSONEncoder(sort_keys=True, separators=(",", ":")).encode


class _Value(NamedTuple):
    """A field's value as text, without white space and with sorted keys: of a list of objects, each by itself.

    Each piece is one call into C, which holds the interpreter lock all the while: a broker has other things to do.
    """

    pieces: list[str]
    has_rows: bool

    @classmethod
    def of(cls, value: object) -> _Value:
        """Return a value's text."""
        has_rows = isinstance(value, list) and bool(value) and isinstance(value[0], dict)
        values: list[object] = value if isinstance(value, list) and has_rows else [value]
        return cls(list(map(_text_of, values)), has_rows)


def _checksum(values: Mapping[str, _Value]) -> int:
    crc = 0
    for number, (name, value) in enumerate(sorted(values.items())):
        opening, closing = ("[", "]") if value.has_rows else ("", "")
        crc = crc32c(f"{',' if number else '{'}{json.dumps(name)}:{opening}".encode(), crc)
        for index, piece in enumerate(value.pieces):
            crc = crc32c(f"{',' if index else ''}{piece}".encode(), crc)
        crc = crc32c(closing.encode(), crc)
    return crc32c(b"}", crc)


def decode_document(data: bytes, what: str) -> Fields:
    """Return the fields of a document.

    Args:
        data: The document.
        what: What it is and where, for errors.

    Raises:
        LaterFormatError: Its format is later than ours.
        CorruptDocumentError: It is damaged.
    """
    try:
        body = json.loads(data)
    except ValueError as exc:
        raise CorruptDocumentError(f"{what} is damaged: no JSON ({exc})") from exc
    if not isinstance(body, dict):
        raise CorruptDocumentError(f"{what} is damaged: not an object")
    fields = Fields(body, what)
    version = fields.get("format_version", int)
    if version > FORMAT_VERSION:
        raise LaterFormatError(
            f"{what} has format version {version}, and this odradek reads no later one than {FORMAT_VERSION}: a later "
            "odradek wrote it; upgrade this one to at least that version"
        )
    expected = fields.get("crc32c", int)
    actual = _checksum({name: _Value.of(value) for name, value in body.items() if name != "crc32c"})
    if expected != actual:
        raise CorruptDocumentError(f"{what} is damaged: its crc32c is {expected}, and {actual} of what is there")
    return fields


@attrs.frozen
class Fields:
    """The fields of a JSON object, read by name and type."""

    _values: Mapping[str, object]
    what: str

    def __contains__(self, name: str) -> bool:
        return name in self._values

    def get(self, name: str, kind: type[_Kind]) -> _Kind:
        """Return a field's value.

        Raises:
            CorruptDocumentError: It is not there, or of another type.
        """
        value = self._values.get(name)
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            raise CorruptDocumentError(f"{self.what} is damaged: the field {name!r} is {value!r}, no {kind.__name__}")
        return value

    def rows(self, name: str) -> list[Fields]:
        """Return a field that is a list of objects.

        Raises:
            CorruptDocumentError: It is something else.
        """
        values = self.get(name, list)
        if not all(isinstance(value, dict) for value in values):
            raise CorruptDocumentError(f"{self.what} is damaged: the field {name!r} holds something other than objects")
        return [Fields(value, f"{self.what}, {name}[{index}]") for index, value in enumerate(values)]

    def objects(self, name: str) -> dict[str, Fields]:
        """Return a field that is an object of objects.

        Raises:
            CorruptDocumentError: It is something else.
        """
        values = self.get(name, dict)
        if not all(isinstance(value, dict) for value in values.values()):
            raise CorruptDocumentError(f"{self.what} is damaged: the field {name!r} holds something other than objects")
        return {key: Fields(value, f"{self.what}, {name}.{key}") for key, value in values.items()}

    def texts(self, name: str) -> dict[str, str]:
        """Return a field that is an object of strings.

        Raises:
            CorruptDocumentError: It is something else.
        """
        values = self.get(name, dict)
        if not all(isinstance(value, str) for value in values.values()):
            raise CorruptDocumentError(f"{self.what} is damaged: the field {name!r} holds something other than texts")
        return cast("dict[str, str]", values)

    def pairs(self, name: str) -> tuple[tuple[int, int], ...]:
        """Return a field that is a list of pairs of integers.

        Raises:
            CorruptDocumentError: It is something else.
        """
        values = self.get(name, list)
        if not all(isinstance(pair, list) and [type(number) for number in pair] == [int, int] for pair in values):
            raise CorruptDocumentError(f"{self.what} is damaged: the field {name!r} holds something other than pairs")
        return tuple((first, second) for first, second in values)
