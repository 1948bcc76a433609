"""Pure core: walks over very many transactional ids, some of them a step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable

T = TypeVar("T")
R = TypeVar("R")

IDS_PER_STEP: Final = 100
"""So many are looked at in a step: some tens of microseconds."""


def made_in_steps(items: Iterable[T], make: Callable[[T], R | None]) -> Generator[None, None, list[R]]:
    """Return what is made of the items, without None."""
    made = []
    for number, item in enumerate(items):
        one = make(item)
        if one is not None:
            made.append(one)
        if number % IDS_PER_STEP == 0:
            yield
    return made
