"""Pure core: leaders that failed, or said that they lead no longer, and how soon to ask who leads now.

A new leader is known to the brokers some milliseconds after the old one is gone, and a client that waits
`retry.backoff.ms` before it looks again stands still as long. So for each doubted partition the metadata is asked for
after 5, 10, 20, ... ms, until another epoch is known, or the pauses are as long as the usual ones:

    doubt -> ask -> still the old epoch -> ask a little later -> ... -> a new epoch: settled
                                                                     -> as slow as ever

So one outage costs a handful of requests more, whether somebody else can lead or not.

.. versionadded:: 0.1
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import attrs

from odradek.kernel.types import NO_EPOCH

if TYPE_CHECKING:
    from collections.abc import Iterable

    from odradek.kernel.types import TopicPartition

    from .cluster import Cluster

FIRST_PAUSE_MS: Final = 5
QUIET_MS: Final = 3_000
"""Who was not doubted for so long is asked about soon again: it is another outage."""


@attrs.define(eq=False)
class _Doubt:
    """One partition: the epoch that is doubted, the pause that is next, and when it was last doubted."""

    epoch: int
    pause_ms: int
    seen_ms: int


class Doubts:
    """What a client doubts. Owned by who keeps the metadata fresh."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._doubts: dict[TopicPartition, _Doubt] = {}

    def __repr__(self) -> str:
        return f"Doubts({', '.join(map(str, self._doubts))})"

    def add(self, partitions: Iterable[TopicPartition], now_ms: int) -> bool:
        """Doubt the leaders of partitions; return whether one was not doubted before."""
        is_news = False
        for partition in partitions:
            known = self._doubts.get(partition)
            if known is None or now_ms - known.seen_ms > QUIET_MS:
                self._doubts[partition] = _Doubt(self._epoch(partition), FIRST_PAUSE_MS, now_ms)
                is_news = True
            else:
                known.seen_ms = now_ms
        return is_news

    def _epoch(self, partition: TopicPartition) -> int:
        info = self._cluster.partition(partition)
        return NO_EPOCH if info is None else info.leader_epoch

    def next_pause_ms(self, usual_ms: int) -> int | None:
        """Return how long to wait before the next request, after one was answered; None for as long as ever.

        Args:
            usual_ms: How long to wait otherwise.
        """
        for partition in [each for each, doubt in self._doubts.items() if self._is_settled(each, doubt)]:
            del self._doubts[partition]
        pauses = [doubt.pause_ms for doubt in self._doubts.values() if doubt.pause_ms < usual_ms]
        if not pauses:
            return None
        for doubt in self._doubts.values():
            doubt.pause_ms *= 2
        return min(pauses)

    def _is_settled(self, partition: TopicPartition, doubt: _Doubt) -> bool:
        info = self._cluster.partition(partition)
        return info is None or (info.leader_epoch > doubt.epoch and info.has_leader)
