"""Pure core: the records of one partition's fetched bytes, decoded as they are asked for.

Control records, records before the position, and for a read-committed consumer those of aborted transactions are left
out: an aborted transaction begins at the first offset that the broker names, and ends with its abort marker.

*Source:* `CompletedFetch` of Kafka 4.3; KIP-98.

.. versionadded:: 0.1
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from odradek.kernel.records.aborted import AbortedTransactions
from odradek.kernel.records.batch import CorruptRecordsError, is_crc_valid, iterate_batches
from odradek.kernel.records.reader import read_batch
from odradek.kernel.types import NO_EPOCH, TopicPartition

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Self

    from odradek.kernel.records.batch import BatchHeader
    from odradek.kernel.types import Buffer


class ConsumerRecord(NamedTuple):
    """A record as `poll` returns it.

    Attributes:
        topic: Its topic.
        partition: Its partition.
        offset: Its offset.
        timestamp: Milliseconds since the Unix epoch; -1 for none.
        key: As the deserializer made it; bytes or None without one.
        value: Likewise.
        headers: Names and values, in order.
        is_log_append_time: Whether the broker set the timestamp, not the producer.
        leader_epoch: Of the leader that appended it.
    """

    topic: str
    partition: int
    offset: int
    timestamp: int
    key: Any
    value: Any
    headers: tuple[tuple[str, bytes | None], ...]
    is_log_append_time: bool
    leader_epoch: int

    @property
    def topic_partition(self) -> TopicPartition:
        """Where it is."""
        return TopicPartition(self.topic, self.partition)


class FetchedRecords:
    """An iterator over what one fetch brought of a partition; one owner.

    Attributes:
        next_offset: Where to fetch on once this is used up.
        next_epoch: Leader epoch of what stands before that, shown or not; -1 for none.
    """

    def __init__(
        self,
        partition: TopicPartition,
        records: Buffer,
        position: int,
        aborted: list[tuple[int, int]] | None,
        *,
        checks_crcs: bool,
    ) -> None:
        """Decode nothing yet.

        Args:
            partition: Whose records.
            records: Whole batches, the last one maybe cut off.
            position: Records before are left out.
            aborted: First offsets and producer ids of aborted transactions, rising; None to show all records.
            checks_crcs: Whether each batch's checksum is verified.
        """
        self.next_offset = position
        self.next_epoch = NO_EPOCH
        self._partition = partition
        self._position = position
        self._aborted = None if aborted is None else AbortedTransactions(aborted)
        self._checks_crcs = checks_crcs
        self._iterator = self._iterate(records)
        self._returned: list[ConsumerRecord] = []
        self._damage: CorruptRecordsError | None = None

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> ConsumerRecord:
        """Return the next record.

        Raises:
            CorruptRecordsError: A batch or record is damaged, or less than a batch came.
        """
        if self._returned:
            return self._returned.pop()
        if self._damage is not None:
            raise self._damage
        return next(self._iterator)

    def peek(self, count: int) -> list[ConsumerRecord]:
        """Return the next records, `count` at most, which come again; what is damaged ends them."""
        found: list[ConsumerRecord] = []
        try:
            found += islice(self, count)
        except CorruptRecordsError as error:
            self._damage = error
        self._returned += reversed(found)
        return found

    def _iterate(self, records: Buffer) -> Iterator[ConsumerRecord]:
        topic, number = self._partition
        position = self._position
        has_batch = False
        for place, header in _in_order(iterate_batches(records), position):
            has_batch = True
            if self._checks_crcs and not is_crc_valid(records, place, header):
                raise CorruptRecordsError(f"checksum of the batch at offset {header.base_offset}", position=place)
            # Batches before the position count too: a marker among them ends a transaction that was named.
            is_hidden = header.is_control if self._aborted is None else self._aborted.hides(records, place, header)
            if header.next_offset > position and not is_hidden:
                is_by_broker = bool(header.timestamp_type)
                epoch = header.partition_leader_epoch
                for offset, timestamp, key, value, headers in read_batch(records, place, header):
                    if offset >= position:
                        yield ConsumerRecord(topic, number, offset, timestamp, key, value, headers, is_by_broker, epoch)
            if header.next_offset > position:
                self.next_offset, self.next_epoch = header.next_offset, header.partition_leader_epoch
        if has_batch and self.next_offset == position:
            raise CorruptRecordsError(f"no batch of those that were fetched from offset {position} on reaches it")
        if not has_batch:
            # KIP-74: a broker sends the first batch whole, however large: less than a batch is no progress.
            raise CorruptRecordsError("a fetched batch is cut off")


def _in_order(batches: Iterator[tuple[int, BatchHeader]], position: int) -> Iterator[tuple[int, BatchHeader]]:
    """Yield batches as long as each begins where the one before ends, or behind a gap: no checksum covers an offset.

    Where one begins before that, one of the two is not what was written: the first, if it stands behind a gap, which
    compaction leaves, else the second. That one is not yielded.

    Raises:
        CorruptRecordsError: There is such a batch.
    """
    begins_max, expected = -1, position
    held: tuple[int, BatchHeader] | None = None
    try:
        for place, header in batches:
            if header.base_offset < begins_max:
                wrong, held = held or (place, header), None
                _refuse_overlap(header.base_offset, begins_max, wrong[0])
            if held is not None:
                yield held
            held = (place, header) if header.base_offset > expected else None
            if held is None:
                yield place, header
            begins_max = expected = header.next_offset
    except CorruptRecordsError:
        if held is not None:
            yield held
        raise
    if held is not None:
        yield held


def _refuse_overlap(offset: int, end: int, place: int) -> NoReturn:
    raise CorruptRecordsError(f"a batch at offset {offset} follows one that ends at {end}", position=place)
