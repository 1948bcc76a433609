"""Pure core: what one partition knows of all its producers: their sequences, epochs and transactions.

The table makes idempotence work (KIP-98): of every producer it keeps the last five batches, the most that a client has
in flight, and so tells a batch that was sent again from one that is new, and from one that came too early. It is what
the log says, no more: whoever appends to the log calls `append`, whoever opens a log loads a snapshot and replays what
comes after it, and after a truncation it is made anew in the same way.

`append` follows the *staging* of a batch, not its writing, since the next batch of the same turn is checked against it.
When the write fails, the log is offline and the table with it: opening the log again rebuilds the table. There is no
taking back.

How a batch is judged, as Kafka 4.3.1 answers, in this order:

=====================================================  ==============================================
of a producer that is not known (new, or expired)      accepted, whatever its sequence
same epoch, same sequences as one of the last five     duplicate: answered like the original
older epoch; below -1 of one that is not known         INVALID_PRODUCER_EPOCH
newer epoch, sequence not 0                            OUT_OF_ORDER_SEQUENCE_NUMBER
same epoch, sequence not the next one                  OUT_OF_ORDER_SEQUENCE_NUMBER, also for what is older
                                                       than the last five (no DUPLICATE_SEQUENCE_NUMBER)
a transaction is open and the batch is not of one      INVALID_TXN_STATE
of a transaction that is not open and not verified     INVALID_TXN_STATE (before its sequence is looked at)
=====================================================  ==============================================

After sequence 2**31 - 1 comes 0. A producer of which only a control marker is known (an epoch that a coordinator
raised) has to begin with sequence 0.

*Source:* KIP-98, KIP-360, KIP-890; Kafka's ProducerStateManager, ProducerAppendInfo and ProducerStateEntry.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ..errors import ErrorCode, KafkaError
from ..records.batch import SEQUENCE_MAX, TRANSACTIONAL_FLAG
from ..types import NO_EPOCH, NO_SEQUENCE
from .append_check import Verification, check_epoch, is_open, judge, judge_coordinators
from .partition_transactions import PartitionTransactions
from .producer_state import BATCHES_KEPT, ProducedBatch, ProducerState, Transaction, snapshot_entry, state_of
from .producer_steps import SnapshotInSteps

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator

    from ..records.batch import BatchHeader
    from .producer_snapshot import ProducerSnapshotEntry
    from .transaction_index import AbortedTransaction

LATE_AFTER_MS: Final = 300_000
_FIRST_VERSION_WITH_EPOCH_BUMP: Final = 2


class ProducerStateTable:
    """The producers of one partition. Owned by the replica, on the reactor's task.

    Invariant: it stands for the log up to its end.

    Attributes:
        transactions: Those of this partition.
    """

    __slots__ = ("_expiration_ms", "_states", "_taking", "_verifications", "transactions")

    def __init__(self, producer_id_expiration_ms: int) -> None:
        """Make an empty table; `producer_id_expiration_ms` is `producer.id.expiration.ms`."""
        self._expiration_ms = producer_id_expiration_ms
        self._states: dict[int, ProducerState] = {}
        self.transactions = PartitionTransactions()
        self._taking: list[SnapshotInSteps] = []
        self._verifications: dict[int, Verification] = {}

    def __len__(self) -> int:
        return len(self._states)

    def __repr__(self) -> str:
        return f"<ProducerStateTable: {len(self)} producers, {self.transactions.unstable_count} unstable transactions>"

    # ---------------------------------------------------------------------------------------------------------- append

    def check(self, header: BatchHeader, verified: Verification | None = None) -> ProducedBatch | None:
        """Judge a batch that a client sent, before it is staged. Hot.

        Args:
            header: Of a data batch with a producer id >= 0 and a base sequence >= 0.
            verified: What `begin_verification` gave, where the coordinator has agreed.

        Returns:
            The original when this is a duplicate, None when the batch may be appended.

        Raises:
            KafkaError: It may not; the table is as it was.
        """
        state = self._states.get(header.producer_id)
        pending = self._verifications.get(header.producer_id)
        if pending is None:
            if state is None:
                if not header.attributes & TRANSACTIONAL_FLAG and header.producer_epoch >= NO_EPOCH:
                    return None
            elif (
                header.base_sequence == state.next_sequence
                and header.producer_epoch == state.producer_epoch
                and (state.transaction is None) is not bool(header.attributes & TRANSACTIONAL_FLAG)
            ):
                return None
        return judge(state, header, pending, verified)

    def has_open_transaction(self, producer_id: int, producer_epoch: int) -> bool:
        """Return whether a producer's batches belong to a transaction that is open here. Hot for transactions."""
        return is_open(self._states.get(producer_id), producer_epoch)

    def begin_verification(
        self, producer_id: int, producer_epoch: int, base_sequence: int, *, supports_epoch_bump: bool, now_ms: int
    ) -> Verification | None:
        """Begin to verify a producer's transaction, or go on with it.

        Args:
            producer_id: As the batch has it.
            producer_epoch: The same.
            base_sequence: The same.
            supports_epoch_bump: Whether its epoch is raised with each transaction: Produce version 12 and above.
            now_ms: The monotonic clock.

        Returns:
            What the batch is to be appended with once the coordinator has agreed; None when its transaction is open
            here: the coordinator need not be asked.

        Raises:
            KafkaError: INVALID_PRODUCER_EPOCH.
        """
        state = self._states.get(producer_id)
        if state is not None:
            check_epoch(state, producer_id, producer_epoch)
            if is_open(state, producer_epoch):
                return None
        found = self._verifications.get(producer_id)
        if found is None:
            found = Verification(producer_epoch, base_sequence, supports_epoch_bump, now_ms)
            self._verifications[producer_id] = found
        else:
            found.note(producer_epoch, base_sequence)
        return found

    def check_coordinators(self, header: BatchHeader, verified: Verification | None) -> None:
        """Judge a batch that a coordinator writes for a producer: such batches have no sequence.

        Raises:
            KafkaError: INVALID_PRODUCER_EPOCH, or INVALID_TXN_STATE: the transaction that was verified has ended.
        """
        producer_id = header.producer_id
        judge_coordinators(self._states.get(producer_id), header, self._verifications.get(producer_id), verified)

    def append(self, header: BatchHeader) -> None:
        """Take note of a data batch, whose offsets are assigned and which was accepted or is read from the log. Hot."""
        state = self._states.get(header.producer_id)
        if state is None:
            state = self._states[header.producer_id] = ProducerState(header.producer_id, header.producer_epoch)
        else:
            for taking in self._taking:
                taking.keep(state)
            if header.producer_epoch != state.producer_epoch:
                state.raise_epoch(header.producer_epoch)
        first_sequence, base_offset, delta = header.base_sequence, header.base_offset, header.last_offset_delta
        # A coordinator's batches have no sequence, and leave no trace of one.
        last_sequence = (first_sequence + delta) & SEQUENCE_MAX if first_sequence >= 0 else NO_SEQUENCE
        batches = state.batches
        if len(batches) == BATCHES_KEPT:
            del batches[0]
        batches.append(
            ProducedBatch(first_sequence, last_sequence, base_offset, base_offset + delta, header.max_timestamp)
        )
        state.next_sequence = (last_sequence + 1) & SEQUENCE_MAX
        state.last_timestamp = header.max_timestamp
        if header.attributes & TRANSACTIONAL_FLAG:
            if self._verifications:
                self._verifications.pop(header.producer_id, None)
            if state.transaction is None:
                state.transaction = Transaction(header.producer_id, base_offset)
                self.transactions.begin(state.transaction)

    # --------------------------------------------------------------------------------------------------------- markers

    def check_marker(
        self, producer_id: int, producer_epoch: int, coordinator_epoch: int, transaction_version: int = 0
    ) -> None:
        """Judge a control marker that a transaction coordinator sent.

        Args:
            producer_id: Whose transaction ends.
            producer_epoch: As the coordinator knows it.
            coordinator_epoch: The coordinator's own.
            transaction_version: From 2 on the coordinator raises the epoch for each marker (KIP-890).

        Raises:
            KafkaError: INVALID_PRODUCER_EPOCH, or TRANSACTION_COORDINATOR_FENCED.
        """
        state = self._states.get(producer_id)
        if state is None:
            return
        has_epoch_bump = transaction_version >= _FIRST_VERSION_WITH_EPOCH_BUMP
        # A marker of the current epoch, with nothing open, is one that was sent again: it is written once more.
        lowest_epoch = state.producer_epoch + (has_epoch_bump and state.transaction is not None)
        if producer_epoch < lowest_epoch:
            raise KafkaError(
                ErrorCode.INVALID_PRODUCER_EPOCH,
                f"producer {producer_id}: marker of epoch {producer_epoch}, at least {lowest_epoch} was expected",
            )
        if coordinator_epoch < state.coordinator_epoch:
            raise KafkaError(
                ErrorCode.TRANSACTION_COORDINATOR_FENCED,
                f"producer {producer_id}: coordinator epoch {coordinator_epoch}, {state.coordinator_epoch} is known",
            )

    def append_marker(
        self, header: BatchHeader, *, is_commit: bool, coordinator_epoch: int
    ) -> AbortedTransaction | None:
        """Take note of a control batch that ends a transaction, whether or not one is open.

        Args:
            header: Of the control batch, offsets assigned.
            is_commit: Commit or abort.
            coordinator_epoch: From the marker's value.

        Returns:
            What the transaction index of its segment has to hold, if it aborts a transaction.
        """
        state = self._states.get(header.producer_id)
        if state is None:
            state = self._states[header.producer_id] = ProducerState(header.producer_id, header.producer_epoch)
        for taking in self._taking:
            taking.keep(state)
        state.raise_epoch(header.producer_epoch)
        state.coordinator_epoch = coordinator_epoch
        state.last_timestamp = header.max_timestamp
        self._end_verification(header)
        transaction = state.transaction
        if transaction is None:
            return None
        state.transaction = None
        return self.transactions.end(transaction, header.base_offset, is_commit=is_commit)

    def _end_verification(self, marker: BatchHeader) -> None:
        """Forget what was verified of a transaction that has ended.

        With transaction version 2 the marker carries the epoch of the *next* transaction; one whose verification has
        begun already stands.
        """
        pending = self._verifications.get(marker.producer_id)
        if pending is None or (pending.supports_epoch_bump and pending.producer_epoch == marker.producer_epoch):
            return
        del self._verifications[marker.producer_id]

    def has_late_transaction(self, now_ms: int, timeout_ms_max: int) -> bool:
        """Return whether the oldest open transaction has been silent for longer than its coordinator could allow.

        Args:
            now_ms: The wall clock.
            timeout_ms_max: `transaction.max.timeout.ms`; five minutes more are given for the abort to arrive.
        """
        oldest = self.transactions.oldest_open()
        if oldest is None:
            return False
        last_timestamp = self._states[oldest.producer_id].last_timestamp
        return last_timestamp > 0 and now_ms - last_timestamp > timeout_ms_max + LATE_AFTER_MS

    # ------------------------------------------------------------------------------------------------------------ life

    def remove_expired_in_steps(self, now_ms: int) -> Iterator[int]:
        """Forget producers without an open transaction that were silent for `producer.id.expiration.ms`.

        Time counts from the timestamps of the records, as in Kafka: who writes old timestamps is soon forgotten, which
        costs it only its protection from duplicates. Yields for each producer how many were forgotten; `now_ms` is the
        wall clock.
        """
        for producer_id, state in list(self._states.items()):
            is_expired = state.transaction is None and now_ms - state.last_timestamp >= self._expiration_ms
            if is_expired and self._states.get(producer_id) is state:
                del self._states[producer_id]
            yield is_expired

    def give_up_verifications(self, now_ms: int) -> None:
        """Forget what was verified `producer.id.expiration.ms` ago, by the monotonic clock, and no batch came for."""
        oldest_ms = now_ms - self._expiration_ms
        self._verifications = {key: each for key, each in self._verifications.items() if each.started_ms > oldest_ms}

    def expire_after(self, producer_id_expiration_ms: int) -> None:
        """Take a new `producer.id.expiration.ms`; the next `remove_expired_in_steps` follows it."""
        self._expiration_ms = producer_id_expiration_ms

    def clear(self) -> None:
        """Forget everything: before a rebuild, after a truncation."""
        self._states.clear()
        self._verifications.clear()
        self.transactions.load((), ())

    def states(self) -> Iterator[ProducerState]:
        """Iterate over the producers, for DescribeProducers."""
        return iter(self._states.values())

    # ------------------------------------------------------------------------------------------------------- snapshots

    def snapshot(self) -> list[ProducerSnapshotEntry]:
        """Return the table as a snapshot keeps it: of each producer only its last batch."""
        return [snapshot_entry(state) for state in self._states.values()]

    def snapshot_in_steps(self) -> Generator[None, None, bytes]:
        """Begin a snapshot of the table as it is now; yield after each producer, return the file."""
        taking = SnapshotInSteps(self._states.values())
        self._taking.append(taking)

        def steps() -> Generator[None, None, bytes]:
            try:
                return (yield from taking.steps())
            finally:
                self._taking.remove(taking)

        return steps()

    def load(
        self, entries: Iterable[ProducerSnapshotEntry], aborted: Iterable[AbortedTransaction], now_ms: int
    ) -> None:
        """Do what `load_in_steps` does, in one go."""
        for _ in self.load_in_steps(entries, aborted, now_ms):
            pass

    def load_in_steps(
        self, entries: Iterable[ProducerSnapshotEntry], aborted: Iterable[AbortedTransaction], now_ms: int
    ) -> Iterator[None]:
        """Begin with what a snapshot holds; the log from the snapshot's offset on is then replayed.

        Args:
            entries: The snapshot; producers that have expired are left out.
            aborted: The transaction indexes' entries whose markers lie below the snapshot's offset, in any order.
            now_ms: The wall clock.
        """
        self.clear()
        unstable = []
        for entry in entries:
            state = self._states[entry.producer_id] = state_of(entry)
            if state.transaction is not None:
                unstable.append(state.transaction)
            yield
        self.transactions.load(unstable, aborted)
        for _ in self.remove_expired_in_steps(now_ms):
            yield
