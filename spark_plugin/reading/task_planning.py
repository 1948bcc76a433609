"""Shell: makes tasks of ranges: cut as the options say, read from brokers or past them.

.. versionadded:: 0.1
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import attrs

from odradek.kernel.errors import ConfigError

from ..client import ClientSettings
from ..client.errors import ClientError
from ..direct.pieces import BrokerPiece, Owner
from ..direct.settings import direct_settings
from ..errors import OptionError
from ..schema import projection_of
from .read_task import ReadTask
from .splitting import split, warning_of_small_pieces
from .survey import log_ends, log_marks

if TYPE_CHECKING:
    import uuid
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from ..client import Client
    from ..direct import PartitionFacts, Sources
    from ..direct.pieces import Piece
    from ..direct.settings import DirectSettings
    from ..options.options import SourceOptions
    from ..ranges import OffsetRange, TopicPartition
    from ..schema import Projection
    from .splitting import Marks

_log = logging.getLogger(__name__)


@attrs.define
class TaskPlanner:
    """Makes tasks for one query, batch or streaming; can be pickled until it has planned.

    Attributes:
        options: The user's.
        projection: The columns.
        client: How brokers are reached.
    """

    options: SourceOptions
    projection: Projection
    client: ClientSettings
    _direct: DirectSettings | None
    _sources: Sources | None = None
    _has_warned: bool = False

    def tasks(
        self, client: Client, ranges: Sequence[OffsetRange], topic_ids: Mapping[str, uuid.UUID]
    ) -> list[ReadTask]:
        """Return the tasks that read some ranges, in their order.

        Raises:
            DirectReadError: `readFrom=segments`, and an offset is in no file and no object.
            ClientError: A broker does not answer what has to be known of files and objects.
        """
        options = self.options
        cut = split(
            ranges,
            min_partitions=options.min_partitions,
            max_records=options.max_records_per_partition,
            max_bytes=options.max_bytes_per_partition,
            marks=self._marks(client, ranges) if self._direct is None else {},  # files tell it better
        )
        warning = warning_of_small_pieces(ranges, cut)
        if warning and not self._has_warned:
            self._has_warned = True
            _log.warning("%s", warning)
        return [self._task(pieces, topic_ids) for pieces in self._pieces(client, cut, topic_ids)]

    def _marks(self, client: Client, ranges: Sequence[OffsetRange]) -> Mapping[TopicPartition, Marks]:
        """Return how large logs are, where that counts."""
        if self.options.max_bytes_per_partition is None or not ranges:
            return {}
        try:
            return log_marks(client, [one.topic_partition for one in ranges])
        except ClientError as error:
            _log.warning(
                "maxBytesPerPartition does not cut what is read from brokers: none says how large its logs are: %s",
                error,
            )
            return {}

    def _task(self, pieces: Sequence[Piece], topic_ids: Mapping[str, uuid.UUID]) -> ReadTask:
        topic_id = topic_ids.get(pieces[0].range.topic)
        return ReadTask(
            pieces,
            self.projection,
            self.client,
            topic_id=topic_id if topic_id is not None and topic_id.int else None,
            is_read_committed=self.client.is_read_committed,
            fails_on_data_loss=self.options.fail_on_data_loss,
            reads_only_segments=self._direct is not None and self._direct.is_required,
            poll_timeout_ms=self.options.poll_timeout_ms,
            freezes_garbage=self.options.gc_freeze,
        )

    def _pieces(
        self, client: Client, ranges: Sequence[OffsetRange], topic_ids: Mapping[str, uuid.UUID]
    ) -> Iterable[Sequence[Piece]]:
        """Return what each task reads."""
        if self._direct is None or not ranges:
            return [[BrokerPiece(one)] for one in ranges]
        from ..direct import Sources, group_pieces

        if self._sources is None:
            self._sources = Sources(self._direct)
        max_bytes = self.options.max_bytes_per_partition or 0
        facts = self._facts(client, {one.topic_partition for one in ranges}, topic_ids)
        planned = self._sources.plan_pieces(
            ranges, facts, is_read_committed=self.client.is_read_committed, max_bytes=max_bytes
        )
        left = [piece.range for pieces in planned for piece in pieces if isinstance(piece, BrokerPiece)]
        marks = self._marks(client, left)
        return [group for pieces in planned for group in group_pieces(_cut(pieces, marks, max_bytes), max_bytes)]

    def _facts(
        self, client: Client, partitions: Iterable[TopicPartition], topic_ids: Mapping[str, uuid.UUID]
    ) -> dict[TopicPartition, PartitionFacts]:
        """Ask what has to be known before files are looked at."""
        from ..direct import PartitionFacts

        wanted = sorted(partitions)
        stable = log_ends(client, wanted, is_read_committed=True)
        high = log_ends(client, wanted, is_read_committed=False)
        return {
            one: PartitionFacts(
                topic_ids[one.topic],
                last_stable_offset=stable.latest[one],
                high_watermark=max(high.latest[one], stable.latest[one]),
                log_start_offset=stable.earliest[one],
                owner=Owner(client.cluster_id, client.leader_of(one)),
            )
            for one in wanted
            if topic_ids[one.topic].int
        }


def _cut(pieces: Iterable[Piece], marks: Mapping[TopicPartition, Marks], max_bytes: int) -> Iterator[Piece]:
    """Yield pieces, those of brokers cut by bytes, as files and objects are cut already."""
    for piece in pieces:
        if isinstance(piece, BrokerPiece):
            yield from map(BrokerPiece, split([piece.range], max_bytes=max_bytes or None, marks=marks))
        else:
            yield piece


def task_planner(read: SourceOptions, options: Mapping[str, str], schema: Sequence[tuple[str, str]]) -> TaskPlanner:
    """Return what makes the tasks of a query.

    Args:
        read: The options, as read.
        options: As Spark hands them over.
        schema: Names and types of the columns, as Spark writes types.

    Raises:
        OptionError: An option of a client or of direct reads has no such value, or contradicts another.
        SchemaError: The schema has columns that there are not.
    """
    projection = projection_of(
        schema,
        columns=read.columns,
        include_headers=read.include_headers,
        strips_wire_format=read.strips_wire_format,
    )
    return TaskPlanner(read, projection, client_settings(read), direct_settings(options))


def client_settings(read: SourceOptions) -> ClientSettings:
    """Return how brokers are reached.

    Raises:
        OptionError: A `kafka.*` option has no such value, or contradicts another.
    """
    try:
        return ClientSettings.of(read.kafka)
    except ConfigError as error:
        raise OptionError("kafka.*", f"option 'kafka.*': {error}") from error
