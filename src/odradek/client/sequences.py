"""Pure core: the producer id, and each partition's sequences: what makes a retried batch appear once and in order.

A broker appends a batch only if its base sequence follows the last one of this producer id and epoch in that partition;
one that it has already it acknowledges again. So batches of a partition keep the sequence of their first attempt, and
are sent again in order. Three things break the chain:

* a batch is refused for good: what was numbered after it can never follow;
* a batch was given up while its fate was unknown: new batches wait until later ones show whether it was appended, or
  there are none;
* the broker finds a gap where we see none (it lost data, or forgot this producer).

Then the partition starts again at sequence 0 under the next epoch, which the producer may take for itself, once nothing
of it is on the wire and everything numbered before the break has come to its end. A batch after a gap cannot have been
appended, so that sending it again under another epoch makes no duplicate.

*Source:* KIP-98, KIP-360, KIP-679; `TransactionManager` of Kafka 4.3 for producers without a transactional id.

.. versionadded:: 0.1
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import attrs

from odradek.kernel.errors import ErrorCode
from odradek.kernel.records.batch import increment_sequence
from odradek.kernel.types import NO_EPOCH, NO_PRODUCER_ID, NO_SEQUENCE

if TYPE_CHECKING:
    from odradek.kernel.types import TopicPartition

    from .accumulator import ProducerBatch

EPOCH_MAX: Final = 32_767
WINDOW_BATCHES: Final = 5
"""A leader remembers the last five batches of a producer. So the oldest one whose fate is open must be among the last
five that were begun: else its repetition would look like a gap, though it stands in the log."""

UNKNOWN_FATE: Final = frozenset(
    {
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.NETWORK_EXCEPTION,
        # Also where it stopped leading, or its log failed, while the batch waited for the in-sync replicas: the next
        # leader may have it.
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.KAFKA_STORAGE_ERROR,
        # Whatever failed in the broker may have done so behind the append.
        ErrorCode.UNKNOWN_SERVER_ERROR,
    }
)
"""Errors after which the batch may stand in the log all the same."""

_GAP_ERRORS: Final = frozenset({ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, ErrorCode.UNKNOWN_PRODUCER_ID})


@attrs.define(eq=False)
class _PartitionState:
    """One partition's chain.

    Invariants: `in_flight` holds every batch that has a sequence and no end yet, on the wire or waiting to be sent
    again, in order; their sequences follow each other and end before `next_sequence`.

    Attributes:
        producer_id: Of the batches in flight.
        producer_epoch: Of the batches in flight.
        next_sequence: For the next new batch.
        begun_count: How many batches were numbered in this chain; each remembers its own number.
        last_acknowledged: Last sequence known to be appended; -1 for none.
        in_flight: See above.
        is_unresolved: Whether a batch was given up without knowing its fate.
        break_ordinal: Batches from this ordinal on wait for a new epoch; None when the chain is whole.
    """

    producer_id: int
    producer_epoch: int
    next_sequence: int = 0
    begun_count: int = 0
    last_acknowledged: int = -1
    in_flight: list[ProducerBatch] = attrs.field(factory=list)
    is_unresolved: bool = False
    break_ordinal: tuple[int, ...] | None = None

    def break_at(self, ordinal: tuple[int, ...]) -> None:
        """Note that the chain cannot go on from this batch."""
        self.break_ordinal = ordinal if self.break_ordinal is None else min(self.break_ordinal, ordinal)

    @property
    def may_restart(self) -> bool:
        """Whether nothing is on the wire, and nothing before the break is still to be sent."""
        at = self.break_ordinal
        return at is not None and all(batch.ordinal >= at and not batch.is_on_wire for batch in self.in_flight)


@attrs.define
class Sequences:
    """The chains of all partitions of one producer; one owner.

    Attributes:
        restarts: Whether a broken chain begins again under the next epoch; not within a transaction, which then fails,
            and whose coordinator gives the next epoch.
        producer_id: -1 until a broker gave one.
        producer_epoch: Its present epoch.
    """

    producer_id: int = NO_PRODUCER_ID
    producer_epoch: int = NO_EPOCH
    restarts: bool = True
    _partitions: dict[TopicPartition, _PartitionState] = attrs.field(factory=dict, init=False)

    @property
    def has_producer_id(self) -> bool:
        """Whether batches can be numbered."""
        return self.producer_id != NO_PRODUCER_ID

    def set_producer_id(self, producer_id: int, producer_epoch: int) -> None:
        """Take a new id over; partitions begin again with it when their present batches are done."""
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch

    def begin_anew(self, producer_id: int, producer_epoch: int) -> None:
        """Take over what a transaction's coordinator gave; all partitions begin at sequence 0."""
        assert not any(state.in_flight for state in self._partitions.values()), (
            "a transaction ends with all its batches"
        )
        self._partitions.clear()
        self.set_producer_id(producer_id, producer_epoch)

    def may_send(self, batch: ProducerBatch) -> bool:
        """Say whether the first waiting batch of its partition may be sent now."""
        if not self.has_producer_id:
            return False
        state = self._partitions.get(batch.partition)
        if state is None:
            return True
        if state.break_ordinal is not None and batch.ordinal >= state.break_ordinal:
            return False
        if batch.base_sequence != NO_SEQUENCE:
            return state.in_flight[0] is batch  # again, one after the other
        if state.is_unresolved:
            return False
        if not state.in_flight:
            return True
        # A leader that knows nothing of a producer takes any sequence for the first: so that the second cannot come
        # before a first that failed, it waits until the first is there.
        is_open = state.begun_count - state.in_flight[0].number < WINDOW_BATCHES
        return is_open and state.last_acknowledged >= 0 and not self._is_stale(state)

    def assign(self, batch: ProducerBatch) -> None:
        """Number a batch that `may_send` let pass, unless it is numbered already."""
        if batch.base_sequence != NO_SEQUENCE:
            return
        state = self._partitions.get(batch.partition)
        if state is None or (self._is_stale(state) and not state.in_flight):
            state = self._partitions[batch.partition] = _PartitionState(self.producer_id, self.producer_epoch)
        batch.set_producer(state.producer_id, state.producer_epoch, state.next_sequence)
        state.next_sequence = increment_sequence(state.next_sequence, batch.records_count)
        state.in_flight.append(batch)
        batch.number = state.begun_count
        state.begun_count += 1

    def _is_stale(self, state: _PartitionState) -> bool:
        return (state.producer_id, state.producer_epoch) != (self.producer_id, self.producer_epoch)

    def acknowledge(self, batch: ProducerBatch) -> None:
        """Take note that a batch was appended, now or by an earlier attempt."""
        state = self._partitions[batch.partition]
        state.in_flight.remove(batch)
        state.last_acknowledged = increment_sequence(batch.base_sequence, batch.records_count - 1)
        self._resolve(state)

    def may_retry(self, batch: ProducerBatch, code: ErrorCode) -> bool:
        """Say whether a batch that came back with `code` should be sent again, and break the chain if it must be."""
        if code not in _GAP_ERRORS:
            return code.retriable
        state = self._partitions[batch.partition]
        if state.in_flight[0] is batch:
            if not self.restarts:
                return False
            # Nothing of ours is missing before it: the gap is the broker's, or a given-up batch was never appended.
            state.break_at(batch.ordinal)
        return True

    def fail(self, batch: ProducerBatch, *, is_fate_known: bool) -> None:
        """Take note that a batch ends without success.

        Args:
            batch: It may have no sequence yet.
            is_fate_known: Whether it certainly was not appended, by any attempt.
        """
        if batch.base_sequence == NO_SEQUENCE:
            return
        state = self._partitions[batch.partition]
        state.in_flight.remove(batch)
        if is_fate_known:
            state.break_at(batch.ordinal)
        else:
            state.is_unresolved = True
        self._resolve(state)

    def split(self, batch: ProducerBatch, parts: list[ProducerBatch]) -> None:
        """Give the parts of a split batch its sequences."""
        if batch.base_sequence == NO_SEQUENCE:
            return
        state = self._partitions[batch.partition]
        place = state.in_flight.index(batch)
        for later in state.in_flight[place + 1 :]:
            later.number += len(parts) - 1
        state.begun_count += len(parts) - 1
        state.in_flight[place : place + 1] = parts
        sequence = batch.base_sequence
        for number, part in enumerate(parts, batch.number):
            part.number = number
            part.set_producer(batch.producer_id, batch.producer_epoch, sequence)
            sequence = increment_sequence(sequence, part.records_count)

    def _resolve(self, state: _PartitionState) -> None:
        """Decide about a given-up batch once nothing is in flight that could tell."""
        if not state.is_unresolved or state.in_flight:
            return
        state.is_unresolved = False
        if state.next_sequence != increment_sequence(state.last_acknowledged, 1):
            state.break_at(())

    def restart_broken(self) -> None:
        """Begin broken chains again where nothing stands against it.

        Where epochs are used up the producer id is given up, and they begin again when there is another one.
        """
        if not self.has_producer_id:
            return
        broken = [state for state in self._partitions.values() if state.may_restart]
        if any(not self._is_stale(state) for state in broken):
            if self.producer_epoch >= EPOCH_MAX:
                self.producer_id = NO_PRODUCER_ID
                return
            self.producer_epoch += 1
        for state in broken:
            state.producer_id, state.producer_epoch = self.producer_id, self.producer_epoch
            sequence = 0
            for number, batch in enumerate(state.in_flight):
                batch.number = number
                batch.set_producer(self.producer_id, self.producer_epoch, sequence)
                sequence = increment_sequence(sequence, batch.records_count)
            state.next_sequence = sequence
            state.begun_count = len(state.in_flight)
            state.last_acknowledged = -1
            state.is_unresolved = False
            state.break_ordinal = None
