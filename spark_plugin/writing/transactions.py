"""Pure core: exactly once, in two phases: tasks write in transactions and leave them open, the driver commits them.

A partition of a micro-batch (query Q, batch B, Spark's partition p) is written by a *task*:

    1  InitProducerId  odradek-Q-p-<attempt % 4>     fences what had this id before
    2  OffsetFetch     group odradek-Q-p-run         is the partition this run's? else claim it (below), then 1
    3  OffsetFetch     group odradek-Q-p             > B: it is in already: read the rows, write nothing
    4  Produce ...                                   the records
    5  TxnOffsetCommit group odradek-Q-p = B + 1     commits with them: the marker that step 3 looks for
    6  the message to the driver: transactional id, producer id, producer epoch

and by the *driver*, once the tasks of all partitions have told it, for each: EndTxn(commit); on failure EndTxn(abort).

| the process dies | what is left | what the next run finds |
| --- | --- | --- |
| in 1 to 5 | an open transaction | fenced by its claim, hence aborted; the batch is written anew |
| between 6 and the driver's first commit | open transactions | the same |
| between two commits | some committed | step 3 says so for these; the others are written anew |
| after the last commit, before Spark notes it | all committed | nothing is written |

**Attempts.** Attempts of a task within one run do not fence each other: each has an id of its own (one of four), and
the driver commits the one whose message Spark accepted. What the others wrote is never committed: it aborts what
earlier attempts left behind; for others the next owner of the id does, or the coordinator, after
`transaction.timeout.ms`.

**Runs.** A run (one life of a query) that was believed dead may still be alive. So before a run writes a partition for
the first time, it *claims* it:

    a  InitProducerId  odradek-Q-p                   one claimant at a time
    b  TxnOffsetCommit group odradek-Q-p-run         B, and the run: pending, so nobody gets past step 2
    c  InitProducerId  odradek-Q-p-0 ... -3          aborts what earlier runs left open, waits for what they committed
    d  EndTxn(commit)                                the partition is this run's

Why no two runs can both commit the partition: let a task X pass step 2 under one claim, and Y under a later one. The
later claim's step b came after X's step 2, for an offset that is pending holds readers up, and so after X's step 1. Its
step c came after b and before Y's step 2. So c met X's producer: either X's transaction had ended, and then Y's step 3
sees it; or it was fenced, and X's driver can commit it no more. A driver commits only what passed step 2.

Kafka's own parts alone are used: transactional ids, offsets of groups. Nobody subscribes in these groups.

*Source:* KIP-98, KIP-447 (`require_stable`), KIP-890; `MicroBatchExecution` of Spark 4.3, which replays a batch under
its number with the same offsets.

.. versionadded:: 0.1
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import attrs

from odradek.client.errors import BrokerError, ClientTimeoutError, ProducerFencedError, TransactionFatalError
from odradek.client.transactions.machine import Verdict, judge
from odradek.kernel.errors import ErrorCode
from odradek.kernel.peers.errors import ClientError, UnsupportedVersionError
from odradek.kernel.types import TopicPartition

from .transaction_steps import CommittedOffset

if TYPE_CHECKING:
    from .transaction_steps import Coordination, Steps, TransactionalProducer

__all__ = [
    "PartitionOfBatch",
    "ReplayDiffersError",
    "WrittenPartition",
    "abort_all",
    "abort_silent",
    "commit_all",
    "earlier_slots",
    "is_job_over",
    "slot_of",
]

SLOTS_COUNT: Final = 4
"""Transactional ids of one partition. More than four attempts are rare, and a fifth fences the first, long dead."""
CLAIMS_MAX: Final = 5
"""How often a task claims its partition before it gives up: only another run at the same time takes it away again."""
_PREFIX: Final = "odradek"


def slot_of(attempt_number: int) -> int:
    """Return which of a partition's transactional ids an attempt at it writes under."""
    return attempt_number % SLOTS_COUNT


def earlier_slots(attempt_number: int) -> list[int]:
    """Return under which of the others earlier attempts may have left transactions open."""
    return [slot for slot in range(min(attempt_number, SLOTS_COUNT)) if slot != slot_of(attempt_number)]


