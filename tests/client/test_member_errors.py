"""What each error means for a member, a commit and a transaction: the tables of the pure cores."""

from __future__ import annotations

import random
import uuid
from functools import partial
from typing import Any

import pytest

from odradek.client.cluster import Cluster
from odradek.client.errors import (
    BrokerError,
    ClientTimeoutError,
    ClientUsageError,
    CommitFailedError,
    ProducerFencedError,
    RebalanceInProgressError,
    TransactionAbortableError,
    TransactionFatalError,
)
from odradek.client.group.classic_member import ClassicMember, Phase
from odradek.client.group.committed import commit_outcome, commit_request, fetch_outcome, fetch_request
from odradek.client.group.consumer_member import ConsumerMember
from odradek.client.group.consumer_member import Phase as ConsumerPhase
from odradek.client.group.member import Assign, CallKind, GroupMetadata, GroupSettings, Rest, Send
from odradek.client.transactions.machine import NEXT, State, TransactionMachine, Verdict, judge
from odradek.kernel.contracts.assignor import MemberAssignment
from odradek.kernel.errors import ErrorCode
from odradek.kernel.peers.backoff import Backoff
from odradek.kernel.peers.errors import ClientError, ConnectionFailedError, UnsupportedVersionError
from odradek.kernel.types import TopicPartition
from odradek.kernel.wire.messages.api_08_offset_commit import (
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from odradek.kernel.wire.messages.api_09_offset_fetch import OffsetFetchResponse, OffsetFetchResponseGroup
from odradek.kernel.wire.messages.api_11_join_group import JoinGroupRequest, JoinGroupResponse
from odradek.kernel.wire.messages.api_12_heartbeat import HeartbeatRequest, HeartbeatResponse
from odradek.kernel.wire.messages.api_14_sync_group import SyncGroupRequest, SyncGroupResponse
from odradek.kernel.wire.messages.api_68_consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatResponse,
    ResponseTopicPartitions,
)
from odradek.kernel.wire.messages.consumer_protocol import encode_assignment, new_assignment
from odradek.plugins.assignors.range_assignor import RangeAssignor

SETTINGS = GroupSettings(group_id="g", is_auto_commit=False)
T0 = TopicPartition("t", 0)


def backoff() -> Backoff:
    return Backoff(100, 1_000, random.Random(1))


def joined_classic(settings: GroupSettings = SETTINGS) -> ClassicMember:
    """Return a member that owns one partition in generation 5."""
    member = ClassicMember(settings, (RangeAssignor(),), Cluster(), backoff())
    member.subscribe(frozenset({"t"}), None, 0)
    send(member, JoinGroupRequest, JoinGroupResponse(error_code=ErrorCode.MEMBER_ID_REQUIRED, member_id="m"))
    joined = JoinGroupResponse(
        generation_id=5, protocol_type="consumer", protocol_name="range", leader="x", member_id="m"
    )
    send(member, JoinGroupRequest, joined)
    send(member, SyncGroupRequest, SyncGroupResponse(assignment=encode_assignment(new_assignment({"t": [0]}))))
    done(member)
    assert member.metadata == GroupMetadata("g", 5, "m", settings.instance_id)
    return member


def send(member: Any, kind: type, response: Any, now_ms: int = 0) -> bool:
    """Have a member's next request, which must be of this kind, answered."""
    action = member.action(now_ms)
    assert isinstance(action, Send)
    assert isinstance(action.request, kind)
    found: bool = member.on_response(action.request, response, now_ms)
    return found


def done(member: Any) -> list[CallKind]:
    """Do all calls and return their kinds."""
    kinds = []
    while (call := member.ownership.first) is not None:
        kinds.append(call.kind)
        member.ownership.begin(call)
        member.call_done(call, 0)
    return kinds


def asking(kind: type) -> tuple[ClassicMember, Any, Any]:
    """Return a member with a request of a kind under way, the request, and the answer that is on its way to it."""
    member = joined_classic()
    answers: dict[type, Any] = {
        JoinGroupRequest: JoinGroupResponse(
            generation_id=6, protocol_type="consumer", protocol_name="range", leader="x", member_id="m"
        ),
        SyncGroupRequest: SyncGroupResponse(assignment=encode_assignment(new_assignment({"t": [0]}))),
        HeartbeatRequest: HeartbeatResponse(),
    }
    if kind is not HeartbeatRequest:
        member.request_rejoin("a test")
        member.action(0)
        done(member)
    if kind is SyncGroupRequest:
        send(member, JoinGroupRequest, answers[JoinGroupRequest])
    action = member.action(3_000)
    assert isinstance(action, Send)
    assert isinstance(action.request, kind)
    return member, action.request, answers[kind]


