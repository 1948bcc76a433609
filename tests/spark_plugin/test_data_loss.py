"""The table of `failOnDataLoss`: every event, with true and with false."""

from __future__ import annotations

import uuid
from typing import TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.spark_plugin.errors import AssignmentError, DataLossError, OptionError
from odradek.spark_plugin.options.positions import LogEnds
from odradek.spark_plugin.ranges import OffsetRange, TopicPartition
from odradek.spark_plugin.reading.data_loss import (
    EVENTS,
    Event,
    Outcome,
    TopicIds,
    batch_outcome,
    check_start,
    is_doubtful,
    out_of_range,
    partitions_gone,
    settle,
    stream_outcome,
    topic_gone,
    went_back,
)

P0, P1, U0 = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("u", 0)
OLD, NEW, NONE = uuid.UUID(int=1), uuid.UUID(int=2), uuid.UUID(int=0)

StreamRow: TypeAlias = tuple[
    str,
    dict[TopicPartition, int],
    dict[TopicPartition, int],
    dict[TopicPartition, tuple[int, int]],
    str,
    list[Event],
    list[tuple[int, int]],
    str,
]
# Read up to, the batch's end, the logs now, the topic made again; then the events, what is read, and what is told.
STREAM_ROWS: list[StreamRow] = [
    ("nothing is lost", {P0: 5}, {P0: 9}, {P0: (0, 20)}, "", [], [(5, 9)], ""),
    ("nothing is new", {P0: 5}, {P0: 5}, {P0: (0, 5)}, "", [], [], ""),
    ("everything was read and then removed", {P0: 5}, {P0: 5}, {P0: (5, 5)}, "", [], [], ""),
    ("a log that begins where the batch does", {P0: 5}, {P0: 9}, {P0: (5, 9)}, "", [], [(5, 9)], ""),
    (
        "retention",
        {P0: 200},
        {P0: 1000},
        {P0: (500, 1000)},
        "",
        [Event.START_BELOW_LOG_START],
        [(500, 1000)],
        "The log of t-0 begins at 500, after the start offset 200: 300 offsets are lost.",
    ),
    (
        "retention of the whole batch",
        {P0: 200},
        {P0: 300},
        {P0: (500, 1000)},
        "",
        [Event.START_BELOW_LOG_START],
        [],
        "100 offsets are lost",
    ),
    (
        "the log lost its end, or the topic was made again while nobody looked",
        {P0: 1000},
        {P0: 300},
        {P0: (0, 300)},
        "",
        [Event.LOG_END_WENT_BACK],
        [],
        "Partition t-0 offset was changed from 1000 to 300",
    ),
    (
        "the log lost its end after the batch was planned",
        {P0: 100},
        {P0: 1000},
        {P0: (0, 300)},
        "",
        [Event.LOG_END_WENT_BACK],
        [(100, 300)],
        "Partition t-0 offset was changed from 1000 to 300",
    ),
    (
        "a topic that was made again and is shorter",
        {P0: 1000},
        {P0: 300},
        {P0: (0, 300)},
        "t",
        [Event.TOPIC_RECREATED],
        [(0, 300)],
        "The topic id of t changed: the topic was deleted and made again after t-0 had been read up to 1000",
    ),
    (
        "a topic that was made again and is longer",
        {P0: 100},
        {P0: 300},
        {P0: (7, 5000)},
        "t",
        [Event.TOPIC_RECREATED],
        [(7, 300)],
        "The topic id of t changed",
    ),
    (
        "a partition that is gone",
        {P0: 5, P1: 7},
        {P1: 9},
        {P1: (0, 9)},
        "",
        [Event.PARTITION_GONE],
        [(7, 9)],
        "t-0 has be",
    ),
    (
        "a partition that went after the batch was planned",
        {P0: 5, P1: 7},
        {P0: 6, P1: 9},
        {P1: (0, 9)},
        "",
        [Event.PARTITION_GONE],
        [(7, 9)],
        "Partition t-0 has been deleted (read up to 5).",
    ),
    ("a new partition", {P0: 5}, {P0: 5, P1: 3}, {P0: (0, 5), P1: (0, 8)}, "", [], [(0, 3)], ""),
    (
        "a new partition that has lost its beginning",
        {P0: 5},
        {P0: 5, P1: 8},
        {P0: (0, 5), P1: (2, 8)},
        "",
        [Event.NEW_PARTITION_CUT],
        [(2, 8)],
        "Added partition t-1 starts from 2 instead of 0: 2 offsets are lost.",
    ),
    (
        "a new partition that is gone",
        {},
        {P0: 5},
        {},
        "",
        [Event.PARTITION_GONE],
        [],
        "Partition t-0 has been deleted.",
    ),
]


