"""Pure core: whether a version of a message can say all that stands in it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Generator

    from .fields import FieldSpec
    from .message import Message


def says_all(message: Message, version: int) -> Generator[None, None, bool]:
    """Return whether a version has every field that has another value than its default, in all structures, too.

    Yields after each structure, of which a message may have many.

    An encoder drops what a version does not have where the field may be ignored: what a client asked in an older
    version, as topics by name, may then be nothing in a newer one.

    .. versionadded:: 0.1
    """
    for spec in message.__fields__:
        if not (yield from _says(spec, getattr(message, spec.name), version)):
            return False
    yield
    return True


def _says(spec: FieldSpec, value: Any, version: int) -> Generator[None, None, bool]:
    if version not in spec.versions:
        return _is_default(spec, value)
    if spec.struct is None or value is None:
        return True
    for item in [value] if spec.kind == "struct" else value:
        if not (yield from says_all(item, version)):
            return False
    return True


def _is_default(spec: FieldSpec, value: Any) -> bool:
    if spec.kind == "struct" and spec.default is not None:
        return bool(value == spec.default())
    return not value if spec.kind == "array" else bool(value == spec.default)
