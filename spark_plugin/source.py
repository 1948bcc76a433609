"""Shell: what Spark calls: `format("odradek")`, for reading and writing, batch and streaming.

Thin over `batch_reader` and `stream_reader`, which know nothing of pyspark. All of these objects are pickled between
driver and workers, so none holds a socket or a lock; connections are the process's (`client.client_for`).

*Source:* `pyspark.sql.datasource`, `pyspark.sql.streaming.datasource` of PySpark 4.3.

.. versionadded:: 0.1
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition

from .errors import SchemaError
from .worker import is_pushing_filters_down, plain_errors, settle

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import pyarrow as pa
    from pyspark.sql import SparkSession
    from pyspark.sql.datasource import (
        DataSourceStreamWriter,
        DataSourceWriter,
        Filter,
    )
    from pyspark.sql.types import StructType

    from .reading.batch_reader import BatchReader
    from .reading.read_task import ReadTask

FORMAT: Final = "odradek"


class TaskPartition(InputPartition):
    """What one task reads."""

    def __init__(self, task: ReadTask) -> None:
        self.task = task


class DefaultSource(DataSource):
    """The data source: Spark makes one for each use of the format, on the driver and in planners.

    .. versionadded:: 0.1
    """

    @classmethod
    def name(cls) -> str:
        """Return what `format` is given."""
        return FORMAT

    @plain_errors()
    def schema(self) -> str:
        """Return the columns, unless the user gave a schema; checks what can be checked before the mode is known.

        Raises:
            OptionError: An option is missing, contradicts another, or has no such value.
        """
        from .reading.batch_reader import default_schema

        return default_schema(self.options)

    @plain_errors()
    def reader(self, schema: StructType) -> DataSourceReader:
        """Return what reads a batch.

        Raises:
            OptionError: An option is missing, contradicts another, or has no such value.
            SchemaError: The schema has columns that there are not.
        """
        from .reading.batch_reader import BatchReader

        reader = BatchReader.of(self.options, columns_of(schema))
        return FilteringTopicReader(reader) if is_pushing_filters_down() else TopicReader(reader)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """Return what reads a stream; its first call raises what `reader` does."""
        from .source_stream import TopicStreamReader

        return TopicStreamReader(self.options, schema)

    @plain_errors()
    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """Return what writes a batch; raises what `writer.open_writer` does."""
        from .writing.writer import open_writer

        return open_writer(self.options, schema, overwrite)

    @plain_errors()
    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        """Return what writes micro-batches; raises what `writer.open_stream_writer` does."""
        from .writing.writer import open_stream_writer

        return open_stream_writer(self.options, schema, overwrite)


class TopicReader(DataSourceReader):
    """A batch of topics, while no filters are pushed down."""

    def __init__(self, reader: BatchReader) -> None:
        self._reader = reader

    @plain_errors()
    def partitions(self) -> list[InputPartition]:
        """Ask the brokers, and return what the tasks are to read."""
        settle(freezes=self._reader.options.gc_freeze)
        return [TaskPartition(task) for task in self._reader.plan()]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read what one task reads; Spark makes a task of nothing when there is nothing to read."""
        return read_partition(partition)


class FilteringTopicReader(TopicReader):
    """The same where Spark asks which filters are of use; elsewhere it refuses a reader that has this method."""

    @plain_errors()
    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        """Trim the ranges, and return every filter whose rows Spark still has to test."""
        self._reader.push(filters)
        return filters


def read_partition(partition: InputPartition) -> Iterator[pa.RecordBatch]:
    """Read what a partition says."""
    if not isinstance(partition, TaskPartition):
        return
    from .reading.read_task import read

    with plain_errors():
        yield from read(partition.task)


def columns_of(schema: StructType) -> list[tuple[str, str]]:
    """Return names and types of a schema, as Spark writes types.

    Raises:
        SchemaError: A column is said to be never null: Spark would then not look for nulls that there are.
    """
    never_null = [field.name for field in schema.fields if not field.nullable]
    if never_null:
        raise SchemaError(
            f"the schema says that {', '.join(never_null)} is never null: leave NOT NULL (nullable=False) out, every "
            "column of this source may be null"
        )
    return [(field.name, field.dataType.simpleString()) for field in schema.fields]


def register(spark: SparkSession) -> None:
    """Make `format("odradek")` known to a session, where Spark does not find it by itself.

    Spark finds it wherever the module `pyspark_odradek` can be imported, unless another module named `pyspark_*` there
    fails.
    """
    sources: Any = spark.dataSource
    sources.register(DefaultSource)
