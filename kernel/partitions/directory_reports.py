"""Shell: tells the controller in which log directories this broker's replicas lie, when that is not what it knows.

New partitions of a broker with several directories, moved ones and adopted ones differ from the metadata for a moment.
What differs is gathered and told together. So is a replica whose disk is full, as one whose log is lost, as long as
others are in sync: they lead, and wait for it no longer. It is in its directory again once that has room.

Where a directory has failed, heartbeats tell that, and the controller takes what lies there for lost, as far as it
knows of it. What was not told before the disk broke is told then: else a broken disk would lead on.

*Source:* KIP-858; Kafka's AssignmentsManager.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

import trio

from ..errors import KafkaError
from ..machine.turnstile import run_in_slices
from ..types import LOST_DIRECTORY

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator, Mapping
    from uuid import UUID

    from .replica import Replica
    from .replicas import Replicas

log = logging.getLogger(__name__)

GATHER_SECONDS: Final = 0.2
"""How long more is waited for before the controller is told."""
RETRY_SECONDS: Final = 1.0
RETRY_SECONDS_MAX: Final = 30.0
"""How long after a report of which the controller took no note it is told again: first, and at most; it doubles."""


class DirectoryReports:
    """Compares where replicas lie with what the metadata says. Owned by the broker's nursery; `wake` by its task."""

    def __init__(
        self,
        *,
        replicas: Replicas,
        known_directory: Callable[[UUID, int], UUID],
        assign: Callable[[Mapping[tuple[UUID, int], UUID]], Awaitable[None]],
        cordoned_paths: Callable[[], frozenset[str] | None],
    ) -> None:
        """Make the reports.

        Args:
            replicas: This broker's replicas.
            known_directory: Returns where the metadata has this broker's replica of a topic's partition.
            assign: Has the controller take note; raises KafkaError where it took none.
            cordoned_paths: Returns which log directories are cordoned, None while the metadata has no place for it.
        """
        self._replicas = replicas
        self._known_directory = known_directory
        self._assign = assign
        self._cordoned_paths = cordoned_paths
        self._is_wanted = trio.Event()
        self._is_wanted.set()
        self._failed: list[UUID] = []

    def wake(self) -> None:
        """Look soon whether something lies elsewhere than the metadata says."""
        self._is_wanted.set()

    def failed(self) -> list[UUID]:
        """Return the ids of the log directories that failed, of the engines that tell them; waits for no disk.

        One more than the last time, and it is looked for what lies there and was not told yet.
        """
        found: list[UUID] = []
        for engine in self._replicas.engines.values():
            told = getattr(engine, "failed_log_dirs", None)
            found += told() if told is not None else ()
        if found != self._failed:
            self._failed = found
            self.wake()
        return found

    def cordoned(self) -> list[UUID] | None:
        """Return the ids of the log directories that are cordoned, None while the metadata has no place for it."""
        paths = self._cordoned_paths()
        if not paths:
            return None if paths is None else []
        infos = (info for engine in self._replicas.engines.values() for info in engine.log_dirs())
        return sorted(info.directory_id for info in infos if info.path in paths and not info.error)

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Tell what differs until cancelled; what is not told then is told after the next start.

        What the controller did not take note of is told again: perhaps nothing else changes here, and a replica whose
        disk is full would lead on.
        """
        task_status.started()
        pause_s = RETRY_SECONDS
        while True:
            await self._is_wanted.wait()
            await trio.sleep(GATHER_SECONDS)
            self._is_wanted = trio.Event()
            try:
                await self.report()
                pause_s = RETRY_SECONDS
            except KafkaError as error:
                log.warning("the controller took no note of where replicas lie, and is told again: %s", error)
                with trio.move_on_after(pause_s):
                    await self._is_wanted.wait()
                self._is_wanted.set()
                pause_s = min(2 * pause_s, RETRY_SECONDS_MAX)

    async def report(self) -> None:
        """Tell the controller what differs now, if anything does."""
        found = await run_in_slices(self.differences())
        if found:
            await self._assign(found)

    def differences(self) -> Generator[None, None, dict[tuple[UUID, int], UUID]]:
        """Return the directories of those replicas that lie elsewhere than the metadata says."""
        infos = [info for engine in self._replicas.engines.values() for info in engine.log_dirs()]
        ids = {info.path: info.directory_id for info in infos}
        failed = {info.path for info in infos if info.error}
        found = {}
        for replica in list(self._replicas):
            yield
            topic_id, _, index = replica.partition
            lies_in = replica.log.log_dir
            if _is_for_others(replica):
                directory: UUID | None = LOST_DIRECTORY
            elif replica.offline_reason is not None and lies_in not in failed:
                continue
            else:
                directory = ids.get(lies_in)
            if directory is not None and self._known_directory(topic_id, index) != directory:
                found[topic_id, index] = directory
        return found


def _is_for_others(replica: Replica) -> bool:
    """Return whether a replica has no room for records, and others in sync have: they are better off without it."""
    state = replica.state
    return replica.offline_reason is not None and replica.lacks_room and state is not None and len(state.isr) > 1
