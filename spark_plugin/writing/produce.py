"""Pure core: a sink's batches: rows wait by partition, become a record batch when their turn comes, and go until done.

    core.add(partition, run)                    # rows, as columns and numbers
    batches = core.take_ready(node_of, now_ms)  # encoded, by broker: one of a partition at a time
    core.answered(batch, answer, now_ms)        # done, again later, cut in two, or an error is raised

Of each partition one batch is on its way: so a batch that is repeated can neither overtake another nor leave a gap, and
its sequence is known when it is made. Meanwhile the rows of other partitions travel, and Spark's next rows are sorted.

| answer | what follows |
| --- | --- |
| NONE, DUPLICATE_SEQUENCE_NUMBER | done |
| a retriable code; no answer | again, the same bytes, after a pause |
| OUT_OF_ORDER_SEQUENCE_NUMBER, UNKNOWN_PRODUCER_ID | sequence 0 under the next epoch: the broker lost what it knew |
| the same within a transaction | an error |
| MESSAGE_TOO_LARGE | two batches of half the rows; of one row an error |
| any other | an error |

*Source:* `Sender`, `TransactionManager`, `ProducerBatch.split` of Kafka 4.3; KIP-98, KIP-360.

.. versionadded:: 0.1
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, Final

import attrs

from odradek.client.cluster import LEADER_MOVED
from odradek.client.errors import BrokerError, ClientTimeoutError, ProducerFencedError, RecordTooLargeError
from odradek.client.transactions.machine import Verdict, judge
from odradek.kernel.errors import ErrorCode, error_code
from odradek.kernel.records.batch import HEADER_SIZE, increment_sequence
from odradek.kernel.records.columns import encode_batch
from odradek.kernel.types import NO_EPOCH, NO_PRODUCER_ID, NO_SEQUENCE
from odradek.kernel.wire.messages.api_00_produce import PartitionProduceData, ProduceRequest, TopicProduceData

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from odradek.kernel.peers.errors import ClientError
    from odradek.kernel.records.columns import Columns
    from odradek.kernel.types import TopicPartition
    from odradek.kernel.wire.messages.api_00_produce import PartitionProduceResponse

    from .write_settings import WriteSettings

VERSION_MAX: Final = 12
"""The last version of Produce that names topics."""
VERSION_MAX_OF_TRANSACTIONS_1: Final = 11
"""From the next one on brokers add partitions to transactions by themselves."""
_FORGOTTEN: Final = frozenset({ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, ErrorCode.UNKNOWN_PRODUCER_ID})
_TOO_LARGE: Final = frozenset({ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE})
_STALE_METADATA: Final = LEADER_MOVED | {ErrorCode.KAFKA_STORAGE_ERROR}
"""After these a partition may have another leader: also where the disk of the one it had failed."""
_CONCURRENT_PAUSE_MS: Final = 20
"""The former transaction of the id is about to end."""
_FORGOTTEN_MAX: Final = 3
_ROW_BYTES: Final = 4


@attrs.define(eq=False)
class Run:
    """Rows of one partition that came together.

    Attributes:
        columns: Of which these are some rows.
        rows: Which, int32 each; kept as bytes.
        size_bytes: About how much they are.
        first_row: The task's number of the columns' row 0, for errors.
        position: Which of `rows` is next to be sent.
        waiting_bytes: How much of it is not acknowledged.
    """

    columns: Columns
    rows: memoryview
    size_bytes: int
    first_row: int
    position: int = 0
    waiting_bytes: int = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.waiting_bytes = self.size_bytes

    @property
    def rows_count(self) -> int:
        """How many rows there are."""
        return self.rows.nbytes // _ROW_BYTES

    def row_number(self, position: int) -> int:
        """Return the task's number of one of the rows."""
        number: int = self.rows.cast("B").cast("i")[position]
        return self.first_row + number


