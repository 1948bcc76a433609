"""Pure core: what a partition knows of one producer: its epoch, its last batches, the transaction it has open.

Of every producer the last five batches are kept, the most that a client has in flight (KIP-98); `producer_table` has
all producers, `append_check` judges what one of them sends next.

*Source:* KIP-98; Kafka's ProducerStateEntry.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import attrs

from ..classes import define
from ..records.batch import SEQUENCE_MAX
from ..types import NO_EPOCH, NO_OFFSET, NO_SEQUENCE, NO_TIMESTAMP
from .producer_snapshot import ProducerSnapshotEntry

BATCHES_KEPT: Final = 5
"""`max.in.flight.requests.per.connection` of an idempotent producer is at most this."""

NOT_ENDED: Final = -1


class ProducedBatch(NamedTuple):
    """A batch that was appended; what a duplicate of it is answered with.

    `timestamp` is the batch's max timestamp. Kafka gives it as the log append time of a duplicate, even where the
    topic keeps the producers' timestamps.
    """

    first_sequence: int
    last_sequence: int
    base_offset: int
    last_offset: int
    timestamp: int


@define(eq=False)
class Transaction:
    """A transaction on this partition: `marker_offset` is `NOT_ENDED` until its marker is appended."""

    producer_id: int
    first_offset: int
    marker_offset: int = NOT_ENDED


@define(eq=False)
class ProducerState:
    """What is known of one producer.

    Attributes:
        producer_id: Whose.
        producer_epoch: The newest seen.
        next_sequence: What its next batch has to begin with.
        batches: The last five of the current epoch, oldest first; empty after a marker raised the epoch.
        last_timestamp: Of its last batch or marker; expiry counts from here.
        coordinator_epoch: Of its last marker, -1 before the first.
        transaction: The open one.
    """

    producer_id: int
    producer_epoch: int
    next_sequence: int = 0
    batches: list[ProducedBatch] = attrs.field(factory=list)
    last_timestamp: int = NO_TIMESTAMP
    coordinator_epoch: int = NO_EPOCH
    transaction: Transaction | None = None

    @property
    def last_sequence(self) -> int:
        """The last sequence appended in this epoch, -1 when there is none."""
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE

    def raise_epoch(self, producer_epoch: int) -> None:
        """Forget the batches if the epoch is another one."""
        if producer_epoch != self.producer_epoch:
            self.producer_epoch = producer_epoch
            self.batches.clear()
            self.next_sequence = 0

    def find_duplicate(self, first_sequence: int, last_sequence: int) -> ProducedBatch | None:
        """Return the batch of these sequences, if it is among the last five."""
        for batch in self.batches:
            if batch.first_sequence == first_sequence and batch.last_sequence == last_sequence:
                return batch
        return None


def snapshot_entry(state: ProducerState) -> ProducerSnapshotEntry:
    """Return what a snapshot keeps of a producer: only its last batch."""
    last = state.batches[-1] if state.batches else None
    return ProducerSnapshotEntry(
        producer_id=state.producer_id,
        producer_epoch=state.producer_epoch,
        last_sequence=last.last_sequence if last else NO_SEQUENCE,
        last_offset=last.last_offset if last else NO_OFFSET,
        offset_delta=last.last_offset - last.base_offset if last else 0,
        timestamp=state.last_timestamp,
        coordinator_epoch=state.coordinator_epoch,
        current_transaction_first_offset=state.transaction.first_offset if state.transaction else NO_OFFSET,
    )


def state_of(entry: ProducerSnapshotEntry) -> ProducerState:
    """Return what is known of a producer by what a snapshot kept."""
    state = ProducerState(
        entry.producer_id,
        entry.producer_epoch,
        last_timestamp=entry.timestamp,
        coordinator_epoch=entry.coordinator_epoch,
    )
    if entry.last_offset >= 0:
        has_sequence = entry.last_sequence >= 0
        first_sequence = (entry.last_sequence - entry.offset_delta) & SEQUENCE_MAX if has_sequence else NO_SEQUENCE
        base_offset = entry.last_offset - entry.offset_delta
        state.batches.append(
            ProducedBatch(first_sequence, entry.last_sequence, base_offset, entry.last_offset, entry.timestamp)
        )
        state.next_sequence = (entry.last_sequence + 1) & SEQUENCE_MAX
    if entry.current_transaction_first_offset >= 0:
        state.transaction = Transaction(entry.producer_id, entry.current_transaction_first_offset)
    return state
