"""`odradek groups` against a broker: groups of both protocols, lag, every target of a reset, and what is refused."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import trio

from odradek.client import Admin, NewTopic, OffsetAndMetadata, Producer, TopicPartition
from odradek.client.admin_groups import GroupCalls
from odradek.kernel.wire.messages.api_11_join_group import JoinGroupRequest, JoinGroupRequestProtocol
from odradek.kernel.wire.messages.api_14_sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from odradek.kernel.wire.messages.api_68_consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from odradek.kernel.wire.messages.consumer_protocol import (
    encode_assignment,
    encode_subscription,
    new_assignment,
    new_subscription,
)
from odradek.testing.running_broker import running_broker

from .conftest import Odradek

ORDERS = [TopicPartition("orders", number) for number in range(3)]
PAYMENTS = TopicPartition("payments", 0)
SENT = {ORDERS[0]: 10, ORDERS[1]: 20, ORDERS[2]: 0, PAYMENTS: 5}
"""How many records each partition has; their timestamps are 1,000 + offset."""


async def fill(bootstrap: str) -> None:
    settings = {"bootstrap.servers": bootstrap}
    async with Admin(settings) as admin:
        await admin.create_topic(NewTopic("orders", 3))
        await admin.create_topic(NewTopic("payments", 1))
    async with Producer(settings) as producer:
        for partition, count in SENT.items():
            for offset in range(count):
                await producer.enqueue(
                    partition.topic, "value", partition=partition.partition, timestamp=1_000 + offset
                )


@pytest.fixture(scope="module")
def bootstrap() -> Iterator[str]:
    with running_broker({"group.initial.rebalance.delay.ms": 0, "log.retention.ms": -1}) as broker:
        trio.run(fill, broker.bootstrap)
        yield broker.bootstrap


@pytest.fixture
def groups(capsys: pytest.CaptureFixture[str], bootstrap: str) -> Odradek:
    return Odradek(capsys, bootstrap)


@pytest.fixture
def group() -> str:
    return f"app-{uuid.uuid1().hex[:8]}"


def commit(bootstrap: str, group: str, offsets: dict[TopicPartition, int]) -> None:
    async def run() -> None:
        async with Admin({"bootstrap.servers": bootstrap}) as admin:
            await admin.alter_group_offsets(
                group, {each: OffsetAndMetadata(offset) for each, offset in offsets.items()}
            )

    trio.run(run)


def committed(bootstrap: str, group: str) -> dict[TopicPartition, int | None]:
    async def run() -> dict[TopicPartition, int | None]:
        async with Admin({"bootstrap.servers": bootstrap}) as admin:
            found = await admin.list_group_offsets(group)
            return {partition: each.offset if each else None for partition, each in found.items()}

    return trio.run(run)


def join_classic(bootstrap: str, group: str, owned: dict[str, list[int]]) -> str:
    """Let a member of the classic protocol join and lead, and assign itself something; it stays for its session."""

    async def run() -> str:
        async with Admin({"bootstrap.servers": bootstrap, "client.id": "old"}) as admin:
            subscription = encode_subscription(new_subscription(owned, owned={}, rack_id="r1"))
            request = JoinGroupRequest(
                group_id=group,
                session_timeout_ms=60_000,
                rebalance_timeout_ms=60_000,
                group_instance_id="i-1",
                protocol_type="consumer",
                protocols=[JoinGroupRequestProtocol(name="range", metadata=subscription)],
            )
            joined = await ask(admin, group, request)
            assignment = encode_assignment(new_assignment(owned))
            await ask(
                admin,
                group,
                SyncGroupRequest(
                    group_id=group,
                    generation_id=joined.generation_id,
                    member_id=joined.member_id,
                    group_instance_id="i-1",
                    protocol_type="consumer",
                    protocol_name="range",
                    assignments=[SyncGroupRequestAssignment(member_id=joined.member_id, assignment=assignment)],
                ),
            )
            return str(joined.member_id)

    return trio.run(run)


def join_consumer(bootstrap: str, group: str, topic: str) -> str:
    """Let a member of the consumer protocol join; it stays for its session."""
    member_id = f"member-of-{group}"

    async def run() -> None:
        async with Admin({"bootstrap.servers": bootstrap, "client.id": "new"}) as admin:
            for epoch in (0, 1):
                request = ConsumerGroupHeartbeatRequest(
                    group_id=group,
                    member_id=member_id,
                    member_epoch=epoch,
                    rebalance_timeout_ms=60_000,
                    subscribed_topic_names=[topic],
                    topic_partitions=[],
                )
                answer = await ask(admin, group, request)
                if answer.assignment is not None and answer.assignment.topic_partitions:
                    break

    trio.run(run)
    return member_id


async def ask(admin: GroupCalls, group: str, request: Any) -> Any:
    def check(answer: Any) -> None:
        assert answer.error_code == 0, answer

    return await admin.call(request, check, coordinator=admin.group_coordinator(group))


# -- list and describe -----------------------------------------------------------------------------------------------


def test_groups_are_listed_with_their_types_and_states(groups: Odradek, bootstrap: str, group: str) -> None:
    commit(bootstrap, f"{group}-gone", {PAYMENTS: 1})
    join_classic(bootstrap, f"{group}-old", {"orders": [0]})
    join_consumer(bootstrap, f"{group}-new", "orders")
    listed = groups.ok("groups", "list", f"{group}*", "--json").json

    assert [(row["group"], row["type"], row["state"], row["protocol_type"]) for row in listed] == [
        (f"{group}-gone", "Classic", "Empty", ""),
        (f"{group}-new", "Consumer", "Stable", "consumer"),
        (f"{group}-old", "Classic", "Stable", "consumer"),
    ]
    assert [row["group"] for row in groups.ok("groups", "list", f"{group}*", "--state", "empty", "--json").json] == [
        f"{group}-gone"
    ]
    by_type = groups.ok("groups", "list", f"{group}*", "--type", "consumer").out.splitlines()
    assert [line.split()[:3] for line in by_type[1:]] == [[f"{group}-new", "Consumer", "Stable"]]


def test_a_classic_group_is_described_with_members_assignments_and_lag(
    groups: Odradek, bootstrap: str, group: str
) -> None:
    commit(bootstrap, group, {ORDERS[0]: 4, ORDERS[2]: 0, PAYMENTS: 5})
    member_id = join_classic(bootstrap, group, {"orders": [0, 1]})
    (described,) = groups.ok("groups", "describe", group, "--json").json

    assert (described["type"], described["state"], described["assignor"]) == ("Classic", "Stable", "range")
    assert described["lag"] == 6
    (member,) = described["members"]
    assert member == {
        "member_id": member_id,
        "instance_id": "i-1",
        "client_id": "old",
        "host": "/127.0.0.1",
        "rack": "r1",
        "epoch": -1,
        "topics": ["orders"],
        "topics_regex": None,
        "assignment": {"orders": [0, 1]},
        "target": None,
        "lag": 6,
    }
    rows = [tuple(row.values()) for row in described["partitions"]]
    assert rows == [
        ("orders", 0, 4, 10, 6, member_id),
        ("orders", 1, None, 20, None, member_id),
        ("orders", 2, 0, 0, 0, None),
        ("payments", 0, 5, 5, 0, None),
    ]


def test_a_group_of_the_consumer_protocol_is_described_likewise(groups: Odradek, bootstrap: str, group: str) -> None:
    commit(bootstrap, group, {PAYMENTS: 2})
    member_id = join_consumer(bootstrap, group, "payments")
    (described,) = groups.ok("groups", "describe", group, "--json").json

    assert (described["type"], described["state"], described["assignor"]) == ("Consumer", "Stable", "uniform")
    assert described["members"][0]["assignment"] == {"payments": [0]}
    assert described["partitions"] == [
        {"topic": "payments", "partition": 0, "committed": 2, "end": 5, "lag": 3, "member_id": member_id}
    ]


def test_the_description_for_people_has_the_group_its_members_and_its_partitions(
    groups: Odradek, bootstrap: str, group: str
) -> None:
    commit(bootstrap, group, {ORDERS[0]: 4})
    member_id = join_classic(bootstrap, group, {"orders": [0, 1, 2], "payments": [0]})
    lines = groups.ok("groups", "describe", group).out.splitlines()
    pad = len(member_id) - len("member")

    assert lines == [
        f"{group}  Stable  classic protocol, range, coordinator 1",
        "1 member, 4 partitions, 6 records behind (lag of 3 partitions unknown)",
        "",
        f"member{' ' * pad}  instance  client  host        reads                   lag",
        f"{member_id}  i-1       old     /127.0.0.1  orders 0-2; payments 0    6",
        "",
        "topic     partition  committed  end  lag  read by",
        f"orders            0          4   10    6  {member_id}",
        f"orders            1          -   20    -  {member_id}",
        f"orders            2          -    0    -  {member_id}",
        f"payments          0          -    5    -  {member_id}",
    ]


def test_all_groups_are_described_when_none_is_named(groups: Odradek, bootstrap: str, group: str) -> None:
    commit(bootstrap, group, {PAYMENTS: 1})

    assert group in [each["group"] for each in groups.ok("groups", "describe", "--json").json]
    assert f"\n{group}  Empty  classic protocol, coordinator 1\n" in "\n" + groups.ok("groups", "describe").out


def test_a_topic_that_is_gone_has_no_end_and_no_lag(groups: Odradek, bootstrap: str, group: str) -> None:
    groups.ok("topics", "create", "short-lived")
    member_id = join_classic(bootstrap, group, {"short-lived": [0], "orders": [7]})
    groups.ok("topics", "delete", "short-lived")
    (described,) = groups.ok("groups", "describe", group, "--json").json

    assert [tuple(row.values()) for row in described["partitions"]] == [
        ("orders", 7, None, None, None, member_id),
        ("short-lived", 0, None, None, None, member_id),
    ]


def test_a_group_that_is_not_there_is_told(groups: Odradek, group: str) -> None:
    done = groups("groups", "describe", group)

    assert (done.status, done.err) == (1, f"odradek: GROUP_ID_NOT_FOUND: there is no group '{group}'\n")


def test_groups_that_are_there_are_described_beside_others(groups: Odradek, bootstrap: str, group: str) -> None:
    commit(bootstrap, group, {PAYMENTS: 1})
    done = groups("groups", "describe", "lost-1", group, "lost-2")
    as_json = groups("groups", "describe", "lost-1", group, "--json")

    assert done.out.startswith(f"{group}  Empty")
    assert done.err.splitlines() == [
        f"odradek: GROUP_ID_NOT_FOUND: there is no group '{name}'" for name in ("lost-1", "lost-2")
    ]
    assert (done.status, as_json.status) == (1, 1)
    assert [each["group"] for each in as_json.json] == [group]


def test_where_no_lag_is_known_none_is_told(groups: Odradek, bootstrap: str, group: str) -> None:
    join_classic(bootstrap, group, {"orders": [0, 1]})

    assert groups.ok("groups", "describe", group).out.splitlines()[1] == "1 member, 2 partitions, lag unknown"


# -- reset-offsets ---------------------------------------------------------------------------------------------------

TARGETS: list[tuple[list[str], list[int]]] = [
    (["--to-earliest"], [0, 0, 0]),
    (["--to-latest"], [10, 20, 0]),
    (["--to-current"], [4, 15, 0]),
    (["--to-offset", "12"], [10, 12, 0]),
    (["--to-offset", "0"], [0, 0, 0]),
    (["--to-datetime", "1007"], [7, 7, 0]),
    (["--to-datetime", "1970-01-01T00:00:01.015Z"], [10, 15, 0]),
    (["--by-duration", "1h30m"], [10, 20, 0]),
    (["--by-duration", "P99999D"], [0, 0, 0]),
]


@pytest.mark.parametrize(("target", "expected"), TARGETS, ids=lambda value: " ".join(map(str, value)))
def test_a_reset_leads_where_it_says(
    groups: Odradek, bootstrap: str, group: str, target: list[str], expected: list[int]
) -> None:
    commit(bootstrap, group, {ORDERS[0]: 4, ORDERS[1]: 15})
    arguments = ("groups", "reset-offsets", group, "-t", "orders", *target, "--json")
    planned = groups.ok(*arguments).json

    assert [row["after"] for row in planned["offsets"]] == expected
    assert [row["before"] for row in planned["offsets"]] == [4, 15, None]
    assert committed(bootstrap, group) == {ORDERS[0]: 4, ORDERS[1]: 15}  # a dry run

    done = groups.ok(*arguments, "--execute").json

    assert (planned["is_done"], done["is_done"]) == (False, True)
    assert committed(bootstrap, group) == dict(zip(ORDERS, expected, strict=True))


@pytest.mark.parametrize(
    ("shift", "expected", "note"),
    [("-3", 1, ""), ("0", 4, ""), ("-5", 0, "it begins at 0"), ("99", 10, "it ends at 10")],
)
def test_a_shift_ends_where_the_partition_does(
    groups: Odradek, bootstrap: str, group: str, shift: str, expected: int, note: str
) -> None:
    commit(bootstrap, group, {ORDERS[0]: 4, PAYMENTS: 1})
    arguments = ("groups", "reset-offsets", group, "-t", "orders:0", "--shift-by", shift, "--execute", "--json")
    (row,) = groups.ok(*arguments).json["offsets"]

    assert row == {"topic": "orders", "partition": 0, "before": 4, "after": expected, "note": note}
    assert committed(bootstrap, group) == {ORDERS[0]: expected, PAYMENTS: 1}


def test_what_nobody_committed_cannot_be_shifted(groups: Odradek, group: str) -> None:
    done = groups("groups", "reset-offsets", group, "-t", "orders:1", "--shift-by", "1")

    assert done.status == 2
    assert done.err == f"odradek: group '{group}' has committed nothing in orders-1 that could be shifted\n"


def test_a_plan_is_exported_and_taken_back(groups: Odradek, bootstrap: str, group: str, tmp_path: Path) -> None:
    commit(bootstrap, group, {ORDERS[1]: 7, PAYMENTS: 3})
    plan = groups.ok("groups", "reset-offsets", group, "--all-topics", "--to-current", "--export").out
    (tmp_path / "plan.csv").write_text(plan)
    groups.ok("groups", "reset-offsets", group, "--all-topics", "--to-latest", "--execute")
    between = committed(bootstrap, group)
    groups.ok("groups", "reset-offsets", group, "--from-file", str(tmp_path / "plan.csv"), "--execute")

    assert plan == "orders,1,7\npayments,0,3\n"
    assert between == {ORDERS[1]: 20, PAYMENTS: 5}
    assert committed(bootstrap, group) == {ORDERS[1]: 7, PAYMENTS: 3}


def test_a_reset_makes_a_group_that_was_not_there(groups: Odradek, bootstrap: str, group: str) -> None:
    groups.ok("groups", "reset-offsets", group, "-t", "payments", "--to-latest", "--execute")

    assert committed(bootstrap, group) == {PAYMENTS: 5}


def test_people_see_what_a_dry_run_would_change_and_what_was_done(groups: Odradek, bootstrap: str, group: str) -> None:
    commit(bootstrap, group, {ORDERS[0]: 4, ORDERS[1]: 20})
    arguments = ("groups", "reset-offsets", group, "-t", "orders:0,1", "--to-offset", "20")
    dry = groups.ok(*arguments).out.splitlines()
    done = groups.ok(*arguments, "--execute").out.splitlines()

    assert dry == [
        "topic   partition  before  after  note",
        "orders          0       4     10  it ends at 10",
        "orders          1      20     20  -",
        "",
        f"a dry run: --execute would change 1 offset of group {group}",
    ]
    assert done[-1] == f"changed 1 offset of group {group}"
    assert groups.ok("groups", "reset-offsets", f"{group}-not", "--all-topics", "--to-latest").out == (
        f"group {group}-not has committed nothing\n"
    )


@pytest.mark.parametrize("protocol", [join_classic, join_consumer])
def test_offsets_of_a_group_with_members_are_left_alone(
    groups: Odradek, bootstrap: str, group: str, protocol: Any
) -> None:
    commit(bootstrap, group, {PAYMENTS: 1})
    protocol(bootstrap, group, "payments" if protocol is join_consumer else {"payments": [0]})
    dry = groups("groups", "reset-offsets", group, "-t", "payments", "--to-latest")
    done = groups("groups", "reset-offsets", group, "-t", "payments", "--to-latest", "--execute")

    assert (dry.status, done.status) == (0, 1)
    assert done.err == f"odradek: NON_EMPTY_GROUP: group '{group}' is Stable with 1 member: stop them first\n"
    assert committed(bootstrap, group) == {PAYMENTS: 1}


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--to-latest"], "it is not said which partitions"),
        (["--to-latest", "--all-topics", "-t", "orders"], "exclude each other"),
        (["--to-latest", "-t", "orders:x"], "'orders:x' names no partitions"),
        (["--by-duration", "soon", "-t", "orders"], "'soon' is no duration"),
        (["--to-datetime", "soon", "-t", "orders"], "'soon' is no moment"),
        (["--from-file", "FILE", "-t", "orders"], "--from-file names the partitions itself"),
        (["--from-file", "FILE"], "line 2: expected topic,partition,offset"),
    ],
)
def test_a_reset_that_makes_no_sense_is_refused(
    groups: Odradek, group: str, tmp_path: Path, arguments: list[str], told: str
) -> None:
    (tmp_path / "plan.csv").write_text("orders,0,1\norders;1;1\n")
    given = [str(tmp_path / "plan.csv") if each == "FILE" else each for each in arguments]
    done = groups("groups", "reset-offsets", group, *given)

    assert (done.status, done.out) == (2, "")
    assert told in done.err


@pytest.mark.parametrize(
    ("topic", "told"), [("ordes", "there is no topic 'ordes'; did you mean 'orders'?"), ("orders:9", "there is no 9")]
)
def test_partitions_that_are_not_there_are_told_at_once(groups: Odradek, group: str, topic: str, told: str) -> None:
    done = groups("groups", "reset-offsets", group, "-t", topic, "--to-latest")

    assert done.status == 1
    assert told in done.err


# -- delete, delete-offsets ------------------------------------------------------------------------------------------


def test_groups_without_members_are_deleted(groups: Odradek, bootstrap: str, group: str) -> None:
    commit(bootstrap, group, {PAYMENTS: 1})

    assert groups.ok("groups", "delete", group).out == f"deleted group {group}\n"
    assert groups.ok("groups", "list", group, "--json").json == []
    assert groups.ok("groups", "delete", group, "--if-exists", "--json").json == {"deleted": []}


def test_all_groups_exist_or_none_is_deleted(groups: Odradek, bootstrap: str, group: str) -> None:
    commit(bootstrap, group, {PAYMENTS: 1})
    done = groups("groups", "delete", group, f"{group}s")

    assert done.err == f"odradek: GROUP_ID_NOT_FOUND: there is no group '{group}s'; did you mean '{group}'?\n"
    assert [row["group"] for row in groups.ok("groups", "list", group, "--json").json] == [group]


def test_a_group_with_members_is_not_deleted(groups: Odradek, bootstrap: str, group: str) -> None:
    join_classic(bootstrap, group, {"orders": [0]})
    done = groups("groups", "delete", group)

    assert (done.status, "NON_EMPTY_GROUP" in done.err) == (1, True)


def test_offsets_of_some_partitions_are_deleted(groups: Odradek, bootstrap: str, group: str) -> None:
    commit(bootstrap, group, {ORDERS[0]: 1, ORDERS[1]: 1, PAYMENTS: 1})
    done = groups.ok("groups", "delete-offsets", group, "-t", "orders:0,2")
    told = groups.ok("groups", "delete-offsets", group, "-t", "payments", "--json").json

    assert done.out == f"deleted the offsets of 1 partition of group {group}\n"
    assert told == {"group": group, "deleted": [{"topic": "payments", "partition": 0}]}
    assert committed(bootstrap, group) == {ORDERS[1]: 1}
    assert groups.ok("groups", "delete-offsets", group, "-t", "orders:0").out.startswith("deleted the offsets of 0 ")


def test_offsets_of_a_topic_that_is_read_are_not_deleted(groups: Odradek, bootstrap: str, group: str) -> None:
    commit(bootstrap, group, {ORDERS[0]: 1})
    join_classic(bootstrap, group, {"orders": [0]})
    done = groups("groups", "delete-offsets", group, "-t", "orders:0")

    assert (done.status, "GROUP_SUBSCRIBED_TO_TOPIC" in done.err) == (1, True)