@pytest.mark.parametrize("row", STREAM_ROWS, ids=[row[0] for row in STREAM_ROWS])
def test_a_stream_loses(row: StreamRow) -> None:
    _, start, end, logs, recreated, events, ranges, text = row
    ends = LogEnds({one: log[0] for one, log in logs.items()}, {one: log[1] for one, log in logs.items()})
    outcome = stream_outcome(start, end, ends, recreated=set(filter(None, [recreated])))

    assert [loss.event for loss in outcome.losses] == events
    assert [(one.start, one.end) for one in outcome.ranges] == ranges
    if not events:
        assert settle(outcome, fails=True) == []
        return
    (warning,) = settle(outcome, fails=False)
    assert warning.startswith("data loss: ")
    assert text in warning
    assert EVENTS[events[0]].false in warning
    with pytest.raises(DataLossError) as lost:
        settle(outcome, fails=True)
    assert text in str(lost.value)
    assert "Some data may have been lost because they are not available any more" in str(lost.value)
    assert "failOnDataLoss to false" in str(lost.value)


def ends_of(low: int, high: int) -> LogEnds:
    return LogEnds({P0: low}, {P0: high})


@pytest.mark.parametrize(
    ("start", "end", "ends", "events", "ranges"),
    [
        (0, 1000, ends_of(0, 1000), [], [(0, 1000)]),
        (5, 5, ends_of(0, 1000), [], []),
        (100, 1000, ends_of(500, 1000), [Event.START_BELOW_LOG_START], [(500, 1000)]),
        (100, 300, ends_of(500, 1000), [Event.START_BELOW_LOG_START], []),
        (100, 5000, ends_of(0, 1000), [Event.LOG_END_WENT_BACK], [(100, 1000)]),
        (100, 5000, ends_of(500, 1000), [Event.LOG_END_WENT_BACK, Event.START_BELOW_LOG_START], [(500, 1000)]),
        (1000, 1000, ends_of(500, 1000), [], []),
    ],
)
def test_a_batch_loses(start: int, end: int, ends: LogEnds, events: list[Event], ranges: list[tuple[int, int]]) -> None:
    outcome = batch_outcome({P0: start}, {P0: end}, ends, explicit=[P0])

    assert [loss.event for loss in outcome.losses] == events
    assert [(one.start, one.end) for one in outcome.ranges] == ranges


@pytest.mark.parametrize(
    ("start", "end", "message"),
    [
        (99_999, 1000, "the start offset 99999 of t-0 is beyond the end of its log, [0, 1000)"),
        (99_999, 100_000, "the start offset 99999 of t-0 is beyond the end of its log, [0, 1000)"),
        (700, 600, "the start offset 700 is greater than the end offset 600 of t-0"),
    ],
)
def test_a_start_beyond_the_end_is_a_slip_whatever_fail_on_data_loss_says(start: int, end: int, message: str) -> None:
    with pytest.raises(OptionError) as refused:
        batch_outcome({P0: start}, {P0: end}, ends_of(0, 1000), explicit=[P0])

    assert message in str(refused.value)


def test_a_start_that_a_stream_is_given_may_be_the_end_but_not_beyond() -> None:
    check_start(P0, 1000, ends_of(0, 1000))

    with pytest.raises(OptionError, match="-1 stands for the end"):
        check_start(P0, 1001, ends_of(0, 1000))


def test_a_batch_from_the_earliest_offset_has_no_start_to_check() -> None:
    assert batch_outcome({P0: 5}, {P0: 9}, ends_of(5, 9)) == Outcome((OffsetRange("t", 0, 5, 9),))


def test_a_batch_whose_partitions_changed_under_its_planning_is_to_be_run_again() -> None:
    with pytest.raises(AssignmentError, match=r"\['t-1'\]; topics were made or deleted meanwhile"):
        batch_outcome({P0: 0}, {P0: 0, P1: 0}, ends_of(0, 0))


