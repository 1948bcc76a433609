"""Shell: what a task of a sink does with its rows, and the driver with what its tasks say; knows nothing of pyspark.

    at least once     producer id -> records, acknowledged -> nothing left to do for the driver
    a batch, whole    transaction of this attempt's own -> records, acknowledged -> the driver commits all, or aborts
    exactly once      the same, behind a marker that says whether the batch is in already: see `transactions`

A task asks brokers for nothing before its first row: partitions without rows cost nothing.

.. versionadded:: 0.1
"""

from __future__ import annotations

import logging
import random
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, TypeVar

import attrs

from odradek.client.errors import BrokerError, ClientTimeoutError, TransactionAbortedError
from odradek.kernel.errors import ConfigError, ErrorCode, error_code
from odradek.kernel.machine.ids import RandomIds
from odradek.kernel.peers.errors import ClientError
from odradek.kernel.types import TopicPartition
from odradek.kernel.wire.messages.api_22_init_producer_id import InitProducerIdRequest
from odradek.kernel.wire.messages.api_26_end_txn import EndTxnRequest

from ..client import ClientSettings, client_for
from ..client.clock import SystemPausingClock
from ..errors import OptionError
from ..options.options import read_sink_options
from ..schema import dead_letter_columns, sink_columns
from ..worker import settle, task_identity
from .dead_letters import DeadLetters
from .partitioners import RowPartitioner
from .produce import ProduceCore
from .sending import BatchSender
from .transaction_steps import Coordination, CoordinatorKind, TransactionalProducer, run_steps
from .transactions import (
    SLOTS_COUNT,
    PartitionOfBatch,
    WrittenPartition,
    abort_all,
    abort_silent,
    commit_all,
    earlier_slots,
    is_job_over,
    slot_of,
)
from .write_rows import RowSorter
from .write_settings import WriteSettings

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import pyarrow as pa

    from ..client import Client
    from ..client.clock import PausingClock
    from ..worker import TaskIdentity
    from .transaction_steps import Ask, Steps

_log = logging.getLogger(__name__)
T = TypeVar("T")

FEATURE: Final = "transaction.version"
_V2: Final = 2
_NO_TRANSACTION_TIMEOUT_MS: Final = 2**31 - 1
ANCHOR_TOPIC: Final = "__consumer_offsets"
"""Under which offsets are committed where rows name their topics: it exists wherever groups do."""


@attrs.frozen(kw_only=True)
class WritePlan:
    """What tasks and driver need to know; can be pickled.

    Attributes:
        client: How brokers are reached.
        write: How batches are made and sent.
        positions: Where the columns are that are written.
        topic: For all rows; None when a column names it.
        partitioner: Which one.
        dead_letters: Which rows go to another topic; None for none.
        is_stream: Whether micro-batches are written.
        is_exactly_once: Whether transactions are used.
        anchor: Under which partition offsets are committed.
        job_id: Names the transactions of a batch job; nobody else's are so named.
        freezes: Whether workers do without some of the garbage collection.
    """

    client: ClientSettings
    write: WriteSettings
    positions: Mapping[str, int]
    topic: str | None
    partitioner: str
    dead_letters: DeadLetters | None
    is_stream: bool
    is_exactly_once: bool
    anchor: TopicPartition
    job_id: str
    freezes: bool


def plan_write(
    options: Mapping[str, str], schema: Sequence[tuple[str, str]], *, is_stream: bool, is_overwriting: bool
) -> WritePlan:
    """Check what a user says; no broker is asked.

    Args:
        options: As Spark hands them over.
        schema: Names and types of the query's columns, as Spark writes types.
        is_stream: Whether micro-batches are written.
        is_overwriting: A batch's mode; a stream's says that a result is written whole each time.

    Raises:
        OptionError: An option is missing, contradicts another, or has no such value.
        SchemaError: The columns are not what a record is made of.
    """
    read = read_sink_options(options)
    for warning in read.warnings:
        _log.warning("%s", warning)
    if is_overwriting and not is_stream:
        raise OptionError(
            "mode",
            "Save mode Overwrite not allowed for Kafka: records that are in a topic stay there. Use mode('append')",
        )
    columns = sink_columns(schema, topic=read.topic)
    try:
        client = ClientSettings.of(read.kafka)
        write = WriteSettings.of(read.kafka, exactly_once=read.exactly_once)
    except ConfigError as error:
        raise OptionError("kafka", f"options 'kafka.*': {error}") from error
    return WritePlan(
        client=client,
        write=write,
        positions=dict(columns.positions),
        topic=read.topic,
        partitioner=read.partitioner,
        dead_letters=None
        if read.dead_letter_topic is None
        else DeadLetters(read.dead_letter_topic, read.dead_letter_group, dead_letter_columns(schema)),
        is_stream=is_stream,
        is_exactly_once=read.exactly_once,
        anchor=TopicPartition(read.exactly_once_topic or read.topic or ANCHOR_TOPIC, 0),
        job_id=RandomIds(random.SystemRandom()).new_id().hex,
        freezes=read.gc_freeze,
    )


