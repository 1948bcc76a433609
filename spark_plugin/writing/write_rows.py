"""Pure core: Spark's rows, sorted by the partition that each goes to; columns at a time, no Python for a row.

The first row that cannot be written is told of by its number in the task (from 0), before any of its batch is sent.

.. versionadded:: 0.1
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from odradek.client.errors import RecordTooLargeError
from odradek.kernel.errors import OdradekError
from odradek.kernel.types import TopicPartition

from ..arrow import encodable
from .partitioners import KeyColumn
from .produce import Run

if TYPE_CHECKING:
    from odradek.kernel.records.columns import BinaryColumn, Columns, HeadersColumn

    from .dead_letters import DeadLetters
    from .partitioners import RowPartitioner

Numbers: TypeAlias = "np.ndarray[Any, np.dtype[Any]]"

_RECORD_COLUMNS: Final = ("key", "value", "headers", "timestamp")
_RECORD_BYTES: Final = 12
"""What a small record has besides its key and value, about."""
_BATCH_BYTES: Final = 61 + 30
"""The most that a batch of one record has besides key, value and headers."""


class BadRowError(OdradekError):
    """A row cannot be written; the text says which, counted from 0 in its task."""


@attrs.define
class RowSorter:
    """Sorts the rows of one task; one owner.

    Attributes:
        positions: Where the columns are that are written: `value`, and what there is of `key`, `headers`, `timestamp`,
            `topic` and `partition`.
        topic: For all rows; None when the column names it.
        partitioner: For rows that name no partition.
        partitions_count: How many partitions a topic has; asked once for each batch of rows and topic.
        record_bytes_max: `max.request.size`.
        dead_letters: Which rows go to another topic; None for none.
        rows_count: How many rows were sorted.
    """

    positions: Mapping[str, int]
    topic: str | None
    partitioner: RowPartitioner
    partitions_count: Callable[[str], int]
    record_bytes_max: int
    dead_letters: DeadLetters | None = None
    rows_count: int = attrs.field(default=0, init=False)

    def sort(self, batch: pa.RecordBatch, now_ms: int) -> Iterator[tuple[TopicPartition, Run]]:
        """Return the rows of a batch by partition; those of one partition keep their order.

        Args:
            batch: The rows, with all columns of the query.
            now_ms: Timestamp of rows whose `timestamp` is null.

        Raises:
            BadRowError: A row names no topic, or a partition that there is not.
            RecordTooLargeError: A row is larger than `max.request.size`.
        """
        rows_count = batch.num_rows
        if not rows_count:
            return
        if self.dead_letters is not None:
            diverted = self.dead_letters.diverted(batch, self.positions, self.topic, now_ms)
            if diverted is not None:
                sorter = attrs.evolve(self, positions=diverted[1], topic=None, dead_letters=None)
                sorter.rows_count = self.rows_count
                self.rows_count += rows_count
                yield from sorter.sort(diverted[0], now_ms)
                return
        first_row = self.rows_count
        self.rows_count += rows_count
        columns = self._columns(batch, now_ms)
        sizes = record_sizes(columns)
        largest = int(sizes.argmax())
        if sizes[largest] + _BATCH_BYTES > self.record_bytes_max:
            first = int(np.flatnonzero(sizes + _BATCH_BYTES > self.record_bytes_max)[0])
            raise RecordTooLargeError(
                f"row {first_row + first} is a record of about {sizes[first]} bytes, more than "
                f"kafka.max.request.size={self.record_bytes_max}: raise it (and max.message.bytes of the topic), or "
                "leave such rows out"
            )
        given = self._given_partitions(batch)
        for topic, rows in self._by_topic(batch, first_row):
            chosen = self._choose(topic, rows, columns, sizes, given, first_row)
            yield from _runs(topic, rows, chosen, columns, sizes, first_row)

    def _columns(self, batch: pa.RecordBatch, now_ms: int) -> Columns:
        names = [name for name in _RECORD_COLUMNS if name in self.positions]
        arrays = [batch.column(self.positions[name]) for name in names]
        return encodable(pa.RecordBatch.from_arrays(arrays, names=names), now_ms=now_ms)

    def _by_topic(self, batch: pa.RecordBatch, first_row: int) -> Iterator[tuple[str, Numbers | None]]:
        """Return each topic with its rows; None is all."""
        if self.topic is not None:
            yield self.topic, None
            return
        names = batch.column(self.positions["topic"])
        if names.null_count:
            row = int(pc.index(pc.is_null(names), True).as_py())
            raise BadRowError(
                f"row {first_row + row} has no topic: its column 'topic' is null. Give each row one, or all of them "
                "the option 'topic'"
            )
        found = names if pa.types.is_dictionary(names.type) else pc.dictionary_encode(names)
        codes = found.indices.to_numpy(zero_copy_only=False)
        topics = found.dictionary.to_pylist()
        if len(topics) == 1:
            yield topics[0], None
            return
        for code, topic in enumerate(topics):
            rows = np.flatnonzero(codes == code)
            if len(rows):
                yield topic, rows.astype(np.int32)

    def _given_partitions(self, batch: pa.RecordBatch) -> tuple[Numbers, Numbers] | None:
        """Return the column `partition`, and where it names one; None where no row does."""
        if "partition" not in self.positions:
            return None
        column = batch.column(self.positions["partition"])
        if column.null_count == len(column):
            return None
        numbers = pc.fill_null(column, 0).to_numpy(zero_copy_only=False)
        return numbers, pc.is_valid(column).to_numpy(zero_copy_only=False)

    def _choose(
        self,
        topic: str,
        rows: Numbers | None,
        columns: Columns,
        sizes: Numbers,
        given: tuple[Numbers, Numbers] | None,
        first_row: int,
    ) -> Numbers:
        """Return the partition of each row of a topic."""
        count = self.partitions_count(topic)
        own_sizes = sizes if rows is None else sizes[rows]
        keys = key_column(columns.keys, columns.rows)
        if keys is not None and rows is not None:
            keys = keys.take(rows)
        if given is None:
            return self.partitioner.choose(topic, count, keys, own_sizes)
        numbers, is_given = given if rows is None else (given[0][rows], given[1][rows])
        bad = np.flatnonzero(is_given & ((numbers < 0) | (numbers >= count)))
        if len(bad):
            place = int(bad[0])
            row = place if rows is None else int(rows[place])
            raise BadRowError(
                f"row {first_row + row} names partition {numbers[place]} of topic {topic!r}, which has {count} "
                f"partitions, 0 to {count - 1}"
            )
        if is_given.all():
            return numbers.astype(np.int32)
        chosen = numbers.astype(np.int32)
        others = np.flatnonzero(~is_given)
        left_keys = None if keys is None else keys.take(others)
        chosen[others] = self.partitioner.choose(topic, count, left_keys, own_sizes[others])
        return chosen


def _runs(
    topic: str, rows: Numbers | None, chosen: Numbers, columns: Columns, sizes: Numbers, first_row: int
) -> Iterator[tuple[TopicPartition, Run]]:
    """Return rows by partition."""
    compact = chosen.astype(np.int16) if int(chosen.max(initial=0)) < 2**15 else chosen  # small numbers sort by radix
    order = np.argsort(compact, kind="stable").astype(np.int32)
    ordered = chosen[order]
    cuts = np.flatnonzero(np.diff(ordered)) + 1
    for part in np.split(order, cuts):
        own = part if rows is None else rows[part]
        partition = TopicPartition(topic, int(chosen[part[0]]))
        yield partition, Run(columns, np.ascontiguousarray(own, np.int32).data, int(sizes[own].sum()), first_row)


def _offsets(column: BinaryColumn | HeadersColumn, count: int) -> Numbers:
    """Return where values begin, and where the last one ends, of `count` values from the column's first."""
    offsets: Numbers = np.frombuffer(column.offsets, np.int32)
    if not len(offsets):
        return np.zeros(count + 1, np.int64)
    return offsets[column.first : column.first + count + 1].astype(np.int64)


