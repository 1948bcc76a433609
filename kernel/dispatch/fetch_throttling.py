"""Pure core: which followers have to wait for their leader, as an operator wants it (KIP-73).

*Source:* ReplicaManager.shouldLeaderThrottle, KafkaApis.sizeOfThrottledPartitions of Kafka 4.3.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..replication.throttling import names_replica
from ..wire.records import records_size

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..partitions.replica import Replica
    from ..wire.messages.api_01_fetch import PartitionData
    from .fetch_target import FetchTarget


def is_throttled(replica: Replica, follower_id: int) -> bool:
    """Return whether a follower has to wait where the quota is exceeded; one that is in sync never has."""
    is_in_sync = replica.state is not None and follower_id in replica.state.isr
    return not is_in_sync and _is_named(replica)


def throttled_bytes(targets: Iterable[FetchTarget], answers: Iterable[PartitionData | None]) -> int:
    """Return how much of an answer to a follower is of partitions that are throttled."""
    return sum(
        records_size(answer.records)
        for target, answer in zip(targets, answers, strict=True)
        if answer is not None and answer.records and target.replica is not None and _is_named(target.replica)
    )


def _is_named(replica: Replica) -> bool:
    return names_replica(replica.settings.throttled_leaders, replica.partition.partition, replica.leader_id)