class ReplayDiffersError(ClientError):
    """A batch that was replayed has other rows in a partition than at first: it cannot be written exactly once."""


@attrs.frozen
class WrittenPartition:
    """What a task tells the driver: one partition of Spark's is written, and waits for its commit.

    Attributes:
        partition_id: Spark's number of the partition.
        rows_count: How many rows it has.
        producer: Who wrote, in a transaction that is open; None when there is nothing to commit.
        was_written_before: Whether an earlier attempt at this batch had been committed, so that nothing was written.
        began_at_ms: When the transaction began, by the task's wall clock.
        other_ids: Transactional ids of earlier attempts, which may have left transactions open.
        marker_group: Where the marker of the batch is; None in a batch job.
        batch_id: The batch; None in a batch job.
        anchor: Under which partition offsets are committed.
    """

    partition_id: int
    rows_count: int
    producer: TransactionalProducer | None = None
    was_written_before: bool = False
    began_at_ms: int = 0
    other_ids: tuple[str, ...] = ()
    marker_group: str | None = None
    batch_id: int | None = None
    anchor: TopicPartition | None = None


@attrs.define
class PartitionOfBatch:
    """One attempt at one partition of a micro-batch; one owner, used once.

    Attributes:
        coordination: How coordinators are spoken to.
        query_id: Of the streaming query, the same in all its runs.
        run_id: Of this run.
        batch_id: Of the micro-batch.
        partition_id: Of Spark's partition.
        attempt_number: How often it was tried before in this run.
        anchor: Under which partition offsets are committed; the same in all runs.
        producer: Who writes, once `begin` said so.
    """

    coordination: Coordination
    query_id: str
    run_id: str
    batch_id: int
    partition_id: int
    attempt_number: int
    anchor: TopicPartition
    producer: TransactionalProducer | None = attrs.field(default=None, init=False)
    _rows_count_before: int | None = attrs.field(default=None, init=False)

    @property
    def base(self) -> str:
        """What the partition's names begin with; its group, and the id under which it is claimed."""
        return f"{_PREFIX}-{self.query_id}-{self.partition_id}"

    @property
    def run_group(self) -> str:
        """The group that says whose the partition is."""
        return f"{self.base}-run"

    @property
    def slots(self) -> tuple[str, ...]:
        """The transactional ids under which the partition is written."""
        return tuple(f"{self.base}-{number}" for number in range(SLOTS_COUNT))

    def begin(self) -> Steps[bool]:
        """Make this attempt the one that may write; return False when the batch is in already.

        Raises:
            ProducerFencedError: A later run of the query has the partition.
            ClientError: A coordinator refuses, or was not to be reached.
        """
        own = self.slots[slot_of(self.attempt_number)]
        for _ in range(CLAIMS_MAX):
            producer = yield from self.coordination.init_producer_id(own)
            claim = yield from self._read_claim()
            if claim is not None and _read_note(claim).get("run") == self.run_id:
                break
            if claim is not None and claim.offset > self.batch_id:
                raise ProducerFencedError(
                    ErrorCode.PRODUCER_FENCED,
                    f"batch {self.batch_id} of query {self.query_id} is written by run {self.run_id}, but run "
                    f"{_read_note(claim).get('run')} was at batch {claim.offset} already: two runs are alive",
                )
            yield from self._claim()
        else:
            raise ProducerFencedError(
                ErrorCode.PRODUCER_FENCED,
                f"partition {self.partition_id} of query {self.query_id} was claimed {CLAIMS_MAX} times and each time "
                "taken away by another run: two runs of one query are alive",
            )
        marker = yield from self._read_marker()
        if marker is not None and marker.offset > self.batch_id:
            found = _read_note(marker)
            is_this_batch = marker.offset == self.batch_id + 1
            self._rows_count_before = int(found["rows"]) if is_this_batch and "rows" in found else None
            return False
        self.producer = producer
        return True

    def _read_marker(self) -> Steps[CommittedOffset | None]:
        """Return what says up to which batch the partition is in.

        What is still pending after a while is of another attempt of this run: it died, or Spark has its message, and
        then has no use for this one. Earlier runs have nothing pending since the claim.
        """
        grace_ms = self.coordination.grace_ms
        try:
            return (yield from self.coordination.committed_offset(self.base, self.anchor, timeout_ms=grace_ms))
        except ClientTimeoutError:
            return (yield from self.coordination.committed_offset(self.base, self.anchor, is_stable=False))

    def _read_claim(self) -> Steps[CommittedOffset | None]:
        """Return whose the partition is; None when that is open, also for somebody who died while claiming it."""
        try:
            return (
                yield from self.coordination.committed_offset(
                    self.run_group, self.anchor, timeout_ms=self.coordination.grace_ms
                )
            )
        except ClientTimeoutError:
            return None

    def _claim(self) -> Steps[None]:
        """Make the partition this run's; may end without that, when another run claims it at the same time."""
        note = json.dumps({"run": self.run_id}, separators=(",", ":"))
        claimant = yield from self.coordination.init_producer_id(self.base)
        try:
            yield from self.coordination.commit_offset(
                claimant, self.run_group, self.anchor, CommittedOffset(self.batch_id, note)
            )
            for slot in self.slots:
                yield from self.coordination.init_producer_id(slot)
            yield from self.coordination.end(claimant, is_commit=True)
        except BrokerError as error:
            if not _is_fenced(error.code):
                raise  # a coordinator refuses, whoever asks

    def finish(self, rows_count: int) -> Steps[None]:
        """Have the marker committed with the records; all of them are acknowledged by now."""
        assert self.producer is not None, "nothing was begun"
        note = json.dumps({"batch": self.batch_id, "rows": rows_count}, separators=(",", ":"))
        offset = CommittedOffset(self.batch_id + 1, note)
        yield from self.coordination.commit_offset(self.producer, self.base, self.anchor, offset)

    def check_replay(self, rows_count: int) -> None:
        """Compare a batch that is in already with what Spark gave this time.

        Raises:
            ReplayDiffersError: The numbers of rows differ.
        """
        before = self._rows_count_before
        if before is not None and before != rows_count:
            raise ReplayDiffersError(
                f"batch {self.batch_id} of query {self.query_id}: partition {self.partition_id} was committed with "
                f"{before} rows, and has {rows_count} when it is replayed: its rows are not those of the first time, "
                "so that some would be lost or come twice. exactlyOnce needs a source that can be replayed and the "
                "same partitioning each time: repartition by a deterministic key, and let min.compaction.lag.ms of a "
                "compacted source be longer than the query is down"
            )

    def written(self, rows_count: int, began_at_ms: int) -> WrittenPartition:
        """Return what the driver is told."""
        return WrittenPartition(
            self.partition_id,
            rows_count,
            self.producer,
            was_written_before=self.producer is None,
            began_at_ms=began_at_ms,
            other_ids=tuple(self.slots[slot] for slot in earlier_slots(self.attempt_number)),
            marker_group=self.base,
            batch_id=self.batch_id,
            anchor=self.anchor,
        )


