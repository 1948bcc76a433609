"""Handlers of groups: what they refuse by themselves, and how errors of the coordinator reach clients."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

import pytest

from odradek.kernel.api import ZERO_ID, ErrorCode, KafkaError, ProducerIdentity, TopicPartition, encode_bytes
from odradek.kernel.wire.messages.api_08_offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from odradek.kernel.wire.messages.api_09_offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from odradek.kernel.wire.messages.api_11_join_group import JoinGroupRequest, JoinGroupRequestProtocol
from odradek.kernel.wire.messages.api_12_heartbeat import HeartbeatRequest
from odradek.kernel.wire.messages.api_13_leave_group import LeaveGroupRequest, MemberIdentity
from odradek.kernel.wire.messages.api_14_sync_group import SyncGroupRequest
from odradek.kernel.wire.messages.api_15_describe_groups import DescribeGroupsRequest
from odradek.kernel.wire.messages.api_16_list_groups import ListGroupsRequest
from odradek.kernel.wire.messages.api_28_txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from odradek.kernel.wire.messages.api_42_delete_groups import DeleteGroupsRequest
from odradek.kernel.wire.messages.api_47_offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)

from .handled import HandledGroups

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from odradek.kernel.api import Admission, RequestContext

UNKNOWN_ID = uuid.UUID(int=0xDEAD)


def commit_of(*topics: tuple[str, uuid.UUID, int], group: str = "g") -> OffsetCommitRequest:
    return OffsetCommitRequest(
        group_id=group,
        topics=[
            OffsetCommitRequestTopic(
                name=name,
                topic_id=topic_id,
                partitions=[OffsetCommitRequestPartition(partition_index=number, committed_offset=5)],
            )
            for name, topic_id, number in topics
        ],
    )


def txn_commit_of(*topics: tuple[str, int], group: str = "g") -> TxnOffsetCommitRequest:
    return TxnOffsetCommitRequest(
        transactional_id="id",
        group_id=group,
        producer_id=7,
        producer_epoch=0,
        topics=[
            TxnOffsetCommitRequestTopic(
                name=name, partitions=[TxnOffsetCommitRequestPartition(partition_index=number, committed_offset=5)]
            )
            for name, number in topics
        ],
    )


def delete_of(*topics: tuple[str, int], group: str = "g") -> OffsetDeleteRequest:
    return OffsetDeleteRequest(
        group_id=group,
        topics=[
            OffsetDeleteRequestTopic(name=name, partitions=[OffsetDeleteRequestPartition(partition_index=number)])
            for name, number in topics
        ],
    )


def codes_of(response: Any) -> list[tuple[str, int, int]]:
    """Return topic, partition and code of an answer by topics."""
    return [
        (topic.name, part.partition_index, part.error_code) for topic in response.topics for part in topic.partitions
    ]


REQUESTS = [
    (commit_of(("t", ZERO_ID, 0)), 8),
    (OffsetFetchRequest(group_id="g", topics=[OffsetFetchRequestTopic(name="t", partition_indexes=[0])]), 5),
    (OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id="g", topics=None)]), 8),
    (JoinGroupRequest(group_id="g", session_timeout_ms=10_000, protocols=[]), 5),
    (JoinGroupRequest(group_id="g", session_timeout_ms=10_000, protocols=[]), 9),
    (HeartbeatRequest(group_id="g"), 4),
    (LeaveGroupRequest(group_id="g", member_id="m"), 2),
    (LeaveGroupRequest(group_id="g", members=[MemberIdentity(member_id="m")]), 5),
    (SyncGroupRequest(group_id="g", protocol_type="consumer", protocol_name="range"), 5),
    (DescribeGroupsRequest(groups=["g", "h"]), 6),
    (ListGroupsRequest(), 5),
    (txn_commit_of(("t", 0)), 3),
    (DeleteGroupsRequest(groups_names=["g", "hh"]), 2),
    (delete_of(("t", 0)), 0),
]


@pytest.mark.parametrize(("request_", "version"), REQUESTS, ids=lambda value: type(value).__name__)
def test_an_error_of_the_coordinator_is_an_answer_that_can_be_sent(request_: Any, version: int) -> None:
    groups = HandledGroups()
    groups.runtime.error = KafkaError(ErrorCode.NOT_COORDINATOR)
    failed = groups.answer(request_, version)

    assert encode_bytes(failed, version) == encode_bytes(
        groups.refused(request_, version, ErrorCode.NOT_COORDINATOR), version
    )
    assert ErrorCode.NOT_COORDINATOR in numbers_in(failed)


def numbers_in(message: Any) -> set[int]:
    """Return every error code of a message."""
    found: set[int] = set()
    for spec in message.__fields__:
        value = getattr(message, spec.name)
        if spec.name == "error_code":
            found.add(value)
        elif isinstance(value, list):
            found |= {code for item in value if hasattr(item, "__fields__") for code in numbers_in(item)}
    return found


def test_while_the_coordinator_loads_members_are_taken_to_live() -> None:
    groups = HandledGroups()
    groups.runtime.error = KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)

    assert groups.answer(HeartbeatRequest(group_id="g"), 4).error_code == ErrorCode.NONE


def test_groups_are_not_listed_while_a_shard_loads() -> None:
    groups = HandledGroups()
    groups.runtime.loading = True

    assert groups.answer(ListGroupsRequest(), 4).error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS


@pytest.mark.parametrize("version", [1, 2, 8])
def test_consumers_look_for_the_coordinator_anew_when_a_read_cannot_be_committed(version: int) -> None:
    groups = HandledGroups()
    groups.runtime.error = KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    topics = [OffsetFetchRequestTopic(name="t", partition_indexes=[0])]
    named = [OffsetFetchRequestTopics(name="t", partition_indexes=[0])]
    request = OffsetFetchRequest(
        group_id="g", topics=topics, groups=[OffsetFetchRequestGroup(group_id="g", topics=named)]
    )
    answer = groups.answer(request, version)

    if version == 1:
        assert codes_of(answer) == [("t", 0, ErrorCode.NOT_COORDINATOR)]
    elif version == 2:
        assert (answer.error_code, answer.topics) == (ErrorCode.NOT_COORDINATOR, [])
    else:
        assert [(group.error_code, group.topics) for group in answer.groups] == [(ErrorCode.NOT_COORDINATOR, [])]


def test_what_does_not_exist_is_refused_before_the_coordinator_is_asked() -> None:
    groups = HandledGroups()
    groups.runtime.error = KafkaError(ErrorCode.NOT_COORDINATOR)
    topic_id = groups.driven.broker.cluster.topic("t").topic_id  # type: ignore[union-attr] # it is there

    assert codes_of(groups.answer(commit_of(("x", ZERO_ID, 0), ("t", ZERO_ID, 9)), 8)) == [("x", 0, 3), ("t", 9, 3)]
    assert codes_of(groups.answer(commit_of(("", UNKNOWN_ID, 0)), 10)) == [("", 0, 100)]
    assert codes_of(groups.answer(commit_of(("", topic_id, 0), ("", topic_id, 9)), 10)) == [("t", 9, 3), ("t", 0, 16)]
    assert codes_of(groups.answer(txn_commit_of(("x", 0)), 3)) == [("x", 0, 3)]


def test_offsets_that_are_deleted_are_told_by_partition() -> None:
    groups = HandledGroups()
    groups.answer(commit_of(("t", ZERO_ID, 0)), 8)

    assert codes_of(groups.answer(delete_of(("t", 0), ("x", 0), ("t", 1)), 0)) == [
        ("x", 0, 3),
        ("t", 0, 0),
        ("t", 1, 0),
    ]
    assert groups.driven.fetch() == {}
    assert groups.answer(delete_of(group=""), 0).error_code == ErrorCode.INVALID_GROUP_ID


def test_offsets_of_a_topic_that_is_gone_have_no_place_in_an_answer_by_ids() -> None:
    groups = HandledGroups()
    groups.answer(commit_of(("t", ZERO_ID, 0), ("u", ZERO_ID, 0)), 8)
    groups.driven.broker.cluster.delete("t")
    request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id="g", topics=None)])
    (by_name,), (by_id,) = (groups.answer(request, version).groups for version in (9, 10))

    assert [topic.name for topic in by_name.topics] == ["t", "u"]
    assert [topic.name for topic in by_id.topics] == ["u"]


def test_an_offset_of_a_deleted_namesake_is_not_found_by_the_new_ones_id() -> None:
    groups = HandledGroups()
    groups.answer(commit_of(("t", ZERO_ID, 0)), 8)
    groups.driven.broker.cluster.create("t", 4, UNKNOWN_ID)
    topics = [OffsetFetchRequestTopics(topic_id=UNKNOWN_ID, partition_indexes=[0])]
    request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id="g", topics=topics)])
    (group,) = groups.answer(request, 10).groups

    assert [(part.partition_index, part.committed_offset, part.error_code) for part in group.topics[0].partitions] == [
        (0, -1, 0)
    ]


class Admissions:
    """The transaction coordinator's face, answering as a test says."""

    def __init__(self, code: ErrorCode) -> None:
        self.code = code
        self.asked: list[Admission] = []

    def admit(self, admission: Admission, done: Callable[[Mapping[TopicPartition, ErrorCode]], None]) -> None:
        self.asked.append(admission)
        done(dict.fromkeys(admission.partitions, self.code))

    def init_producer_id(self, request: object, context: RequestContext) -> Any:
        raise NotImplementedError