@pytest.mark.parametrize("kind", [JoinGroupRequest, SyncGroupRequest, HeartbeatRequest])
def test_an_answer_that_comes_when_the_member_has_left_changes_nothing(kind: type) -> None:
    member, request, answer = asking(kind)
    member.leave("a test", is_for_good=False)

    assert member.on_response(request, answer, 3_000) is False
    assert (member.phase, member.metadata, member.ownership.first, member.error) == (Phase.OUT, None, None, None)


@pytest.mark.parametrize("kind", [JoinGroupRequest, SyncGroupRequest])
def test_an_answer_that_comes_when_a_commit_was_told_that_the_member_is_out_changes_nothing(kind: type) -> None:
    member, request, answer = asking(kind)
    identity = GroupMetadata("g", member.generation_id, "m")
    member.on_commit_refused(identity, ErrorCode.UNKNOWN_MEMBER_ID, 3_000)

    assert member.on_response(request, answer, 3_000) is False
    action = member.action(3_000)
    assert isinstance(action, Send)
    assert isinstance(action.request, JoinGroupRequest)
    assert action.request.member_id == ""


def test_a_leader_that_is_put_out_while_it_assigns_joins_again() -> None:
    member, request, _ = asking(JoinGroupRequest)
    leading = JoinGroupResponse(
        generation_id=6, protocol_type="consumer", protocol_name="range", leader="m", member_id="m"
    )
    member.on_response(request, leading, 3_000)
    assert isinstance(member.action(3_000), Assign)
    member.on_commit_refused(GroupMetadata("g", 6, "m"), ErrorCode.UNKNOWN_MEMBER_ID, 3_000)
    member.assigned({}, {})

    action = member.action(3_000)
    assert isinstance(action, Send)
    assert isinstance(action.request, JoinGroupRequest)


@pytest.mark.parametrize(
    ("code", "calls", "member_id", "finds"),
    [
        (ErrorCode.REBALANCE_IN_PROGRESS, [CallKind.REVOKED], "m", False),
        (ErrorCode.UNKNOWN_MEMBER_ID, [CallKind.LOST], "", False),
        (ErrorCode.ILLEGAL_GENERATION, [CallKind.LOST], "m", False),
        (ErrorCode.NOT_COORDINATOR, [], "m", True),
        (ErrorCode.COORDINATOR_NOT_AVAILABLE, [], "m", True),
        (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, [], "m", False),
    ],
)
def test_what_a_heartbeat_s_error_means(code: ErrorCode, calls: list[CallKind], member_id: str, finds: bool) -> None:
    member = joined_classic()

    assert finds is send(member, HeartbeatRequest, HeartbeatResponse(error_code=code), 3_000)
    member.action(3_000)
    assert calls == done(member)
    assert (not calls) is (T0 in member.ownership.owned)
    action = member.action(3_000)
    if calls:
        assert isinstance(action, Send)
        assert isinstance(action.request, JoinGroupRequest)
        assert member_id == action.request.member_id
    else:
        assert isinstance(action, Rest)
        assert 3_000 < action.until_ms < 3_200
        assert send(member, HeartbeatRequest, HeartbeatResponse(), 3_200) is False


@pytest.mark.parametrize(
    "code",
    [ErrorCode.GROUP_AUTHORIZATION_FAILED, ErrorCode.FENCED_INSTANCE_ID, ErrorCode.GROUP_MAX_SIZE_REACHED],
)
def test_some_errors_end_a_membership(code: ErrorCode) -> None:
    member = joined_classic()
    send(member, HeartbeatRequest, HeartbeatResponse(error_code=code), 3_000)

    assert isinstance(member.error, BrokerError)
    assert code is member.error.code
    assert member.action(9_000) == Rest(float("inf"))


@pytest.mark.parametrize(
    ("code", "generation"),
    [
        (ErrorCode.REBALANCE_IN_PROGRESS, 5),
        (ErrorCode.UNKNOWN_MEMBER_ID, -1),
        (ErrorCode.ILLEGAL_GENERATION, -1),
        (ErrorCode.NOT_COORDINATOR, 5),
    ],
)
def test_what_a_sync_s_error_means(code: ErrorCode, generation: int) -> None:
    member = joined_classic()
    member.request_rejoin("test")
    member.action(1)
    done(member)
    again = JoinGroupResponse(
        generation_id=5, protocol_type="consumer", protocol_name="range", leader="x", member_id="m"
    )
    send(member, JoinGroupRequest, again, 1)
    send(member, SyncGroupRequest, SyncGroupResponse(error_code=code), 1)

    assert generation == member.generation_id
    action = member.action(500)
    assert isinstance(action, Send)
    assert isinstance(action.request, JoinGroupRequest)