@attrs.define(eq=False)
class Batch:
    """A record batch on its way, or waiting to be sent again.

    Attributes:
        partition: Where it goes.
        run: Whose rows it has.
        start: The first of them.
        stop: The one after the last.
        data: The bytes.
        first_sent_ms: When it was sent first.
        attempts_count: How often it was sent.
        forgotten_count: How often the broker knew nothing of what was before.
    """

    partition: TopicPartition
    run: Run
    start: int
    stop: int
    data: bytearray
    first_sent_ms: int
    attempts_count: int = 0
    forgotten_count: int = 0

    @property
    def records_count(self) -> int:
        """How many records it has."""
        return self.stop - self.start

    @property
    def rows_text(self) -> str:
        """Which rows, for errors."""
        first = self.run.row_number(self.start)
        if self.records_count == 1:
            return f"row {first}"
        return f"{self.records_count} rows from row {first} to row {self.run.row_number(self.stop - 1)}"


@attrs.define(eq=False)
class _Queue:
    """What waits for one partition.

    Attributes:
        runs: Rows, in their order.
        batch: What is on its way, or to be sent again.
        is_on_wire: Whether an answer is due.
        retry_at_ms: When it may be sent again.
        producer_epoch: Of this partition's batches.
        next_sequence: Of its next record.
        batch_bytes: Size of its batches; less than usual where the broker refused such.
    """

    batch_bytes: int
    producer_epoch: int = NO_EPOCH
    runs: deque[Run] = attrs.field(factory=deque)
    batch: Batch | None = None
    is_on_wire: bool = False
    retry_at_ms: int = 0
    next_sequence: int = 0


@attrs.define
class WriteCounts:
    """What was done so far."""

    requests_count: int = 0
    batches_count: int = 0
    records_count: int = 0
    bytes_count: int = 0
    retries_count: int = 0