@pytest.mark.parametrize(("version", "may_add"), [(3, False), (4, False), (5, True)])
def test_a_producer_is_admitted_before_its_offsets_are_written(version: int, may_add: bool) -> None:
    groups = HandledGroups()
    transactions = groups.driven.broker.transactions = Admissions(ErrorCode.NONE)

    assert codes_of(groups.answer(txn_commit_of(("t", 0)), version)) == [("t", 0, 0)]
    (asked,) = transactions.asked

    assert ("id", 7, 0, may_add) == (
        asked.transactional_id,
        asked.producer_id,
        asked.producer_epoch,
        asked.may_add,
    )
    assert (TopicPartition("__consumer_offsets", 1),) == tuple(asked.partitions)
    (entry,) = groups.driven.harness.log

    assert (entry.producer.producer_id, entry.producer.producer_epoch) == (7, 0)


@pytest.mark.parametrize(
    ("version", "code", "told"),
    [
        (1, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (3, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS),
        (3, ErrorCode.INVALID_TXN_STATE, ErrorCode.INVALID_TXN_STATE),
        (5, ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH),
        (3, ErrorCode.TRANSACTION_ABORTABLE, ErrorCode.INVALID_TXN_STATE),
        (4, ErrorCode.TRANSACTION_ABORTABLE, ErrorCode.TRANSACTION_ABORTABLE),
    ],
)
def test_a_producer_that_is_not_admitted_writes_nothing(version: int, code: ErrorCode, told: ErrorCode) -> None:
    groups = HandledGroups()
    groups.driven.broker.transactions = Admissions(code)

    assert [("t", 0, told)] == codes_of(groups.answer(txn_commit_of(("t", 0)), version))
    assert groups.driven.harness.log == []


def test_offsets_of_a_transaction_that_ends_while_its_coordinator_is_asked_are_not_written() -> None:
    groups = HandledGroups()

    class EndsMeanwhile(Admissions):
        def admit(self, admission: Admission, done: Callable[[Mapping[TopicPartition, ErrorCode]], None]) -> None:
            groups.driven.harness.end_transaction(ProducerIdentity(7, 0), is_commit=False)
            super().admit(admission, done)

    groups.driven.broker.transactions = EndsMeanwhile(ErrorCode.NONE)

    assert codes_of(groups.answer(txn_commit_of(("t", 0)), 3)) == [("t", 0, ErrorCode.INVALID_TXN_STATE)]
    assert groups.driven.harness.records == []


def test_a_producer_whose_epoch_is_old_is_told_before_anybody_is_asked() -> None:
    groups = HandledGroups()
    transactions = groups.driven.broker.transactions = Admissions(ErrorCode.NONE)
    groups.runtime.error = KafkaError(ErrorCode.INVALID_PRODUCER_EPOCH)

    assert codes_of(groups.answer(txn_commit_of(("t", 0)), 3)) == [("t", 0, ErrorCode.INVALID_PRODUCER_EPOCH)]
    assert not transactions.asked


@pytest.mark.parametrize(("version", "asked_count"), [(3, 0), (5, 1)])
def test_where_nothing_is_verified_only_who_adds_by_committing_is_asked_about(version: int, asked_count: int) -> None:
    groups = HandledGroups()
    transactions = groups.driven.broker.transactions = Admissions(ErrorCode.NONE)
    groups.driven.broker.config.set("transaction.partition.verification.enable", False)

    assert codes_of(groups.answer(txn_commit_of(("t", 0)), version)) == [("t", 0, 0)]
    assert len(transactions.asked) == asked_count


def test_a_transaction_names_its_group() -> None:
    assert codes_of(HandledGroups().answer(txn_commit_of(("t", 0), group=""), 3)) == [
        ("t", 0, ErrorCode.INVALID_GROUP_ID)
    ]


def test_groups_of_several_shards_are_described_and_deleted_in_one_answer() -> None:
    groups = HandledGroups()
    for group in ("g", "gg"):
        groups.answer(commit_of(("t", ZERO_ID, 0), group=group), 8)
    described = groups.answer(
        DescribeGroupsRequest(groups=["gg", "g", "none"], include_authorized_operations=True), 6
    ).groups

    assert {group.group_id: group.group_state for group in described} == {"g": "Empty", "gg": "Empty", "none": "Dead"}
    assert {group.group_id: group.authorized_operations for group in described} == {
        "g": 3400,
        "gg": 3400,
        "none": -(2**31),
    }
    deleted = groups.answer(DeleteGroupsRequest(groups_names=["g", "none", "gg", "g"]), 2).results

    assert {result.group_id: result.error_code for result in deleted} == {"g": 0, "gg": 0, "none": 69}
    assert len(deleted) == 3
    assert groups.answer(ListGroupsRequest(), 5).groups == []


@pytest.mark.parametrize("version", [0, 9])
def test_the_member_id_is_made_of_the_clients_name(version: int) -> None:
    groups = HandledGroups()
    request = JoinGroupRequest(
        group_id="g",
        session_timeout_ms=10_000,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=b"")],
    )
    context = groups.ask(request, version, client_id=None)
    groups.driven.harness.advance(0)
    (response,) = context.answers

    assert response.member_id == "-00000000-0000-0000-0000-000000000001"
    (group,) = groups.driven.shard.classic.groups()
    if version == 0:
        (member,) = group.members.values()

        assert (member.rebalance_timeout_ms, member.client_host, member.client_id) == (10_000, "/127.0.0.1", "")


