"""Pure core: records wait here, in batches by partition, until they are sent or given up.

    append -> open batch -> full, lingered, flushed or short of memory -> drain -> (requeue -> drain)* -> release

A partition's batches leave in the order in which they were begun, whatever comes back in between: each has an ordinal,
and one that must be sent again returns to its place. Memory is counted from `append` to `release`.

*Source:* `RecordAccumulator` of Kafka 4.3.

.. versionadded:: 0.1
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, Final

import attrs

from odradek.kernel.records.batch import HEADER_SIZE
from odradek.kernel.records.builder import BatchBuilder
from odradek.kernel.records.reader import read_records
from odradek.kernel.types import NO_EPOCH, NO_PRODUCER_ID, NO_SEQUENCE

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from odradek.kernel.records.compression import CompressionType
    from odradek.kernel.types import TopicPartition

_RECORD_OVERHEAD_BYTES: Final = 21
"""Upper bound of a record's own fields, as Java estimates it: length, attributes, timestamp, offset, two sizes."""
_HEADER_OVERHEAD_BYTES: Final = 10
_NEVER: Final = float("inf")


def record_size(key: bytes | None, value: bytes | None, headers: Sequence[tuple[str, bytes | None]]) -> int:
    """Return about how many bytes a record takes in a batch, never too few for records below 64 MiB."""
    size = _RECORD_OVERHEAD_BYTES
    if key is not None:
        size += len(key)
    if value is not None:
        size += len(value)
    for name, content in headers:
        size += 4 * len(name) + _HEADER_OVERHEAD_BYTES + (0 if content is None else len(content))
    return size


class ProducerBatch:
    """Records of one partition that travel together; life cycle as in the module's docstring.

    Attributes:
        partition: Where to.
        ordinal: Rises with each batch of the accumulator; the parts of a split batch share its beginning.
        created_ms: Monotonic time of its first record, from which linger and the delivery deadline count.
        reserved_bytes: What it takes of the buffer memory.
        attempts_count: How often it was sent.
        retry_at_ms: Not to be sent before.
        is_closed: Whether it takes no more records.
        is_on_wire: Whether an answer is due.
        is_fate_unknown: Whether some attempt may have been appended without our knowing.
        base_offset: Once acknowledged, of its first record; -1 if the broker did not say.
        log_append_time_ms: Once acknowledged; -1 unless the broker stamps records.
        error: Once failed, why.
        is_done: Whether it came to its end.
        on_done: Called at the end, in order.
        number: Its place in its partition's chain of sequences; without meaning before it has a sequence.
        parts: What it was split into, each with the place of its first record; empty for nearly all.
    """

    __slots__ = (
        "_builder",
        "_encoded",
        "attempts_count",
        "base_offset",
        "created_ms",
        "error",
        "is_closed",
        "is_done",
        "is_fate_unknown",
        "is_on_wire",
        "log_append_time_ms",
        "number",
        "on_done",
        "ordinal",
        "partition",
        "parts",
        "reserved_bytes",
        "retry_at_ms",
    )

    def __init__(
        self,
        partition: TopicPartition,
        ordinal: tuple[int, ...],
        created_ms: int,
        compression: CompressionType,
        compression_level: int | None,
    ) -> None:
        self.partition = partition
        self.ordinal = ordinal
        self.created_ms = created_ms
        self.reserved_bytes = HEADER_SIZE
        self.attempts_count = 0
        self.retry_at_ms = 0
        self.is_closed = False
        self.is_on_wire = False
        self.is_fate_unknown = False
        self.base_offset = -1
        self.log_append_time_ms = -1
        self.error: Exception | None = None
        self.is_done = False
        self.number = 0
        self.on_done: list[Callable[[ProducerBatch], Any]] = []
        self.parts: list[tuple[int, ProducerBatch]] = []
        self._builder = BatchBuilder(compression=compression, compression_level=compression_level)
        self._encoded: bytearray | None = None

    @property
    def records_count(self) -> int:
        """How many records it holds."""
        return self._builder.records_count

    @property
    def base_sequence(self) -> int:
        """Sequence of the first record; -1 before it was numbered."""
        return self._builder.base_sequence

    @property
    def producer_epoch(self) -> int:
        """The epoch that it was numbered under; -1 before."""
        return self._builder.producer_epoch

    @property
    def producer_id(self) -> int:
        """The producer id that it was numbered under; -1 before."""
        return self._builder.producer_id

    def append(
        self,
        key: bytes | None,
        value: bytes | None,
        timestamp: int,
        headers: Sequence[tuple[str, bytes | None]],
        size_bytes: int,
    ) -> int:
        """Add a record and return its place in the batch."""
        self.reserved_bytes += size_bytes
        return self._builder.append(key, value, timestamp=timestamp, headers=headers)

    def set_producer(
        self, producer_id: int = NO_PRODUCER_ID, producer_epoch: int = NO_EPOCH, base_sequence: int = NO_SEQUENCE
    ) -> None:
        """Number the batch, anew if need be."""
        assert not self.is_on_wire, "what is on the wire cannot change"
        self._builder.producer_id = producer_id
        self._builder.producer_epoch = producer_epoch
        self._builder.base_sequence = base_sequence
        self._encoded = None

    def set_transactional(self) -> None:
        """Make the batch part of its producer's transaction."""
        self._builder.is_transactional = True

    def encode(self) -> bytearray:
        """Return the batch's bytes; made once for each numbering."""
        assert self.is_closed, "an open batch may still grow"
        if self._encoded is None:
            self._encoded = self._builder.build()
        return self._encoded

    def finish(self) -> None:
        """Note the end and tell whoever waits for it."""
        assert not self.is_done, "a batch ends once"
        self.is_done = True
        callbacks, self.on_done = self.on_done, []
        for callback in callbacks:
            callback(self)

    def find(self, index: int) -> tuple[ProducerBatch, int]:
        """Return where the record at this place is now: in this batch, or in a part of it."""
        batch = self
        while batch.parts:
            start, batch = next(part for part in reversed(batch.parts) if part[0] <= index)
            index -= start
        return batch, index

    def __repr__(self) -> str:
        return (
            f"<ProducerBatch {self.ordinal} of {self.partition}: {self.records_count} records, sequence "
            f"{self.base_sequence}, epoch {self.producer_epoch}, attempts {self.attempts_count}>"
        )


