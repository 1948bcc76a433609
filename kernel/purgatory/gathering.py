"""Pure core: values that come one by one, in no order, and are told together: parts of an answer.

.. versionadded:: 0.1
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Generic, TypeVar, cast

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

Key = TypeVar("Key")
Value = TypeVar("Value")

_MISSING: Final = object()


class Gathered(Generic[Key, Value]):
    """Gathers one value for each of some keys, and tells them all, in the order of the keys, once none is missing.

    Life: made, `note` once for each key, perhaps before all keys are known; the last one tells. Owned by one task.
    """

    __slots__ = ("_missing_count", "_tell", "_values")

    def __init__(
        self, keys: Iterable[Key], tell: Callable[[Mapping[Key, Value]], None], *, is_open: bool = False
    ) -> None:
        """Wait for keys; equal ones count as one.

        Args:
            keys: They; without any, nothing is missing and `tell` is called now.
            tell: Called once, with the values by key.
            is_open: More keys come by `expect`: nothing is told before `seal`.
        """
        self._values: dict[Key, object] = dict.fromkeys(keys, _MISSING)
        self._missing_count = len(self._values) + is_open
        self._tell = tell
        if not self._missing_count:
            tell({})

    def expect(self, key: Key) -> None:
        """Wait for another key, before `seal`."""
        assert key not in self._values, f"{key} is expected twice"
        self._values[key] = _MISSING
        self._missing_count += 1

    def seal(self) -> None:
        """Say that all keys are known, of what was made open."""
        self._count_down()

    def note(self, key: Key, value: Value) -> None:
        """Take note of a key's value."""
        assert self._values[key] is _MISSING, f"{key} is told twice"
        self._values[key] = value
        self._count_down()

    def _count_down(self) -> None:
        self._missing_count -= 1
        if not self._missing_count:
            self._tell(cast("Mapping[Key, Value]", self._values))
