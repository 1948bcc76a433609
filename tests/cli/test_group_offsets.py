"""What `odradek groups` reckons: lag for both isolation levels, targets, and what people write."""

from __future__ import annotations

import pytest

from odradek.cli.group_offsets import Reset, parse_partitions, parse_plan, progress, total_lag, within
from odradek.client.admin_group_values import GroupDescription, GroupMemberDescription, classic_description
from odradek.kernel.errors import ConfigError
from odradek.kernel.types import TopicPartition
from odradek.kernel.wire.messages.api_15_describe_groups import DescribedGroup, DescribedGroupMember

A, B, C = (TopicPartition("orders", number) for number in range(3))


def group(*members: GroupMemberDescription) -> GroupDescription:
    return GroupDescription("app", "Classic", "Stable", "consumer", "range", -1, -1, members, 1)


def test_lag_is_the_end_for_the_reader_minus_what_is_committed() -> None:
    high_watermarks, last_stable = {A: 100, B: 50}, {A: 40, B: 50}
    committed: dict[TopicPartition, int | None] = {A: 30, B: 50}

    assert [row.lag for row in progress(group(), committed, high_watermarks)] == [70, 0]
    assert [row.lag for row in progress(group(), committed, last_stable)] == [10, 0]
    assert total_lag(progress(group(), committed, high_watermarks)) == 70


def test_lag_is_never_negative_and_unknown_where_nothing_is_known() -> None:
    committed: dict[TopicPartition, int | None] = {A: 41, B: None, C: 5}
    rows = progress(group(), committed, {A: 40, B: 10})  # the reader committed inside of an open transaction

    assert [row.lag for row in rows] == [0, None, None]
    assert total_lag(rows) == 0


def test_what_is_read_and_what_is_committed_stand_together() -> None:
    member = GroupMemberDescription("m", None, "c", "/h", {"orders": [1]})
    rows = progress(group(member), {A: 1}, {A: 1, B: 9})

    assert [(row.partition, row.committed, row.member) for row in rows] == [(A, 1, None), (B, None, member)]


@pytest.mark.parametrize(
    ("wanted", "after", "note"), [(4, 5, "it begins at 5"), (5, 5, ""), (9, 9, ""), (10, 9, "it ends at 9")]
)
def test_an_offset_that_is_not_there_becomes_the_nearest(wanted: int, after: int, note: str) -> None:
    assert within(A, 7, wanted, start=5, end=9) == Reset(A, 7, after, note)


def test_partitions_are_read() -> None:
    assert parse_partitions("orders") == ("orders", ())
    assert parse_partitions("orders:0,12") == ("orders", (0, 12))
    for text in ("", ":1", "orders:", "orders:1,", "orders:-1"):
        with pytest.raises(ConfigError, match="names no partitions"):
            parse_partitions(text)


def test_a_plan_is_read_as_kafkas_tools_write_it() -> None:
    assert parse_plan(['"orders","0","5"', "", " orders , 1 , 7 "], "plan.csv") == {A: 5, B: 7}


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        ([], "plan.csv: there is nothing in it"),
        (["orders,0"], "plan.csv, line 1: expected topic,partition,offset"),
        (["orders,0,-1"], "line 1: expected"),
        (["orders,0,1", "orders,0,2"], "line 2: orders-0 is given twice"),
    ],
)
def test_a_plan_that_makes_no_sense_is_refused(lines: list[str], told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        parse_plan(lines, "plan.csv")


def test_a_member_that_tells_nothing_readable_is_shown_all_the_same() -> None:
    silent = DescribedGroupMember(
        member_id="m", client_id="c", client_host="/h", member_metadata=b"\0", member_assignment=b""
    )
    for protocol_type in ("consumer", "connect"):
        described = DescribedGroup(
            group_id="app", group_state="PreparingRebalance", protocol_type=protocol_type, members=[silent]
        )
        (member,) = classic_description(described, 1).members

        assert (member.member_id, dict(member.partitions), list(member.topics), member.rack) == ("m", {}, [], None)