@pytest.mark.parametrize("came_back", [False, True])
def test_a_leader_assigns_and_one_that_came_back_only_counts(came_back: bool) -> None:
    member = ClassicMember(SETTINGS, (RangeAssignor(),), Cluster(), backoff())
    member.subscribe(frozenset({"t"}), None, 0)
    join = JoinGroupResponse(
        generation_id=1,
        protocol_type="consumer",
        protocol_name="range",
        leader="m",
        member_id="m",
        skip_assignment=came_back,
    )
    send(member, JoinGroupRequest, join)
    action = member.action(0)

    assert isinstance(action, Assign)
    assert action.skips is came_back
    member.assigned({} if came_back else {"m": MemberAssignment({"t": [0]})}, {"t": 1})
    last = member.action(0)
    assert isinstance(last, Send)
    assert isinstance(last.request, SyncGroupRequest)
    assert [item.member_id for item in last.request.assignments] == ([] if came_back else ["m"])


def test_a_static_member_leaves_for_good_only_when_told() -> None:
    static = GroupSettings(group_id="g", instance_id="one")

    assert joined_classic(static).leave("bye", is_for_good=False) is None
    assert joined_classic(static).leave("bye", is_for_good=True) is not None
    assert joined_classic().leave("bye", is_for_good=False) is not None


def test_a_broken_connection_during_a_join_is_tried_again_and_a_missing_api_is_fatal() -> None:
    member = ClassicMember(SETTINGS, (RangeAssignor(),), Cluster(), backoff())
    member.subscribe(frozenset({"t"}), None, 0)
    first = member.action(0)
    assert isinstance(first, Send)
    member.on_failure(first.request, ConnectionFailedError("gone"), 0)

    assert isinstance(member.action(1), Rest)
    assert isinstance(member.action(200), Send)
    member.on_failure(first.request, UnsupportedVersionError("no JoinGroup"), 200)
    assert isinstance(member.error, UnsupportedVersionError)


def test_a_refused_commit_tells_the_member() -> None:
    member = joined_classic()
    identity = member.metadata
    assert identity is not None
    phases = []
    for refused, code in (
        (GroupMetadata("g", 4, "m"), ErrorCode.ILLEGAL_GENERATION),  # of a generation before
        (identity, ErrorCode.UNKNOWN_MEMBER_ID),
    ):
        member.on_commit_refused(refused, code, 0)
        phases.append(member.phase)

    assert phases == [Phase.IN, Phase.OUT]
    member.action(0)
    assert done(member) == [CallKind.LOST]


# The consumer protocol.


def joined_consumer() -> ConsumerMember:
    """Return a member of epoch 3 that owns one partition."""
    cluster = Cluster()
    member = ConsumerMember(SETTINGS, "m", cluster, backoff())
    member.subscribe(frozenset({"t"}), None, 0)
    topic_id = uuid.UUID(int=4)
    cluster._names[topic_id] = "t"
    given = Assignment(topic_partitions=[ResponseTopicPartitions(topic_id=topic_id, partitions=[0])])
    answer = ConsumerGroupHeartbeatResponse(member_id="m", member_epoch=3, heartbeat_interval_ms=50, assignment=given)
    send(member, object, answer)
    assert done(member) == [CallKind.ASSIGNED]
    send(member, object, ConsumerGroupHeartbeatResponse(member_epoch=3, heartbeat_interval_ms=50))
    return member


@pytest.mark.parametrize("code", [ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID])
def test_a_fenced_member_loses_everything_and_joins_again_under_the_same_id(code: ErrorCode) -> None:
    member = joined_consumer()
    send(member, object, ConsumerGroupHeartbeatResponse(error_code=code), 50)

    assert isinstance(member.action(50), Rest)
    assert done(member) == [CallKind.LOST]
    action = member.action(50)
    assert isinstance(action, Send)
    request: Any = action.request
    assert (request.member_id, request.member_epoch, request.topic_partitions) == ("m", 0, [])


