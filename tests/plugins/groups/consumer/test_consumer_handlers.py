"""ConsumerGroupHeartbeat and ConsumerGroupDescribe: what is refused without a group, and how errors are told."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from odradek.kernel.api import ZERO_ID, ErrorCode, KafkaError
from odradek.kernel.wire.messages.api_28_txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from odradek.kernel.wire.messages.api_68_consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    TopicPartitions,
)
from odradek.kernel.wire.messages.api_69_consumer_group_describe import ConsumerGroupDescribeRequest
from odradek.kernel.wire.messages.data_group_records import OffsetCommitValue

from ..driven import GROUP
from ..handled import HandledGroups
from .driven_consumers import DrivenConsumers

JOIN: dict[str, Any] = {
    "group_id": GROUP,
    "member_id": "m",
    "member_epoch": 0,
    "rebalance_timeout_ms": 1000,
    "subscribed_topic_names": ["t"],
    "topic_partitions": [],
}
FOLLOW: dict[str, Any] = {"group_id": GROUP, "member_id": "m", "member_epoch": 2}


def new_groups() -> HandledGroups:
    return HandledGroups(DrivenConsumers())


@pytest.mark.parametrize(
    ("fields", "version", "message"),
    [
        ({**JOIN, "member_id": ""}, 1, "MemberId can't be empty."),
        ({**FOLLOW, "member_id": " "}, 0, "MemberId can't be empty."),
        ({**FOLLOW, "member_id": "", "member_epoch": -1}, 0, "MemberId can't be empty."),
        ({**JOIN, "group_id": " "}, 1, "GroupId can't be empty."),
        ({**JOIN, "instance_id": ""}, 1, "InstanceId can't be empty."),
        ({**JOIN, "rack_id": ""}, 1, "RackId can't be empty."),
        ({**JOIN, "rebalance_timeout_ms": -1}, 1, "RebalanceTimeoutMs must be provided in first request."),
        ({**JOIN, "topic_partitions": None}, 1, "TopicPartitions must be empty when (re-)joining."),
        (
            {**JOIN, "topic_partitions": [TopicPartitions(topic_id=uuid.UUID(int=1), partitions=[0])]},
            1,
            "TopicPartitions must be empty when (re-)joining.",
        ),
        (
            {**JOIN, "subscribed_topic_names": None},
            1,
            "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining.",
        ),
        ({**FOLLOW, "member_epoch": -2}, 1, "InstanceId can't be null."),
        ({**FOLLOW, "member_epoch": -3}, 1, "MemberEpoch is invalid."),
    ],
)
def test_a_heartbeat_that_makes_no_sense_is_refused(fields: dict[str, Any], version: int, message: str) -> None:
    with pytest.raises(KafkaError, match=r".") as caught:
        new_groups().ask(ConsumerGroupHeartbeatRequest(**fields), version)

    assert caught.value.code is ErrorCode.INVALID_REQUEST
    assert message == caught.value.detail


def test_an_assignor_that_is_not_configured_is_refused() -> None:
    with pytest.raises(KafkaError, match=r"Supported assignors: uniform, range\.") as caught:
        new_groups().ask(ConsumerGroupHeartbeatRequest(**JOIN, server_assignor="sticky"), 1)

    assert caught.value.code is ErrorCode.UNSUPPORTED_ASSIGNOR


def test_version_0_draws_the_member_id() -> None:
    answer = new_groups().answer(ConsumerGroupHeartbeatRequest(**{**JOIN, "member_id": ""}), 0)

    assert (answer.member_id, answer.member_epoch) == ("AAAAAAAAAAAAAAAAAAAAAQ", 2)
    assert [topic.partitions for topic in answer.assignment.topic_partitions] == [[0, 1, 2, 3]]
    assert answer.heartbeat_interval_ms == 5000


def test_an_error_has_a_message_where_it_says_more_than_its_code() -> None:
    groups = new_groups()
    request = ConsumerGroupHeartbeatRequest(**FOLLOW)
    answer = groups.answer(request, 1)

    assert (answer.error_code, answer.error_message) == (ErrorCode.GROUP_ID_NOT_FOUND, "Consumer group g not found.")

    groups.runtime.error = KafkaError(ErrorCode.NOT_COORDINATOR)
    answer = groups.answer(request, 1)

    assert (answer.error_code, answer.error_message) == (ErrorCode.NOT_COORDINATOR, None)


@pytest.mark.parametrize("request_class", [ConsumerGroupHeartbeatRequest, ConsumerGroupDescribeRequest])
def test_where_the_protocol_is_switched_off_nothing_is_served(request_class: Any) -> None:
    groups = new_groups()
    groups.driven.broker.config.set("group.coordinator.rebalance.protocols", ("classic",))
    request = request_class(**(JOIN if request_class is ConsumerGroupHeartbeatRequest else {"group_ids": [GROUP]}))
    with pytest.raises(KafkaError) as caught:
        groups.ask(request, 1)

    assert caught.value.code is ErrorCode.UNSUPPORTED_VERSION

    refusal = groups.refused(request, 1, ErrorCode.UNSUPPORTED_VERSION)
    codes = [group.error_code for group in refusal.groups] if hasattr(refusal, "groups") else [refusal.error_code]

    assert codes == [ErrorCode.UNSUPPORTED_VERSION]


def test_groups_are_described_each_by_itself() -> None:
    groups = new_groups()
    groups.ask(ConsumerGroupHeartbeatRequest(**JOIN), 1)
    request = ConsumerGroupDescribeRequest(group_ids=["", GROUP, "missing"], include_authorized_operations=True)
    nameless, there, missing = groups.answer(request, 1).groups

    assert (nameless.error_code, nameless.group_id) == (ErrorCode.INVALID_GROUP_ID, "")
    assert (there.error_code, there.group_state, there.authorized_operations) == (ErrorCode.NONE, "Stable", 3400)
    assert (missing.error_code, missing.error_message) == (ErrorCode.GROUP_ID_NOT_FOUND, "Group missing not found.")

    groups.runtime.error = KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    codes = [group.error_code for group in groups.answer(request, 0).groups]

    assert [ErrorCode.INVALID_GROUP_ID, *[ErrorCode.COORDINATOR_LOAD_IN_PROGRESS] * 2] == codes


@pytest.mark.parametrize("version", [3, 4, 5])
def test_a_transaction_commits_in_an_older_epoch_what_its_consumer_still_has(version: int) -> None:
    driven = DrivenConsumers()
    driven.member_ids.update(a="a", b="b")
    groups = HandledGroups(driven)
    driven.enter("a", "t")
    driven.enter("b", "t")
    driven.beat("a", 2, topic_partitions=driven.partitions({"t": [0, 1, 2, 3]}))
    driven.beat("a", 2, topic_partitions=driven.partitions({"t": [0, 1]}))
    assert driven.epoch_of("a") == 3
    view = driven.broker.cluster.topic("t")
    assert view is not None
    before = len(driven.harness.records)

    def commit(partition: int, epoch: int) -> int:
        item = TxnOffsetCommitRequestPartition(partition_index=partition, committed_offset=5)
        request = TxnOffsetCommitRequest(
            transactional_id="id",
            group_id=GROUP,
            producer_id=7,
            producer_epoch=0,
            generation_id=epoch,
            member_id="a",
            topics=[TxnOffsetCommitRequestTopic(name="t", partitions=[item])],
        )
        ((answered,),) = [topic.partitions for topic in groups.answer(request, version).topics]
        return answered.error_code  # type: ignore[no-any-return] # a handler's answer is any response

    # Java's producer aborts by ILLEGAL_GENERATION, and is of no more use by STALE_MEMBER_EPOCH, which it does not know.
    assert [commit(0, 2), commit(1, 1), commit(3, 2), commit(0, 4), commit(0, 3)] == [
        ErrorCode.NONE,  # it has had it since epoch 2
        ErrorCode.ILLEGAL_GENERATION,  # in epoch 1 it had nothing
        ErrorCode.ILLEGAL_GENERATION,  # it gave this one up
        ErrorCode.ILLEGAL_GENERATION,  # that epoch is still to come
        ErrorCode.NONE,
    ]
    written = [record.value for record in driven.harness.records[before:]]
    # Kafka keeps what a transaction commits without the id of its topic.
    assert [(value.offset, value.topic_id) for value in written if isinstance(value, OffsetCommitValue)] == [
        (5, ZERO_ID)
    ] * 2