@attrs.frozen
class Ready:
    """What could be sent.

    Attributes:
        nodes: Partitions that have something to send, by their leader's id.
        next_ms: When to look again if nothing happens; infinity for never.
        leaderless: Topics of partitions that have something to send and no known leader.
    """

    nodes: dict[int, list[TopicPartition]]
    next_ms: float
    leaderless: set[str]


@attrs.define
class Accumulator:
    """The batches of a producer; one owner, no awaits between its calls needed.

    Attributes:
        batch_size_bytes: `batch.size`.
        linger_ms: `linger.ms`.
        memory_bytes_max: `buffer.memory`.
        compression: Codec.
        compression_level: Its level; None is the codec's default.
        used_bytes: Memory in use.
        is_pressed: Whether somebody waits for memory: nothing lingers then.
        is_flushing: Whether everything is to leave at once: a flush, or the end.
        muted: Partitions that may send nothing at present.
    """

    batch_size_bytes: int
    linger_ms: int
    memory_bytes_max: int
    compression: CompressionType
    compression_level: int | None = None
    used_bytes: int = attrs.field(default=0, init=False)
    is_pressed: bool = attrs.field(default=False, init=False)
    is_flushing: bool = attrs.field(default=False, init=False)
    muted: set[TopicPartition] = attrs.field(factory=set, init=False)
    _queues: dict[TopicPartition, deque[ProducerBatch]] = attrs.field(factory=dict, init=False)
    _unfinished: dict[tuple[int, ...], ProducerBatch] = attrs.field(factory=dict, init=False)
    _next_ordinal: int = attrs.field(default=0, init=False)
    _turn: int = attrs.field(default=0, init=False)

    @property
    def unfinished(self) -> list[ProducerBatch]:
        """Batches that have not come to their end, in the order of their beginning."""
        return list(self._unfinished.values())

    @property
    def has_unfinished(self) -> bool:
        """Whether there are any."""
        return bool(self._unfinished)

    def queue_sizes(self, topic: str) -> dict[int, int]:
        """Return how many batches wait for each partition of a topic that any wait for."""
        return {tp.partition: len(queue) for tp, queue in self._queues.items() if tp.topic == topic and queue}

    def waits_since_ms(self, partition: TopicPartition) -> float:
        """Return when the oldest waiting batch of a partition was begun; infinity when none waits."""
        queue = self._queues.get(partition)
        return queue[0].created_ms if queue else _NEVER

    def open_batch(self, partition: TopicPartition, size_bytes: int) -> ProducerBatch | None:
        """Return the batch that takes a record of this size, its memory counted; None where `append` has to see. Hot.

        Args:
            partition: Where to.
            size_bytes: What `record_size` says of the record, which the caller then adds to the batch.
        """
        queue = self._queues.get(partition)
        if not queue:
            return None
        batch = queue[-1]
        if (
            batch.is_closed
            or batch.reserved_bytes + size_bytes > self.batch_size_bytes
            or self.used_bytes + size_bytes > self.memory_bytes_max
        ):
            return None
        self.used_bytes += size_bytes
        return batch

    def append(
        self,
        partition: TopicPartition,
        key: bytes | None,
        value: bytes | None,
        headers: Sequence[tuple[str, bytes | None]],
        timestamp: int,
        now_ms: int,
        size_bytes: int,
    ) -> tuple[ProducerBatch, int] | None:
        """Add a record.

        Args:
            partition: Where to.
            key: Serialized.
            value: Serialized.
            headers: Names and values.
            timestamp: Milliseconds since the Unix epoch.
            now_ms: Monotonic time.
            size_bytes: What `record_size` says of it.

        Returns:
            Its batch and its place there; None where memory is short: try again after a `release`.
        """
        queue = self._queues.get(partition)
        batch = queue[-1] if queue else None
        if batch is None or batch.is_closed or batch.reserved_bytes + size_bytes > self.batch_size_bytes:
            if self.used_bytes and self.used_bytes + size_bytes + HEADER_SIZE > self.memory_bytes_max:
                return None
            if batch is not None:
                batch.is_closed = True
            batch = self._begin(partition, now_ms)
        elif self.used_bytes + size_bytes > self.memory_bytes_max:
            return None
        self.used_bytes += size_bytes
        return batch, batch.append(key, value, timestamp, headers, size_bytes)

    def _begin(self, partition: TopicPartition, now_ms: int) -> ProducerBatch:
        batch = self._make(partition, (self._next_ordinal,), now_ms)
        self._next_ordinal += 1
        self._queues.setdefault(partition, deque()).append(batch)
        return batch

    def _make(self, partition: TopicPartition, ordinal: tuple[int, ...], created_ms: int) -> ProducerBatch:
        batch = ProducerBatch(partition, ordinal, created_ms, self.compression, self.compression_level)
        self.used_bytes += batch.reserved_bytes
        self._unfinished[ordinal] = batch
        return batch

    def split(self, batch: ProducerBatch) -> list[ProducerBatch]:
        """Make two batches of one that the broker found too large, and put them in its place.

        The split batch comes to its end when both parts have; its records are found through `find`.
        """
        count = batch.records_count
        assert count > 1, "one record cannot be split"
        half = count // 2
        parts = [self._make(batch.partition, (*batch.ordinal, number), batch.created_ms) for number in (0, 1)]
        for index, record in enumerate(read_records(batch.encode(), check_crc=False)):
            size_bytes = record_size(record.key, record.value, record.headers)
            parts[index >= half].append(record.key, record.value, record.timestamp, record.headers, size_bytes)
            self.used_bytes += size_bytes
        batch.parts = [(0, parts[0]), (half, parts[1])]
        for part in parts:
            part.is_closed = True
            part.attempts_count = batch.attempts_count
            part.is_fate_unknown = batch.is_fate_unknown
            part.on_done.append(lambda _: batch.finish() if all(each.is_done for each in parts) else None)
            self.requeue(part, 0)
        self.release(batch)
        return parts

    def ready(self, now_ms: int, leader_of: Callable[[TopicPartition], int | None]) -> Ready:
        """Find out what could be sent now, and when to look again.

        Args:
            now_ms: Monotonic time.
            leader_of: The node id of a partition's leader, or None.
        """
        nodes: dict[int, list[TopicPartition]] = {}
        leaderless: set[str] = set()
        next_ms = _NEVER
        for partition, queue in self._queues.items():
            if not queue or partition in self.muted:
                continue
            due_ms = self._due_ms(queue)
            if due_ms > now_ms:
                next_ms = min(next_ms, due_ms)
                continue
            leader = leader_of(partition)
            if leader is None:
                leaderless.add(partition.topic)
            else:
                nodes.setdefault(leader, []).append(partition)
        return Ready(nodes, next_ms, leaderless)

    def _due_ms(self, queue: deque[ProducerBatch]) -> float:
        """Return when the first batch of a queue may leave; anything up to now is at once."""
        first = queue[0]
        if first.attempts_count:
            return first.retry_at_ms
        is_full = len(queue) > 1 or first.is_closed or first.reserved_bytes >= self.batch_size_bytes
        if is_full or self.is_pressed or self.is_flushing:
            return -_NEVER
        return first.created_ms + self.linger_ms

    def drain(
        self,
        partitions: Sequence[TopicPartition],
        size_bytes_max: int,
        may_send: Callable[[ProducerBatch], bool],
        on_drained: Callable[[ProducerBatch], None] = lambda _: None,
    ) -> list[ProducerBatch]:
        """Take the first batch of each partition for one request, beginning with another partition each time.

        Args:
            partitions: Those that `ready` found for one node.
            size_bytes_max: `max.request.size`: the first batch is taken however large it is.
            may_send: Whether the sequences allow it.
            on_drained: Called with each batch that is taken.
        """
        taken: list[ProducerBatch] = []
        size_bytes = 0
        self._turn += 1
        start = self._turn % len(partitions) if partitions else 0
        for partition in (*partitions[start:], *partitions[:start]):
            queue = self._queues[partition]
            first = queue[0]
            if not may_send(first):
                continue
            if taken and size_bytes + first.reserved_bytes > size_bytes_max:
                break
            queue.popleft()
            first.is_closed = True
            on_drained(first)
            first.attempts_count += 1
            size_bytes += first.reserved_bytes
            taken.append(first)
        return taken

    def requeue(self, batch: ProducerBatch, retry_at_ms: int) -> None:
        """Put a batch back to its place, not to be sent before `retry_at_ms`."""
        batch.retry_at_ms = retry_at_ms
        queue = self._queues[batch.partition]
        place = 0
        while place < len(queue) and queue[place].ordinal < batch.ordinal:
            place += 1
        queue.insert(place, batch)

    def hasten(self, partition: TopicPartition) -> None:
        """Let what was put back of a partition be sent at once."""
        for batch in self._queues.get(partition, ()):
            batch.retry_at_ms = 0

    def take_expired(self, created_before_ms: int) -> list[ProducerBatch]:
        """Remove and return the waiting batches that were begun before a moment."""
        expired: list[ProducerBatch] = []
        for queue in self._queues.values():
            while queue and queue[0].created_ms < created_before_ms:
                batch = queue.popleft()
                batch.is_closed = True
                expired.append(batch)
        return expired

    def take_all(self) -> list[ProducerBatch]:
        """Remove and return every waiting batch."""
        return self.take_expired(2**63)

    def oldest_created_ms(self) -> float:
        """Return when the oldest waiting batch was begun; infinity when none waits."""
        return min((queue[0].created_ms for queue in self._queues.values() if queue), default=_NEVER)

    def release(self, batch: ProducerBatch) -> None:
        """Give back the memory of a batch that came to its end."""
        if self._unfinished.pop(batch.ordinal, None) is not None:
            self.used_bytes -= batch.reserved_bytes
        assert self.used_bytes >= 0

    def __repr__(self) -> str:
        return f"<Accumulator {len(self._unfinished)} batches, {self.used_bytes} of {self.memory_bytes_max} bytes>"
