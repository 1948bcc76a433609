"""Pure core: how much a running broker's numbers of threads may change at a time.

One task serves everything here, so most of these numbers have no effect; but what Kafka refuses is refused, so that
a script that resizes pools behaves alike with both.

*Source:* KIP-226; what Apache Kafka 4.3.1 answers (the session `dynamic_thread_pools` of the differential tests).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ..errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from .broker import BrokerConfig

POOLS: Final = (
    "background.threads",
    "log.cleaner.threads",
    "num.io.threads",
    "num.network.threads",
    "num.recovery.threads.per.data.dir",
    "num.replica.fetchers",
    "remote.log.manager.copier.thread.pool.size",
    "remote.log.manager.expiration.thread.pool.size",
    "remote.log.reader.threads",
)
"""The numbers that may at most double and at most halve, by one change."""


def check_thread_pools(now: BrokerConfig, after: BrokerConfig) -> None:
    """Refuse a configuration in which a number of threads is more than twice, or less than half, what it is now.

    Raises:
        KafkaError: INVALID_REQUEST; nothing is to be changed then.
    """
    for name in POOLS:
        was, becomes = now.get_int(name), after.get_int(name)
        if was == becomes:
            continue
        if becomes < was // 2:
            bound = f"value should be at least half the current value {was}"
        elif becomes > 2 * was:
            bound = f"value should not be greater than double the current value {was}"
        else:
            continue
        detail = f"Dynamic thread count update validation failed for {name}={becomes}, {bound}"
        raise KafkaError(ErrorCode.INVALID_REQUEST, detail)
