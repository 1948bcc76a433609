"""Pure core: whether a batch may be appended that is not simply its producer's next one, and verified transactions.

A partition must not take records of a transaction that its coordinator does not know to reach it: nobody would ever
end them. So the first batch of a transaction is *verified*: the coordinator is asked whether the partition is part of
the transaction (or told, from Produce version 12 on, that it is), and only then is the batch appended::

    begin a verification --> ask the coordinator --> append with that verification; it is forgotten
                                  |
                                  +-- meanwhile an end of the producer's transaction is appended: the verification is
                                      forgotten, what comes with it is refused, and the producer tries again

While a transaction is open in the partition, its producer's batches need no verification. A verification that failed
stays, so that no batch with a higher sequence overtakes the one that has to be sent again.

*Source:* KIP-890; Kafka's VerificationStateEntry, UnifiedLog.analyzeAndValidateProducerState, ProducerAppendInfo.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ..classes import define
from ..errors import ErrorCode, KafkaError
from ..records.batch import SEQUENCE_MAX, TRANSACTIONAL_FLAG
from ..types import NO_EPOCH

if TYPE_CHECKING:
    from ..records.batch import BatchHeader
    from .producer_state import ProducedBatch, ProducerState


@define(eq=False)
class Verification:
    """A producer's transaction about which the coordinator is, or was, asked on behalf of a partition.

    Attributes:
        producer_epoch: The newest epoch that asked.
        lowest_sequence: The lowest sequence of that epoch that asked: no batch beyond it is taken before it.
        supports_epoch_bump: Whether the epoch is raised with each transaction (transaction version 2), so that a
            producer of which nothing is known begins with sequence 0.
        started_ms: When it began, by the monotonic clock.
    """

    producer_epoch: int
    lowest_sequence: int
    supports_epoch_bump: bool
    started_ms: int

    def note(self, producer_epoch: int, base_sequence: int) -> None:
        """Take note of another batch that asks."""
        if producer_epoch > self.producer_epoch:
            self.producer_epoch, self.lowest_sequence = producer_epoch, base_sequence
        elif producer_epoch == self.producer_epoch:
            self.lowest_sequence = min(self.lowest_sequence, base_sequence)


NOT_NEEDED: Final = Verification(NO_EPOCH, 0, False, 0)
"""What is appended with, where `transaction.partition.verification.enable` is off."""


def judge(
    state: ProducerState | None, header: BatchHeader, pending: Verification | None, verified: Verification | None
) -> ProducedBatch | None:
    """Judge a client's batch that is not simply the next one of its producer.

    Args:
        state: What is known of the producer.
        header: The batch's.
        pending: The verification of this producer that the partition waits for.
        verified: The one that the batch comes with.

    Returns:
        The original when it is a duplicate, None when it may be appended.

    Raises:
        KafkaError: It may not.
    """
    if state is not None and header.producer_epoch == state.producer_epoch:
        last_sequence = (header.base_sequence + header.last_offset_delta) & SEQUENCE_MAX
        original = state.find_duplicate(header.base_sequence, last_sequence)
        if original is not None:
            return original
    check_epoch(state, header.producer_id, header.producer_epoch)
    is_transactional = bool(header.attributes & TRANSACTIONAL_FLAG)
    if is_transactional and not is_open(state, header.producer_epoch):
        _check_verified(header, pending, verified)
    if pending is not None:
        _check_sequence_of_verified(state, header, pending)
    if state is not None:
        _check_sequence(state, header)
        if state.transaction is not None and not is_transactional:
            raise KafkaError(
                ErrorCode.INVALID_TXN_STATE, f"producer {state.producer_id}: a batch outside its open transaction"
            )
    return None


def judge_coordinators(
    state: ProducerState | None, header: BatchHeader, pending: Verification | None, verified: Verification | None
) -> None:
    """Judge a batch that a coordinator writes for a producer; as `judge`, but such batches have no sequence.

    Raises:
        KafkaError: It may not be appended.
    """
    check_epoch(state, header.producer_id, header.producer_epoch)
    if header.attributes & TRANSACTIONAL_FLAG and not is_open(state, header.producer_epoch):
        _check_verified(header, pending, verified)


def is_open(state: ProducerState | None, producer_epoch: int) -> bool:
    """Return whether a producer of this epoch has a transaction open."""
    return state is not None and state.transaction is not None and state.producer_epoch == producer_epoch


def check_epoch(state: ProducerState | None, producer_id: int, producer_epoch: int) -> None:
    """Refuse a producer that has been fenced; of one that is not known, an epoch that none can have.

    Raises:
        KafkaError: INVALID_PRODUCER_EPOCH.
    """
    known_epoch = NO_EPOCH if state is None else state.producer_epoch
    if producer_epoch < known_epoch:
        raise KafkaError(
            ErrorCode.INVALID_PRODUCER_EPOCH,
            f"producer {producer_id}: epoch {producer_epoch} is older than {known_epoch}",
        )


def _check_verified(header: BatchHeader, pending: Verification | None, verified: Verification | None) -> None:
    if verified is not NOT_NEEDED and (verified is None or verified is not pending):
        raise KafkaError(
            ErrorCode.INVALID_TXN_STATE, f"producer {header.producer_id}: a batch of no transaction that is open here"
        )


def _check_sequence_of_verified(state: ProducerState | None, header: BatchHeader, pending: Verification) -> None:
    sequence = header.base_sequence
    is_new = state is None or not state.batches
    if (pending.supports_epoch_bump and is_new and sequence != 0) or sequence > pending.lowest_sequence:
        raise _out_of_order(header, 0 if is_new else pending.lowest_sequence)


def _check_sequence(state: ProducerState, header: BatchHeader) -> None:
    expected = state.next_sequence if header.producer_epoch == state.producer_epoch else 0
    # Epoch -1 is no epoch: Kafka then takes any sequence.
    if header.base_sequence != expected and state.producer_epoch != NO_EPOCH:
        raise _out_of_order(header, expected)


def _out_of_order(header: BatchHeader, expected: int) -> KafkaError:
    return KafkaError(
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        f"producer {header.producer_id}: sequence {header.base_sequence} came, {expected} was expected",
    )
