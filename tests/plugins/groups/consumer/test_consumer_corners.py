"""Corners of consumer groups that scripts do not reach: old records, broken subscriptions, many topics, no assignor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from odradek.kernel.api import NO_PRODUCER, ErrorCode, KafkaError
from odradek.kernel.wire.messages import data_consumer_group_records as messages
from odradek.kernel.wire.messages.api_14_sync_group import SyncGroupRequest
from odradek.kernel.wire.messages.consumer_protocol import (
    decode_assignment,
    encode_assignment,
    encode_subscription,
    new_assignment,
    new_subscription,
    partitions_by_topic,
)
from odradek.plugins.assignors import odradek_assignors
from odradek.plugins.groups.consumer.member import MemberState
from odradek.plugins.groups.records import GroupRecord
from odradek.testing.shard_harness import RecordingWaiter

from ..driven import GROUP
from .driven_consumers import DrivenConsumers

if TYPE_CHECKING:
    from collections.abc import Callable

    from odradek.kernel.api import TimerKey

TOLD = encode_subscription(new_subscription(["t"], owned={}))


def write(driven: DrivenConsumers, *records: GroupRecord) -> None:
    """Have records in the log that nobody here would write."""
    for record in records:
        key, value = driven.coordinator.encode(record)
        decoded = driven.coordinator.decode(key, value)
        assert decoded is not None
        driven.shard.replay(decoded, 0, NO_PRODUCER)


def current(driven: DrivenConsumers, **fields: object) -> GroupRecord:
    (topic,) = driven.partitions({"t": [0, 1]})
    value = messages.ConsumerGroupCurrentMemberAssignmentValue(
        member_epoch=2,
        previous_member_epoch=1,
        assigned_partitions=[messages.TopicPartitions(topic_id=topic.topic_id, partitions=[0, 1])],
    )
    for name, one in fields.items():
        setattr(value, name, one)
    return GroupRecord(messages.ConsumerGroupCurrentMemberAssignmentKey(group_id=GROUP, member_id="a"), value)


# ------------------------------------------------------------------------------------------------------- other versions


@pytest.mark.parametrize(("epoch", "given_in"), [(2, 2), (-2, 0)])
def test_a_record_without_epochs_of_partitions_means_those_of_the_member(epoch: int, given_in: int) -> None:
    driven = DrivenConsumers()
    driven.enter("a", "t")
    write(driven, current(driven, member_epoch=epoch))
    (epochs,) = driven.group.members["a"].assigned.values()

    assert {0: given_in, 1: given_in} == epochs


def test_a_member_in_an_unknown_state_has_to_begin_without_partitions() -> None:
    driven = DrivenConsumers()
    driven.enter("a", "t")
    write(driven, current(driven, state=99))
    driven.enter("b", "t")

    assert driven.group.members["a"].state is MemberState.UNKNOWN
    assert driven.beat("a", 2).error_code is ErrorCode.FENCED_MEMBER_EPOCH
    owned = driven.partitions({"t": [0]})
    assert driven.beat("a", 2, topic_partitions=owned).error_code is ErrorCode.FENCED_MEMBER_EPOCH

    driven.enter("a", "t")

    member = driven.group.members["a"]

    assert (MemberState.STABLE, driven.group.assignment_epoch) == (member.state, member.member_epoch)


def test_what_kafka_before_4_1_wrote_about_topics_is_removed() -> None:
    driven = DrivenConsumers()
    driven.enter("a", "t")
    key = messages.ConsumerGroupPartitionMetadataKey(group_id=GROUP)
    write(driven, GroupRecord(key, messages.ConsumerGroupPartitionMetadataValue()))
    driven.enter("b", "t")
    removed = [record for record in driven.harness.records if record.key == key]

    assert [GroupRecord(key, None)] == removed
    assert not driven.group.has_partition_metadata


def test_tombstones_of_a_group_that_is_not_there_are_passed_over() -> None:
    driven = DrivenConsumers()
    write(
        driven,
        GroupRecord(messages.ConsumerGroupMetadataKey(group_id=GROUP), None),
        GroupRecord(messages.ConsumerGroupPartitionMetadataKey(group_id=GROUP), None),
        GroupRecord(messages.ConsumerGroupMemberMetadataKey(group_id=GROUP, member_id="a"), None),
        GroupRecord(messages.ConsumerGroupTargetAssignmentMetadataKey(group_id=GROUP), None),
        GroupRecord(messages.ConsumerGroupTargetAssignmentMemberKey(group_id=GROUP, member_id="a"), None),
        GroupRecord(messages.ConsumerGroupCurrentMemberAssignmentKey(group_id=GROUP, member_id="a"), None),
        GroupRecord(messages.ConsumerGroupRegularExpressionKey(group_id=GROUP, regular_expression="x"), None),
    )

    assert GROUP not in driven.shard.context.groups


def test_an_expression_of_a_log_that_cannot_be_read_matches_nothing() -> None:
    driven = DrivenConsumers()
    driven.enter("a", subscribed_topic_names=None, subscribed_topic_regex="t")
    key = messages.ConsumerGroupMemberMetadataKey(group_id=GROUP, member_id="z")
    value = messages.ConsumerGroupMemberMetadataValue(
        instance_id=None,
        rack_id=None,
        client_id="",
        client_host="",
        subscribed_topic_names=[],
        subscribed_topic_regex="(?<=future)",
        server_assignor=None,
    )
    write(driven, GroupRecord(key, value))
    driven.harness.advance(0)

    assert {"t": {"t"}, "(?<=future)": set()} == {
        regex: set(found.topics) for regex, found in driven.group.resolved.items()
    }


# ---------------------------------------------------------------------------------------------------------- expressions


def run_timer(driven: DrivenConsumers, key: TimerKey) -> Callable[[int], Any]:
    """Run what a key is armed for, once, and return it."""
    operation = driven.harness._timers.pop(key).operation
    driven.harness.run(lambda shard, now_ms: operation(now_ms))
    return operation


LOOKUP = ("consumer regex", GROUP)
MANY_TOPICS = {f"{'long' * 20}-{number}": 1 for number in range(1000)}


def test_many_topics_are_looked_up_in_portions_while_others_are_served() -> None:
    driven = DrivenConsumers(topics=MANY_TOPICS)
    driven.enter("a", subscribed_topic_names=None, subscribed_topic_regex="long.*-.*9")
    portions = 0
    while driven.harness.is_scheduled(LOOKUP):
        assert not driven.group.resolved
        run_timer(driven, LOOKUP)
        portions += 1
        driven.beat("a", 1)

    assert portions > 3
    assert len(driven.group.resolved["long.*-.*9"].topics) == 100


def test_who_leaves_while_topics_are_looked_up_is_forgotten() -> None:
    driven = DrivenConsumers(topics=MANY_TOPICS)
    driven.enter("a", subscribed_topic_names=None, subscribed_topic_regex=".*")
    driven.enter("b", subscribed_topic_names=None, subscribed_topic_regex=".*9")
    begin = run_timer(driven, LOOKUP)
    driven.beat("b", -1)
    driven.harness.advance(0)

    assert {".*"} == driven.group.resolved.keys()

    driven.enter("b", subscribed_topic_names=None, subscribed_topic_regex=".*8")
    driven.harness.advance(10_001)
    driven.beat("b", driven.epoch_of("b"))
    run_timer(driven, LOOKUP)
    for name in ("a", "b"):
        driven.beat(name, -1)
    driven.harness.run(lambda shard, _: shard.delete_groups([GROUP]))
    driven.harness.advance(0)
    driven.harness.run(lambda shard, now_ms: begin(now_ms))

    assert GROUP not in driven.shard.context.groups


# -------------------------------------------------------------------------------------------------------------- changes


def classic_group(driven: DrivenConsumers, *, protocol_type: str = "consumer", metadata: bytes | None = None) -> None:
    """Make a classic group of one static member, `x`, whose JoinGroup has been answered."""
    waiter = driven.join_classic("x", ["t"], instance_id="i", protocol_type=protocol_type, metadata=metadata)
    driven.harness.advance(0)
    driven.learn("x", waiter.response)


@pytest.mark.parametrize(
    ("metadata", "assignment", "detail"),
    [
        (b"\0", b"", "the embedded consumer protocol is malformed."),
        (None, b"\0\0\0", "the embedded consumer protocol is malformed."),
        (
            None,
            encode_assignment(new_assignment({"t": [0]}, user_data=b"mine")),
            "an unsupported custom assignor is in use. Please refer to the documentation or switch to a default "
            "assignor before re-attempting the upgrade.",
        ),
    ],
)
def test_a_group_that_cannot_be_understood_is_not_upgraded(
    metadata: bytes | None, assignment: bytes, detail: str
) -> None:
    driven = DrivenConsumers()
    classic_group(driven, metadata=metadata)
    driven.sync("x", 1, {"x": assignment}, instance_id="i")
    waiter = driven.enter("a", "t")

    assert waiter.error is not None
    assert waiter.error.code is ErrorCode.GROUP_ID_NOT_FOUND
    assert f"Cannot upgrade classic group g to consumer group because {detail}" == waiter.error.detail


def test_a_group_of_other_work_or_too_large_is_not_upgraded() -> None:
    connect = DrivenConsumers()
    classic_group(connect, protocol_type="connect")
    large = DrivenConsumers()
    classic_group(large)
    large.broker.config.set("group.consumer.max.size", 0)
    refusal = "Cannot upgrade classic group g to consumer group because"
    details = [str(driven.enter("a", "t").error) for driven in (connect, large)]

    assert details == [
        f"{refusal} the group does not use the consumer embedded protocol.",
        f"{refusal} the group size exceeds the consumer group maximum size.",
    ]


def test_a_group_in_its_first_rebalance_is_not_upgraded() -> None:
    driven = DrivenConsumers()
    parked = driven.join_classic("x", ["t"], instance_id="i")

    assert driven.enter("a", "t").error_code is ErrorCode.GROUP_ID_NOT_FOUND

    driven.harness.advance(0)

    assert parked.response.error_code == ErrorCode.NONE


def test_topics_that_are_gone_are_left_out_of_upgrades_and_of_shares() -> None:
    driven = DrivenConsumers()
    classic_group(driven)
    driven.sync("x", 1, {"x": encode_assignment(new_assignment({"gone": [0], "t": [0, 1, 2, 3]}))}, instance_id="i")
    driven.enter("a", "t")
    driven.beat("a", -1)
    driven.harness.reload()
    driven.harness.advance(1)

    assert GROUP in driven.shard.context.groups

    driven = DrivenConsumers()
    classic_group(driven)
    driven.sync("x", 1, {"x": encode_assignment(new_assignment({"t": [0, 1, 2, 3]}))}, instance_id="i")
    driven.enter("a", "u")
    driven.delete_topic("t")
    driven.join_classic("x", ["t"], instance_id="i")
    synced = driven.sync("x", driven.group.members[driven.member_ids["x"]].member_epoch, instance_id="i")

    assert partitions_by_topic(decode_assignment(synced.response.assignment)) == {}
    assert [
        topics
        for member in driven.describe().members
        for topics in member.assignment.topic_partitions
        if topics.topic_name == "t"
    ] == []


def test_members_of_the_classic_protocol_must_match_what_they_joined_with() -> None:
    driven = DrivenConsumers()
    driven.enter("a", "t")
    driven.join_classic("x", ["t"], instance_id="i")
    epoch = driven.epoch_of("x")
    wrong_type = SyncGroupRequest(
        group_id=GROUP,
        generation_id=epoch,
        member_id=driven.member_ids["x"],
        group_instance_id="i",
        protocol_type="connect",
    )

    assert driven.sync("x", epoch, instance_id="i", protocol="range").response.error_code == (
        ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    )
    refused = driven.harness.run(lambda shard, now_ms: shard.consumer.sync(wrong_type, refused_by_nobody, now_ms))
    assert refused.response.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert driven.join_classic("y", ["t"], protocol="range").response.error_code == (
        ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    )
    assert driven.join_classic("y", ["t"], protocol_type="connect").response.error_code == (
        ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    )
    assert driven.heartbeat("x", epoch, instance_id="j") is ErrorCode.UNKNOWN_MEMBER_ID
    assert driven.heartbeat("nobody", epoch, instance_id="i") is ErrorCode.FENCED_INSTANCE_ID


refused_by_nobody = RecordingWaiter()
"""Nobody's: consumer groups answer the classic protocol at once."""