def write_partition(plan: WritePlan, batches: Iterable[pa.RecordBatch]) -> WrittenPartition:
    """Write the rows of one task, and return what the driver has to know.

    All records are acknowledged when this returns; those of a transaction are seen once the driver commits it.

    Raises:
        OptionError: Spark does not say which task of which batch this is, and exactlyOnce needs to know.
        BadRowError: A row cannot be written.
        ClientError: Brokers refuse, or are not to be reached.
    """
    settle(freezes=plan.freezes)
    return TaskWriter(plan, client_for(plan.client), SystemPausingClock(), task_identity()).write(batches)


def commit(plan: WritePlan, written: Sequence[WrittenPartition], *, client: Client | None = None) -> None:
    """Commit what the tasks wrote; at least once there is nothing to do.

    Args:
        plan: What was planned.
        written: What tasks said.
        client: The process's own when None.

    Raises:
        TransactionFatalError: A transaction can be committed no more. In a stream the batch is replayed.
        ClientTimeoutError: Whether one is committed is unknown; likewise.
    """
    began_at_ms = min((one.began_at_ms for one in written if one.producer is not None), default=None)
    if began_at_ms is None:
        return
    client, clock = client or client_for(plan.client), SystemPausingClock()
    _warn_of_time(plan, clock.now_ms() - began_at_ms, "until its commit")
    _run(client, clock, commit_all(_coordination(plan, client, clock), written))


def abort(
    plan: WritePlan,
    written: Sequence[WrittenPartition],
    *,
    silent: Iterable[int] = (),
    client: Client | None = None,
) -> None:
    """Abort what the tasks wrote; what fails of it is logged: a coordinator aborts it when its time is over.

    Args:
        plan: What was planned.
        written: What tasks said.
        silent: Spark's numbers of partitions whose tasks said nothing. Of a batch job what they wrote is aborted too;
            of a stream the next run does that.
        client: The process's own when None.
    """
    needs_it = plan.is_exactly_once and not plan.is_stream
    lost = [job_transactional_id(plan, one, slot) for one in silent for slot in range(SLOTS_COUNT) if needs_it]
    if lost or any(one.producer is not None for one in written):
        client, clock = client or client_for(plan.client), SystemPausingClock()
        coordination = _coordination(plan, client, clock)
        failures = _run(client, clock, abort_all(coordination, written))
        failures += _run(client, clock, abort_silent(coordination, job_mark(plan), lost)) if lost else []
        for failure in failures:
            _log.warning("a transaction was not aborted: %s", failure)


