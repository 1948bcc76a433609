"""Shell: opens the partitions of large new topics a few at a time, so that other clients are served meanwhile.

A new replica takes about a tenth of a millisecond, and no disk: a log is made when something is written to it. The
first few of a topic are opened before its creation is answered, in steps, the others by a task that lets the reactor
turn between them; until then clients are told UNKNOWN_TOPIC_OR_PARTITION, as by a broker that has not heard of the
topic yet, and ask again.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

import trio

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Generator
    from uuid import UUID

AT_ONCE_MAX: Final = 64
"""How many partitions of one change are opened at once."""
PIECE_SIZE: Final = 8
"""How many are opened between two turns of the reactor."""
STEPS_OF_A_PIECE: Final = 50
"""What opening so many counts for among other steps."""


class TopicOpener:
    """Partitions to be opened later. Owned by the reactor's task; `run` is a service of the broker."""

    def __init__(self, open_partitions: Callable[[UUID, list[int]], None], on_opened: Callable[[], None]) -> None:
        """Make an opener.

        Args:
            open_partitions: Opens partitions of a topic as the metadata has them when it is called; passes over what is
                gone or open already.
            on_opened: Called when everything that was to be opened is: once for a large topic, not for each piece.
        """
        self._open_partitions = open_partitions
        self._on_opened = on_opened
        self._waiting: deque[tuple[UUID, int]] = deque()
        self._has_work = trio.Event()

    def open_in_steps(self, topic_id: UUID, indexes: Collection[int]) -> Generator[None, None, None]:
        """Open the first of some partitions of a topic now, in steps, and the others soon."""
        in_order = sorted(indexes)
        for first in range(0, min(len(in_order), AT_ONCE_MAX), PIECE_SIZE):
            piece = in_order[first : first + PIECE_SIZE]
            self._open_partitions(topic_id, piece)
            for _ in range(STEPS_OF_A_PIECE * len(piece) // PIECE_SIZE):
                yield
        if len(in_order) > AT_ONCE_MAX:
            self._waiting += [(topic_id, index) for index in in_order[AT_ONCE_MAX:]]
            self._has_work.set()
        elif not self._waiting:
            self._on_opened()

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Open what waits, a few at a time, until cancelled: what waits then is opened at the next start."""
        task_status.started()
        while True:
            await self._has_work.wait()
            self._has_work = trio.Event()
            while self._waiting:
                piece: dict[UUID, list[int]] = {}
                for _ in range(min(PIECE_SIZE, len(self._waiting))):
                    topic_id, index = self._waiting.popleft()
                    piece.setdefault(topic_id, []).append(index)
                for topic_id, indexes in piece.items():
                    self._open_partitions(topic_id, indexes)
                await trio.lowlevel.checkpoint()
            self._on_opened()
