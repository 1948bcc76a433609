"""Pure core: how fast throttled replicas are brought up: `leader.` and `follower.replication.throttled.rate`.

An operator who moves partitions names replicas that are to be slow, and how many bytes a second a broker gives to them
(as leader) or takes for them (as follower). Over several windows the average is kept; a replica that is in sync is
never held back, since whoever produces waits for it, though what it takes counts.

*Source:* KIP-73; ReplicationQuotaManager, Rate, `shouldLeaderThrottle` and `shouldFollowerThrottle` of Kafka 4.3.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..contracts.services import ConfigView
    from ..machine.clock import Clock

NO_RATE: Final = (1 << 63) - 1
LEADER_RATE_KEY: Final = "leader.replication.throttled.rate"
FOLLOWER_RATE_KEY: Final = "follower.replication.throttled.rate"
_ALL: Final = frozenset(("*",))


def names_replica(throttled: frozenset[str], partition: int, broker_id: int) -> bool:
    """Return whether a topic's `*.replication.throttled.replicas` names a replica: by itself, or all by `*`."""
    return bool(throttled) and (throttled == _ALL or f"{partition}:{broker_id}" in throttled)


class ReplicationQuota:
    """What went to, or came for, throttled replicas lately. Owned by the reactor's task."""

    def __init__(
        self, bytes_per_second: Callable[[], int], clock: Clock, *, windows_count: int = 11, window_ms: int = 1000
    ) -> None:
        """Make one of which nothing went yet.

        Args:
            bytes_per_second: Returns the rate as it is now; `NO_RATE` for none.
            clock: The monotonic one.
            windows_count: Over how many windows is averaged, the one that is not over among them.
            window_ms: How long each is.
        """
        self._bytes_per_second = bytes_per_second
        self._clock = clock
        self._windows_count = windows_count
        self._window_ms = window_ms
        self._windows: deque[list[int]] = deque()

    @classmethod
    def of(cls, config: Callable[[], ConfigView], rate_key: str, clock: Clock) -> ReplicationQuota:
        """Return the quota that a broker's configuration has under a key, always the newest."""
        return cls(
            lambda: config().get_int(rate_key),
            clock,
            windows_count=config().get_int("replication.quota.window.num"),
            window_ms=config().get_int("replication.quota.window.size.seconds") * 1000,
        )

    @property
    def is_set(self) -> bool:
        """Whether there is a rate."""
        return self._bytes_per_second() < NO_RATE

    def record(self, size_bytes: int) -> None:
        """Take note of bytes of throttled replicas, in sync or not."""
        now_ms = self._clock.monotonic_ms()
        self._forget_old(now_ms)
        if not self._windows or now_ms - self._windows[-1][0] >= self._window_ms:
            self._windows.append([now_ms, 0])
        self._windows[-1][1] += size_bytes

    def is_exceeded(self) -> bool:
        """Return whether more went than the rate allows: throttled replicas that are not in sync have to wait."""
        rate = self._bytes_per_second()
        return rate < NO_RATE and self.bytes_a_second() > rate

    def bytes_a_second(self) -> float:
        """Return how much went lately, on average; what went while there was no rate was not taken note of."""
        now_ms = self._clock.monotonic_ms()
        self._forget_old(now_ms)
        if not self._windows:
            return 0.0
        elapsed_ms = max(now_ms - self._windows[0][0], (self._windows_count - 1) * self._window_ms)
        return sum(window[1] for window in self._windows) * 1000 / elapsed_ms

    def _forget_old(self, now_ms: int) -> None:
        kept_ms = self._windows_count * self._window_ms
        while self._windows and now_ms - self._windows[0][0] >= kept_ms:
            self._windows.popleft()
