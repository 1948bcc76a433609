"""Pure core: where followers' logs begin and end, as their leader knows from their fetches: for who picks a replica.

Kept beside the election, which counts in-sync replicas, and only where consumers are sent to other replicas (KIP-392).

*Source:* ReplicaState of Kafka 4.3.
"""

from __future__ import annotations

from typing import NamedTuple


class FollowerPosition(NamedTuple):
    """A follower, at its last fetch.

    Attributes:
        log_start_offset: Where its log begins.
        log_end_offset: Where it ends.
        caught_up_ms: When it had everything for the last time, by the monotonic clock; -1 for never.
        fetched_ms: When it fetched.
        leader_end_offset: Where the leader's log ended then.
    """

    log_start_offset: int
    log_end_offset: int
    caught_up_ms: int
    fetched_ms: int
    leader_end_offset: int

    def holds(self, offset: int) -> bool:
        """Return whether a reader may ask for an offset there."""
        return self.log_start_offset <= offset <= self.log_end_offset


class FollowerPositions(dict[int, FollowerPosition]):
    """Those of one partition's followers by broker; known as long as this broker leads in one epoch."""

    def note(
        self, broker_id: int, *, log_start_offset: int, log_end_offset: int, leader_end_offset: int, now_ms: int
    ) -> None:
        """Take note of a fetch; who asks from where the log ended at its last one had caught up then."""
        known = self.get(broker_id)
        caught_up_ms = known.caught_up_ms if known is not None else -1
        if log_end_offset >= leader_end_offset:
            caught_up_ms = now_ms
        elif known is not None and log_end_offset >= known.leader_end_offset:
            caught_up_ms = max(caught_up_ms, known.fetched_ms)
        self[broker_id] = FollowerPosition(log_start_offset, log_end_offset, caught_up_ms, now_ms, leader_end_offset)
