"""Pure core: how a request that asks for much is answered in pieces.

A request for 20,000 partitions is 100 requests for 200 of them. So the router cuts a long request into short ones of
the same API, has the handler answer one after the other, lets everybody else come in between, and joins the answers::

    request    topics: [a: [0 1 2 3 4], b: [0 1]]
    pieces     [a: [0 1 2]]   [a: [3 4]]   [b: [0 1]]
    answers    [a: [0 1 2]]   [a: [3 4]]   [b: [0 1]]
    answer     topics: [a: [0 1 2 3 4], b: [0 1]]

A handler has a `ListPieces` as its attribute `pieces`; one that has none is given every request whole. Of a request of
a few bytes that may ask for everything its handler counts first how much that would be, no further than it needs to.

.. versionadded:: 0.1
"""

from __future__ import annotations

from contextlib import suppress
from operator import attrgetter, is_
from typing import TYPE_CHECKING, Any, Final

from ..wire.message_lists import join_lists, values_of, with_list

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator, Sequence

ITEMS_MAX: Final = 200
"""How many partitions, groups or the like a piece asks for; each takes ten microseconds or a few."""
LONG_FRAME_BYTES: Final = 4096
"""A request below this size is short: it has no room for more than a few hundred items."""
NEVER_LONG: Final = 1 << 31
ITEMS_AT_ONCE: Final = 500
"""How many partitions, topics or the like are answered at once; each takes some microseconds, encoding it as well."""
LOOKED_AT_MAX: Final = 1000
"""How many items are held against each other in one go."""
COPIES_MAX: Final = 2
"""How often an item is asked for that may stand in a request but once: a third time says nothing new."""


class ListPieces:
    """Cuts requests at their lists, and joins the lists of the answers."""

    def __init__(
        self,
        *lists: str,
        answers: Sequence[str],
        items_max: int = ITEMS_MAX,
        long_frame_bytes: int = LONG_FRAME_BYTES,
        together: str | None = None,
        once: bool = False,
        begins_all: bool = False,
    ) -> None:
        """Say where the lists are.

        Args:
            lists: Paths of what is asked for, `topics.partitions`; the first that is not empty is cut.
            answers: The same of the answer; lists that the pieces' answers have in common are joined.
            items_max: How many items of the innermost list a piece has.
            long_frame_bytes: Shorter requests are not cut.
            together: The fields in which items of the innermost list are the same for the handler, none for plain
                values: the same come in one piece, so that it sees that they are several.
            once: Of the same items only the first is asked for: answering it again says nothing new.
            begins_all: The handler has all pieces before the first is waited for.
        """
        self._lists = [path.split(".") for path in lists]
        self._answers = [path.split(".") for path in answers]
        self.items_max, self.begins_all = items_max, begins_all
        self.long_frame_bytes = long_frame_bytes
        self._together = None if together is None else together.split()
        self._copies_max = 1 if once else COPIES_MAX

    def split(self, request: Any) -> Iterator[Any]:
        """Iterate over requests that together ask what `request` does; None stands for a step without a result."""
        for path in self._lists:
            items = getattr(request, path[0])
            if items:
                for piece in self._cut(items, path[1:]):
                    yield piece if piece is None else with_list(request, path[0], piece[0])
                return
        yield request

    def _cut(self, items: list[Any], path: list[str]) -> Iterator[tuple[list[Any], int] | None]:
        """Iterate over lists like `items`, each with how many items of the innermost list it has."""
        units = self._leaves(items) if not path else self._branches(items, path)
        piece: list[Any] = []
        count = 0
        for unit in units:
            if unit is None:
                yield None
                continue
            if piece and count + unit[1] > self.items_max:
                yield piece, count
                piece, count = [], 0
            piece += unit[0]
            count += unit[1]
        if piece:
            yield piece, count

    def _branches(self, items: list[Any], path: list[str]) -> Iterator[tuple[list[Any], int] | None]:
        for item in items:
            inner = getattr(item, path[0])
            if not inner:
                yield [item], 1
                continue
            for part in self._cut(inner, path[1:]):
                if part is None:
                    yield None
                    continue
                is_whole = len(part[0]) == len(inner) and all(map(is_, part[0], inner))
                yield [item if is_whole else with_list(item, path[0], part[0])], part[1]

    def _leaves(self, items: list[Any]) -> Iterator[tuple[list[Any], int] | None]:
        if self._are_different(items):
            for begin in range(0, len(items), self.items_max):
                part = items[begin : begin + self.items_max]
                yield part, len(part)
            return
        by_fields: dict[Hashable, list[Any]] = {}
        for item in items:
            same = by_fields.setdefault(values_of(item, self._together or ()), [])
            if len(same) < self._copies_max:
                same.append(item)
            yield None
        for same in by_fields.values():
            yield same, len(same)

    def _are_different(self, items: list[Any]) -> bool:
        """Return whether no item is there twice, as far as a moment tells; then none is looked at by itself."""
        if not self._together or len(items) > LOOKED_AT_MAX:
            return self._together is None
        with suppress(AttributeError, TypeError):  # plain values, or lists
            return len({*map(attrgetter(*self._together), items)}) == len(items)
        return False

    def join(self, answer: Any, following: Any) -> None:
        """Put what the answer of the next piece has behind what `answer` has; the first error of all stands."""
        for path in self._answers:
            join_lists(getattr(answer, path[0]), getattr(following, path[0]), path[1:])
        if getattr(answer, "error_code", 0) == 0 and getattr(following, "error_code", 0) != 0:
            answer.error_code = following.error_code


def are_many(sizes: Iterable[int]) -> bool:
    """Return whether so many items together are more than are answered at once.

    Args:
        sizes: How many items each part has, >= 0; a part counts as one besides. Read as far as is needed.
    """
    left = ITEMS_AT_ONCE
    for size in sizes:
        left -= size + 1
        if left < 0:
            return True
    return False
