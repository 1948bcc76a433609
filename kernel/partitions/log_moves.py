"""Shell: the moves of replicas to other log directories, one after another, while everything else goes on.

A move is asked for, and answered at once; DescribeLogDirs tells how far it is. What is under way or waits when the
broker ends is begun anew by the next start, as Kafka goes on with it: the storage keeps what was to go where.

*Source:* KIP-113; ReplicaManager.alterReplicaLogDirs of Kafka 4.3.
"""

from __future__ import annotations

import logging
from collections import deque
from typing import TYPE_CHECKING

import trio

from ..errors import ErrorCode, KafkaError, StorageError
from ..machine.threads import Workers
from .log_move import begin_move, check_serving, give_up, move_replica

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..machine.threads import Threads
    from ..machine.throttle import Throttle
    from .replica import Replica
    from .replica_lifecycle import ReplicaLifecycle
    from .replicas import Replicas
    from .staged_writes import StagedWrites

log = logging.getLogger(__name__)


class LogMoves:
    """The service that moves logs. Owned by the broker's nursery; asked on the reactor's task."""

    def __init__(
        self,
        replicas: Replicas,
        lifecycle: ReplicaLifecycle,
        writes: StagedWrites,
        *,
        on_moved: Callable[[], None],
        new_throttle: Callable[[], Throttle],
        threads: Threads,
    ) -> None:
        """Make it.

        Args:
            replicas: Whose logs are moved.
            lifecycle: Serves a replica again whose log has moved.
            writes: Written and flushed before a log is closed.
            on_moved: Called after a move: the controller is to know of it.
            new_throttle: Returns what says how fast a copy may be.
            threads: Where logs are copied.
        """
        self._replicas = replicas
        self._lifecycle = lifecycle
        self._writes = writes
        self._on_moved = on_moved
        self._new_throttle = new_throttle
        self._worker = Workers(threads, 1)
        self._queue: deque[tuple[Replica, str]] = deque()
        self._wanted = trio.Event()
        self._moving: Replica | None = None
        self._is_called_back = False

    def ask(self, replica: Replica, log_dir: str) -> None:
        """Have a replica's log moved; one that is on its way elsewhere goes here instead.

        Args:
            replica: Whose log.
            log_dir: A log directory of this broker; the one that the log is in ends a move.

        Raises:
            KafkaError: The replica is offline; or it votes: its votes lie beside its log.
            StorageError: The move cannot be begun.
        """
        check_serving(replica)
        if replica.voting is not None:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "a replica that votes stays in its log directory")
        is_stopping = replica is self._moving and self._is_called_back
        wanted = replica.log.log_dir if replica.future is None or is_stopping else replica.future.log_dir
        wanted = next((to for each, to in reversed(self._queue) if each is replica), wanted)
        if wanted == log_dir:
            return
        self._cancel(replica)
        if log_dir == replica.log.log_dir:
            return
        if replica.future is None:
            self._begin(replica, log_dir)
        self._queue.append((replica, log_dir))
        self._wanted.set()

    def _begin(self, replica: Replica, log_dir: str) -> None:
        begin_move(self._replicas, replica, log_dir, self._new_throttle())

    def go_on(self) -> None:
        """Have those moved whose move the last end of the broker cut off; their replicas were opened."""
        for partition, log_dir in self._lifecycle.unfinished_moves.items():
            replica = self._replicas.find(partition.topic, partition.partition)
            if replica is not None and replica.partition == partition:
                try:
                    self.ask(replica, log_dir)
                except (KafkaError, StorageError) as error:
                    log.error("%s stays where it is, and does not move to %s: %s", partition, log_dir, error)
        self._lifecycle.unfinished_moves.clear()

    def _cancel(self, replica: Replica) -> None:
        """End a replica's move, which may take one more chunk, and forget those that wait."""
        self._queue = deque(each for each in self._queue if each[0] is not replica)
        if replica is not self._moving:
            give_up(replica)
        elif replica.future is not None:
            self._is_called_back = True
            replica.future.stop()

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Move what is asked for, until cancelled: what was not done then is done after the next start."""
        task_status.started()
        try:
            while True:
                await self._wanted.wait()
                self._wanted = trio.Event()
                while self._queue:
                    await self._move(*self._queue.popleft())
        finally:
            for replica, _ in self._queue:
                replica.future = None
            self._queue.clear()

    async def _move(self, replica: Replica, log_dir: str) -> None:
        partition = replica.partition
        if self._replicas.find(partition.topic, partition.partition) is not replica:
            give_up(replica)  # its topic was deleted meanwhile
            return
        self._moving, self._is_called_back = replica, False
        try:
            if replica.future is None:
                self._begin(replica, log_dir)
            await move_replica(self._replicas, self._lifecycle, self._writes, replica, self._worker)
        except (KafkaError, StorageError) as error:
            level = logging.INFO if self._is_called_back else logging.ERROR  # what somebody asked for is no failure
            log.log(level, "%s stays where it is, and does not move to %s: %s", partition, log_dir, error)
        else:
            log.info("%s moved to %s", partition, log_dir)
            self._on_moved()
        finally:
            self._moving = None
