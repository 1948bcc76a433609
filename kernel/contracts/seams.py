"""Pure core: the outside world as plain functions, as far as a storage needs it.

.. versionadded:: 0.1
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import uuid


class NowMs(Protocol):
    """The wall clock as a function."""

    def __call__(self) -> int:
        """Return milliseconds since the Unix epoch."""
        ...


class MonotonicMs(Protocol):
    """The clock that never jumps, as a function: for whatever is measured from one moment to another."""

    def __call__(self) -> int:
        """Return milliseconds since some moment of its own."""
        ...


class NewId(Protocol):
    """An id source as a function."""

    def __call__(self) -> uuid.UUID:
        """Return a new random id."""
        ...


class RandomSource(Protocol):
    """The part of `random.Random` that a storage needs."""

    def randrange(self, start: int, stop: int) -> int:
        """Return a number in `[start, stop)`."""
        ...
