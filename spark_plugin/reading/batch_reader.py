"""Shell: a batch of topics on the driver: options become offsets, offsets become tasks.

`partitions()` of Spark's reader is `plan` here: ask brokers which partitions there are and where their logs begin and
end, resolve where to begin and to end, drop what filters exclude, cut, and make tasks.

.. versionadded:: 0.1
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import attrs

from ..direct.settings import direct_settings
from ..first_contact import first_client
from ..options.options import read_source_options
from ..options.positions import EachOffset
from ..ranges import EARLIEST, LATEST
from ..schema import projection_of
from .data_loss import batch_outcome, settle
from .filters import Filter, Pushed, push
from .survey import log_ends, offsets_at, offsets_of, survey
from .task_planning import TaskPlanner, client_settings, task_planner

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from ..client import Client
    from ..options.options import SourceOptions
    from ..ranges import OffsetRange, TopicPartition
    from .read_task import ReadTask

_log = logging.getLogger(__name__)


@attrs.define
class BatchReader:
    """What a batch query reads of topics; made for each plan, and pickled to the tasks with nothing in it."""

    options: SourceOptions
    _planner: TaskPlanner
    _pushed: Pushed = attrs.field(factory=Pushed)

    @classmethod
    def of(cls, options: Mapping[str, str], schema: Sequence[tuple[str, str]]) -> BatchReader:
        """Read what a user says.

        Args:
            options: As Spark hands them over.
            schema: Names and types of the columns, as Spark writes types.

        Raises:
            OptionError: An option is missing, contradicts another, or has no such value.
            SchemaError: The schema has columns that there are not.
        """
        read = read_source_options(options, is_stream=False)
        for warning in read.warnings:
            _log.warning("%s", warning)
        return cls(read, task_planner(read, options, schema))

    def push(self, filters: Sequence[object]) -> None:
        """Leave out what cannot pass these filters of pyspark's, all of which have to be true.

        Spark has to apply each of them all the same: what is left out is what whole ranges of offsets cannot have.
        """
        self._pushed = push([Filter.of(one) for one in filters])

    def plan(self) -> list[ReadTask]:
        """Return what the tasks read; empty when there is nothing.

        Raises:
            AssignmentError: A topic or partition is not there, or the options name others than there are.
            OptionError: A start lies beyond an end, or no record is as late as a timestamp.
            DataLossError: Records that were to be read are gone.
            ClientError: No broker answers, or one refuses.
        """
        options = self.options
        client = first_client(self._planner.client)
        is_read_committed = self._planner.client.is_read_committed
        found = survey(client, options.subscription)
        ends = log_ends(client, found.partitions, is_read_committed=is_read_committed)
        start = offsets_of(
            client,
            options.starting,
            ends,
            options.starting_option,
            is_read_committed=is_read_committed,
            fails_without_match=options.fails_without_match,
        )
        end = offsets_of(client, options.ending, ends, options.ending_option, is_read_committed=is_read_committed)
        outcome = batch_outcome(start, end, ends, explicit=_explicit(options))
        for warning in settle(outcome, fails=options.fail_on_data_loss):
            _log.warning("%s", warning)
        return self._planner.tasks(client, self._filtered(client, outcome.ranges), found.topic_ids)

    def _filtered(self, client: Client, ranges: Sequence[OffsetRange]) -> list[OffsetRange]:
        """Return what of some ranges can pass the filters."""
        timestamp = self._pushed.timestamp_low_ms
        if timestamp is None or timestamp < 0:  # below 0 a timestamp is one of the protocol's words
            return self._pushed.applied(ranges)
        kept = {one.topic_partition: timestamp for one in ranges if self._pushed.keeps(one.topic_partition)}
        found = offsets_at(client, kept, is_read_committed=self._planner.client.is_read_committed)
        return self._pushed.applied(ranges, found)


def default_schema(options: Mapping[str, str]) -> str:
    """Return the columns of a source whose user gave no schema, as Spark reads them.

    Spark has not said by then whether it reads a batch or a stream: what only one of them refuses is told later.

    Raises:
        OptionError: An option is missing, contradicts another, or has no such value.
        SchemaError: The option `columns` names one that there is not.
    """
    read = read_source_options(options, is_stream=None)
    client_settings(read)
    direct_settings(options)
    return projection_of(
        None,
        columns=read.columns,
        include_headers=read.include_headers,
        strips_wire_format=read.strips_wire_format,
    ).ddl


def _explicit(options: SourceOptions) -> Collection[TopicPartition]:
    """Return the partitions whose start is a number of the user's."""
    if not isinstance(options.starting, EachOffset):
        return ()
    return [one for one, offset in options.starting.offsets.items() if offset not in {EARLIEST, LATEST}]