def test_a_member_of_the_classic_protocol_that_is_behind_has_to_join_before_it_syncs() -> None:
    driven = DrivenConsumers()
    driven.enter("a", "t")
    driven.join_classic("x", ["t"], instance_id="i")
    epoch = driven.epoch_of("x")
    driven.enter("b", "t")

    assert driven.sync("x", epoch, instance_id="i").response.error_code == ErrorCode.REBALANCE_IN_PROGRESS
    assert ("consumer join", GROUP, driven.member_ids["x"]) in driven.harness.armed


def test_members_leave_by_instance_id_and_each_gets_its_own_answer() -> None:
    driven = DrivenConsumers({"group.consumer.migration.policy": "upgrade"})
    driven.enter("a", "t")
    driven.join_classic("x", ["t"], instance_id="i")
    waiter = driven.leave(("", "i"), ("", "j"), ("nobody", "i"), ("nobody", None))

    assert [member.error_code for member in waiter.response.members] == [
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.FENCED_INSTANCE_ID,
        ErrorCode.UNKNOWN_MEMBER_ID,
    ]
    assert list(driven.group.members) == ["a"]

    before = len(driven.harness.log)
    driven.leave(("nobody", None))

    assert before == len(driven.harness.log)


def test_a_protocol_that_a_classic_member_names_twice_counts_once_in_both_kinds_of_group() -> None:
    driven = DrivenConsumers()
    driven.enter("a", "t")
    twice = (("cooperative-sticky", TOLD), ("cooperative-sticky", TOLD))
    driven.join_classic("x", ["t"], instance_id="i", protocols=twice)
    second = driven.join_classic("y", ["t"], instance_id="j")

    assert second.response.error_code == ErrorCode.NONE
    assert driven.group.classic_protocols == {"cooperative-sticky": 2}

    driven.beat("a", -1)
    again = [driven.join_classic(name, ["t"], instance_id=instance) for name, instance in (("x", "i"), ("y", "j"))]
    driven.harness.advance(0)

    assert [waiter.response.error_code for waiter in again] == [ErrorCode.NONE] * 2


