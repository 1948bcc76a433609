"""Pure core: which objects of a bucket nobody needs.

An object counts while the newest manifest of its partition names it. What no manifest names is of an upload that was
given up, of a leader that was deposed, or of a deletion that was broken off. It may also be on its way into the next
manifest, so it has to be older than a grace time first.

What a newest manifest names is never garbage, also when the cluster does not know the topic: it may be one that a
restore has left for later.

.. versionadded:: 0.1
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .manifest import names_nothing
from .manifests import KEPT_VERSIONS
from .names import ManifestName, SegmentFileName, parse_name

if TYPE_CHECKING:
    from collections.abc import Iterable

    from odradek.kernel.api import ObjectInfo

    from .manifest import Manifest


def partition_garbage(
    objects: Iterable[ObjectInfo], newest: Manifest | None, *, now_ms: int, grace_ms: int
) -> list[ObjectInfo]:
    """Return the objects of a partition that are to be removed: files of segments, and manifests of long ago.

    Args:
        objects: All that lie below the partition's prefix, listed before the manifest was loaded.
        newest: Its newest manifest; None when there is none.
        now_ms: The wall clock.
        grace_ms: How long nobody must have named an object: longer than any upload takes, and than the store's clock
            may be off.
    """
    named = frozenset(newest.object_names()) if newest is not None else frozenset()
    oldest_kept = newest.version - KEPT_VERSIONS + 1 if newest is not None else 0
    garbage = []
    for info in objects:
        name = parse_name(info.name)
        is_left = (isinstance(name, SegmentFileName) and info.name not in named) or (
            isinstance(name, ManifestName) and name.version < oldest_kept
        )
        if is_left and info.modified_ms + grace_ms <= now_ms:
            garbage.append(info)
    return garbage


def is_deleted(objects: Iterable[ObjectInfo], newest: Manifest | None, *, now_ms: int, grace_ms: int) -> bool:
    """Say whether a partition is nothing but the rest of a deletion: no segment is named, and all of it is old.

    Args:
        objects: As for `partition_garbage`.
        newest: Its newest manifest.
        now_ms: The wall clock.
        grace_ms: See `partition_garbage`.
    """
    return names_nothing(newest) and all(info.modified_ms + grace_ms <= now_ms for info in objects)
