"""Pure core: how long elections take in which a controller stands, and how long its records wait to be committed.

*Source:* the metrics of Kafka's `KafkaRaftMetrics`.
"""

from __future__ import annotations

from ..contracts.election import Role


class Times:
    """Counts of times in milliseconds."""

    __slots__ = ("count", "max", "total")

    def __init__(self) -> None:
        """Begin without any."""
        self.count, self.total, self.max = 0, 0.0, 0.0

    def record(self, value: float) -> None:
        """Count a time."""
        self.count += 1
        self.total += value
        self.max = max(self.max, value)

    @property
    def mean(self) -> float:
        """The average, 0 without any."""
        return self.total / self.count if self.count else 0.0


class QuorumTimes:
    """The times of one replica. Owned by it.

    Attributes:
        elections: From when it stood until somebody led whom it knows.
        commits: From when it began to make its records durable until they were committed.
    """

    __slots__ = ("_stood_ms", "commits", "elections")

    def __init__(self) -> None:
        """Begin without any."""
        self.elections, self.commits = Times(), Times()
        self._stood_ms: float | None = None

    def take_role(self, role: Role, leader_id: int, now_ms: float) -> None:
        """Take note of a role; an election that is tried again is one until somebody leads."""
        if role is Role.CANDIDATE:
            self._stood_ms = now_ms if self._stood_ms is None else self._stood_ms
        elif leader_id >= 0 and self._stood_ms is not None:
            self.elections.record(now_ms - self._stood_ms)
            self._stood_ms = None