@pytest.mark.parametrize("unread", [b"", b"\0", b"\xff\xff"])
def test_a_group_is_downgraded_to_a_protocol_for_which_a_member_says_nothing_that_can_be_read(unread: bytes) -> None:
    """JoinGroup reads what is said for the first protocol, and the classic group may choose another one."""
    driven = DrivenConsumers()
    driven.enter("a", "t")
    driven.join_classic("x", ["t"], instance_id="i", protocols=(("range", TOLD), ("odd", unread)))
    driven.join_classic("y", ["t"], instance_id="j", protocols=(("odd", TOLD),))

    assert driven.beat("a", -1).error is None
    classic = driven.shard.classic.get(GROUP)
    assert classic is not None
    assert classic.protocol_name == "odd"
    assert "a" not in classic.members
    for member in classic.members.values():
        decode_assignment(member.assignment)


def test_a_group_that_rebalances_away_from_its_protocol_is_upgraded() -> None:
    driven = DrivenConsumers()
    both = (("range", TOLD), ("cooperative-sticky", TOLD))
    first = driven.join_classic("a", ["t"], version=3, protocols=both)
    driven.harness.advance(0)
    driven.learn("a", first.response)
    driven.sync("a", 1, {"a": encode_assignment(new_assignment({"t": [0, 1, 2, 3]}))})
    parked = driven.join_classic("c", ["t"], version=3)
    assert not parked.is_done

    assert driven.enter("b", "t").error is None
    assert parked.response.error_code == ErrorCode.REBALANCE_IN_PROGRESS
    assert len(driven.group.members) == 3
    assert {member.topics for member in driven.group.members.values()} == {frozenset({"t"})}


