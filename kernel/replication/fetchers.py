"""Shell: the fetchers of a broker: each follower's partition is with one of the fetchers of its leader."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

import trio

from ..metadata.image import NO_LEADER
from .fetch_planning import fetcher_number
from .fetcher import Fetcher

if TYPE_CHECKING:
    from ..types import TopicIdPartition, TopicPartition
    from .fetcher import FetcherParts

log = logging.getLogger(__name__)

PAUSE_AFTER_BUG_S: Final = 1.0


class Fetchers:
    """Life: made, `leader_changed` for each replica that has a leader, `run` as a service. Owned by the broker.

    Invariant: a partition is with one fetcher at most.
    """

    def __init__(self, broker_id: int, parts: FetcherParts) -> None:
        """Make it; nothing is fetched yet.

        Args:
            broker_id: This broker.
            parts: What fetchers work with.
        """
        self._broker_id = broker_id
        self._parts = parts
        self._fetchers: dict[tuple[int, int], Fetcher] = {}
        self._count = parts.settings().fetchers_count
        self._send, self._receive = trio.open_memory_channel[Fetcher](float("inf"))

    def __repr__(self) -> str:
        followed_count = sum(len(fetcher.followed) for fetcher in self._fetchers.values())
        return f"<Fetchers: {followed_count} partitions by {len(self._fetchers)} fetchers>"

    def lag_max(self) -> int:
        """Return how many records the follower that is farthest behind lacks of what its leader has committed."""
        return max((max(fetcher.lags.values()) for fetcher in self._fetchers.values() if fetcher.lags), default=0)

    def leader_changed(self, partition: TopicIdPartition) -> None:
        """Follow whoever leads a partition now; nobody, if this broker does, or nobody does."""
        where = partition.topic_partition
        self.forget(where)  # fetchers are few; what they follow is kept nowhere else
        replica = self._parts.replicas.find(where.topic, where.partition)
        if replica is None or replica.is_leader or replica.leader_id in (NO_LEADER, self._broker_id):
            return
        number = fetcher_number(where, self._count)
        key = (replica.leader_id, number)
        new_fetcher = self._fetchers.get(key)
        if new_fetcher is None:
            new_fetcher = self._fetchers[key] = Fetcher(*key, self._parts)
            self._send.send_nowait(new_fetcher)
        new_fetcher.follow(replica)

    def forget(self, partition: TopicPartition) -> None:
        """Take nothing more for a partition of whoever led it, until `leader_changed` is told."""
        for fetcher in self._fetchers.values():
            fetcher.forget(partition)

    def settings_altered(self) -> None:
        """Take another `num.replica.fetchers`: each partition goes to the fetcher that it is with from now on."""
        count = self._parts.settings().fetchers_count
        if count == self._count:
            return
        self._count = count
        log.info("each leader is asked by %d fetchers from now on", count)
        for fetcher in list(self._fetchers.values()):
            for followed in list(fetcher.followed.values()):
                self.leader_changed(followed.replica.partition)

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Have a task for each fetcher that follows something, until cancelled."""
        async with trio.open_nursery() as nursery:
            task_status.started()
            async for fetcher in self._receive:
                nursery.start_soon(self._serve, fetcher, name=repr(fetcher))

    async def _serve(self, fetcher: Fetcher) -> None:
        while fetcher.followed:
            try:
                await fetcher.run()
            except Exception:  # a bug of ours: its partitions are behind meanwhile, and everything else goes on
                log.exception("%r failed", fetcher)
                await trio.sleep(PAUSE_AFTER_BUG_S)
        del self._fetchers[fetcher.leader_id, fetcher.number]
