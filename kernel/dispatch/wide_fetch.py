"""Shell: a Fetch of very many partitions: read a slice at a time, and so again when it has waited.

Each partition costs some microseconds, read, told and encoded, and a session may have a hundred thousand. So the router
runs such a request as a task. What it waits for is watched as for any other; but when it has waited, its task reads,
and not whoever woke it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import trio

from ..machine.turnstile import take_turn
from ..purgatory.delayed_operation import Outcome
from .fetch_context import TopicsBuilder
from .fetch_operation import FetchOperation, FetchResult, read_targets
from .fetch_throttling import is_throttled, throttled_bytes

if TYPE_CHECKING:
    from collections.abc import Container, Sequence

    from ..contracts.api_handler import RequestContext
    from ..partitions.replica import Replica
    from ..partitions.replicas import Replicas
    from ..replication.throttling import ReplicationQuota
    from ..wire.messages.api_01_fetch import FetchResponse, PartitionData
    from .fetch_context import FetchContext
    from .fetch_operation import FetchLimits
    from .fetch_target import FetchTarget

AT_ONCE_MAX: Final = 200
"""How many partitions a request may name to be answered in the turn in which it came."""
AT_ONCE_IN_SESSION_MAX: Final = 1000
"""The same of its session: most of these have nothing new, and are passed over."""
TARGETS_PER_SLICE: Final = 100
HUGE_FROM: Final = 10_000
"""From so many partitions on, few are read and answered at once: each may hold some hundred megabytes meanwhile."""
HUGE_MAX: Final = 4
"""How many; one that waits for records is none of them."""
ADDED_PER_SLICE: Final = 500


class WideFetchOperation(FetchOperation):
    """A wait that ends without a read: whoever waits for `ended` reads."""

    __slots__ = ("ended", "is_answered")

    def __init__(
        self,
        *,
        deadline_ms: int,
        context: RequestContext,
        replicas: Replicas,
        session: FetchContext,
        limits: FetchLimits,
        found: FetchResult,
    ) -> None:
        """Make the operation; see `FetchOperation`."""
        super().__init__(
            deadline_ms=deadline_ms,
            context=context,
            replicas=replicas,
            session=session,
            limits=limits,
            found=found,
            reply=lambda _result: None,
        )
        self.ended = trio.Event()
        self.is_answered = True

    def finish(self, outcome: Outcome) -> None:
        """Wake who waits, unless nobody is to be answered."""
        self.is_answered = outcome is not Outcome.CANCELLED
        self.ended.set()

    def changed_since(self, found: FetchResult) -> list[Replica]:
        """Return the replicas that have something for it now, or lead no more, and gave nothing when they were read.

        What came between the read of a slice and the begin of the wait has woken nobody. Those that are throttled would
        give nothing again.
        """
        limits = self.limits
        changed = []
        for target, answer in zip(self.session.targets, found.answers, strict=True):
            replica = target.replica
            if replica is None or (answer is not None and (answer.records or answer.error_code)):
                continue
            end = replica.appended_offset if limits.is_follower else replica.visible_end(limits.isolation)
            if not replica.is_leader or (target.fetch_offset < end and not self._has_to_wait(replica)):
                changed.append(replica)
        return changed

    def _has_to_wait(self, replica: Replica) -> bool:
        return self.limits.is_throttling and is_throttled(replica, self.limits.replica_id)

    async def read_again(self) -> FetchResult:
        """Read what there is now. If it is cancelled, nothing is left to undo."""
        only = self._ready_by_target if self.session.is_incremental else None
        return await read_in_slices(
            self.replicas, self.session.targets, self.limits, is_incremental=self.session.is_incremental, only=only
        )


async def read_in_slices(
    replicas: Replicas,
    targets: Sequence[FetchTarget],
    limits: FetchLimits,
    *,
    is_incremental: bool,
    only: Container[FetchTarget] | None = None,
) -> FetchResult:
    """Read every target once, in order, within the limits; see `read_targets`. If it is cancelled, nothing is left."""
    result = FetchResult([])
    for first in range(0, len(targets), TARGETS_PER_SLICE):
        await take_turn()
        piece = targets[first : first + TARGETS_PER_SLICE]
        read_targets(replicas, piece, limits, is_incremental=is_incremental, only=only, into=result)
    return result


async def build_in_slices(
    session: FetchContext, answers: Sequence[PartitionData | None], quota: ReplicationQuota | None
) -> FetchResponse:
    """Do as `FetchContext.build`, some targets at a time. If it is cancelled, some count as told, and nobody was.

    Args:
        session: What was read.
        answers: What it gave.
        quota: Told how much goes to replicas that are throttled; None where a consumer asks.
    """
    found = TopicsBuilder()
    for first in range(0, len(answers), ADDED_PER_SLICE):
        await take_turn()
        targets = session.targets[first : first + ADDED_PER_SLICE]
        given = answers[first : first + ADDED_PER_SLICE]
        if quota is not None and quota.is_set:
            quota.record(throttled_bytes(targets, given))
        session.add(found, targets, given)
    return session.finish(found)
