"""Pure core: groups of one request by the shards that hold them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

    from odradek.kernel.api import CoordinatorRuntime


def by_partition(runtime: CoordinatorRuntime[Any], group_ids: Iterable[str]) -> dict[int, list[str]]:
    """Return the groups by the partition that coordinates them, in the order given."""
    partitions: dict[int, list[str]] = {}
    for group_id in group_ids:
        partitions.setdefault(runtime.partition_for(group_id), []).append(group_id)
    return partitions
