"""Shell: gives each shard in which something long is under way a slice in turn, with everybody else in between."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

import trio

from ..machine.turnstile import take_turn

if TYPE_CHECKING:
    from .shard_queue import ShardQueue


class LongOperations:
    """The queues of busy shards. Life: made, told of queues, `run` as a service."""

    def __init__(self) -> None:
        """Make it; no shard is busy."""
        self._busy: deque[ShardQueue] = deque()
        self._wanted = trio.Event()

    def note_busy(self, queue: ShardQueue) -> None:
        """Take a queue that has more to do."""
        self._busy.append(queue)
        self._wanted.set()

    @property
    def is_busy(self) -> bool:
        """Whether a shard has more to do."""
        return bool(self._busy)

    def go_on(self) -> None:
        """Do one slice in the shard whose turn it is."""
        queue = self._busy.popleft()
        if queue.go_on():
            self._busy.append(queue)

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Go on with what is long, until cancelled: it is left where it is then, and nothing of it is written."""
        task_status.started()
        while True:
            await self._wanted.wait()
            while self._busy:
                await take_turn()
                self.go_on()
            self._wanted = trio.Event()