@pytest.mark.parametrize(
    ("code", "finds"),
    [
        (ErrorCode.NOT_COORDINATOR, True),
        (ErrorCode.COORDINATOR_NOT_AVAILABLE, True),
        (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, False),
    ],
)
def test_a_coordinator_in_trouble_is_told_everything_again(code: ErrorCode, finds: bool) -> None:
    member = joined_consumer()

    assert finds is send(member, object, ConsumerGroupHeartbeatResponse(error_code=code), 50)
    assert isinstance(member.action(51), Rest)
    action = member.action(250)
    assert isinstance(action, Send)
    request: Any = action.request
    assert (request.member_epoch, request.subscribed_topic_names, request.rebalance_timeout_ms) == (3, ["t"], 300_000)
    assert member.phase is ConsumerPhase.IN


def test_only_news_travels_with_a_heartbeat() -> None:
    member = joined_consumer()
    action = member.action(50)
    assert isinstance(action, Send)
    request: Any = action.request

    assert request.subscribed_topic_names is None
    assert request.topic_partitions is None
    assert request.rebalance_timeout_ms == -1
    member.subscribe(frozenset({"t", "u"}), None, 60)
    changed: Any = member.action(60)
    assert changed.request.subscribed_topic_names == ["t", "u"]


@pytest.mark.parametrize(
    "code", [ErrorCode.UNSUPPORTED_ASSIGNOR, ErrorCode.UNRELEASED_INSTANCE_ID, ErrorCode.INVALID_REGULAR_EXPRESSION]
)
def test_some_errors_end_a_membership_of_the_consumer_protocol(code: ErrorCode) -> None:
    member = joined_consumer()
    send(member, object, ConsumerGroupHeartbeatResponse(error_code=code, error_message="because"), 50)

    assert "because" in str(member.error)


# Commits.


@pytest.mark.parametrize(
    ("codes", "kind", "retriable", "finds"),
    [
        ([0, 0], None, None, False),
        ([0, ErrorCode.NOT_COORDINATOR], BrokerError, True, True),
        ([ErrorCode.COORDINATOR_LOAD_IN_PROGRESS], BrokerError, True, False),
        ([ErrorCode.UNKNOWN_TOPIC_OR_PARTITION], BrokerError, True, False),
        ([ErrorCode.REBALANCE_IN_PROGRESS], RebalanceInProgressError, False, False),
        ([ErrorCode.NOT_COORDINATOR, ErrorCode.ILLEGAL_GENERATION], CommitFailedError, False, False),
        ([ErrorCode.UNKNOWN_MEMBER_ID], CommitFailedError, False, False),
        ([ErrorCode.STALE_MEMBER_EPOCH], BrokerError, True, False),
        ([ErrorCode.OFFSET_METADATA_TOO_LARGE], BrokerError, False, False),
    ],
)
def test_what_a_commit_s_answer_means(codes: list[int], kind: type | None, retriable: bool | None, finds: bool) -> None:
    items = [OffsetCommitResponsePartition(partition_index=n, error_code=int(code)) for n, code in enumerate(codes)]
    outcome = commit_outcome(OffsetCommitResponse(topics=[OffsetCommitResponseTopic(name="t", partitions=items)]), "g")

    assert (outcome.error is None) is (kind is None)
    assert kind is None or type(outcome.error) is kind
    assert outcome.error is None or outcome.error.retriable is retriable
    assert finds is outcome.must_find


def test_requests_about_offsets_name_the_group_and_the_member() -> None:
    nobody = commit_request(GroupMetadata("g"), {})
    member = fetch_request("g", [T0], GroupMetadata("g", 9, "m"))
    everything = fetch_request("g", None, None)

    assert (nobody.group_id, nobody.generation_id_or_member_epoch, nobody.member_id) == ("g", -1, "")
    assert (member.groups[0].member_id, member.groups[0].member_epoch, member.require_stable) == ("m", 9, True)
    assert everything.groups[0].topics is None
    failed = OffsetFetchResponse(groups=[OffsetFetchResponseGroup(group_id="g", error_code=ErrorCode.NOT_COORDINATOR)])
    assert fetch_outcome(failed, "g")[0].must_find


# Transactions.