@attrs.define(kw_only=True, eq=False)
class ProduceCore:
    """The batches of one task; one owner.

    Attributes:
        settings: How batches are made.
        now_ms: The wall clock: timestamp of rows without one.
        producer_id: -1 without idempotence.
        producer_epoch: -1 without.
        transactional_id: None outside of transactions.
        counts: What was done.
        waiting_bytes: About how much was added and is not yet acknowledged.
    """

    settings: WriteSettings
    now_ms: Callable[[], int]
    producer_id: int = NO_PRODUCER_ID
    producer_epoch: int = NO_EPOCH
    transactional_id: str | None = None
    counts: WriteCounts = attrs.field(factory=WriteCounts, init=False)
    waiting_bytes: int = attrs.field(default=0, init=False)
    _queues: dict[TopicPartition, _Queue] = attrs.field(factory=dict, init=False)

    @property
    def has_unfinished(self) -> bool:
        """Whether anything is not acknowledged."""
        return any(queue.runs or queue.batch for queue in self._queues.values())

    def add(self, partition: TopicPartition, run: Run) -> None:
        """Take rows of one partition."""
        queue = self._queues.get(partition)
        if queue is None:
            queue = self._queues[partition] = _Queue(self.settings.batch_bytes, self.producer_epoch)
        queue.runs.append(run)
        self.waiting_bytes += run.size_bytes

    def next_ms(self) -> int | None:
        """Return when a batch may be sent again; None when none waits for that."""
        return min(
            (queue.retry_at_ms for queue in self._queues.values() if queue.batch and not queue.is_on_wire), default=None
        )

    # Sending.

    def ready(self, now_ms: int) -> list[TopicPartition]:
        """Return partitions that have something to send now."""
        return [
            partition
            for partition, queue in self._queues.items()
            if not queue.is_on_wire and (queue.retry_at_ms <= now_ms if queue.batch else queue.runs)
        ]

    def take(self, partitions: Iterable[TopicPartition], now_ms: int) -> list[Batch]:
        """Return batches of ready partitions for one request to their leader; they are on the wire from now on.

        At least one, and then as many as fit into a request.

        Args:
            partitions: All with the same leader.
            now_ms: Monotonic.
        """
        taken: list[Batch] = []
        left_bytes = self.settings.request_bytes
        for partition in partitions:
            queue = self._queues[partition]
            batch = queue.batch or self._encode(partition, queue, now_ms)
            queue.batch = batch
            if taken and len(batch.data) > left_bytes:
                continue  # stays made, for the next request
            left_bytes -= len(batch.data)
            queue.is_on_wire = True
            self.counts.retries_count += batch.attempts_count > 0
            batch.attempts_count += 1
            taken.append(batch)
        return taken

    def _encode(self, partition: TopicPartition, queue: _Queue, now_ms: int) -> Batch:
        """Make a batch of the rows that wait for a partition."""
        run = queue.runs[0]
        data, stop = self._encode_rows(queue, run.columns, run.rows, run.position, queue.batch_bytes)
        batch = Batch(partition, run, run.position, stop, data, now_ms)
        run.position = stop
        if stop == run.rows_count:
            queue.runs.popleft()
        return batch

    def _encode_rows(
        self, queue: _Queue, columns: Columns, rows: memoryview, start: int, bytes_max: int
    ) -> tuple[bytearray, int]:
        is_numbered = self.producer_id != NO_PRODUCER_ID
        return encode_batch(
            columns,
            rows,
            start,
            timestamp_ms=self.now_ms(),
            bytes_max=bytes_max,
            compression=self.settings.compression,
            compression_level=self.settings.compression_level,
            producer_id=self.producer_id,
            producer_epoch=queue.producer_epoch,
            base_sequence=queue.next_sequence if is_numbered else NO_SEQUENCE,
            is_transactional=self.transactional_id is not None,
        )

    def request(self, batches: Iterable[Batch]) -> ProduceRequest:
        """Return the request that carries some batches."""
        topics: dict[str, TopicProduceData] = {}
        for batch in batches:
            name, number = batch.partition
            topic = topics.get(name)
            if topic is None:
                topic = topics[name] = TopicProduceData(name=name, partition_data=[])
            topic.partition_data.append(PartitionProduceData(index=number, records=batch.data))
            self.counts.batches_count += 1
            self.counts.bytes_count += len(batch.data)
        self.counts.requests_count += 1
        return ProduceRequest(
            transactional_id=self.transactional_id,
            acks=self.settings.acks,
            timeout_ms=self.settings.request_timeout_ms,
            topic_data=list(topics.values()),
        )

    # Answers.

    def answered_all(self, batches: Iterable[Batch], response: Any, now_ms: int) -> bool:
        """Take the answer to a request; return whether leaders are in doubt.

        Raises:
            ClientError: As `answered`.
        """
        answers = {
            (topic.name, answer.index): answer for topic in response.responses for answer in topic.partition_responses
        }
        is_doubtful = False
        for batch in batches:
            answer = answers.get((batch.partition.topic, batch.partition.partition))
            if answer is None:
                self.failed(batch, ClientTimeoutError("the answer lacks this partition"), now_ms)
            else:
                is_doubtful |= self.answered(batch, answer, now_ms)
        return is_doubtful

    def answered(self, batch: Batch, answer: PartitionProduceResponse, now_ms: int) -> bool:
        """Take the answer about a batch; return whether the partition's leader is in doubt.

        Raises:
            RecordTooLargeError: One row alone is larger than the topic allows.
            ClientTimeoutError: `delivery.timeout.ms` ran out.
            ProducerFencedError: Another task or run has the transaction.
            BrokerError: The batch is refused for good.
        """
        code = error_code(answer.error_code)
        queue = self._queues[batch.partition]
        if code is ErrorCode.NONE or code is ErrorCode.DUPLICATE_SEQUENCE_NUMBER:
            self._finish(queue, batch)
            return False
        queue.is_on_wire = False
        if code in _TOO_LARGE:
            self._shrink(queue, batch, answer.error_message or code.text)
            return False
        detail = f"{batch.partition}: {batch.rows_text}: {answer.error_message or code.text}"
        if code in _FORGOTTEN and self.transactional_id is None and batch.forgotten_count < _FORGOTTEN_MAX:
            self._begin_anew(queue, batch)  # nothing of ours is missing before this batch
            return False
        if not code.retriable:
            if judge(code) is Verdict.FENCED:
                raise ProducerFencedError(
                    code, f"{detail} Another attempt or run has taken the transaction over, or it lasted too long"
                )
            raise BrokerError(code, detail)
        pause_ms = _CONCURRENT_PAUSE_MS if code is ErrorCode.CONCURRENT_TRANSACTIONS else None
        self._again(queue, batch, f"{code.name}: {detail}", now_ms, pause_ms)
        return code in _STALE_METADATA

    def failed(self, batch: Batch, error: ClientError, now_ms: int) -> None:
        """Take note that no answer came, so that the batch may have been appended or not.

        Raises:
            ClientError: The error itself, if no repetition cures it.
            ClientTimeoutError: `delivery.timeout.ms` ran out.
        """
        queue = self._queues[batch.partition]
        queue.is_on_wire = False
        if not error.retriable:
            raise error
        self._again(queue, batch, str(error), now_ms, None)

    def _finish(self, queue: _Queue, batch: Batch) -> None:
        queue.is_on_wire = False
        queue.batch = None
        queue.next_sequence = increment_sequence(queue.next_sequence, batch.records_count)
        self.counts.records_count += batch.records_count
        run = batch.run
        is_last = batch.stop == run.rows_count
        share = run.waiting_bytes if is_last else run.size_bytes * batch.records_count // run.rows_count
        run.waiting_bytes -= share
        self.waiting_bytes -= share

    def _again(self, queue: _Queue, batch: Batch, obstacle: str, now_ms: int, pause_ms: int | None) -> None:
        waited_ms = now_ms - batch.first_sent_ms
        if waited_ms >= self.settings.delivery_timeout_ms or batch.attempts_count > self.settings.retries:
            raise ClientTimeoutError(
                f"{batch.partition}: {batch.rows_text} could not be written in {batch.attempts_count} attempts and "
                f"{waited_ms} ms (kafka.delivery.timeout.ms={self.settings.delivery_timeout_ms}); last obstacle: "
                f"{obstacle}"
            )
        if pause_ms is None:
            doubled = self.settings.retry_backoff_ms << min(batch.attempts_count - 1, 10)
            pause_ms = min(doubled, self.settings.retry_backoff_max_ms)
        queue.retry_at_ms = now_ms + pause_ms

    def _begin_anew(self, queue: _Queue, batch: Batch) -> None:
        """Number a batch as the first one of the next epoch: the broker knows nothing of the ones before."""
        queue.producer_epoch += 1
        queue.next_sequence = 0
        batch.forgotten_count += 1
        self._remake(queue, batch, queue.batch_bytes)

    def _shrink(self, queue: _Queue, batch: Batch, detail: str) -> None:
        """Make the batch again of half its rows; the others follow."""
        if batch.records_count == 1:
            raise RecordTooLargeError(
                f"{batch.partition}: {batch.rows_text} is a record of {len(batch.data) - HEADER_SIZE} bytes in its "
                f"batch, which the broker refuses: {detail} Raise max.message.bytes of the topic, or leave such rows"
                " out"
            )
        self._remake(queue, batch, max(len(batch.data) // 2, 1), records_max=batch.records_count // 2)

    def _remake(self, queue: _Queue, batch: Batch, bytes_max: int, *, records_max: int | None = None) -> None:
        """Encode a batch's rows anew; rows that find no place in it go back to the front of the queue."""
        run = batch.run
        wanted = batch.stop if records_max is None else batch.start + records_max
        rows = run.rows.cast("B")[: wanted * _ROW_BYTES]
        data, stop = self._encode_rows(queue, run.columns, rows, batch.start, bytes_max)
        if queue.runs and queue.runs[0] is run:
            run.position = stop
        elif stop < run.rows_count:
            run.position = stop
            queue.runs.appendleft(run)
        if records_max is not None:
            queue.batch_bytes = min(queue.batch_bytes, bytes_max)
        batch.data, batch.stop = data, stop
