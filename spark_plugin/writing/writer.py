"""Shell: what Spark calls of a sink: writers of a batch and of micro-batches, over Arrow's record batches.

They are pickled between planners, driver and workers, and hold values only.

*Source:* `DataSourceArrowWriter`, `DataSourceStreamArrowWriter` of PySpark 4.3.

.. versionadded:: 0.1
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage

from ..first_contact import first_client
from ..worker import is_ending_a_batch, plain_errors
from .write_task import abort, commit, plan_write, write_partition

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import pyarrow as pa
    from pyspark.sql.types import StructType

    from .transactions import WrittenPartition
    from .write_task import WritePlan

__all__ = ["Written", "open_stream_writer", "open_writer"]


class Written(WriterCommitMessage):
    """What a task tells the driver."""

    def __init__(self, partition: WrittenPartition) -> None:
        self.partition = partition


class TopicWriter(DataSourceArrowWriter):
    """Writes a batch."""

    def __init__(self, plan: WritePlan) -> None:
        self._plan = plan

    @plain_errors()
    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        """Write the rows of one task."""
        return Written(write_partition(self._plan, iterator))

    @plain_errors()
    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Make what all tasks wrote visible, where that was not done by writing it."""
        commit(self._plan, _partitions(messages))

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Have what the tasks wrote never seen, where transactions are used; also of those that said nothing."""
        silent = [number for number, message in enumerate(messages) if not isinstance(message, Written)]
        abort(self._plan, _partitions(messages), silent=silent)


class TopicStreamWriter(DataSourceStreamArrowWriter):
    """Writes micro-batches; Spark makes one for each, and another on the driver."""

    def __init__(self, plan: WritePlan) -> None:
        self._plan = plan

    @plain_errors()
    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        """Write the rows of one task."""
        return Written(write_partition(self._plan, iterator))

    @plain_errors()
    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:
        """Make what all tasks wrote visible; may be called again for the same batch after a crash."""
        del batchId  # the messages know
        commit(self._plan, _partitions(messages))

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:
        """Have what the tasks wrote never seen, where transactions are used."""
        del batchId
        abort(self._plan, _partitions(messages))


def _partitions(messages: Sequence[WriterCommitMessage | None]) -> list[WrittenPartition]:
    """Return what tasks said; Spark has None for those that said nothing."""
    return [message.partition for message in messages if isinstance(message, Written)]


def open_writer(options: Mapping[str, str], schema: StructType, overwrite: bool) -> TopicWriter:
    """Return what writes a batch.

    Raises:
        OptionError: An option is missing, contradicts another, or has no such value; or rows are to be overwritten.
        SchemaError: The columns are not what a record is made of.
        ClientError: No broker can be reached, or one refuses.
    """
    plan = plan_write(options, _columns(schema), is_stream=False, is_overwriting=overwrite)
    first_client(plan.client)
    return TopicWriter(plan)


def open_stream_writer(options: Mapping[str, str], schema: StructType, overwrite: bool) -> TopicStreamWriter:
    """Return what writes micro-batches; raises as `open_writer`.

    Output mode `complete` comes as `overwrite`: each time the whole result is appended, as the connector does.
    Spark plans the micro-batches of a query in one process as long as they follow each other within a minute, so that
    it is only the first that has to meet the brokers soon; later ones are as patient as tasks.
    """
    plan = plan_write(options, _columns(schema), is_stream=True, is_overwriting=overwrite)
    if not is_ending_a_batch():
        first_client(plan.client)
    return TopicStreamWriter(plan)


def _columns(schema: StructType) -> list[tuple[str, str]]:
    return [(field.name, field.dataType.simpleString()) for field in schema.fields]
