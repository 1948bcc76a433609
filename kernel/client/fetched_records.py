"""Pure core: the records of one partition's fetched bytes, decoded as they are asked for.

Control records, records before the position, and for a read-committed consumer those of aborted transactions are left
out: an aborted transaction begins at the first offset that the broker names, and ends with its abort marker.

*Source:* `CompletedFetch` of Kafka 4.3; KIP-98.

.. versionadded:: 0.1
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from ..records.batch import CorruptRecordsError, is_crc_valid, iterate_batches
from ..records.control import ControlRecordType, EndTransactionMarker, read_control_record
from ..records.reader import read_batch
from ..types import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Self

    from ..records.batch import BatchHeader
    from ..types import Buffer


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
        self._partition = partition
        self._position = position
        self._aborted = aborted
        self._aborted_ids: set[int] = set()
        self._checks_crcs = checks_crcs
        self._iterator = self._iterate(records)

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> ConsumerRecord:
        """Return the next record.

        Raises:
            CorruptRecordsError: A batch or record is damaged, or less than a batch came.
        """
        return next(self._iterator)

    def _iterate(self, records: Buffer) -> Iterator[ConsumerRecord]:
        topic, number = self._partition
        position = self._position
        has_batch = False
        for place, header in iterate_batches(records):
            has_batch = True
            if self._checks_crcs and not is_crc_valid(records, place, header):
                raise CorruptRecordsError(f"checksum of the batch at offset {header.base_offset}", position=place)
            if header.next_offset > position and not self._is_hidden(records, place, header):
                is_by_broker = bool(header.timestamp_type)
                epoch = header.partition_leader_epoch
                for offset, timestamp, key, value, headers in read_batch(records, place, header):
                    if offset >= position:
                        yield ConsumerRecord(topic, number, offset, timestamp, key, value, headers, is_by_broker, epoch)
            self.next_offset = max(position, header.next_offset)
        if not has_batch:
            # KIP-74: a broker sends the first batch whole, however large: less than a batch is no progress.
            raise CorruptRecordsError("a fetched batch is cut off")

    def _is_hidden(self, records: Buffer, place: int, header: BatchHeader) -> bool:
        """Say whether a batch is none of the consumer's business: control records, or an aborted transaction's."""
        aborted = self._aborted
        if header.is_control:
            if aborted is not None and header.has_producer_id and header.records_count:  # none where compaction took it
                marker = read_control_record(records, header, place)
                if isinstance(marker, EndTransactionMarker) and marker.type is ControlRecordType.ABORT:
                    self._aborted_ids.discard(header.producer_id)
            return True
        if aborted is None or not header.is_transactional:
            return False
        while aborted and aborted[0][0] <= header.last_offset:
            self._aborted_ids.add(aborted.pop(0)[1])
        return header.producer_id in self._aborted_ids
