"""Pure core: whether a version of a message can say all that stands in it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .fields import FieldSpec
    from .message import Message


def says_all(message: Message, version: int) -> bool:
    """Return whether a version has every field that has another value than its default, in all structures, too.

    An encoder drops what a version does not have where the field may be ignored: what a client asked in an older
    version, as topics by name, may then be nothing in a newer one.

    .. versionadded:: 0.1
    """
    return all(_says(spec, getattr(message, spec.name), version) for spec in message.__fields__)


def _says(spec: FieldSpec, value: Any, version: int) -> bool:
    if version not in spec.versions:
        return _is_default(spec, value)
    if spec.struct is None or value is None:
        return True
    return says_all(value, version) if spec.kind == "struct" else all(says_all(item, version) for item in value)


def _is_default(spec: FieldSpec, value: Any) -> bool:
    if spec.kind == "struct" and spec.default is not None:
        return bool(value == spec.default())
    return not value if spec.kind == "array" else bool(value == spec.default)
