"""Shell: what Spark calls of a stream; apart from `source`, for its module is in no Spark before 4.2.

Were it imported there, an older Spark would find no data source of anybody's: one module that fails fails them all.

*Source:* `python_streaming_source_runner.py` of PySpark 4.3.

.. versionadded:: 0.1
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    ReadMinRows,
    SupportsTriggerAvailableNow,
)

from .source import TaskPartition, columns_of, read_partition
from .worker import plain_errors, settle

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import pyarrow as pa
    from pyspark.sql.types import StructType

    from .reading.stream_reader import StreamReader


class TopicStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """A stream of topics: one process on the driver keeps it for the whole run of a query.

    What is wrong with options and schema is told by the first call and not when it is made: where that fails Spark
    stops the reader that it has not got, and shows the error which that is.
    """

    def __init__(self, options: Mapping[str, str], schema: StructType) -> None:
        self._options = options
        self._schema = schema

    @cached_property
    def _reader(self) -> StreamReader:
        from .reading.stream_reader import StreamReader

        return StreamReader.of(self._options, columns_of(self._schema))

    @plain_errors()
    def initialOffset(self) -> dict[str, Any]:
        """Return where a new query begins: the same however often Spark asks."""
        settle(freezes=self._reader.options.gc_freeze)
        return self._reader.initial_offset()

    @plain_errors()
    def getDefaultReadLimit(self) -> ReadLimit:
        """Return what the options say; Spark may choose another limit, as the trigger demands."""
        options = self._reader.options
        if options.max_offsets_per_trigger is not None:
            return ReadMaxRows(options.max_offsets_per_trigger)
        if options.min_offsets_per_trigger is not None:
            return ReadMinRows(options.min_offsets_per_trigger)
        return ReadAllAvailable()

    @plain_errors()
    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """Return where the next micro-batch ends; `start` itself when there is nothing for one."""
        return self._reader.latest_offset(start, is_limited=not isinstance(limit, ReadAllAvailable))

    @plain_errors()
    def reportLatestOffset(self) -> dict[str, Any] | None:
        """Return the ends of the partitions, for the query's progress."""
        return self._reader.known_ends()

    @plain_errors()
    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        """Return what the tasks of a micro-batch are to read."""
        return [TaskPartition(task) for task in self._reader.plan(start, end)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read what one task reads."""
        return read_partition(partition)

    @plain_errors()
    def commit(self, end: dict[str, Any]) -> None:
        """Take note that Spark is done with everything before `end`."""
        self._reader.commit(end)

    @plain_errors()
    def prepareForTriggerAvailableNow(self) -> None:
        """Fix where this run ends."""
        self._reader.prepare_available_now()
