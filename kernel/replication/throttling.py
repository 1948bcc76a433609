"""Pure core: how fast throttled replicas are brought up: `leader.` and `follower.replication.throttled.rate`.

An operator who moves partitions names replicas that are to be slow, and how many bytes a second a broker gives to them
(as leader) or takes for them (as follower). Over several windows the average is kept; a replica that is in sync is
never held back, since whoever produces waits for it, though what it takes counts.

*Source:* KIP-73; ReplicationQuotaManager, `shouldLeaderThrottle` and `shouldFollowerThrottle` of Kafka 4.3.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ..partitions.byte_rate import ByteRate

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

    def __init__(self, bytes_per_second: Callable[[], int], rate: ByteRate) -> None:
        """Take the rate as it is allowed now, `NO_RATE` for none, and as it is."""
        self._bytes_per_second = bytes_per_second
        self._rate = rate

    @classmethod
    def of(cls, config: Callable[[], ConfigView], rate_key: str, clock: Clock) -> ReplicationQuota:
        """Return the quota that a broker's configuration has under a key, always the newest."""
        return cls(lambda: config().get_int(rate_key), ByteRate.of(config(), "replication.quota", clock))

    @property
    def is_set(self) -> bool:
        """Whether there is a rate."""
        return self._bytes_per_second() < NO_RATE

    def record(self, size_bytes: int) -> None:
        """Take note of bytes of throttled replicas, in sync or not."""
        self._rate.note(size_bytes)

    def is_exceeded(self) -> bool:
        """Return whether more went than the rate allows: throttled replicas that are not in sync have to wait."""
        rate = self._bytes_per_second()
        return rate < NO_RATE and self.bytes_a_second() > rate

    def bytes_a_second(self) -> float:
        """Return how much went lately, on average; what went while there was no rate was not taken note of."""
        return self._rate.bytes_a_second()
