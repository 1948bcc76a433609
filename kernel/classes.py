"""Pure core: classes of fields, made by attrs, without methods compiled that most of them are never asked for.

attrs writes `__init__`, `__repr__`, `__eq__` and `__hash__` of each class as source text, and compiles it while the
module is imported. A broker has hundreds of such classes and needs the last three of a few, but to compile them took a
tenth of its start. Here these are closures over the fields, alike for all classes; everything else is attrs' own.

.. versionadded:: 0.1
"""

from __future__ import annotations

from operator import attrgetter
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any

import attrs

if TYPE_CHECKING:
    from collections.abc import Callable

    from attrs import define, frozen

__all__ = ["define", "frozen"]


def _make(
    body: type | None = None,
    /,
    *,
    frozen: bool = False,
    eq: bool = True,
    repr: bool = True,  # noqa: A002 - as attrs calls it
    **options: Any,
) -> Any:
    """Make a class of fields; what its body writes itself stays, as with attrs."""
    if body is None:
        return lambda body: _make(body, frozen=frozen, eq=eq, repr=repr, **options)
    own = vars(body)
    has_eq = eq and "__eq__" not in own and not issubclass(body, BaseException)
    made: Any = attrs.define(body, frozen=frozen, eq=False, repr=False, **options)
    if repr and "__repr__" not in own:
        made.__repr__ = _repr
    if has_eq:
        values = _values_of([field.name for field in attrs.fields(made) if field.eq])
        made.__eq__ = _eq_of(values)
        if "__hash__" not in own:
            made.__hash__ = _hash_of(values) if frozen else None
    return made


def _values_of(names: list[str]) -> Callable[[Any], Any]:
    return attrgetter(*names) if names else lambda _: ()


def _eq_of(values: Callable[[Any], Any]) -> Callable[[Any, Any], bool]:
    def __eq__(self: Any, other: Any) -> Any:  # noqa: N807
        if other.__class__ is not self.__class__:
            return NotImplemented
        return values(self) == values(other)

    return __eq__


def _hash_of(values: Callable[[Any], Any]) -> Callable[[Any], int]:
    def __hash__(self: Any) -> int:  # noqa: N807
        return hash((self.__class__, values(self)))

    return __hash__


@recursive_repr()
def _repr(self: Any) -> str:
    shown = (
        f"{field.name}={getattr(self, field.name, attrs.NOTHING)!r}"
        for field in attrs.fields(self.__class__)
        if field.repr
    )
    return f"{self.__class__.__qualname__.rpartition('>.')[2]}({', '.join(shown)})"


if not TYPE_CHECKING:  # checkers take them for attrs' own, which they are to whoever uses them
    define = _make

    def frozen(body: type | None = None, /, **options: Any) -> Any:
        """Make a class of fields that do not change, as `attrs.frozen`."""
        return _make(body, frozen=True, **options)
