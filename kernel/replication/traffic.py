"""Pure core: what leaders and followers copy, and how much of it because partitions are reassigned.

*Source:* BrokerTopicMetrics.updateBytesOut and updateReassignmentBytesIn, ReplicaManager.isAddingReplica of Kafka 4.3.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

if TYPE_CHECKING:
    from ..partitions.replica import Replica


@attrs.define(eq=False)
class ReplicationTraffic:
    """Bytes of record batches that went between replicas since the start. Owned by the reactor's task.

    Attributes:
        bytes_in: Taken from leaders.
        bytes_out: Given to followers.
        reassigned_in: Those taken for replicas that a reassignment adds here.
        reassigned_out: Those given to replicas that a reassignment adds elsewhere.
    """

    bytes_in: int = 0
    bytes_out: int = 0
    reassigned_in: int = 0
    reassigned_out: int = 0

    def came(self, replica: Replica, broker_id: int, size_bytes: int) -> None:
        """Count what this broker took from a replica's leader."""
        self.bytes_in += size_bytes
        if _is_adding(replica, broker_id):
            self.reassigned_in += size_bytes

    def went(self, replica: Replica | None, follower_id: int, size_bytes: int) -> None:
        """Count what a follower was given of the replica here, which may be gone by now."""
        self.bytes_out += size_bytes
        if replica is not None and _is_adding(replica, follower_id):
            self.reassigned_out += size_bytes


def _is_adding(replica: Replica, broker_id: int) -> bool:
    return replica.state is not None and broker_id in replica.state.adding_replicas
