"""Shell: a stream of topics on the driver: where each micro-batch begins and ends, and which tasks read it.

One process keeps a `StreamReader` for the whole run of a query. Spark asks, in this order:

    initial_offset   twice in the first batch of a new query, and again where that batch is repeated
    latest_offset    where the next batch ends; the same offsets as it was given mean that there is none
    plan             which tasks read it: after latest_offset, or after a restart for the batch that is repeated
    commit           the end of the batch before, when the next one is planned

Where a query began is carried in the end of the first batch (`offsets.START`), for Spark does not keep it and asks anew
when the batch is repeated. What it is told then does not count: the latest offset is another one by now, the options
may have been changed, and the topic may have more partitions than they name. So what is wrong with a start is no error
of `initial_offset`, which comes before a batch that is repeated, but of `latest_offset`, which comes before a new one.

*Source:* `MicroBatchExecution` and `PythonMicroBatchStream` of Spark 4.3, by running them.

.. versionadded:: 0.1
"""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Final

import attrs

from ..client.errors import ClientError
from ..client.leaders import GONE_MS
from ..errors import AssignmentError, OptionError
from ..first_contact import first_client
from ..offsets import START, from_json_object, json_object, json_object_with_start, start_in
from ..options.options import read_source_options
from ..options.positions import EachOffset
from ..ranges import EARLIEST, LATEST
from .data_loss import TopicIds, check_start, partitions_gone, settle, stream_outcome, went_back
from .planner import topics_to_describe
from .rate_limit import TriggerPlanner
from .survey import log_ends, offsets_at, offsets_of, survey
from .task_planning import TaskPlanner, task_planner

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from ..client import Client
    from ..offsets import JsonOffsets
    from ..options.options import SourceOptions
    from ..options.positions import LogEnds
    from ..ranges import Offsets, TopicPartition
    from .read_task import ReadTask
    from .survey import Survey

PAUSE_MS_MIN: Final = 100
"""The least pause before brokers are asked again for partitions that they did not know."""

_log = logging.getLogger(__name__)


def monotonic_ms() -> int:
    """Return milliseconds of a clock that never goes back."""
    return time.monotonic_ns() // 1_000_000


