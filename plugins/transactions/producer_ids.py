"""Shell: a few producer ids at hand, for shards that need one while they decide.

Ids come from the controller, which takes a while; a shard takes one at once or not at all. So some are fetched ahead.

*Source:* KIP-730; Kafka's coordinator too answers COORDINATOR_LOAD_IN_PROGRESS while it has no id at hand.
"""

from __future__ import annotations

import logging
from collections import deque
from typing import TYPE_CHECKING, Final

import trio

from odradek.kernel.api import ErrorCode, KafkaError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

log = logging.getLogger(__name__)

RESERVE_SIZE: Final = 4
PAUSE_S: Final = 0.5
"""How long the service waits after the controller could not give an id."""


class ProducerIdReserve:
    """Producer ids that nobody has yet. One service fills it; whoever is about to need one may fill it too."""

    def __init__(self, new_producer_id: Callable[[], Awaitable[int]]) -> None:
        """Make it empty.

        Args:
            new_producer_id: Fetches an id from the cluster.
        """
        self._new_producer_id = new_producer_id
        self._ids: deque[int] = deque()
        self._is_short = trio.Event()

    def __repr__(self) -> str:
        return f"ProducerIdReserve({len(self._ids)} at hand)"

    def take(self) -> int:
        """Return a fresh id, and have others fetched.

        Raises:
            KafkaError: COORDINATOR_LOAD_IN_PROGRESS: there is none at hand; ask again soon.
        """
        self._is_short.set()
        if not self._ids:
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        return self._ids.popleft()

    async def fill(self) -> None:
        """Fetch ids until there are enough. If it is cancelled, those it has stay.

        Raises:
            KafkaError: The controller cannot give one now.
        """
        while len(self._ids) < RESERVE_SIZE:
            self._ids.append(await self._new_producer_id())

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Keep the reserve filled, from the first id that is taken on. If it is cancelled, ids at hand are lost."""
        task_status.started()
        while True:
            await self._is_short.wait()
            self._is_short = trio.Event()
            try:
                await self.fill()
            except KafkaError as error:
                log.info("no producer ids for transactions: %s", error)
                self._is_short.set()
                await trio.sleep(PAUSE_S)
