"""Shell: what one task of Spark reads: ranges of one partition of a topic, as batches of Arrow's.

The driver plans `ReadTask`s and pickles them; a worker runs `read`. A task has one piece or more, in order of offsets:
ranges that brokers serve (`BrokerPiece`), or that files and objects hold (`direct`). A piece that is gone by the time
it is read is read from the broker, from the first offset that is still missing: no gap, and no repeat.

.. versionadded:: 0.1
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import attrs

from odradek.kernel.records.batch import CorruptRecordsError
from odradek.kernel.records.columns import ColumnReader

from ..arrow import record_batch
from ..client import client_for
from ..client.errors import OffsetOutOfRangeError, TopicRecreatedError, UnknownPartitionError
from ..direct.pieces import BrokerPiece, PieceGoneError
from ..errors import DataLossError
from ..worker import settle
from .data_loss import Outcome, is_doubtful, out_of_range, topic_gone
from .data_loss import settle as settle_losses

if TYPE_CHECKING:
    import uuid
    from collections.abc import Callable, Iterator, Sequence

    import pyarrow as pa

    from odradek.kernel.records.columns import Columns
    from odradek.kernel.types import Buffer

    from ..client import ClientSettings
    from ..direct.pieces import Piece
    from ..ranges import OffsetRange
    from ..schema import Projection
    from .data_loss import Loss

_log = logging.getLogger(__name__)


@attrs.frozen
class ReadTask:
    """What one task reads, and how.

    Attributes:
        pieces: Ranges of one partition, in order.
        projection: Which columns, in which order.
        client: How brokers are reached. Secrets in it travel with the task, as Spark's own options do.
        topic_id: Of the topic that was planned with; None where the cluster has no ids.
        is_read_committed: Whether records of aborted transactions are left out.
        fails_on_data_loss: Whether records that are gone fail the task, or are passed over with a warning.
        reads_only_segments: Whether what is gone from files and objects is an error, not the broker's to serve.
        poll_timeout_ms: How long a range may make no progress.
        freezes_garbage: See `worker.settle`.
    """

    pieces: Sequence[Piece]
    projection: Projection
    client: ClientSettings = attrs.field(repr=False)
    topic_id: uuid.UUID | None = None
    is_read_committed: bool = False
    fails_on_data_loss: bool = True
    reads_only_segments: bool = False
    poll_timeout_ms: int = 120_000
    freezes_garbage: bool = True


def read(task: ReadTask) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a task, by offset.

    Raises:
        DataLossError: Records are gone that the task should have read, and that is to be an error.
        CorruptRecordsError: A batch is damaged, or older than what is read here; with topic, partition and offset.
        ClientError: A broker cannot be reached, refuses, or gives nothing.
    """
    settle(freezes=task.freezes_garbage)
    for piece in task.pieces:
        yield from _read_piece(task, piece, _reader(task, piece.range))


def _read_piece(task: ReadTask, piece: Piece, reader: ColumnReader) -> Iterator[pa.RecordBatch]:
    if not isinstance(piece, BrokerPiece):
        from ..direct import open_piece  # not needed, and not loaded, where brokers serve everything

        try:
            opened = open_piece(piece, checks_crcs=task.client.checks_crcs)
            yield from _decoded(task, piece.range, reader, opened)
        except (PieceGoneError, CorruptRecordsError) as gone:
            if task.reads_only_segments:
                raise
            _log.warning("%s: read from the broker from offset %d on: %s", piece.range, reader.position, gone)
        else:
            return
    yield from _read_from_broker(task, piece.range, reader)


def _read_from_broker(task: ReadTask, wanted: OffsetRange, reader: ColumnReader) -> Iterator[pa.RecordBatch]:
    doubted = -1
    while not reader.is_done:
        rest = attrs.evolve(wanted, start=reader.position)
        fetch = client_for(task.client).fetch(
            rest,
            is_read_committed=task.is_read_committed,
            poll_timeout_ms=task.poll_timeout_ms,
            topic_id=task.topic_id,
        )
        try:
            with fetch:
                yield from _decoded(task, wanted, reader, ((fetched.data, fetched.aborted) for fetched in fetch))
        except OffsetOutOfRangeError as error:
            if is_doubtful(reader.position, error.log_start_offset, error.log_end_offset):
                if doubted == reader.position:
                    raise
                doubted = reader.position
                continue
            rest = attrs.evolve(wanted, start=reader.position)
            reader = _after_the_loss(task, rest, error)
        except (TopicRecreatedError, UnknownPartitionError) as error:
            is_recreated = isinstance(error, TopicRecreatedError)
            _settle(task, topic_gone(wanted, reader.position, is_recreated=is_recreated), error)
            return
        else:
            return


def _decoded(
    task: ReadTask,
    wanted: OffsetRange,
    reader: ColumnReader,
    pieces: Iterator[tuple[Buffer, Sequence[tuple[int, int]]]],
) -> Iterator[pa.RecordBatch]:
    """Yield rows of what comes, until the range is whole or nothing comes any more."""
    make = _maker(task.projection)
    for data, aborted in pieces:
        try:
            for columns in reader.feed(data, aborted):
                yield make(columns, wanted.topic, wanted.partition)
        except CorruptRecordsError as error:
            raise error.found_in(str(wanted.topic_partition)) from error
        if reader.is_done:
            return


def _maker(projection: Projection) -> Callable[[Columns, str, int], pa.RecordBatch]:
    """Return what makes rows of columns."""
    if not projection.strips_wire_format:
        return lambda columns, topic, partition: record_batch(columns, topic, partition, projection)
    from .wire_format import names_to_make, stripped

    made = attrs.evolve(projection, names=names_to_make(projection.names))
    return lambda columns, topic, partition: stripped(record_batch(columns, topic, partition, made), projection.names)


def _after_the_loss(task: ReadTask, rest: OffsetRange, error: OffsetOutOfRangeError) -> ColumnReader:
    """Return what reads the records that are still there of a range whose first ones are gone.

    Raises:
        DataLossError: That is to be an error.
    """
    start, loss = out_of_range(rest, rest.start, error.log_start_offset, error.log_end_offset)
    _settle(task, loss, error)
    return _reader(task, attrs.evolve(rest, start=start))


def _settle(task: ReadTask, loss: Loss, cause: Exception) -> None:
    """Make an error or a warning of a loss, as the task says."""
    try:
        warnings = settle_losses(Outcome((), (loss,)), fails=task.fails_on_data_loss)
    except DataLossError as error:
        raise error from cause
    for warning in warnings:
        _log.warning("%s", warning)


def _reader(task: ReadTask, wanted: OffsetRange) -> ColumnReader:
    return ColumnReader(
        wanted.start,
        wanted.end,
        task.projection.columns,
        is_read_committed=task.is_read_committed,
        checks_crc=task.client.checks_crcs,
    )
