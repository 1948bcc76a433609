"""Pure core: checks replicas that a client assigned by hand.

*Source:* Kafka's `ReplicationControlManager.validateManualPartitionAssignment`; texts as Apache Kafka 4.3.1 answers
them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from ..metadata.image import MetadataImage


def check_assignment(
    replicas: Sequence[int], replication_factor: int | None, image: MetadataImage, *, staying: Collection[int] = ()
) -> None:
    """Check the replicas of one partition.

    Args:
        replicas: Broker ids, the preferred leader first.
        replication_factor: How many the partitions before it have; None when that does not matter.
        image: Who is registered.
        staying: Brokers that need not be registered, as they hold the partition already.

    Raises:
        KafkaError: INVALID_REPLICA_ASSIGNMENT.
    """
    if not replicas:
        raise _invalid("The manual partition assignment includes an empty replica list.")
    previous = None
    for broker in sorted(replicas):
        if broker not in image.brokers and broker not in staying:
            raise _invalid(
                f"The manual partition assignment includes broker {broker}, but no such broker is registered."
            )
        if broker == previous:
            raise _invalid(f"The manual partition assignment includes the broker {broker} more than once.")
        previous = broker
    if replication_factor is not None and len(replicas) != replication_factor:
        raise _invalid(
            f"The manual partition assignment includes a partition with {len(replicas)} replica(s), but this is not "
            f"consistent with previous partitions, which have {replication_factor} replica(s)."
        )


def check_some_live(partition: int, replicas: Sequence[int], live: Collection[int]) -> None:
    """Check that some replica of a new partition may lead it.

    Raises:
        KafkaError: INVALID_REPLICA_ASSIGNMENT.
    """
    if not any(replica in live for replica in replicas):
        raise _invalid(
            "All brokers specified in the manual partition assignment for partition "
            f"{partition} are fenced or in controlled shutdown."
        )


def _invalid(detail: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, detail)
