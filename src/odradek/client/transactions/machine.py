"""Pure core: a transactional producer's state, and what each error of its coordinators means for it.

    UNINITIALIZED -> READY -> IN_TRANSACTION -> COMMITTING --+-> READY
                       ^            |               |        |
                       |            v               v        |
                       +-- ABORTING <------ ABORTABLE_ERROR  |      any -> FATAL_ERROR, of which there is no end
                       ^                                     |
                       +-------------------------------------+

Two versions of the protocol. In version 1 a partition is added (AddPartitionsToTxn) before the first batch for it, and
a group (AddOffsetsToTxn) before its offsets. In version 2 (KIP-890) the brokers add both by themselves, and every end
raises the producer's epoch, so that nothing late can touch the next transaction. The cluster's finalized feature
`transaction.version` decides, as for Java's producer.

| error | for the producer |
| --- | --- |
| COORDINATOR_LOAD_IN_PROGRESS, CONCURRENT_TRANSACTIONS, other retriable ones | again |
| NOT_COORDINATOR, COORDINATOR_NOT_AVAILABLE | again, with another coordinator |
| INVALID_PRODUCER_EPOCH, PRODUCER_FENCED | fatal: fenced |
| TRANSACTION_ABORTABLE, authorization of topics and groups, everything about the consumer's membership | abort |
| UNKNOWN_PRODUCER_ID, INVALID_PRODUCER_ID_MAPPING | abort |
| OPERATION_NOT_ATTEMPTED | as the code of what it was not attempted for; alone: abort |
| any other | fatal |

*Source:* `TransactionManager` of Kafka 4.3; KIP-98, KIP-360, KIP-447, KIP-588, KIP-890.

.. versionadded:: 0.1
"""

from __future__ import annotations

from enum import Enum
from typing import Final

import attrs

from odradek.kernel.errors import ErrorCode
from odradek.kernel.peers.errors import ClientError
from odradek.kernel.types import NO_EPOCH, NO_PRODUCER_ID, TopicPartition

from ..errors import (
    BrokerError,
    ClientUsageError,
    ProducerFencedError,
    TransactionAbortableError,
    TransactionAbortedError,
    TransactionFatalError,
)


class State(Enum):
    """Where the producer is; see the module's picture."""

    UNINITIALIZED = "not initialized"
    READY = "ready"
    IN_TRANSACTION = "in a transaction"
    COMMITTING = "committing"
    ABORTING = "aborting"
    ABORTABLE_ERROR = "failed, to be aborted"
    FATAL_ERROR = "failed for good"


NEXT: Final = {
    State.UNINITIALIZED: {State.READY},
    State.READY: {State.IN_TRANSACTION, State.READY},
    State.IN_TRANSACTION: {State.COMMITTING, State.ABORTING, State.ABORTABLE_ERROR},
    State.COMMITTING: {State.READY, State.COMMITTING, State.ABORTING, State.ABORTABLE_ERROR},
    State.ABORTABLE_ERROR: {State.ABORTING, State.ABORTABLE_ERROR},
    State.ABORTING: {State.READY, State.ABORTING},
    State.FATAL_ERROR: set(),
}
"""Where each state may lead to; FATAL_ERROR is reached from all."""
_GIVEN_UP: Final = frozenset({State.ABORTABLE_ERROR, State.ABORTING})


class Verdict(Enum):
    """What an error code means; see the module's table."""

    DONE = "done"
    AGAIN = "again"
    FIND = "again, with another coordinator"
    ABORT = "abort"
    FENCED = "fenced"
    FATAL = "fatal"


_TABLE: Final = {
    ErrorCode.NONE: Verdict.DONE,
    ErrorCode.NOT_COORDINATOR: Verdict.FIND,
    ErrorCode.COORDINATOR_NOT_AVAILABLE: Verdict.FIND,
    ErrorCode.INVALID_PRODUCER_EPOCH: Verdict.FENCED,
    ErrorCode.PRODUCER_FENCED: Verdict.FENCED,
    **dict.fromkeys(
        (
            ErrorCode.TRANSACTION_ABORTABLE,
            ErrorCode.TOPIC_AUTHORIZATION_FAILED,
            ErrorCode.GROUP_AUTHORIZATION_FAILED,
            ErrorCode.OPERATION_NOT_ATTEMPTED,
            ErrorCode.UNKNOWN_PRODUCER_ID,
            ErrorCode.INVALID_PRODUCER_ID_MAPPING,
            ErrorCode.UNKNOWN_MEMBER_ID,
            ErrorCode.ILLEGAL_GENERATION,
            ErrorCode.FENCED_INSTANCE_ID,
            ErrorCode.STALE_MEMBER_EPOCH,
            ErrorCode.REBALANCE_IN_PROGRESS,
            ErrorCode.OFFSET_METADATA_TOO_LARGE,
        ),
        Verdict.ABORT,
    ),
}
_FATAL_FOR_BATCHES: Final = frozenset(
    {
        ErrorCode.PRODUCER_FENCED,
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
        ErrorCode.UNSUPPORTED_VERSION,
    }
)
"""A batch that fails otherwise, also by INVALID_PRODUCER_EPOCH (KIP-588), costs its transaction, not the producer."""


