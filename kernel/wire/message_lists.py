"""Pure core: messages that differ in one list, as the pieces of a request and of its answer do."""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence


def values_of(item: Any, fields: Sequence[str]) -> Hashable:
    """Return what tells an item from others: its value, or the values of these fields."""
    if isinstance(item, str | int):
        return item
    values = (getattr(item, field) for field in fields)
    return tuple(tuple(value) if isinstance(value, list) else value for value in values)


def with_list(message: Any, name: str, items: list[Any]) -> Any:
    """Return a message as this one, but for one list."""
    changed = copy(message)
    setattr(changed, name, items)
    return changed


def join_lists(items: list[Any], following: list[Any], path: Sequence[str]) -> None:
    """Put one list behind another; where a cut went through an item, its two halves are joined.

    Args:
        items: What `following` is put behind.
        following: Stays as it is.
        path: The fields that hold the lists in which items were cut, from outside to inside.
    """
    if path and items and following and _is_same(items[-1], following[0], path[0]):
        join_lists(getattr(items[-1], path[0]), getattr(following[0], path[0]), path[1:])
        following = following[1:]
    items += following


def _is_same(one: Any, other: Any, but: str) -> bool:
    return all(getattr(one, spec.name) == getattr(other, spec.name) for spec in one.__fields__ if spec.name != but)