@attrs.define(eq=False)
class TaskWriter:
    """Writes the rows of one task; one owner, used once."""

    plan: WritePlan
    client: Client
    clock: PausingClock
    identity: TaskIdentity | None
    _sender: BatchSender | None = attrs.field(default=None, init=False)
    _is_skipping: bool = attrs.field(default=False, init=False)
    _part: PartitionOfBatch | None = attrs.field(default=None, init=False)
    _producer: TransactionalProducer | None = attrs.field(default=None, init=False)
    _known: set[TopicPartition] = attrs.field(factory=set, init=False)
    _counts: dict[str, int] = attrs.field(factory=dict, init=False)

    def write(self, batches: Iterable[pa.RecordBatch]) -> WrittenPartition:
        """See `write_partition`."""
        partition_id, _ = self._attempt
        began_at_ms, began_ms = self.clock.now_ms(), self.clock.monotonic_ms()
        sorter = RowSorter(
            self.plan.positions,
            self.plan.topic,
            RowPartitioner(self.plan.partitioner, partition_id, self.plan.write.batch_bytes),
            self._partitions_count,
            self.plan.write.request_bytes,
            self.plan.dead_letters,
        )
        try:
            rows_count = sum(self._write_batch(sorter, batch) for batch in batches)
            if self._sender is not None:
                self._sender.flush()
                self._finish(rows_count, began_ms)
        except Exception as error:
            if not isinstance(error, ClientTimeoutError):  # whoever was waited for in vain is not waited for again
                self._give_up()
            raise
        finally:
            if self._sender is not None:
                self._sender.close()
        if self._part is None:
            others = () if self._producer is None else self._earlier_job_ids
            return WrittenPartition(partition_id, rows_count, self._producer, began_at_ms=began_at_ms, other_ids=others)
        if self._is_skipping:
            self._part.check_replay(rows_count)
        return self._part.written(rows_count, began_at_ms)

    def _write_batch(self, sorter: RowSorter, batch: pa.RecordBatch) -> int:
        """Send some rows; return how many there were, written or not."""
        if batch.num_rows and not self._is_skipping:
            if self._sender is None:
                self._sender = self._open()
                self._is_skipping = self._sender is None
            if self._sender is not None:
                for partition, run in sorter.sort(batch, self.clock.now_ms()):
                    self._announce(partition)
                    self._sender.core.add(partition, run)
                self._sender.send()
        count: int = batch.num_rows
        return count

    def _open(self) -> BatchSender | None:
        """Become a producer, before the first row; None when the batch is in already."""
        plan, write = self.plan, self.plan.write
        core = ProduceCore(settings=write, now_ms=self.clock.now_ms)
        if plan.is_exactly_once:
            if not self._begin():
                return None
            producer = self._producer
            assert producer is not None, "begin said so"
            core.producer_id, core.producer_epoch = producer.producer_id, producer.producer_epoch
            core.transactional_id = producer.transactional_id
            return BatchSender(client=self.client, core=core, clock=self.clock, is_v2=producer.is_v2)
        if write.is_idempotent:
            core.producer_id, core.producer_epoch = self._new_producer_id()
        return BatchSender(client=self.client, core=core, clock=self.clock)

    def _begin(self) -> bool:
        """Begin this attempt's transaction; return False when the batch is in already."""
        found = self.identity
        coordination = _coordination(self.plan, self.client, self.clock)
        if self.plan.topic is not None:
            self._partitions_count(self.plan.topic)  # creates it: offsets are committed under its name
        if not self.plan.is_stream:
            self._producer = self._run(coordination.init_producer_id(self._job_id))
            if self._run(is_job_over(coordination, job_mark(self.plan))):
                raise TransactionAbortedError("another task of this job failed: nothing more is written")
            return True
        if found is None or found.query_id is None or found.run_id is None or found.batch_id is None:
            raise OptionError(
                "exactlyOnce",
                "option 'exactlyOnce' is 'true', but Spark does not tell this task which batch of which query it "
                f"writes (local properties of its TaskContext: {found}): this version of Spark is not known. Use "
                "exactlyOnce=false, or PySpark 4.3",
            )
        self._part = PartitionOfBatch(
            coordination,
            found.query_id,
            found.run_id,
            found.batch_id,
            found.partition_id,
            found.attempt_number,
            self.plan.anchor,
        )
        has_begun = self._run(self._part.begin())
        self._producer = self._part.producer
        return has_begun

    @property
    def _job_id(self) -> str:
        """The transactional id of this attempt at a task of a batch job."""
        partition_id, attempt = self._attempt
        return job_transactional_id(self.plan, partition_id, slot_of(attempt))

    @property
    def _earlier_job_ids(self) -> tuple[str, ...]:
        """The others that earlier attempts had."""
        partition_id, attempt = self._attempt
        return tuple(job_transactional_id(self.plan, partition_id, slot) for slot in earlier_slots(attempt))

    @property
    def _attempt(self) -> tuple[int, int]:
        """Spark's number of the partition, and of this attempt at it."""
        return (0, 0) if self.identity is None else (self.identity.partition_id, self.identity.attempt_number)

    def _announce(self, partition: TopicPartition) -> None:
        """Tell the coordinator of a partition before its first record (transactions of version 1)."""
        if self._producer is None or self._producer.is_v2 or partition in self._known:
            return
        coordination = _coordination(self.plan, self.client, self.clock)
        self._run(coordination.add_partitions(self._producer, [partition]))
        self._known.add(partition)

    def _finish(self, rows_count: int, began_ms: int) -> None:
        if self._part is not None:
            self._run(self._part.finish(rows_count))
        if self._producer is not None:
            _warn_of_time(self.plan, self.clock.monotonic_ms() - began_ms, "to be written")

    def _give_up(self) -> None:
        """Abort this attempt's transaction, if that is possible at once: else its time runs out."""
        if self._producer is not None:
            request = EndTxnRequest(
                transactional_id=self._producer.transactional_id,
                producer_id=self._producer.producer_id,
                producer_epoch=self._producer.producer_epoch,
                committed=False,
            )
            version_max = None if self._producer.is_v2 else 4
            with suppress(ClientError):
                self.client.call_coordinator(
                    self._producer.transactional_id, CoordinatorKind.TRANSACTION, request, version_max=version_max
                )

    def _new_producer_id(self) -> tuple[int, int]:
        """Return a producer id for idempotence alone; any broker has some."""
        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=_NO_TRANSACTION_TIMEOUT_MS)
        deadline_ms = self.clock.monotonic_ms() + self.client.settings.api_timeout_ms
        while True:
            answer = self.client.call_any(request)
            code = error_code(answer.error_code)
            if code is ErrorCode.NONE:
                return answer.producer_id, answer.producer_epoch
            if not code.retriable or self.clock.monotonic_ms() >= deadline_ms:
                raise BrokerError(code, f"InitProducerId: {code.text}")
            self.clock.sleep_ms(self.client.settings.retry_backoff_ms)

    def _partitions_count(self, topic: str) -> int:
        """Return how many partitions a topic has; one that is missing is created where brokers allow that."""
        count = self._counts.get(topic)
        if count is None:
            found = self.client.describe([topic], may_create=True).get(topic)
            if found is None:
                raise BrokerError(
                    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                    f"topic {topic!r} does not exist, and the brokers do not create it "
                    "(auto.create.topics.enable=false): create it first",
                )
            count = self._counts[topic] = len(found.partitions)
        return count

    def _run(self, steps: Steps[T]) -> T:
        return _run(self.client, self.clock, steps)


