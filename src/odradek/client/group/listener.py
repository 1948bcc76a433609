"""Shell: what a user implements to hear of partitions that come and go.

.. versionadded:: 0.1
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

from .member import Call, CallKind

if TYPE_CHECKING:
    from odradek.kernel.types import TopicPartition


class RebalanceListener:
    """Hears of partitions that come and go; every method may be `async` or not, and does nothing unless overridden.

    Methods run within `poll`, in the task that polls: they may commit, seek and pause. What they raise, `poll` raises,
    and the rebalance goes on. A poll that is cancelled within one counts it as done.

    .. versionadded:: 0.1
    """

    def on_partitions_revoked(self, partitions: frozenset[TopicPartition]) -> Any:
        """Others may get these next: the last moment to commit what was processed of them."""

    def on_partitions_assigned(self, partitions: frozenset[TopicPartition]) -> Any:
        """These are new, and the rebalance is over; called after each one, also with none."""

    def on_partitions_lost(self, partitions: frozenset[TopicPartition]) -> Any:
        """Others may have had these for some time: commits would be refused. Does what a revocation does by default."""
        return self.on_partitions_revoked(partitions)


async def tell(listener: RebalanceListener | None, call: Call) -> None:
    """Tell a listener what happens to its partitions; nobody hears of none that go."""
    if listener is None or (not call.partitions and call.kind is not CallKind.ASSIGNED):
        return
    method = {
        CallKind.REVOKED: listener.on_partitions_revoked,
        CallKind.ASSIGNED: listener.on_partitions_assigned,
        CallKind.LOST: listener.on_partitions_lost,
    }[call.kind]
    result = method(call.partitions)
    if inspect.isawaitable(result):
        await result