def judge(code: ErrorCode) -> Verdict:
    """Return what a code in a coordinator's answer means."""
    found = _TABLE.get(code)
    if found is not None:
        return found
    return Verdict.AGAIN if code.retriable else Verdict.FATAL


_NOTHING_DONE: Final = frozenset(
    {
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
)


def is_refusal(code: ErrorCode) -> bool:
    """Say whether a coordinator that answers so has certainly done nothing.

    It may find itself no coordinator any more, or not available, after it wrote down what was asked: the next one
    reads it there.
    """
    return code in _NOTHING_DONE or judge(code) in {Verdict.ABORT, Verdict.FENCED, Verdict.FATAL}


@attrs.define(eq=False)
class TransactionMachine:
    """One transactional producer; one owner, no awaits between its calls needed.

    Attributes:
        transactional_id: `transactional.id`.
        state: See above.
        error: What failed, in the two states for that.
        producer_id: As the coordinator gave it.
        producer_epoch: The present one.
        is_v2: Whether the present transaction goes by version 2.
        was_v1: Whether the present epoch has seen a transaction of version 1: version 2 needs one of its own.
        has_begun: Whether a broker may know of the present transaction, so that it must be ended there.
        is_end_sent: Whether the coordinator may have been told to commit: then there is no way back.
        needs_epoch: Whether something numbered got lost, so that sequences must begin again under another epoch.
    """

    transactional_id: str
    state: State = attrs.field(default=State.UNINITIALIZED, init=False)
    error: ClientError | None = attrs.field(default=None, init=False)
    producer_id: int = attrs.field(default=NO_PRODUCER_ID, init=False)
    producer_epoch: int = attrs.field(default=NO_EPOCH, init=False)
    is_v2: bool = attrs.field(default=False, init=False)
    was_v1: bool = attrs.field(default=False, init=False)
    has_begun: bool = attrs.field(default=False, init=False)
    is_end_sent: bool = attrs.field(default=False, init=False)
    needs_epoch: bool = attrs.field(default=False, init=False)
    _added: set[TopicPartition] = attrs.field(factory=set, init=False)
    _pending: set[TopicPartition] = attrs.field(factory=set, init=False)

    def _go(self, state: State) -> None:
        if state not in NEXT[self.state]:
            self.raise_error()
            raise ClientUsageError(f"the transactional producer is {self.state.value}: it cannot be {state.value} next")
        self.state = state

    def raise_error(self) -> None:
        """Raise what failed, if anything."""
        if self.error is not None:
            raise self.error

    # From the user.

    def initialized(self, producer_id: int, producer_epoch: int) -> None:
        """Take the producer id over that the coordinator gave; open transactions of former producers are aborted."""
        self._go(State.READY)
        self.producer_id, self.producer_epoch = producer_id, producer_epoch
        self.needs_epoch = self.was_v1 = False

    def begin(self, *, is_v2: bool) -> None:
        """Begin a transaction.

        Raises:
            ClientUsageError: One is open, or the producer is not initialized.
            TransactionFatalError: The producer is of no more use.
        """
        self._go(State.IN_TRANSACTION)
        self.is_v2 = is_v2
        self.has_begun = self.is_end_sent = False

    def use(self, partition: TopicPartition) -> bool:
        """Take note that a record goes to a partition; return whether the coordinator has to be told first."""
        if partition in self._added or partition in self._pending:
            return False
        if self.is_v2:
            self._added.add(partition)
            self.has_begun = True  # the broker that gets the first batch adds it
            return False
        self._pending.add(partition)
        return True

    def check_open(self) -> None:
        """Raise unless records may be sent.

        Raises:
            ClientUsageError: No transaction is open.
            ClientError: The transaction has failed, and must be aborted; or the producer has.
        """
        if self.state is not State.IN_TRANSACTION:
            self.raise_error()
            raise ClientUsageError("no transaction is open: records of a transactional producer belong to one")

    def begin_end(self, *, is_commit: bool) -> None:
        """Begin to commit or to abort; again, after a time-out, the same as before."""
        if not is_commit and self.state is State.COMMITTING and self.is_end_sent:
            raise ClientUsageError("whether the transaction is committed is not known: commit once more")
        self._go(State.COMMITTING if is_commit else State.ABORTING)
        if not is_commit:
            self.error = None

    @property
    def may_abort(self) -> bool:
        """Whether there is an open transaction that can still be aborted."""
        if self.state is State.COMMITTING:
            return not self.is_end_sent
        return self.state in {State.IN_TRANSACTION, State.ABORTABLE_ERROR, State.ABORTING}

    @property
    def lacks_only_epoch(self) -> bool:
        """Whether the last transaction has ended, but its producer has not got the epoch that the next one needs."""
        return self.needs_epoch and self.state is State.READY

    def ended(self, producer_id: int = NO_PRODUCER_ID, producer_epoch: int = NO_EPOCH) -> bool:
        """Take note of the end of a transaction; return whether sequences begin anew.

        Args:
            producer_id: As EndTxn of version 2 answers; -1 otherwise.
            producer_epoch: Likewise.
        """
        self._go(State.READY)
        self._added.clear()
        self._pending.clear()
        self.was_v1 = self.was_v1 or (self.has_begun and not self.is_v2)
        self.has_begun = False
        if producer_id == NO_PRODUCER_ID:
            return False
        self.producer_id, self.producer_epoch = producer_id, producer_epoch
        self.needs_epoch = False
        return True

    # From the brokers.

    @property
    def to_add(self) -> frozenset[TopicPartition]:
        """Partitions that the coordinator has to be told of (version 1)."""
        return frozenset(self._pending) if self.state in {State.IN_TRANSACTION, State.COMMITTING} else frozenset()

    def added(self, partitions: frozenset[TopicPartition]) -> None:
        """Take note that the coordinator knows of these; of those that are not to be added any more, nothing is."""
        known = partitions & self._pending
        self._pending -= known
        self._added |= known

    def add_no_more(self) -> None:
        """Give up what is still to be added: all records have come to their end, so that none goes there."""
        self._pending.clear()

    def may_send(self, partition: TopicPartition) -> bool:
        """Say whether batches for a partition may leave."""
        return self.state in {State.IN_TRANSACTION, State.COMMITTING} and partition in self._added

    @property
    def drops_batches(self) -> bool:
        """Whether what was not sent is not to be sent any more."""
        return self.state in {State.ABORTING, State.ABORTABLE_ERROR, State.FATAL_ERROR}

    @property
    def reason_to_drop(self) -> ClientError:
        """Why; for those who wait for such a record."""
        return self.error or TransactionAbortedError("the record was not sent: its transaction was aborted")

    def refused(self, code: ErrorCode, detail: str) -> ClientError:
        """Take an error of a coordinator that is not to be tried again, and return what to raise."""
        verdict = judge(code)
        if verdict is Verdict.ABORT and self.state in {State.IN_TRANSACTION, State.COMMITTING}:
            return self._abortable(TransactionAbortableError(code, detail))
        if verdict is Verdict.ABORT and self.state in _GIVEN_UP and not self.is_end_sent:
            return TransactionAbortableError(code, detail)  # of a transaction that is given up already
        return self._fatal(code, detail)

    def batch_failed(self, error: ClientError, *, was_numbered: bool) -> None:
        """Take note that a batch of the transaction was given up.

        Args:
            error: Why.
            was_numbered: Whether it had a sequence, so that those after it would leave a gap.
        """
        self.needs_epoch = self.needs_epoch or was_numbered
        if self.state not in {State.IN_TRANSACTION, State.COMMITTING}:
            return
        if isinstance(error, BrokerError) and error.code in _FATAL_FOR_BATCHES:
            self._fatal(error.code, error.detail)
        else:
            self._lack("a batch of the transaction was given up", error)

    def record_refused(self, error: ClientError) -> None:
        """Take note that a record of the transaction was not even taken, and that nobody may have heard of it.

        One that comes while the transaction ends is none of it.
        """
        if self.state is State.IN_TRANSACTION:
            self._lack("a record of the transaction was not taken", error)

    def _lack(self, what: str, error: ClientError) -> None:
        """Have the transaction not be committed, for it is not whole."""
        code = error.code if isinstance(error, BrokerError) else ErrorCode.TRANSACTION_ABORTABLE
        failure = TransactionAbortableError(code, f"{what}: {error}")
        failure.__cause__ = error
        self._abortable(failure)

    def _abortable(self, error: ClientError) -> ClientError:
        self._go(State.ABORTABLE_ERROR)
        self.error = error
        return error

    def _fatal(self, code: ErrorCode, detail: str) -> ClientError:
        kind = ProducerFencedError if judge(code) is Verdict.FENCED else TransactionFatalError
        self.state = State.FATAL_ERROR
        self.error = kind(code, detail)
        return self.error

    def __repr__(self) -> str:
        return (
            f"<TransactionMachine {self.transactional_id!r}: {self.state.value}, producer {self.producer_id} "
            f"epoch {self.producer_epoch}, {len(self._added)} partitions>"
        )