def job_transactional_id(plan: WritePlan, partition_id: int, slot: int) -> str:
    """Return one of the `SLOTS_COUNT` ids under which attempts at a task of a batch job write."""
    return f"odradek-{plan.job_id}-{partition_id}-{slot}"


def job_mark(plan: WritePlan) -> str:
    """Return the id that the driver takes when it gives a batch job up; nobody writes under it."""
    return f"odradek-{plan.job_id}-over"


def _coordination(plan: WritePlan, client: Client, clock: PausingClock) -> Coordination:
    return Coordination(
        clock.monotonic_ms,
        client.finalized_level(FEATURE) >= _V2,
        plan.write.transaction_timeout_ms,
        client.settings.api_timeout_ms,
    )


def _run(client: Client, clock: PausingClock, steps: Steps[T]) -> T:
    def ask(one: Ask) -> Any:
        return client.call_coordinator(one.key, one.kind, one.message, version_max=one.version_max)

    return run_steps(steps, ask, clock.sleep_ms)


def _warn_of_time(plan: WritePlan, took_ms: int, what: str) -> None:
    """Say so when a transaction took half of the time that it may take."""
    timeout_ms = plan.write.transaction_timeout_ms
    if took_ms > timeout_ms / 2:
        _log.warning(
            "a transaction took %d ms %s, more than half of kafka.transaction.timeout.ms=%d, which is when it is "
            "aborted: raise that (and transaction.max.timeout.ms of the brokers), or make batches smaller",
            took_ms,
            what,
            timeout_ms,
        )
