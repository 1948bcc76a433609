"""Pure core: what a handler answers at once, and what is so much that it is answered in slices, by a task.

A request of a few bytes may ask for everything: all topics, all log directories. Whoever answers such a thing counts
first how much it would be, and counts no further than is needed to know.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

ITEMS_AT_ONCE: Final = 500
"""How many partitions, topics or the like are answered at once; each takes some microseconds, encoding it as well."""


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