def test_a_rack_in_a_classic_subscription_is_kept() -> None:
    driven = DrivenConsumers()
    driven.enter("a", "t")
    told = encode_subscription(new_subscription(["t"], owned={"gone": [1]}, rack_id="r"))
    driven.join_classic("x", ["t"], instance_id="i", metadata=told)

    assert driven.group.members[driven.member_ids["x"]].rack_id == "r"


def test_an_assignor_that_no_plugin_offers_fails_the_heartbeat_by_name() -> None:
    driven = DrivenConsumers()
    driven.broker.assignors = {"range": odradek_assignors()["range"]}
    waiter = driven.enter("a", "t")

    assert waiter.error is not None
    assert waiter.error.code is ErrorCode.UNKNOWN_SERVER_ERROR
    assert "'uniform'" in waiter.error.detail


# ------------------------------------------------------------------------------------------------ a group's own numbers


@pytest.mark.parametrize(
    ("own_ms", "lasts_ms"), [(60_000, 50_000), (48_000, 48_000), (30_000, 45_000)], ids=["above", "within", "below"]
)
def test_a_groups_own_session_keeps_within_what_the_broker_allows_by_now(own_ms: int, lasts_ms: int) -> None:
    driven = DrivenConsumers({"group.consumer.max.session.timeout.ms": 50_000})
    driven.group_configs["consumer.session.timeout.ms"] = str(own_ms)  # set when the broker allowed it
    driven.enter("a", "t")
    driven.harness.advance(lasts_ms - 1)

    assert list(driven.group.members) == ["a"]

    driven.harness.advance(1)

    assert not driven.group.members