@pytest.mark.parametrize(
    ("code", "verdict"),
    [
        (ErrorCode.NONE, Verdict.DONE),
        (ErrorCode.CONCURRENT_TRANSACTIONS, Verdict.AGAIN),
        (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, Verdict.AGAIN),
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, Verdict.AGAIN),
        (ErrorCode.NOT_COORDINATOR, Verdict.FIND),
        (ErrorCode.INVALID_PRODUCER_EPOCH, Verdict.FENCED),
        (ErrorCode.PRODUCER_FENCED, Verdict.FENCED),
        (ErrorCode.TRANSACTION_ABORTABLE, Verdict.ABORT),
        (ErrorCode.GROUP_AUTHORIZATION_FAILED, Verdict.ABORT),
        (ErrorCode.ILLEGAL_GENERATION, Verdict.ABORT),
        (ErrorCode.INVALID_TXN_STATE, Verdict.FATAL),
        (ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, Verdict.FATAL),
    ],
)
def test_what_a_coordinator_s_code_means_for_a_transaction(code: ErrorCode, verdict: Verdict) -> None:
    assert verdict is judge(code)


def in_transaction(*, is_v2: bool = True) -> TransactionMachine:
    machine = TransactionMachine("id")
    machine.initialized(7, 0)
    machine.begin(is_v2=is_v2)
    return machine


def test_version_1_tells_the_coordinator_of_each_partition_first() -> None:
    machine = in_transaction(is_v2=False)

    assert machine.use(T0)
    assert not machine.use(T0)
    assert not machine.may_send(T0)
    machine.added(machine.to_add)
    assert machine.may_send(T0)
    machine.begin_end(is_commit=True)
    assert not machine.ended()
    assert machine.producer_epoch == 0


def test_version_2_leaves_that_to_the_brokers_and_gets_an_epoch_for_each_end() -> None:
    machine = in_transaction()

    assert not machine.use(T0)
    assert machine.may_send(T0)
    machine.begin_end(is_commit=True)
    assert machine.ended(7, 1)
    assert (machine.producer_epoch, machine.state) == (1, State.READY)


@pytest.mark.parametrize(
    ("error", "state", "kind"),
    [
        (BrokerError(ErrorCode.INVALID_RECORD), State.ABORTABLE_ERROR, TransactionAbortableError),
        (BrokerError(ErrorCode.INVALID_PRODUCER_EPOCH), State.ABORTABLE_ERROR, TransactionAbortableError),
        (ClientTimeoutError("late"), State.ABORTABLE_ERROR, TransactionAbortableError),
        (BrokerError(ErrorCode.PRODUCER_FENCED), State.FATAL_ERROR, ProducerFencedError),
        (BrokerError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED), State.FATAL_ERROR, TransactionFatalError),
    ],
)
def test_a_batch_that_is_given_up_costs_the_transaction_or_the_producer(
    error: ClientError, state: State, kind: type[Exception]
) -> None:
    machine = in_transaction()
    machine.batch_failed(error, was_numbered=True)

    assert state is machine.state
    assert machine.needs_epoch
    assert machine.drops_batches
    with pytest.raises(kind):
        machine.check_open()
    with pytest.raises(kind):
        machine.begin_end(is_commit=True)


def test_a_record_that_is_not_taken_costs_the_open_transaction_and_none_that_ends() -> None:
    machine = in_transaction()
    machine.record_refused(ClientTimeoutError("no metadata"))
    with pytest.raises(TransactionAbortableError, match=r"not taken.*no metadata"):
        machine.begin_end(is_commit=True)
    machine.begin_end(is_commit=False)
    machine.ended(7, 1)
    needs_epoch = machine.needs_epoch

    machine.begin(is_v2=True)
    machine.begin_end(is_commit=True)
    machine.is_end_sent = True
    machine.record_refused(ClientTimeoutError("another task's, too late"))

    assert not needs_epoch
    assert machine.state is State.COMMITTING
    assert machine.error is None


def test_a_commit_whose_fate_is_open_cannot_be_aborted_only_repeated() -> None:
    machine = in_transaction()
    machine.begin_end(is_commit=True)
    before = machine.may_abort
    machine.is_end_sent = True

    assert (before, machine.may_abort) == (True, False)
    with pytest.raises(ClientUsageError, match="commit once more"):
        machine.begin_end(is_commit=False)
    machine.begin_end(is_commit=True)


def test_nothing_leads_out_of_a_fatal_error() -> None:
    machine = in_transaction()
    machine.refused(ErrorCode.INVALID_TXN_STATE, "no")

    assert NEXT[State.FATAL_ERROR] == set()
    calls = (partial(machine.begin, is_v2=True), partial(machine.initialized, 7, 1), machine.check_open)
    for call in calls:
        with pytest.raises(TransactionFatalError):
            call()
