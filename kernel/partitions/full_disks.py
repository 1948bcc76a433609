"""Shell: replicas that went offline because their disk was full: cleaned meanwhile, and served again once it has room.

    a write finds no room ──> offline, `lacks_room`
        every some seconds    opened again, and served by nobody: retention deletes what it may
        the disk has room     takes the place of the one that went offline

Opened anew, and not the old one once more: of what that one has staged nobody knows how much was written.
"""

from __future__ import annotations

import logging
from contextlib import suppress
from typing import TYPE_CHECKING, Final, NamedTuple

from ..errors import StorageError
from .recovery import have_producers_read
from .replica_opener import discard

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ..types import TopicIdPartition
    from .replica import Replica
    from .replica_opener import ReplicaOpener
    from .replicas import Replicas
    from .topic_replicas import TopicReplicas

log = logging.getLogger(__name__)

ROOM_BYTES_MIN: Final = 1 << 20
"""So much a disk must have for its replicas to be served again."""


class Reopened(NamedTuple):
    """A replica that takes the place of one that went offline."""

    topic: TopicReplicas
    old: Replica
    fresh: Replica


class FullDisks:
    """The replicas that wait for room. Owned by the replicas' life cycle, on the reactor's task."""

    def __init__(self, replicas: Replicas, opener: ReplicaOpener) -> None:
        self._replicas = replicas
        self._opener = opener
        self._opened: dict[TopicIdPartition, Replica] = {}

    def waiting(self, topic: TopicReplicas) -> Iterator[Replica]:
        """Iterate over a topic's replicas that are opened again, and wait for room: retention looks at them."""
        for old in topic.partitions.values():
            fresh = self._opened.get(old.partition)
            if fresh is not None and old.lacks_room:
                yield fresh

    def opened(self) -> Iterator[Replica]:
        """Iterate over all replicas that are opened again, and wait for room: the end keeps what they know."""
        yield from self._opened.values()

    async def retry(self, serve: Callable[[Reopened], None]) -> None:
        """Open what went offline for want of room, in slices, and have what is open and has room served."""
        lacking = [
            (topic, replica)
            for topic in self._replicas.topics.values()
            for replica in topic.partitions.values()
            if replica.lacks_room and not replica.is_paused
        ]
        self._give_up_all_but({replica.partition for _, replica in lacking})
        full = self._full_directories({topic.plan.storage for topic, _ in lacking})
        for topic, replica in lacking:
            fresh = self._opened.get(replica.partition) or await self._open(topic, replica)
            if fresh is not None and fresh.log.log_dir not in full:
                self._opened.pop(replica.partition, None)
                log.warning("partition %s is served again: its disk has room", replica.partition)
                _take_state(fresh, replica)
                serve(Reopened(topic, replica, fresh))
                self._replicas.on_room_changed()

    def _give_up_all_but(self, waiting: set[TopicIdPartition]) -> None:
        """Let go of what failed, or waits no more: it may be opened anew, and two would have its files."""
        for partition, fresh in list(self._opened.items()):
            if partition not in waiting or fresh.offline_reason is not None:
                del self._opened[partition]
                discard(fresh)

    async def _open(self, topic: TopicReplicas, replica: Replica) -> Replica | None:
        if self._is_wanted(topic, replica):
            have_producers_read(replica.log)
            with suppress(StorageError):  # it is offline, but where it was not the log that found no room: a vote
                await self._opener.workers.do(replica.log.begin_close())
        if not self._is_wanted(topic, replica):
            return None
        try:
            fresh = await self._opener.open_again(replica, topic.plan, lambda: self._is_wanted(topic, replica))
            if fresh is None:
                return None
            if not self._is_wanted(topic, replica):
                discard(fresh)
                return None
            _take_state(fresh, replica)
        except StorageError as error:
            log.debug("partition %s still waits for room: %s", replica.partition, error)
            return None
        except Exception:  # a plugin's: the partition stays offline
            log.exception("partition %s cannot be opened again", replica.partition)
            replica.lacks_room = False
            return None
        self._opened[replica.partition] = fresh
        return fresh

    def _is_wanted(self, topic: TopicReplicas, replica: Replica) -> bool:
        """Return whether it is still there, and waits: others came in between."""
        is_there = topic.partitions.get(replica.partition.partition) is replica
        return is_there and self._replicas.topics.get(topic.name) is topic and replica.lacks_room

    def _full_directories(self, storages: set[str]) -> set[str]:
        return {
            info.path
            for name in sorted(storages)
            for info in self._replicas.engines[name].log_dirs()
            if 0 <= info.usable_bytes < ROOM_BYTES_MIN
        }


def _take_state(fresh: Replica, old: Replica) -> None:
    assert old.state is not None, "what went offline was served"
    if fresh.state is not old.state:
        fresh.become(old.state)