def _read_note(offset: CommittedOffset | None) -> dict[str, Any]:
    """Return what stands beside an offset; nothing for what is none of ours."""
    try:
        found = json.loads(offset.metadata) if offset is not None else {}
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _is_fenced(code: ErrorCode) -> bool:
    return judge(code) is Verdict.FENCED or code in {
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
        ErrorCode.INVALID_TXN_STATE,
        ErrorCode.TRANSACTION_ABORTABLE,
        ErrorCode.CONCURRENT_TRANSACTIONS,
    }


def commit_all(coordination: Coordination, written: Sequence[WrittenPartition]) -> Steps[int]:
    """Commit what tasks wrote; return how many transactions were committed.

    May be repeated, whatever became of an earlier time: what is committed already is found to be so.

    Raises:
        TransactionFatalError: One can be committed no more; says which were. In a stream the batch is replayed, and
            only what is missing written.
        ClientTimeoutError: Whether one is committed is unknown; likewise.
    """
    done: list[int] = []
    for one in written:
        if one.producer is None:
            continue
        try:
            yield from _commit(coordination, one)
        except ClientTimeoutError as error:
            raise ClientTimeoutError(f"{error}; {_so_far(done, written)}") from error
        except BrokerError as error:
            raise TransactionFatalError(error.code, f"{error.detail}; {_so_far(done, written)}") from error
        done.append(one.partition_id)
    yield from _clear(coordination, written)
    return len(done)


