"""Pure core: the coordinator of the transactional ids of one partition of `__transaction_state`.

```text
InitProducerId, AddPartitions, EndTxn, time-outs, expiry --> records: the whole state of an id each
EndTxn --> prepared record --committed--> MarkersWanted --> each partition's leader
           completed record <-- markers_answered, until every partition has answered finally <-+
```

Hard state is what the records say. Soft state, lost when the shard is unloaded: the epochs before the last change,
since when a transaction is open by the clock of timers, which does not jump as the records' does, and which markers of
a prepared end are still missing. Markers leave as the *answer* to a waiter that carries them off: the
runtime gives answers once the result's records are committed, which is just when markers may be written.

*Source:* KIP-98; KIP-360; KIP-890; Kafka's TransactionCoordinator and TransactionStateManager, as Apache Kafka 4.3.1
answers.

.. versionadded:: 0.1
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import attrs

from odradek.kernel.api import (
    NO_EPOCH,
    NO_PRODUCER_ID,
    CoordinatorResult,
    CoordinatorSteps,
    CoordinatorTimers,
    ErrorCode,
    KafkaError,
    ProducerIdentity,
    TopicPartition,
    Waiter,
)

from .metadata import EPOCH_EXHAUSTED, EPOCH_MAX, FIRST_VERSION_WITH_EPOCH_BUMP, TransactionMetadata, TransactionRecord
from .requests import (
    ENDED_MARKERS,
    Answered,
    EndingTransaction,
    EndRequest,
    MarkersWanted,
    ShardSurroundings,
    TransactionFilter,
    resend_pause_ms,
)
from .states import AT_REST, END_DECISIONS_V1, END_DECISIONS_V2, PREPARED, REFUSALS, EndDecision, TransactionState
from .walks import made_in_steps

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable

Result: TypeAlias = CoordinatorResult[TransactionRecord, Any]
NewSender: TypeAlias = Callable[[MarkersWanted], Waiter]

_NOTHING: Final[Result] = CoordinatorResult((), None)
_ABORT_TIMER: Final = ("abort transactions that ran out of time",)
_EXPIRE_TIMER: Final = ("remove expired transactional ids",)
_MARKERS_TIMER: Final = "markers"
NO_TIMEOUT_MS: Final = 0x7FFF_FFFF
"""The time-out of a transaction that an outside coordinator ends (two-phase commit): it never runs out."""


class TransactionShard:
    """The transactional ids of one partition. A `CoordinatorShard`, see there for its life."""

    def __init__(self, *, timers: CoordinatorTimers, surroundings: ShardSurroundings, new_sender: NewSender) -> None:
        """Make an empty shard.

        Args:
            timers: The shard's own.
            surroundings: Settings, producer ids, counters.
            new_sender: Returns who is answered with markers once they may be written, writes them, and calls
                `markers_answered`.
        """
        self._timers = timers
        self._surroundings = surroundings
        self._new_sender = new_sender
        self._ids: dict[str, TransactionMetadata] = {}
        self._last_epochs: dict[str, int] = {}
        self._open_since_ms: dict[str, int] = {}
        self._endings: dict[str, EndingTransaction] = {}

    def __repr__(self) -> str:
        return f"<TransactionShard: {len(self._ids)} ids, {len(self._endings)} transactions ending>"

    # -------------------------------------------------------------------------------------------- CoordinatorShard

    def replay(self, record: TransactionRecord, offset: int, producer: ProducerIdentity) -> None:
        """Apply one record."""
        transactional_id, metadata = record.transactional_id, record.metadata
        if metadata is None:
            self._ids.pop(transactional_id, None)
            self._last_epochs.pop(transactional_id, None)
            self._open_since_ms.pop(transactional_id, None)
            return
        self._ids[transactional_id] = metadata
        if metadata.state is TransactionState.ONGOING:
            self._open_since_ms.setdefault(transactional_id, self._timers.monotonic_ms())
        else:
            self._open_since_ms.pop(transactional_id, None)
        if metadata.state not in PREPARED and self._endings.pop(transactional_id, None) is not None:
            self._timers.cancel((_MARKERS_TIMER, transactional_id))

    def replay_marker(self, producer: ProducerIdentity, *, is_commit: bool) -> None:
        """Nothing in this topic is written within a transaction."""

    def loaded(self, now_ms: int) -> Generator[None, None, None]:
        """Arm timers; ends that were prepared but not complete are taken up again."""
        settings = self._surroundings.settings
        self._timers.schedule(_ABORT_TIMER, settings.abort_interval_ms, self.abort_timed_out)
        self._timers.schedule(_EXPIRE_TIMER, settings.expiration_interval_ms, self.expire)
        for transactional_id in self._open_since_ms:
            # By the wall clock, as nothing else outlives a restart; from now on it may jump.
            open_ms = max(now_ms - self._ids[transactional_id].start_timestamp, 0)
            self._open_since_ms[transactional_id] = self._timers.monotonic_ms() - open_ms
            yield
        prepared = yield from made_in_steps(self._ids.values(), lambda one: one if one.state in PREPARED else None)
        for metadata in prepared:
            self._endings[metadata.transactional_id] = EndingTransaction(set(metadata.partitions))
            self._send_in(0, metadata.transactional_id)
            yield

    def unloaded(self) -> None:
        """Whoever still writes markers is not listened to any more."""
        self._endings.clear()

    # ------------------------------------------------------------------------------------------------------- reading

    @property
    def ids(self) -> Mapping[str, TransactionMetadata]:
        """Every transactional id; to be read only."""
        return self._ids

    @property
    def missing_markers_count(self) -> int:
        """Markers that are not known to be written."""
        return sum(len(ending.missing) for ending in self._endings.values())

    @property
    def waiting_markers_count(self) -> int:
        """Those of them that wait for another try."""
        return sum(len(ending.missing) for ending in self._endings.values() if ending.wanted is None)

    def describe(self, transactional_id: str) -> Result:
        """Answer with an id's metadata; of a prepared end, the partitions whose markers are missing.

        Raises:
            KafkaError: TRANSACTIONAL_ID_NOT_FOUND.
        """
        metadata = self._ids.get(transactional_id)
        if metadata is None:
            raise KafkaError(ErrorCode.TRANSACTIONAL_ID_NOT_FOUND)
        ending = self._endings.get(transactional_id)
        if ending is not None:
            metadata = attrs.evolve(metadata, partitions=frozenset(ending.missing))
        return CoordinatorResult((), metadata)

    def list_transactions(self, asked: TransactionFilter, now_ms: int) -> Result:
        """Answer with the metadata of the transactions that are asked for."""
        return CoordinatorResult((), [each for each in self._ids.values() if asked.takes(each, now_ms)])

    def all_transactions(self, now_ms: int) -> Result:
        """Answer with the time and the metadata of all transactions, however many: nobody has looked at them."""
        return CoordinatorResult((), (now_ms, list(self._ids.values())))

    # ------------------------------------------------------------------------------------------------- InitProducerId

    def init_producer_id(
        self, transactional_id: str, timeout_ms: int, expected: ProducerIdentity | None, now_ms: int
    ) -> Result:
        """Give a producer its id and epoch; whoever had the transactional id before is fenced.

        An open transaction is aborted first: the answer is CONCURRENT_TRANSACTIONS until its markers are written.

        Args:
            transactional_id: Not empty.
            timeout_ms: How long its transactions may be open.
            expected: Who the producer is by its own account, None for one that begins (KIP-360).
            now_ms: The wall clock.

        Raises:
            KafkaError: INVALID_TRANSACTION_TIMEOUT, CONCURRENT_TRANSACTIONS, PRODUCER_FENCED, or no producer id.
        """
        if not 0 < timeout_ms <= self._surroundings.settings.timeout_ms_max:
            raise KafkaError(ErrorCode.INVALID_TRANSACTION_TIMEOUT)
        metadata = self._ids.get(transactional_id)
        if metadata is None:
            metadata = TransactionMetadata(transactional_id, self._surroundings.take_producer_id())
        if expected is not None and not metadata.may_be_resumed_by(expected):
            raise KafkaError(ErrorCode.PRODUCER_FENCED)
        if metadata.state in PREPARED:
            raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS)
        if metadata.state is TransactionState.ONGOING:
            fenced = self._fenced(metadata, now_ms)
            self._surroundings.counters.fences_count += 1
            return self._begin_end(fenced, now_ms, Answered(ErrorCode.CONCURRENT_TRANSACTIONS))
        producer, last_epoch = self._next_producer(metadata, expected)
        self._last_epochs[transactional_id] = last_epoch
        initialized = metadata.initialized(producer.producer_id, producer.producer_epoch, timeout_ms, now_ms)
        return CoordinatorResult([TransactionRecord(transactional_id, initialized)], Answered(producer=producer))

    def _next_producer(
        self, metadata: TransactionMetadata, expected: ProducerIdentity | None
    ) -> tuple[ProducerIdentity, int]:
        """Return who the producer becomes, and the epoch with which it may ask for the same again.

        Raises:
            KafkaError: PRODUCER_FENCED, or no producer id.
        """
        epoch = metadata.producer_epoch
        last_epoch = self._last_epochs.get(metadata.transactional_id, NO_EPOCH)
        if metadata.is_epoch_exhausted and (expected is None or expected.producer_epoch == epoch):
            rotated = ProducerIdentity(self._surroundings.take_producer_id(), 0)
            return rotated, NO_EPOCH if expected is None else epoch
        if expected is None:
            return ProducerIdentity(metadata.producer_id, epoch + 1), NO_EPOCH
        if epoch in (NO_EPOCH, expected.producer_epoch):
            return ProducerIdentity(metadata.producer_id, epoch + 1), epoch
        if expected.producer_epoch == last_epoch:
            return ProducerIdentity(metadata.producer_id, epoch), last_epoch
        raise KafkaError(ErrorCode.PRODUCER_FENCED)

    # --------------------------------------------------------------------------------------- partitions of transactions

    def add_partitions(
        self,
        transactional_id: str,
        producer: ProducerIdentity,
        partitions: frozenset[TopicPartition],
        client_version: int,
        now_ms: int,
    ) -> Result:
        """Make partitions part of the producer's transaction, which begins unless it is open.

        Raises:
            KafkaError: INVALID_PRODUCER_ID_MAPPING, PRODUCER_FENCED, CONCURRENT_TRANSACTIONS.
        """
        metadata = self._checked(transactional_id, producer)
        if metadata.state is TransactionState.ONGOING and partitions <= metadata.partitions:
            return _NOTHING
        grown = metadata.with_partitions(partitions, client_version, now_ms)
        return CoordinatorResult([TransactionRecord(transactional_id, grown)], None)

    def verify_partitions(
        self, transactional_id: str, producer: ProducerIdentity, partitions: Iterable[TopicPartition]
    ) -> Result:
        """Answer, by partition, whether it is part of the producer's transaction, else TRANSACTION_ABORTABLE.

        Raises:
            KafkaError: As `add_partitions`.
        """
        known = self._checked(transactional_id, producer).partitions
        codes = {
            partition: ErrorCode.NONE if partition in known else ErrorCode.TRANSACTION_ABORTABLE
            for partition in partitions
        }
        return CoordinatorResult((), codes)

    def _checked(self, transactional_id: str, producer: ProducerIdentity) -> TransactionMetadata:
        """Return the metadata of an id whose producer may write.

        Raises:
            KafkaError: It is another producer, or its transaction is ending.
        """
        metadata = self._ids.get(transactional_id)
        if metadata is None or metadata.producer_id != producer.producer_id:
            raise KafkaError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
        if metadata.producer_epoch != producer.producer_epoch:
            raise KafkaError(ErrorCode.PRODUCER_FENCED)
        if metadata.state in PREPARED:
            raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS)
        return metadata

    # ------------------------------------------------------------------------------------------------------ EndTxn

    def end(self, request: EndRequest, now_ms: int) -> Result:
        """Decide the end of a transaction; answered once that is in the log, whatever becomes of the markers.

        Raises:
            KafkaError: INVALID_PRODUCER_ID_MAPPING, PRODUCER_FENCED, CONCURRENT_TRANSACTIONS, INVALID_TXN_STATE, or no
                producer id.
        """
        metadata = self._ids.get(request.transactional_id)
        if metadata is None:
            raise KafkaError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
        raises_epoch = request.client_version >= FIRST_VERSION_WITH_EPOCH_BUMP
        decision = _decide_v2(metadata, request) if raises_epoch else _decide_v1(metadata, request)
        if decision in REFUSALS:
            raise KafkaError(REFUSALS[decision])
        if decision is EndDecision.DONE:
            return CoordinatorResult((), Answered(producer=_producer_of(metadata)))
        prepared = self._prepared(metadata, is_commit=request.is_commit, raises_epoch=raises_epoch, now_ms=now_ms)
        counters = self._surroundings.counters
        if request.is_commit:
            counters.commits_count += 1
        else:
            counters.aborts_count += 1
        return self._begin_end(prepared, now_ms, Answered(producer=_producer_of(prepared.completed(now_ms))))

    def _prepared(
        self, metadata: TransactionMetadata, *, is_commit: bool, raises_epoch: bool, now_ms: int
    ) -> TransactionMetadata:
        """Return the prepared end of a transaction, by its producer's wish or by ours.

        Raises:
            KafkaError: No producer id, which the next transaction needs.
        """
        next_producer_id = NO_PRODUCER_ID
        epoch = metadata.producer_epoch
        if raises_epoch:
            if metadata.is_epoch_exhausted:
                next_producer_id = self._surroundings.take_producer_id()
            self._last_epochs[metadata.transactional_id] = epoch
            epoch = min(epoch + 1, EPOCH_MAX)
        return metadata.prepared(
            is_commit=is_commit,
            producer_epoch=epoch,
            next_producer_id=next_producer_id,
            client_version=FIRST_VERSION_WITH_EPOCH_BUMP if raises_epoch else 0,
            now_ms=now_ms,
        )

    def _fenced(self, metadata: TransactionMetadata, now_ms: int) -> TransactionMetadata:
        """Return the prepared abort of a transaction in a raised epoch: its producer is not asked.

        Raises:
            KafkaError: No producer id.
        """
        if self._surroundings.transaction_version() >= FIRST_VERSION_WITH_EPOCH_BUMP:
            return self._prepared(metadata, is_commit=False, raises_epoch=True, now_ms=now_ms)
        self._last_epochs.pop(metadata.transactional_id, None)
        return metadata.prepared(
            is_commit=False,
            producer_epoch=min(metadata.producer_epoch + 1, EPOCH_MAX),
            next_producer_id=NO_PRODUCER_ID,
            client_version=0,
            now_ms=now_ms,
        )

    def _begin_end(self, prepared: TransactionMetadata, now_ms: int, response: Answered) -> Result:
        """Write a prepared end, and then its markers; an end without partitions is complete at once."""
        transactional_id = prepared.transactional_id
        records = [TransactionRecord(transactional_id, prepared)]
        if not prepared.partitions:
            records.append(TransactionRecord(transactional_id, prepared.completed(now_ms)))
            return CoordinatorResult(records, response)
        self._endings[transactional_id] = ending = EndingTransaction(set(prepared.partitions))
        return CoordinatorResult(records, response, self._sending(prepared, ending))

    # ------------------------------------------------------------------------------------------------------- markers

    def _sending(
        self, prepared: TransactionMetadata, ending: EndingTransaction
    ) -> Sequence[tuple[Waiter, MarkersWanted]]:
        """Return the answer that carries off what markers are missing."""
        ending.wanted = wanted = MarkersWanted(prepared, tuple(sorted(ending.missing)))
        ending.attempts_count += 1
        self._surroundings.counters.resends_count += ending.attempts_count > 1
        return [(self._new_sender(wanted), wanted)]

    def _send_in(self, pause_ms: int, transactional_id: str) -> None:
        self._timers.schedule(
            (_MARKERS_TIMER, transactional_id), pause_ms, lambda now_ms: self.send_markers(transactional_id, now_ms)
        )

    def send_markers(self, transactional_id: str, now_ms: int) -> Result:
        """Have the missing markers of a prepared end written, or complete it when none is."""
        ending = self._endings.get(transactional_id)
        prepared = self._ids.get(transactional_id)
        if ending is None or prepared is None or not self._is_decided(prepared):
            return _NOTHING
        if not ending.missing:
            return self._complete(prepared, ending, now_ms)
        return CoordinatorResult((), None, self._sending(prepared, ending))

    def _is_decided(self, metadata: TransactionMetadata) -> bool:
        """Return whether an end is prepared; one whose record was refused was never decided, and is dropped."""
        if metadata.state in PREPARED:
            return True
        del self._endings[metadata.transactional_id]
        return False

    def markers_answered(self, wanted: MarkersWanted, codes: Mapping[TopicPartition, ErrorCode], now_ms: int) -> Result:
        """Take what became of markers: complete the transaction, or send again what is missing after a pause.

        Args:
            wanted: The sending that this answers; an earlier one is ignored.
            codes: By partition; what is not in it is sent again.
            now_ms: The wall clock.
        """
        transactional_id = wanted.metadata.transactional_id
        ending = self._endings.get(transactional_id)
        prepared = self._ids.get(transactional_id)
        if ending is None or ending.wanted is not wanted or prepared is None or not self._is_decided(prepared):
            return _NOTHING
        ending.wanted = None
        if ErrorCode.TRANSACTION_COORDINATOR_FENCED in codes.values():
            # Another coordinator has this partition now, and finishes what is prepared.
            del self._endings[transactional_id]
            return _NOTHING
        ending.missing.difference_update(partition for partition, code in codes.items() if code in ENDED_MARKERS)
        if ending.missing:
            self._send_in(resend_pause_ms(ending.attempts_count), transactional_id)
            return _NOTHING
        return self._complete(prepared, ending, now_ms)

    def _complete(self, prepared: TransactionMetadata, ending: EndingTransaction, now_ms: int) -> Result:
        """Write that a transaction has ended; should that be refused, it is tried again after a pause."""
        self._send_in(resend_pause_ms(ending.attempts_count), prepared.transactional_id)
        return CoordinatorResult([TransactionRecord(prepared.transactional_id, prepared.completed(now_ms))], None)

    # --------------------------------------------------------------------------------------------------------- timers

    def abort_timed_out(self, now_ms: int) -> CoordinatorSteps:
        """Abort the transactions that have been open for too long, and look again later."""
        self._timers.schedule(_ABORT_TIMER, self._surroundings.settings.abort_interval_ms, self.abort_timed_out)
        records: list[TransactionRecord] = []
        answers: list[tuple[Waiter, Any]] = []
        for metadata in (yield from self._timed_out()):
            yield
            try:
                ended = self._begin_end(self._fenced(metadata, now_ms), now_ms, Answered())
            except KafkaError:
                continue  # no producer id at hand for an exhausted epoch: the next look finds one
            records += ended.records
            answers += ended.answers
            self._surroundings.counters.timeouts_count += 1
        return CoordinatorResult(records, None, answers, is_atomic=False)

    def _timed_out(self) -> Generator[None, None, list[TransactionMetadata]]:
        clock_ms = self._timers.monotonic_ms()

        def found(open_since: tuple[str, int]) -> TransactionMetadata | None:
            metadata = self._ids[open_since[0]]
            is_over = metadata.timeout_ms != NO_TIMEOUT_MS and open_since[1] + metadata.timeout_ms < clock_ms
            return metadata if is_over else None

        return made_in_steps(self._open_since_ms.items(), found)

    def expire(self, now_ms: int) -> CoordinatorSteps:
        """Forget the transactional ids that have not been used for long, and look again later."""
        settings = self._surroundings.settings
        self._timers.schedule(_EXPIRE_TIMER, settings.expiration_interval_ms, self.expire)

        def tombstone(metadata: TransactionMetadata) -> TransactionRecord | None:
            is_over = metadata.state in AT_REST and metadata.last_update_timestamp <= now_ms - settings.expiration_ms
            return TransactionRecord(metadata.transactional_id, None) if is_over else None

        expired = yield from made_in_steps(self._ids.values(), tombstone)
        self._surroundings.counters.expired_count += len(expired)
        return CoordinatorResult(expired, None, is_atomic=False)


def _producer_of(metadata: TransactionMetadata) -> ProducerIdentity:
    return ProducerIdentity(metadata.producer_id, metadata.producer_epoch)


def _decide_v1(metadata: TransactionMetadata, request: EndRequest) -> EndDecision:
    """Judge an EndTxn of transaction version 0 or 1.

    Raises:
        KafkaError: INVALID_PRODUCER_ID_MAPPING.
    """
    if metadata.producer_id != request.producer.producer_id:
        raise KafkaError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    if metadata.producer_epoch != request.producer.producer_epoch:
        return EndDecision.FENCED
    return END_DECISIONS_V1[metadata.state][request.is_commit]


def _decide_v2(metadata: TransactionMetadata, request: EndRequest) -> EndDecision:
    """Judge an EndTxn of transaction version 2.

    Raises:
        KafkaError: INVALID_PRODUCER_ID_MAPPING.
    """
    producer_id, epoch = request.producer.producer_id, request.producer.producer_epoch
    is_after_rotation = (
        producer_id == metadata.previous_producer_id != metadata.producer_id
        and epoch == EPOCH_EXHAUSTED
        and metadata.producer_epoch == 0
    )
    if producer_id != metadata.producer_id and not is_after_rotation:
        raise KafkaError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    # An end that did not raise the epoch cannot be the one that is asked for again: another producer made it.
    is_repeated = metadata.raises_epochs and (is_after_rotation or epoch == metadata.producer_epoch - 1)
    if not is_repeated and epoch != metadata.producer_epoch:
        return EndDecision.FENCED
    decisions = END_DECISIONS_V2.get((metadata.state, is_repeated))
    return EndDecision.FENCED if decisions is None else decisions[request.is_commit]
