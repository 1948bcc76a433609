"""Pure core: which transactions hang: open in a partition, and known to no coordinator as being so.

A transaction that is open in a partition keeps `read_committed` consumers from everything behind it. Its coordinator
ends it, or aborts it after its time-out; unless it does not know that the partition is part of it.

*Source:* KIP-664; `kafka-transactions.sh find-hanging`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from odradek.client.admin_transactions import TransactionDescription
    from odradek.client.admin_values import ActiveProducer
    from odradek.kernel.types import TopicPartition


@attrs.frozen
class OpenTransaction:
    """A transaction that is open in a partition.

    Attributes:
        partition: Where.
        producer: Whose, as the partition knows it.
        transactional_id: Of that producer id; empty when no coordinator knows it.
    """

    partition: TopicPartition
    producer: ActiveProducer
    transactional_id: str = ""

    def duration_ms(self, now_ms: int) -> int:
        """Return how long ago the producer wrote last."""
        return now_ms - self.producer.last_timestamp


def open_transactions(
    producers: Mapping[TopicPartition, Sequence[ActiveProducer]], now_ms: int, timeout_ms: int
) -> list[OpenTransaction]:
    """Return the open transactions that nothing was written to for longer than a coordinator would wait.

    Args:
        producers: Of each partition.
        now_ms: The wall clock.
        timeout_ms: `transaction.max.timeout.ms` of the cluster.
    """
    return [
        OpenTransaction(partition, producer)
        for partition, known in sorted(producers.items())
        for producer in known
        if producer.transaction_start_offset >= 0 and now_ms - producer.last_timestamp > timeout_ms
    ]


def hanging(
    candidates: Sequence[OpenTransaction],
    ids: Mapping[int, str],
    descriptions: Mapping[str, TransactionDescription],
) -> list[OpenTransaction]:
    """Return those that no coordinator will end.

    Args:
        candidates: Of `open_transactions`.
        ids: Transactional ids by producer id, as coordinators have them.
        descriptions: What those coordinators know of the ids.
    """
    found = []
    for candidate in candidates:
        transactional_id = ids.get(candidate.producer.producer_id, "")
        description = descriptions.get(transactional_id)
        if description is None or candidate.partition not in description.partitions:
            found.append(attrs.evolve(candidate, transactional_id=transactional_id))
    return found