def _clear(coordination: Coordination, written: Iterable[WrittenPartition]) -> Steps[None]:
    """Abort what failed attempts left open: until then, read-committed readers see nothing of what came after it.

    What cannot be reached now is aborted when its time is over.
    """
    for one in written:
        for transactional_id in one.other_ids:
            with suppress(ClientError):
                yield from coordination.init_producer_id(transactional_id)


def _commit(coordination: Coordination, one: WrittenPartition) -> Steps[None]:
    assert one.producer is not None, "nothing to commit"
    try:
        yield from coordination.end(one.producer, is_commit=True)
    except BrokerError as error:
        if not _is_fenced(error.code):
            raise
        if (yield from _has_marker(coordination, one)):
            return  # by an attempt whose answer was lost
        raise TransactionFatalError(
            error.code,
            f"partition {one.partition_id}: transaction {one.producer.transactional_id} (producer "
            f"{one.producer.producer_id}, epoch {one.producer.producer_epoch}) cannot be committed: {error.code.text} "
            f"It lasted longer than kafka.transaction.timeout.ms={coordination.transaction_timeout_ms}, so that the "
            "coordinator aborted it, or another run of the query has fenced it",
        ) from error


def _has_marker(coordination: Coordination, one: WrittenPartition) -> Steps[bool]:
    if one.marker_group is None or one.batch_id is None or one.anchor is None:
        return False
    marker = yield from coordination.committed_offset(one.marker_group, one.anchor)
    return marker is not None and marker.offset > one.batch_id


def _so_far(done: Sequence[int], written: Iterable[WrittenPartition]) -> str:
    open_count = sum(one.producer is not None for one in written) - len(done)
    return f"committed before: {len(done)} partitions {list(done)}, not committed: {open_count}"


def abort_silent(coordination: Coordination, mark: str, transactional_ids: Iterable[str]) -> Steps[list[str]]:
    """Abort what tasks may have written that told the driver nothing; return what failed, to be logged.

    Spark kills the tasks of a job whose first one failed, and does not wait for their end. What they had begun would
    hold up read-committed readers until its time is over: who still writes is fenced. Who begins later finds the mark:
    it is made before anybody is asked about, and a task looks for it after it has become known (`is_job_over`).
    Once a coordinator is not to be reached no other is asked.
    """
    failures: list[str] = []
    for steps in (coordination.init_producer_id(mark), *(_take_over(coordination, one) for one in transactional_ids)):
        try:
            yield from steps
        except BrokerError as error:
            failures.append(str(error))
        except ClientError as error:
            return [*failures, str(error)]
    return failures


def _take_over(coordination: Coordination, transactional_id: str) -> Steps[None]:
    """Abort what is open under an id, and fence who writes under it; nothing where nobody does."""
    if (yield from coordination.is_unended(transactional_id)):
        yield from coordination.init_producer_id(transactional_id)


def is_job_over(coordination: Coordination, mark: str) -> Steps[bool]:
    """Say whether the driver has given up the job that a task begins to write for; see `abort_silent`."""
    try:
        return (yield from coordination.is_unended(mark))
    except UnsupportedVersionError:  # Kafka before 3.0: what is begun too late is aborted when its time is over
        return False


def abort_all(coordination: Coordination, written: Sequence[WrittenPartition]) -> Steps[list[str]]:
    """Abort what tasks wrote, as far as it is open; return what failed, to be logged.

    Nothing is lost by a failure: what stays open is aborted when its time is over, or by the next run.
    """
    failures: list[str] = []
    for one in written:
        if one.producer is None:
            continue
        try:
            yield from coordination.end(one.producer, is_commit=False)
        except BrokerError as error:
            if not _is_fenced(error.code):
                failures.append(str(error))
        except ClientError as error:
            failures.append(str(error))
    yield from _clear(coordination, written)
    return failures
