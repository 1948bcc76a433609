"""How tests replace a method of an object whose class has slots."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    import pytest


def patch_one(monkeypatch: pytest.MonkeyPatch, target: object, name: str, replacement: Callable[..., Any]) -> None:
    """Replace a method of one object, which is not given to the replacement.

    Others of its class keep theirs: brokers of other tests may live in threads of the same process.
    """
    method = getattr(type(target), name)

    def call(self: object, *arguments: object, **options: object) -> object:
        return replacement(*arguments, **options) if self is target else method(self, *arguments, **options)

    monkeypatch.setattr(type(target), name, call)