@pytest.mark.parametrize(
    ("position", "log", "goes_on", "lost", "text"),
    [
        (100, (500, 1000), 500, 400, "the log begins at 500 now, so that 400 offsets are lost"),
        (100, (5000, 9000), 1000, 900, "the log begins at 5000 now"),
        (300, (0, 200), 1000, 700, "the log ends at 200 now"),
    ],
)
def test_a_task_whose_range_vanished_goes_on_with_what_is_left(
    position: int, log: tuple[int, int], goes_on: int, lost: int, text: str
) -> None:
    wanted = OffsetRange("t", 0, 50, 1000)
    on, loss = out_of_range(wanted, position, *log)

    assert (on, loss.event, loss.partition, loss.lost) == (goes_on, Event.RANGE_VANISHED, P0, lost)
    assert text in loss.detail
    assert f"Could not read records in offset [{position}, 1000) for topic partition t-0" in loss.detail
    assert "Running the task again does not help" in loss.detail


@pytest.mark.parametrize(
    ("position", "log", "is_in_doubt"),
    [(5, (5, 9), True), (9, (5, 9), True), (4, (5, 9), False), (10, (5, 9), False), (5, (-1, -1), True)],
)
def test_a_position_that_the_log_has_is_asked_for_again(position: int, log: tuple[int, int], is_in_doubt: bool) -> None:
    assert is_doubtful(position, *log) is is_in_doubt


def test_partitions_that_were_read_and_are_not_there_are_a_loss() -> None:
    outcome = partitions_gone({P0: 5, P1: 7, U0: 0}, [P0])

    assert outcome.ranges == ()
    assert [(loss.event, loss.partition) for loss in outcome.losses] == [
        (Event.PARTITION_GONE, P1),
        (Event.PARTITION_GONE, U0),
    ]
    assert partitions_gone({P0: 5}, [P0, P1]) == Outcome(())


@pytest.mark.parametrize(("is_recreated", "text"), [(False, "the topic is gone"), (True, "the topic id changed")])
def test_a_task_whose_topic_is_gone_says_so(is_recreated: bool, text: str) -> None:
    loss = topic_gone(OffsetRange("t", 0, 50, 1000), 60, is_recreated=is_recreated)

    assert (loss.event, loss.lost) == (Event.RANGE_VANISHED, 940)
    assert text in loss.detail


def test_an_end_below_what_is_known_is_asked_for_again() -> None:
    assert went_back({P0: 5, P1: 9, U0: 1}, {P0: 5, P1: 8}) == [P1]


def test_a_topic_that_was_made_again_is_known_until_a_batch_takes_note() -> None:
    ids = TopicIds()

    assert ids.changed({"t": OLD, "u": NONE}) == frozenset()
    assert ids.changed({"t": NEW, "u": NEW, "v": OLD}) == {"t"}
    assert ids.changed({"t": NEW}) == {"t"}
    assert "t" in repr(ids)
    ids.accept({"t": NEW, "w": NONE})
    assert ids.changed({"t": NEW, "u": NEW, "w": OLD}) == frozenset()
    assert ids.changed({"t": NONE}) == frozenset()


def test_many_losses_are_not_all_told() -> None:
    many = {TopicPartition("t", number): 5 for number in range(30)}
    nothing = LogEnds({}, {})

    with pytest.raises(DataLossError, match="And 10 more"):
        settle(stream_outcome(many, {}, nothing), fails=True)


def test_every_event_is_in_the_table() -> None:
    assert set(EVENTS) == set(Event)


@given(
    *(st.dictionaries(st.sampled_from([P0, P1, U0]), st.integers(0, 30), max_size=3) for _ in range(4)),
    st.sets(st.sampled_from(["t", "u"])),
)
def test_only_what_is_there_is_ever_read_and_only_lost_records_are_a_loss(
    start: dict[TopicPartition, int],
    end: dict[TopicPartition, int],
    lows: dict[TopicPartition, int],
    sizes: dict[TopicPartition, int],
    recreated: set[str],
) -> None:
    ends = LogEnds(lows, {one: low + sizes.get(one, 0) for one, low in lows.items()})
    outcome = stream_outcome(start, end, ends, recreated=recreated)

    for one in outcome.ranges:
        assert ends.earliest[one.topic_partition] <= one.start < one.end <= ends.latest[one.topic_partition]
        assert one.end <= end[one.topic_partition]
    if not outcome.losses:
        wanted = {one for one in end if end[one] > start.get(one, 0)}
        assert {one.topic_partition for one in outcome.ranges} == wanted
        for one in outcome.ranges:
            assert (one.start, one.end) == (start.get(one.topic_partition, 0), end[one.topic_partition])
    assert outcome == Outcome(outcome.ranges, outcome.losses)