def key_column(column: BinaryColumn | None, rows_count: int) -> KeyColumn | None:
    """Return keys for a partitioner; None where no row can have one."""
    if column is None:
        return None
    offsets = _offsets(column, rows_count)
    nulls = None
    if column.validity is not None:
        bits = np.unpackbits(np.frombuffer(column.validity, np.uint8), bitorder="little")
        nulls = bits[column.first : column.first + rows_count] == 0
    lengths = np.diff(offsets)
    if nulls is not None:
        lengths[nulls] = 0  # Arrow leaves open what lies under a null
    return KeyColumn(offsets[:-1], lengths, np.frombuffer(column.data, np.uint8), nulls)


def record_sizes(columns: Columns) -> Numbers:
    """Return about how many bytes each row's record takes, uncompressed."""
    sizes = np.full(columns.rows, _RECORD_BYTES, np.int64)
    for column in (columns.keys, columns.values):
        if column is not None:
            sizes += np.diff(_offsets(column, columns.rows))
    if columns.headers is not None:
        lists = _offsets(columns.headers, columns.rows)
        count = int(lists[-1])
        for column in (columns.headers.keys, columns.headers.values):
            sizes += np.diff(_offsets(column, count)[lists])
        sizes += np.diff(lists) * 2
    return sizes
