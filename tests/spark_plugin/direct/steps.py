"""A file system and a store that do something before the n-th operation: what a broker does beside a reader."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from odradek.kernel.machine.files import OsFiles


class Steps:
    """Counts operations, and takes the next steps of a change from the n-th on.

    Attributes:
        operations: How many were asked for so far.
    """

    def __init__(self, change: Iterator[object], begin_at: int, *, at_once: bool) -> None:
        """Take a change.

        Args:
            change: Each `next` takes one step of it.
            begin_at: Before which operation its first step is taken, from 1 on.
            at_once: Whether all steps are taken there, or one before each operation that follows.
        """
        self.operations = 0
        self._change = change
        self._begin_at = begin_at
        self._at_once = at_once

    def step(self) -> None:
        """Take note of an operation."""
        self.operations += 1
        if self.operations == self._begin_at and self._at_once:
            self.finish()
        elif self.operations >= self._begin_at:
            next(self._change, None)

    def finish(self) -> None:
        """Take all steps that are left."""
        for _ in self._change:
            pass


class SteppingFiles:
    """`Files`, as far as they are read."""

    def __init__(self, steps: Steps) -> None:
        self._os = OsFiles()
        self._steps = steps

    def __getattr__(self, name: str) -> Callable[..., Any]:
        operation = getattr(self._os, name)

        def stepped(*args: Any, **kwargs: Any) -> Any:
            if name != "close":
                self._steps.step()
            return operation(*args, **kwargs)

        return stepped


class SteppingStore:
    """An `ObjectStore`, as far as it is read."""

    def __init__(self, store: Any, steps: Steps) -> None:
        self._store = store
        self._steps = steps
        self.url = store.url

    def get(self, name: str, start: int = 0, size: int | None = None) -> bytes:
        self._steps.step()
        data = self._store.get(name, start, size)
        assert isinstance(data, bytes)
        return data

    def list(self, prefix: str) -> Iterator[Any]:
        self._steps.step()
        return iter(list(self._store.list(prefix)))