@attrs.define
class StreamReader:
    """What a streaming query reads of topics, for one run of it; one owner, the process that Spark keeps for it."""

    options: SourceOptions
    _planner: TaskPlanner
    _triggers: TriggerPlanner
    _topic_ids: TopicIds = attrs.field(factory=TopicIds)
    _initial: dict[TopicPartition, int] | None = None
    _refused: AssignmentError | OptionError | None = None
    _is_begun: bool = False
    _known_ends: Offsets | None = None
    _now_ms: Callable[[], int] = monotonic_ms
    _sleep: Callable[[float], None] = time.sleep

    @classmethod
    def of(cls, options: Mapping[str, str], schema: Sequence[tuple[str, str]]) -> StreamReader:
        """Read what a user says; arguments and errors as `BatchReader.of`."""
        read = read_source_options(options, is_stream=True)
        for warning in read.warnings:
            _log.warning("%s", warning)
        return cls(read, task_planner(read, options, schema), TriggerPlanner(read.limits))

    @property
    def _client(self) -> Client:
        return first_client(self._planner.client)

    @property
    def _is_read_committed(self) -> bool:
        return self._planner.client.is_read_committed

    def initial_offset(self) -> JsonOffsets:
        """Return where a new query begins; asked of the brokers once, for Spark asks twice.

        Where the options and the topics do not fit it is nowhere, and `latest_offset` raises what is wrong.

        Raises:
            OptionError: A file that an option of a client names cannot be used.
            ClientError: No broker answers, or one refuses.
        """
        if self._initial is None:
            client = self._client  # outside: that an option of a client is wrong is told at once
            try:
                self._initial = self._starting(client)
            except (AssignmentError, OptionError) as error:
                self._initial, self._refused = {}, error
        return json_object(self._initial)

    def _starting(self, client: Client) -> dict[TopicPartition, int]:
        """Return the offsets where the options have a query begin.

        Raises:
            AssignmentError: A topic or partition is not there, or the options name others than there are.
            OptionError: A start lies beyond the end, or no record is as late as a timestamp.
            ClientError: As `initial_offset`.
        """
        options = self.options
        found = survey(client, options.subscription)
        ends = log_ends(client, found.partitions, is_read_committed=self._is_read_committed)
        starting = offsets_of(
            client,
            options.starting,
            ends,
            options.starting_option,
            is_read_committed=self._is_read_committed,
            fails_without_match=options.fails_without_match,
        )
        if isinstance(options.starting, EachOffset):
            for one, offset in options.starting.offsets.items():
                if offset not in {EARLIEST, LATEST}:
                    check_start(one, offset, ends)
        self._topic_ids.changed(found.topic_ids)
        return starting

    def _begin(self, start: JsonOffsets) -> dict[TopicPartition, int]:
        """Return the offsets of a start.

        Raises:
            AssignmentError: It is the start of a new query, and the options name other partitions than there are, or a
                topic that is not there.
            OptionError: It is that, and they name an offset or a timestamp behind the end; or it is of another source.
        """
        begin = from_json_object(start)
        if self._refused is not None and not begin and START not in start:
            raise self._refused
        return begin

    def latest_offset(self, start: JsonOffsets, *, is_limited: bool) -> JsonOffsets:
        """Return where the next micro-batch ends.

        Args:
            start: Where it begins.
            is_limited: Whether the limits of the options count; Spark overrides them where it reads all there is.

        Returns:
            The end; `start` itself when there is nothing to read, or not yet enough.

        Raises:
            DataLossError: A partition that was read is not there.
            AssignmentError: A topic that was never read is not there, or the options of a new query name other
                partitions than there are.
            OptionError: They have it begin behind the end, or the offsets are those of another source.
            ClientError: No broker answers, or one refuses.
        """
        begin = self._begin(start)
        found = self._survey(begin, self._may_lack(begin))
        if self.options.fail_on_data_loss:
            # Not left to `plan`: then the end that lacks the partition would be in the checkpoint for good.
            settle(partitions_gone(begin, found.partitions), fails=True)
        latest = self._ends_now(begin, found)
        self._known_ends = latest
        new = [one for one in found.partitions if one not in begin]
        earliest = offsets_at(self._client, dict.fromkeys(new, EARLIEST), is_read_committed=self._is_read_committed)
        end = self._triggers.end(begin, latest, earliest=earliest, now_ms=self._now_ms(), is_limited=is_limited)
        # Where a first batch is replayed another place may be the initial one by now, and the query comes by it later.
        self._is_begun = self._is_begun or begin != self._initial or START in start
        if not self._is_begun:
            return json_object_with_start(end, begin)
        return start if end == begin else json_object(end)

    def _survey(self, known: Collection[TopicPartition] = (), may_lack: Collection[str] = ()) -> Survey:
        """Return which partitions there are; while something is missing another broker is asked.

        A broker that lags behind may not have heard of it yet, and the right to see a topic may be away for a moment.
        A topic that was made again may have fewer.

        Args:
            known: Partitions that were there.
            may_lack: Topics that may be gone without an error here.

        Raises:
            AssignmentError: A topic or partition that the options name stays away.
            ClientError: No broker answers, or one refuses.
        """
        until_ms = self._now_ms() + GONE_MS
        pause_ms = max(self.options.offset_retry_interval_ms, PAUSE_MS_MIN)
        attempts = 1
        while True:
            is_last = attempts >= self.options.offset_attempts and self._now_ms() >= until_ms
            try:
                found = survey(self._client, self.options.subscription, may_lack=may_lack)
            except AssignmentError:
                if is_last:
                    raise
            else:
                missing = {one.topic for one in set(known).difference(found.partitions)}
                if not missing or is_last or missing <= self._topic_ids.changed(found.topic_ids):
                    return found
            self._client.doubt_topics()
            attempts += 1
            self._sleep(pause_ms / 1_000)

    def _ends_now(self, begin: Offsets, found: Survey) -> dict[TopicPartition, int]:
        """Return where the logs end; an end that went back is asked for again before it is believed."""
        wanted = dict.fromkeys(found.partitions, LATEST)
        latest = offsets_at(self._client, wanted, is_read_committed=self._is_read_committed)
        for _ in range(self.options.offset_attempts - 1):
            if not went_back(begin, latest) or self._topic_ids.changed(found.topic_ids):
                break
            self._sleep(self.options.offset_retry_interval_ms / 1_000)
            latest = offsets_at(self._client, wanted, is_read_committed=self._is_read_committed)
        return latest

    def _log_ends(self, until: Offsets, found: Survey) -> LogEnds:
        """Return the ends of the logs of a batch; one below the batch's end is asked for again before it counts."""
        there = [one for one in found.partitions if one in until]
        ends = log_ends(self._client, there, is_read_committed=self._is_read_committed)
        for _ in range(self.options.offset_attempts - 1):
            if not went_back(until, ends.latest) or self._topic_ids.changed(found.topic_ids):
                break
            self._sleep(self.options.offset_retry_interval_ms / 1_000)
            ends = log_ends(self._client, there, is_read_committed=self._is_read_committed)
        return ends

    def _may_lack(self, partitions: Iterable[TopicPartition]) -> Collection[str]:
        """Return the topics that may be missing without an error here: `data_loss` tells of those that were read.

        Where losses are passed over a topic that was dropped from the offsets may stay away, and come back.
        """
        known = {one.topic for one in partitions}
        if self.options.fail_on_data_loss:
            return known
        return known | set(topics_to_describe(self.options.subscription) or ())

    def known_ends(self) -> JsonOffsets | None:
        """Return where the logs ended when that was last asked; None before."""
        return None if self._known_ends is None else json_object(self._known_ends)

    def prepare_available_now(self) -> None:
        """Fix where this run ends: where the logs end now; raises as `latest_offset`."""
        found = self._survey(may_lack=self._may_lack(()))
        latest = offsets_at(
            self._client, dict.fromkeys(found.partitions, LATEST), is_read_committed=self._is_read_committed
        )
        self._triggers.prepare_available_now(latest)

    def plan(self, start: JsonOffsets, end: JsonOffsets) -> list[ReadTask]:
        """Return what the tasks of a micro-batch read; empty when there is nothing.

        Args:
            start: Where it begins, as Spark says; the end may know better.
            end: Where it ends.

        Raises:
            DataLossError: Records that were to be read are gone.
            AssignmentError, OptionError: As `latest_offset`.
            ClientError: No broker answers, or one refuses.
        """
        carried = start_in(end)
        begin = self._begin(start) if carried is None else carried
        until = from_json_object(end)
        if begin == until:
            return []
        found = self._survey(until, self._may_lack((*begin, *until)))
        ends = self._log_ends(until, found)
        recreated = self._topic_ids.changed(found.topic_ids)
        outcome = stream_outcome(begin, until, ends, recreated=recreated)
        for warning in settle(outcome, fails=self.options.fail_on_data_loss):
            _log.warning("%s", warning)
        self._topic_ids.accept(found.topic_ids)
        return self._planner.tasks(self._client, outcome.ranges, found.topic_ids)

    def commit(self, end: JsonOffsets) -> None:
        """Copy to a group how far the query is, where `commitOffsetsTo` names one.

        What the group says is for people who watch; so a failure is a warning, and the query goes on.
        """
        group = self.options.commit_offsets_to
        if group is None:
            return
        try:
            self._client.commit_offsets(group, from_json_object(end))
        except ClientError as error:
            _log.warning("the offsets of the query were not copied to the group %r: %s", group, error)
