"""Shell: looks for plugins that were announced where nobody looks, as in the group `odradek.plugin`."""

from __future__ import annotations

import difflib
import importlib.metadata
import re
from typing import TYPE_CHECKING, Final

from odradek.kernel.plugin_system.manager import ENTRY_POINT_GROUP

if TYPE_CHECKING:
    from collections.abc import Iterator

_LETTERS: Final = re.compile(r"[^a-z]")
_CUTOFF: Final = 0.85


def is_nearly_ours(group: str) -> bool:
    """Say whether somebody who named a group of entry points so probably meant ours."""
    ours, theirs = (_LETTERS.sub("", name.lower()) for name in (ENTRY_POINT_GROUP, group))
    if group == ENTRY_POINT_GROUP:
        return False
    return theirs == "odradek" or difflib.SequenceMatcher(None, ours, theirs).ratio() >= _CUTOFF


def announced_elsewhere() -> Iterator[str]:
    """Iterate over what to tell of entry points in groups that are nearly ours."""
    groups = importlib.metadata.entry_points()
    for group in sorted(filter(is_nearly_ours, groups.groups)):
        for entry in groups.select(group=group):
            by = f"{entry.dist.name} {entry.dist.version}" if entry.dist else entry.value
            yield (
                f"{by} announces {entry.name!r} in the group {group!r}, where nobody looks: in its pyproject.toml "
                f'write [project.entry-points."{ENTRY_POINT_GROUP}"], and install it again'
            )