@pytest.mark.parametrize(
    ("request_", "version", "code"),
    [
        (JoinGroupRequest(group_id="", session_timeout_ms=10_000), 5, ErrorCode.INVALID_GROUP_ID),
        (JoinGroupRequest(group_id="g", session_timeout_ms=5_999), 5, ErrorCode.INVALID_SESSION_TIMEOUT),
        (JoinGroupRequest(group_id="g", session_timeout_ms=1_800_001), 5, ErrorCode.INVALID_SESSION_TIMEOUT),
        (SyncGroupRequest(group_id=""), 3, ErrorCode.INVALID_GROUP_ID),
        (SyncGroupRequest(group_id="g", protocol_type="consumer"), 5, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        (HeartbeatRequest(group_id=""), 3, ErrorCode.INVALID_GROUP_ID),
        (HeartbeatRequest(group_id="none"), 3, ErrorCode.UNKNOWN_MEMBER_ID),
        (LeaveGroupRequest(group_id=""), 3, ErrorCode.INVALID_GROUP_ID),
        (LeaveGroupRequest(group_id="none", member_id="m"), 2, ErrorCode.UNKNOWN_MEMBER_ID),
    ],
)
def test_a_request_that_cannot_be_is_refused(request_: Any, version: int, code: ErrorCode) -> None:
    groups = HandledGroups()

    assert code == groups.answer(request_, version).error_code
    assert groups.driven.harness.log == []


def test_members_who_leave_are_told_one_by_one() -> None:
    groups = HandledGroups()
    groups.driven.join("a", version=3)
    groups.driven.harness.advance(0)
    (group,) = groups.driven.shard.classic.groups()
    (member_id,) = group.members
    leaving = LeaveGroupRequest(
        group_id="g", members=[MemberIdentity(member_id="x"), MemberIdentity(member_id=member_id)]
    )

    assert [member.error_code for member in groups.answer(leaving, 3).members] == [
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.NONE,
    ]
    assert groups.answer(LeaveGroupRequest(group_id="g", member_id="x"), 1).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    (unknown,) = groups.answer(LeaveGroupRequest(group_id="none", members=leaving.members[:1]), 4).members

    assert unknown.error_code == ErrorCode.UNKNOWN_MEMBER_ID