def test_a_groups_own_intervals_keep_within_what_the_broker_allows_by_now() -> None:
    driven = DrivenConsumers(
        {"group.consumer.max.heartbeat.interval.ms": 8_000, "group.consumer.max.assignment.interval.ms": 2_000}
    )
    driven.group_configs.update({"consumer.heartbeat.interval.ms": "15000", "consumer.assignment.interval.ms": "9000"})

    assert driven.enter("a", "t").response.heartbeat_interval_ms == 8_000

    driven.enter("b", "t")
    assert driven.group.assignment_epoch < driven.group.group_epoch  # it was assigned a moment ago
    driven.harness.advance(2_000)
    driven.beat("b", driven.epoch_of("b"))

    assert driven.group.assignment_epoch == driven.group.group_epoch


# -------------------------------------------------------------------------------------------------------------- offsets


def test_who_may_commit_and_read_offsets_of_a_consumer_group() -> None:
    driven = DrivenConsumers({"group.consumer.migration.policy": "upgrade"})
    driven.enter("a", "t")
    driven.join_classic("x", ["t"], instance_id="i")
    group, member_id = driven.group, driven.member_ids["x"]
    epoch = driven.epoch_of("x")

    def commit(member_id: str, generation: int, *, is_transactional: bool = False) -> None:
        group.validate_offset_commit(
            member_id=member_id,
            instance_id=None,
            generation=generation,
            is_transactional=is_transactional,
            api_version=8,
        )

    commit(member_id, epoch)
    commit("", -1, is_transactional=True)
    group.validate_offset_fetch(member_id=None, member_epoch=-1)
    group.validate_offset_delete()
    since = group.offsets_expire_from()
    assert since is not None
    assert since(7) == 7
    with pytest.raises(KafkaError) as stale:
        group.validate_offset_fetch(member_id=member_id, member_epoch=epoch + 1)
    with pytest.raises(KafkaError) as newer:
        commit(member_id, epoch + 1)
    with pytest.raises(KafkaError) as nobody:
        group.validate_offset_fetch(member_id=None, member_epoch=5)

    assert [caught.value.code for caught in (stale, newer, nobody)] == [
        ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.UNKNOWN_MEMBER_ID,
    ]

    driven.beat("a", -1)
    driven.leave(("", "i"))
    group.validate_delete()
    commit("", -1)


def test_a_group_tells_its_state_in_its_name() -> None:
    driven = DrivenConsumers()
    driven.enter("a", "t")

    assert repr(driven.group) == "ConsumerGroup('g', Stable, epoch 2)"
    assert driven.group.is_subscribed_to("t")
    assert not driven.group.is_subscribed_to("u")
