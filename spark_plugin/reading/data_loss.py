"""Pure core: what is lost of the records that a query was to read, and what then: the table of `failOnDataLoss`.

A check compares what was to be read with what is there, and gives an `Outcome`: the ranges that can be read, and what
is lost. `settle` makes an error of it when `failOnDataLoss` is true (the default), else warnings. The table `EVENTS`
says it in words; the reference of the options prints it.

Gaps that compaction, aborted transactions and control records leave are never a loss.

Unlike Spark's Kafka connector this keeps topics' ids (KIP-516) while a query runs, so that a topic that was deleted and
made again is recognised, and read from its earliest offset instead of being skipped.

*Source:* Spark's Kafka integration guide, `failOnDataLoss`; what its connector 4.2.0 does was seen by running it.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterable, Mapping
from enum import Enum
from typing import Final, NamedTuple

import attrs

from ..errors import AssignmentError, DataLossError, OptionError
from ..options.positions import LogEnds
from ..ranges import OffsetRange, Offsets, TopicPartition

__all__ = [
    "EVENTS",
    "Event",
    "Loss",
    "Outcome",
    "TopicIds",
    "batch_outcome",
    "check_start",
    "is_doubtful",
    "out_of_range",
    "partitions_gone",
    "settle",
    "stream_outcome",
    "topic_gone",
    "went_back",
]


LOSSES_MAX: Final = 20
"""How many losses an error tells."""


class Event(Enum):
    """What can happen to records before they are read."""

    START_BELOW_LOG_START = "start offset below the log start"
    LOG_END_WENT_BACK = "log end below what was read or planned"
    TOPIC_RECREATED = "topic deleted and made again"
    PARTITION_GONE = "partition or topic gone"
    NEW_PARTITION_CUT = "new partition that does not begin at 0"
    RANGE_VANISHED = "range vanishes between planning and task"


class EventTexts(NamedTuple):
    """What happens, by the value of `failOnDataLoss`; when it is false a warning tells of the loss."""

    true: str
    false: str


EVENTS: Final[Mapping[Event, EventTexts]] = {
    Event.START_BELOW_LOG_START: EventTexts(
        "error that names both offsets and how many are lost", "goes on at the log start"
    ),
    Event.LOG_END_WENT_BACK: EventTexts("error that names both offsets", "goes on at the log end"),
    Event.TOPIC_RECREATED: EventTexts(
        "error that says that the topic id changed", "the new topic is read from its earliest offset"
    ),
    Event.PARTITION_GONE: EventTexts("error", "the partition is dropped from the offsets"),
    Event.NEW_PARTITION_CUT: EventTexts("error", "is read from its earliest offset"),
    Event.RANGE_VANISHED: EventTexts(
        "the task fails, and says that no repetition helps", "what is left of the range is returned"
    ),
}

INSTRUCTION: Final = (
    "Some data may have been lost because they are not available any more: either retention removed them, or a topic"
    " was deleted, or a log lost its end, before all of it was read. If the query is to go on in such cases, set the"
    " source option failOnDataLoss to false."
)


@attrs.frozen
class Loss:
    """One loss.

    Attributes:
        event: What happened.
        partition: Where.
        lost: How many offsets are gone; None where nobody can know.
        detail: A sentence with the offsets.
    """

    event: Event
    partition: TopicPartition
    lost: int | None
    detail: str


@attrs.frozen
class Outcome:
    """What can be read, in the order of partitions and without empty ranges; and what cannot."""

    ranges: tuple[OffsetRange, ...]
    losses: tuple[Loss, ...] = ()


class TopicIds:
    """The ids of topics as one run of a query saw them. Owned by its one stream reader."""

    def __init__(self) -> None:
        self._known: dict[str, uuid.UUID] = {}

    def __repr__(self) -> str:
        return f"TopicIds({self._known})"

    def changed(self, now: Mapping[str, uuid.UUID]) -> frozenset[str]:
        """Return the topics that have another id than when they were last seen to be read; new ones are kept.

        A topic stays changed until `accept`: planning may be repeated. The zero id stands for a broker that has none.
        """
        for name, topic_id in now.items():
            if topic_id.int:
                self._known.setdefault(name, topic_id)
        return frozenset(name for name, topic_id in now.items() if topic_id.int and self._known[name] != topic_id)

    def accept(self, now: Mapping[str, uuid.UUID]) -> None:
        """Take the ids as they are: a batch that knows of the change was planned."""
        self._known.update((name, topic_id) for name, topic_id in now.items() if topic_id.int)


def settle(outcome: Outcome, *, fails: bool) -> list[str]:
    """Return the warnings to log.

    Raises:
        DataLossError: Something is lost, and `failOnDataLoss` is true.
    """
    if outcome.losses and fails:
        details = " ".join(loss.detail for loss in outcome.losses[:LOSSES_MAX])
        more = len(outcome.losses) - LOSSES_MAX
        raise DataLossError(f"{INSTRUCTION} Reason: {details}{f' And {more} more.' if more > 0 else ''}")
    return [
        f"data loss: {loss.detail} Since failOnDataLoss is false: {EVENTS[loss.event].false}" for loss in outcome.losses
    ]


def went_back(known: Offsets, latest: Offsets) -> list[TopicPartition]:
    """Return partitions whose log ends below a known offset: to be asked once more, before it counts as a loss.

    A broker that has just become leader may answer so for a moment.
    """
    return sorted(one for one, offset in known.items() if offset > latest.get(one, offset))


def batch_outcome(start: Offsets, end: Offsets, ends: LogEnds, *, explicit: Collection[TopicPartition] = ()) -> Outcome:
    """Return what a batch query reads of `[start, end)`.

    Args:
        start: Where each partition begins, resolved.
        end: Where each ends, resolved; of the same partitions.
        ends: Their logs' ends.
        explicit: Partitions whose start a user gave as a number.

    Raises:
        AssignmentError: Start and end have other partitions: some appeared or vanished meanwhile.
        OptionError: A start lies beyond the end, whatever `failOnDataLoss` says: that is no loss but a slip.
    """
    if start.keys() != end.keys():
        raise AssignmentError(
            f"start and end have other partitions: {sorted(map(str, start.keys() ^ end.keys()))}; topics were made or"
            " deleted meanwhile: run the query again"
        )
    for one in sorted(start):
        if one in explicit:
            check_start(one, start[one], ends)
        if start[one] > end[one]:
            raise OptionError(
                "startingOffsets",
                f"the start offset {start[one]} is greater than the end offset {end[one]} of {one} (the log has"
                f" [{ends.earliest[one]}, {ends.latest[one]})): give a start that is not beyond the end",
            )
    return _merged(_kept(one, start[one], end[one], ends) for one in sorted(start))


def check_start(partition: TopicPartition, start: int, ends: LogEnds) -> None:
    """Refuse a start beyond the log's end that a user gave.

    Raises:
        OptionError: It is one.
    """
    if start > ends.latest[partition]:
        raise OptionError(
            "startingOffsets",
            f"option 'startingOffsets': the start offset {start} of {partition} is beyond the end of its log,"
            f" [{ends.earliest[partition]}, {ends.latest[partition]}); -1 stands for the end",
        )


def stream_outcome(start: Offsets, end: Offsets, ends: LogEnds, *, recreated: Collection[str] = frozenset()) -> Outcome:
    """Return what a micro-batch reads of `[start, end)`.

    Args:
        start: Where it begins, as Spark says.
        end: Where it ends, as Spark says: another partition may have come or gone.
        ends: The ends of the logs now, of all partitions of `end` that are still there.
        recreated: Topics whose id is another than when this run last read them.
    """
    found = []
    for one in sorted(start.keys() | end.keys()):
        if one not in end or one not in ends.latest:
            found.append(_gone(one, start.get(one)))
        elif one not in start:
            found.append(_appeared(one, end[one], ends))
        elif one.topic in recreated:
            found.append(_recreated(one, start[one], end[one], ends))
        else:
            found.append(_kept(one, start[one], end[one], ends))
    return _merged(found)


def partitions_gone(known: Offsets, there: Collection[TopicPartition]) -> Outcome:
    """Return what is lost by partitions that were read and are not there."""
    return _merged(_gone(one, known[one]) for one in sorted(known.keys() - set(there)))


def is_doubtful(position: int, log_start: int, log_end: int) -> bool:
    """Say whether a broker's word that a position is out of range is to be doubted: its log seems to have it.

    So it is while leaders change. Nor does it say anything when nobody knows the ends of the log (below 0).
    """
    return log_end < 0 or log_start <= position <= log_end


def out_of_range(wanted: OffsetRange, position: int, log_start: int, log_end: int) -> tuple[int, Loss]:
    """Return where a task goes on whose position the broker does not have, and what is lost.

    Args:
        wanted: What the task is to read.
        position: Where it stands.
        log_start: Where the log begins now.
        log_end: Where it ends now.
    """
    if position < log_start:
        on = min(log_start, wanted.end)
        what = f"the log begins at {log_start} now, so that {on - position} offsets are lost"
    else:
        on = wanted.end
        what = f"the log ends at {log_end} now"
    detail = (
        f"Could not read records in offset [{position}, {wanted.end}) for topic partition {wanted.topic_partition}:"
        f" {what}. Running the task again does not help."
    )
    return on, Loss(Event.RANGE_VANISHED, wanted.topic_partition, on - position, detail)


def topic_gone(wanted: OffsetRange, position: int, *, is_recreated: bool) -> Loss:
    """Return the loss of a task whose topic was deleted, and perhaps made again, since the task was planned."""
    what = "the topic id changed: the topic was deleted and made again" if is_recreated else "the topic is gone"
    detail = (
        f"Could not read records in offset [{position}, {wanted.end}) for topic partition {wanted.topic_partition}:"
        f" {what}. Running the task again does not help."
    )
    return Loss(Event.RANGE_VANISHED, wanted.topic_partition, wanted.end - position, detail)


def _merged(found: Iterable[Outcome]) -> Outcome:
    parts = list(found)
    ranges = tuple(one for part in parts for one in part.ranges if one.size)
    return Outcome(ranges, tuple(loss for part in parts for loss in part.losses))


def _range(one: TopicPartition, start: int, end: int) -> tuple[OffsetRange, ...]:
    return (OffsetRange(one.topic, one.partition, start, end),) if start < end else ()


def _kept(one: TopicPartition, start: int, end: int, ends: LogEnds) -> Outcome:
    """Return what is there of a partition that is known."""
    earliest, latest = ends.earliest[one], ends.latest[one]
    losses = []
    if start > end or end > latest:
        detail = (
            f"Partition {one} offset was changed from {max(start, end)} to {min(end, latest)}: its log is [{earliest},"
            f" {latest}) now. The log lost its end, or the topic was deleted and made again, or the offset was never"
            " there."
        )
        losses.append(Loss(Event.LOG_END_WENT_BACK, one, None, detail))
    if start < min(earliest, end):
        lost = min(earliest, end) - start
        detail = f"The log of {one} begins at {earliest}, after the start offset {start}: {lost} offsets are lost."
        losses.append(Loss(Event.START_BELOW_LOG_START, one, lost, detail))
    return Outcome(_range(one, max(start, earliest), min(end, latest)), tuple(losses))


def _gone(one: TopicPartition, start: int | None) -> Outcome:
    where = f" (read up to {start})" if start is not None else ""
    return Outcome((), (Loss(Event.PARTITION_GONE, one, None, f"Partition {one} has been deleted{where}."),))


def _appeared(one: TopicPartition, end: int, ends: LogEnds) -> Outcome:
    earliest = ends.earliest[one]
    kept = _kept(one, min(earliest, end), end, ends)
    if not earliest:
        return kept
    detail = f"Added partition {one} starts from {earliest} instead of 0: {earliest} offsets are lost."
    return Outcome(kept.ranges, (Loss(Event.NEW_PARTITION_CUT, one, earliest, detail), *kept.losses))


def _recreated(one: TopicPartition, start: int, end: int, ends: LogEnds) -> Outcome:
    detail = (
        f"The topic id of {one.topic} changed: the topic was deleted and made again after {one} had been read up to"
        f" {start}. The new log is [{ends.earliest[one]}, {ends.latest[one]})."
    )
    new = _range(one, ends.earliest[one], min(end, ends.latest[one]))
    return Outcome(new, (Loss(Event.TOPIC_RECREATED, one, None, detail),))
