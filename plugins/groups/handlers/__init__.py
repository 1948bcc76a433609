"""Requests to operations: one file an API. What a handler decides is who is asked and how the answer is put."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from odradek.kernel.api import ApiHandler, AsyncApiHandler, BrokerHandle, CoordinatorRuntime

    from ..shard import GroupShard


def group_handlers(
    runtime: CoordinatorRuntime[GroupShard], broker: BrokerHandle
) -> Sequence[ApiHandler | AsyncApiHandler]:
    """Return the handlers of all APIs of groups."""
    return ()
