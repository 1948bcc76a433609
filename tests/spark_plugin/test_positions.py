"""Where a query begins and ends, once brokers have said where logs do."""

from __future__ import annotations

import pytest

from odradek.spark_plugin.errors import AssignmentError, OptionError
from odradek.spark_plugin.options.positions import (
    AtTimestamp,
    EachOffset,
    EachTimestamp,
    Everywhere,
    LogEnds,
    Position,
    resolve,
    timestamps_to_ask,
)
from odradek.spark_plugin.ranges import EARLIEST, LATEST, TopicPartition

P0, P1 = TopicPartition("t", 0), TopicPartition("t", 1)
ENDS = LogEnds({P0: 10, P1: 0}, {P0: 100, P1: 7})


@pytest.mark.parametrize(
    ("position", "found", "expected"),
    [
        (Everywhere(EARLIEST), {}, {P0: 10, P1: 0}),
        (Everywhere(LATEST), {}, {P0: 100, P1: 7}),
        (EachOffset({P0: 3, P1: 9}), {}, {P0: 3, P1: 9}),
        (EachOffset({P0: EARLIEST, P1: LATEST}), {}, {P0: 10, P1: 7}),
        (AtTimestamp(5), {P0: 50, P1: 4}, {P0: 50, P1: 4}),
        (AtTimestamp(5), {P0: 50, P1: -1}, {P0: 50, P1: 7}),
        (EachTimestamp({P0: 5, P1: 6}), {P0: -1, P1: 0}, {P0: 100, P1: 0}),
    ],
)
def test_a_position_resolves(
    position: Position, found: dict[TopicPartition, int], expected: dict[TopicPartition, int]
) -> None:
    assert resolve(position, ENDS, found, "startingOffsets") == expected


@pytest.mark.parametrize(
    ("position", "expected"),
    [
        (Everywhere(LATEST), {}),
        (EachOffset({P0: 1, P1: 2}), {}),
        (AtTimestamp(5), {P0: 5, P1: 5}),
        (EachTimestamp({P0: 5, P1: 6}), {P0: 5, P1: 6}),
    ],
)
def test_brokers_are_asked_for_timestamps_alone(position: Position, expected: dict[TopicPartition, int]) -> None:
    assert timestamps_to_ask(position, [P0, P1], "startingOffsets") == expected


@pytest.mark.parametrize(
    ("partitions", "wrong"),
    [
        ([P0], "missing: t-1"),
        ([P0, P1, TopicPartition("t", 2)], "not assigned: t-2"),
        ([TopicPartition("u", 0)], "missing: t-0, t-1; not assigned: u-0"),
    ],
)
def test_offsets_and_timestamps_name_the_partitions_of_the_query_and_no_others(
    partitions: list[TopicPartition], wrong: str
) -> None:
    for position in (EachOffset(dict.fromkeys(partitions, 1)), EachTimestamp(dict.fromkeys(partitions, 1))):
        with pytest.raises(AssignmentError) as refused:
            resolve(position, ENDS, {}, "startingOffsets")

        message = str(refused.value)

        assert f"Partitions specified don't match what are assigned ({wrong})" in message
        assert "-1 stands for latest and -2 for earliest" in message
        assert "Assigned: t-0, t-1" in message


def test_a_time_that_nothing_matches_is_an_error_when_it_has_to_match() -> None:
    with pytest.raises(OptionError) as refused:
        resolve(AtTimestamp(9), ENDS, {P0: 3, P1: -1}, "startingTimestamp", fails_without_match=True)

    assert "No offset matched from request of topic-partition t-1 and timestamp 9" in str(refused.value)
    assert "startingOffsetsByTimestampStrategy=latest" in str(refused.value)


def test_a_log_that_lost_its_beginning_meanwhile_begins_at_its_end() -> None:
    ends = LogEnds({P0: 120}, {P0: 100})

    assert resolve(Everywhere(EARLIEST), ends, {}, "startingOffsets") == {P0: 100}
    assert resolve(EachOffset({P0: EARLIEST}), ends, {}, "startingOffsets") == {P0: 100}


def test_many_partitions_are_not_all_named() -> None:
    many = {TopicPartition("t", number): 5 for number in range(50)}

    with pytest.raises(AssignmentError, match="t-19 and 30 more"):
        resolve(EachOffset({P0: 1}), LogEnds(many, many), {}, "startingOffsets")
