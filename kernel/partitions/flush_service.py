"""Shell: makes logs durable on a worker thread, many at once, and lets those who waited for it go on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from ..errors import StorageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .replica import Replica
    from .replica_manager import ReplicaManager


class FlushService:
    """One fsync at a time; whatever asks for one meanwhile goes together into the next (group commit).

    Owned by the broker's nursery; `wake` is called by the reactor's task.
    """

    def __init__(self, replicas: ReplicaManager) -> None:
        self._replicas = replicas
        self._wanted = trio.Event()
        self.flushes_count = 0

    def wake(self) -> None:
        """Take note that the manager's flush queue has an entry."""
        self._wanted.set()

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Flush what is asked for, until cancelled: a flush under way is then waited for, nobody is told of it."""
        limiter = trio.CapacityLimiter(1)
        task_status.started()
        while True:
            await self._wanted.wait()
            self._wanted = trio.Event()
            queue, self._replicas.flush_queue = self._replicas.flush_queue, []
            unique = tuple(dict.fromkeys(queue))
            outcomes = await trio.to_thread.run_sync(flush_all, unique, limiter=limiter)
            self.flushes_count += len(outcomes)
            self._replicas.note_flushed(outcomes)


def flush_all(replicas: Sequence[Replica]) -> list[tuple[Replica, int | StorageError]]:
    """Flush the logs of replicas, on a worker thread; return each one's recovery point, or how it failed."""
    outcomes: list[tuple[Replica, int | StorageError]] = []
    for replica in replicas:
        try:
            outcomes.append((replica, replica.log.flush()))
        except StorageError as error:
            outcomes.append((replica, error))
    return outcomes
