"""Pure core: the notation of a message's fields: `name: type = f.int32("3+", default=-1, ignorable=True)`.

Every function here names one wire type and returns a `FieldSpec`, though it says that it returns the value's Python
type: so a type checker holds the annotation against the wire type, and sees every field as optional with Kafka's
default.

All take the same arguments:

    versions   The versions of the message that have the field; all, if left out.
    nullable   The versions in which it may be null; none, if left out.
    default    What it holds when nobody sets it; zero, `""`, `[]`, `False` or the zero id, if left out.
    tag        The number of a tagged field: absent from the bytes while it holds its default. A tagged structure
               is `None` while absent.
    ignorable  Whether a value may be dropped without an error when the version has no such field.

*Source:* KIP-482 (tagged fields, compact forms); the message definitions of Apache Kafka 4.3.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypedDict, TypeVar, cast, overload

from ..types import ZERO_ID
from .versions import NO_VERSIONS, Versions, parse_versions

if TYPE_CHECKING:
    import uuid as uuid_module
    from typing import Unpack

    from .message import Message

_T = TypeVar("_T")

FIXED_FORMATS: Final = {
    "bool": "?",
    "int8": "b",
    "int16": "h",
    "uint16": "H",
    "int32": "i",
    "uint32": "I",
    "int64": "q",
    "float64": "d",
    "uuid": "16s",
}
"""Wire types of one size, and how `struct` writes them."""


class _Required:
    """Stands for "no default was given": a value that no caller can pass."""


_NO_DEFAULT: Final = _Required()
_ZEROS: Final[dict[str, Any]] = {
    "bool": False,
    "float64": 0.0,
    "uuid": ZERO_ID,
    "string": "",
    "bytes": b"",
    "records": None,
}


class FieldSpec:
    """One field: its wire type and what the versions make of it. Immutable once its class is built.

    Attributes:
        name: Snake case of Kafka's name; set by the class that owns the field.
        kind: A key of `FIXED_FORMATS`, or `string`, `bytes`, `records`, `array`, `struct`.
        struct: The class of a structure, or of an array's structures.
        item: The kind of an array's items.
        tag: -1 for a field that is always written.
    """

    __slots__ = ("default", "ignorable", "item", "kind", "name", "nullable", "struct", "tag", "versions")

    def __init__(
        self,
        kind: str,
        versions: str,
        *,
        nullable: str = "none",
        default: object = _NO_DEFAULT,
        tag: int = -1,
        ignorable: bool = False,
        item: str = "",
        struct: type[Message] | None = None,
    ) -> None:
        self.name = ""
        self.kind = kind
        self.versions: Versions = parse_versions(versions)
        self.nullable: Versions = parse_versions(nullable) if nullable != "none" else NO_VERSIONS
        self.default: Any = default
        self.tag = tag
        self.ignorable = ignorable
        self.item = item
        self.struct = struct
        if default is _NO_DEFAULT:
            if kind == "array":
                self.default = []
            elif kind == "struct":
                self.default = None if tag >= 0 or self.nullable != NO_VERSIONS else struct
            else:
                self.default = _ZEROS.get(kind, 0)

    def has_fresh_default(self) -> bool:
        """Return whether every message needs a default of its own: an empty list, or a structure."""
        return self.default is not None and self.kind in ("array", "struct")

    def __repr__(self) -> str:
        return f"<{self.name}: {self.item or self.kind} {self.versions}>"


class _Plain(TypedDict, total=False):
    tag: int
    ignorable: bool


class _Nullable(_Plain, total=False):
    nullable: str


def int8(versions: str = "0+", *, default: int = 0, **more: Unpack[_Plain]) -> int:
    """Return a field of one signed byte."""
    return cast(int, FieldSpec("int8", versions, default=default, **more))


def int16(versions: str = "0+", *, default: int = 0, **more: Unpack[_Plain]) -> int:
    """Return a field of a signed number of two bytes."""
    return cast(int, FieldSpec("int16", versions, default=default, **more))


def uint16(versions: str = "0+", *, default: int = 0, **more: Unpack[_Plain]) -> int:
    """Return a field of an unsigned number of two bytes."""
    return cast(int, FieldSpec("uint16", versions, default=default, **more))


def int32(versions: str = "0+", *, default: int = 0, **more: Unpack[_Plain]) -> int:
    """Return a field of a signed number of four bytes."""
    return cast(int, FieldSpec("int32", versions, default=default, **more))


def uint32(versions: str = "0+", *, default: int = 0, **more: Unpack[_Plain]) -> int:
    """Return a field of an unsigned number of four bytes."""
    return cast(int, FieldSpec("uint32", versions, default=default, **more))


def int64(versions: str = "0+", *, default: int = 0, **more: Unpack[_Plain]) -> int:
    """Return a field of a signed number of eight bytes."""
    return cast(int, FieldSpec("int64", versions, default=default, **more))


def float64(versions: str = "0+", *, default: float = 0.0, **more: Unpack[_Plain]) -> float:
    """Return a field of an IEEE 754 number of eight bytes."""
    return cast(float, FieldSpec("float64", versions, default=default, **more))


def boolean(versions: str = "0+", *, default: bool = False, **more: Unpack[_Plain]) -> bool:
    """Return a field of one byte: every value but zero is true."""
    return cast(bool, FieldSpec("bool", versions, default=default, **more))


def uuid(versions: str = "0+", **more: Unpack[_Plain]) -> uuid_module.UUID:
    """Return a field of an id: sixteen bytes, all zero for "none"."""
    return cast("uuid_module.UUID", FieldSpec("uuid", versions, **more))


@overload
def string(versions: str = "0+", *, default: str = "", **more: Unpack[_Plain]) -> str: ...
@overload
def string(versions: str = "0+", *, nullable: str, default: str | None = "", **more: Unpack[_Plain]) -> str | None: ...
def string(versions: str = "0+", *, default: str | None = "", **more: Unpack[_Nullable]) -> str | None:
    """Return a field of UTF-8 text of at most 32,767 bytes."""
    return cast(str, FieldSpec("string", versions, default=default, **more))


@overload
def binary(versions: str = "0+", **more: Unpack[_Plain]) -> bytes: ...
@overload
def binary(
    versions: str = "0+", *, nullable: str, default: bytes | None = b"", **more: Unpack[_Plain]
) -> bytes | None: ...
def binary(versions: str = "0+", *, default: bytes | None = b"", **more: Unpack[_Nullable]) -> bytes | None:
    """Return a field of bytes, copied out of the buffer when decoded."""
    return cast(bytes, FieldSpec("bytes", versions, default=default, **more))


def records(versions: str = "0+", **more: Unpack[_Nullable]) -> Any:
    """Return a field of record batches: see `odradek.kernel.wire.records` for what it may hold."""
    return FieldSpec("records", versions, **more)


@overload
def array(item: type[_T], versions: str = "0+", **more: Unpack[_Plain]) -> list[_T]: ...
@overload
def array(
    item: type[_T], versions: str = "0+", *, nullable: str, default: list[_T] | None = ..., **more: Unpack[_Plain]
) -> list[_T] | None: ...
def array(
    item: type[_T],
    versions: str = "0+",
    *,
    default: object = _NO_DEFAULT,
    **more: Unpack[_Nullable],
) -> list[_T] | None:
    """Return a field of structures of one class."""
    spec = FieldSpec("array", versions, item="struct", struct=cast(Any, item), default=default, **more)
    return cast("list[_T]", spec)


@overload
def struct(item: type[_T], versions: str = "0+", *, ignorable: bool = False) -> _T: ...
@overload
def struct(
    item: type[_T],
    versions: str = "0+",
    *,
    nullable: str = "none",
    tag: int = -1,
    default: None = None,
    ignorable: bool = False,
) -> _T | None: ...
def struct(item: type[_T], versions: str = "0+", **more: Any) -> _T | None:
    """Return a field of one structure; nullable ones are `None` by default, and so are tagged ones."""
    return cast(_T, FieldSpec("struct", versions, struct=cast(Any, item), **more))


@overload
def int8s(versions: str = "0+", **more: Unpack[_Plain]) -> list[int]: ...
@overload
def int8s(versions: str = "0+", *, nullable: str, default: None = ..., **more: Unpack[_Plain]) -> list[int] | None: ...
def int8s(versions: str = "0+", *, default: object = _NO_DEFAULT, **more: Unpack[_Nullable]) -> list[int] | None:
    """Return a field of an array of `int8`."""
    return cast("list[int]", FieldSpec("array", versions, item="int8", default=default, **more))


@overload
def int16s(versions: str = "0+", **more: Unpack[_Plain]) -> list[int]: ...
@overload
def int16s(versions: str = "0+", *, nullable: str, default: None = ..., **more: Unpack[_Plain]) -> list[int] | None: ...
def int16s(versions: str = "0+", *, default: object = _NO_DEFAULT, **more: Unpack[_Nullable]) -> list[int] | None:
    """Return a field of an array of `int16`."""
    return cast("list[int]", FieldSpec("array", versions, item="int16", default=default, **more))


@overload
def int32s(versions: str = "0+", **more: Unpack[_Plain]) -> list[int]: ...
@overload
def int32s(versions: str = "0+", *, nullable: str, default: None = ..., **more: Unpack[_Plain]) -> list[int] | None: ...
def int32s(versions: str = "0+", *, default: object = _NO_DEFAULT, **more: Unpack[_Nullable]) -> list[int] | None:
    """Return a field of an array of `int32`."""
    return cast("list[int]", FieldSpec("array", versions, item="int32", default=default, **more))


@overload
def int64s(versions: str = "0+", **more: Unpack[_Plain]) -> list[int]: ...
@overload
def int64s(versions: str = "0+", *, nullable: str, default: None = ..., **more: Unpack[_Plain]) -> list[int] | None: ...
def int64s(versions: str = "0+", *, default: object = _NO_DEFAULT, **more: Unpack[_Nullable]) -> list[int] | None:
    """Return a field of an array of `int64`."""
    return cast("list[int]", FieldSpec("array", versions, item="int64", default=default, **more))


@overload
def uuids(versions: str = "0+", **more: Unpack[_Plain]) -> list[uuid_module.UUID]: ...
@overload
def uuids(
    versions: str = "0+", *, nullable: str, default: None = ..., **more: Unpack[_Plain]
) -> list[uuid_module.UUID] | None: ...
def uuids(
    versions: str = "0+", *, default: object = _NO_DEFAULT, **more: Unpack[_Nullable]
) -> list[uuid_module.UUID] | None:
    """Return a field of an array of ids."""
    return cast("list[uuid_module.UUID]", FieldSpec("array", versions, item="uuid", default=default, **more))


@overload
def strings(versions: str = "0+", **more: Unpack[_Plain]) -> list[str]: ...
@overload
def strings(
    versions: str = "0+", *, nullable: str, default: None = ..., **more: Unpack[_Plain]
) -> list[str] | None: ...
def strings(versions: str = "0+", *, default: object = _NO_DEFAULT, **more: Unpack[_Nullable]) -> list[str] | None:
    """Return a field of an array of text."""
    return cast("list[str]", FieldSpec("array", versions, item="string", default=default, **more))
