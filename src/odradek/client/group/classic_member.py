"""Pure core: a member of a group of the classic protocol: JoinGroup, SyncGroup, Heartbeat, LeaveGroup.

    OUT -> (calls: what is owned goes) -> JOINING -> [ASSIGNING, the leader] -> SYNCING -> (calls: what is new comes)
     ^                                       ^                                                       |
     | UNKNOWN_MEMBER_ID, ILLEGAL_GENERATION | REBALANCE_IN_PROGRESS, subscription or topics changed v
     +---------------------------------------+---------------------------------------------------- IN

Eager assignors: everything owned is revoked before the join. Cooperative ones (KIP-429): it is kept; what the new
assignment lacks is revoked after it, and then the group is joined once more, so that others may get it.

*Source:* `AbstractCoordinator`, `ConsumerCoordinator` of Kafka 4.3; KIP-62, KIP-345 (static members), KIP-394 (member
ids), KIP-429, KIP-814 (a static leader that comes back).

.. versionadded:: 0.1
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Final, cast

import attrs

from odradek.kernel.errors import ErrorCode, error_code
from odradek.kernel.peers.errors import ClientError
from odradek.kernel.types import TopicPartition
from odradek.kernel.wire import DecodeError
from odradek.kernel.wire.messages.api_11_join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from odradek.kernel.wire.messages.api_12_heartbeat import HeartbeatRequest
from odradek.kernel.wire.messages.api_13_leave_group import LeaveGroupRequest, MemberIdentity
from odradek.kernel.wire.messages.api_14_sync_group import (
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)
from odradek.kernel.wire.messages.consumer_protocol import PROTOCOL_TYPE

from ..cluster import COORDINATOR_MOVED
from ..errors import BrokerError, ClientUsageError
from .assigning import decode_given, encode_given, group_members, subscription_bytes
from .member import (
    NEVER,
    NO_GENERATION,
    NO_MEMBER,
    Action,
    Assign,
    Call,
    CallKind,
    GroupMetadata,
    GroupSettings,
    Ownership,
    Rest,
    Send,
    by_topic,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from odradek.kernel.contracts.assignor import Assignor, MemberAssignment
    from odradek.kernel.peers.backoff import Backoff
    from odradek.kernel.wire import Message

    from ..cluster import Cluster

_JOIN_MARGIN_MS: Final = 5_000
"""A join may take as long as a rebalance: the broker needs a moment more to answer it."""
_REASON_LENGTH_MAX: Final = 255
_TRY_AGAIN: Final = COORDINATOR_MOVED | {ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.REBALANCE_IN_PROGRESS}
_OUT: Final = frozenset({ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION})


class Phase(Enum):
    """Where the member is; see the module's picture."""

    OUT = "out"
    JOINING = "joining"
    ASSIGNING = "assigning"
    SYNCING = "syncing"
    IN = "in"


_ASKED_IN: Final[dict[type[Message], Phase]] = {JoinGroupRequest: Phase.JOINING, SyncGroupRequest: Phase.SYNCING}
"""The phase that a request belongs to: its answer means nothing in another."""


@attrs.define(eq=False)
class ClassicMember:
    """A member of a classic group; see `Member` for its life and owner.

    Invariants: partitions are owned only in the phases IN, and, by members with cooperative assignors or before the
    calls that revoke them, in the others. `generation_id` is -1 exactly while the coordinator may not know this member.

    Attributes:
        settings: The consumer's.
        assignors: What `partition.assignment.strategy` names, best first.
    """

    settings: GroupSettings
    assignors: Sequence[Assignor]
    _cluster: Cluster
    _backoff: Backoff
    ownership: Ownership = attrs.field(factory=Ownership, init=False)
    error: ClientError | None = attrs.field(default=None, init=False)
    phase: Phase = attrs.field(default=Phase.OUT, init=False)
    generation_id: int = attrs.field(default=NO_GENERATION, init=False)
    member_id: str = attrs.field(default=NO_MEMBER, init=False)
    _topics: frozenset[str] | None = attrs.field(default=None, init=False)
    _joined_topics: frozenset[str] = attrs.field(default=frozenset(), init=False)
    _counts: dict[str, int] | None = attrs.field(default=None, init=False)
    _join: JoinGroupResponse | None = attrs.field(default=None, init=False)
    _given: Mapping[str, MemberAssignment] = attrs.field(factory=dict, init=False)
    _previous: dict[str, tuple[MemberAssignment, int]] = attrs.field(factory=dict, init=False)
    _needs_rejoin: bool = attrs.field(default=False, init=False)
    _is_prepared: bool = attrs.field(default=False, init=False)
    _reason: str = attrs.field(default="", init=False)
    _failures_count: int = attrs.field(default=0, init=False)
    _retry_at_ms: float = attrs.field(default=0, init=False)
    _heartbeat_at_ms: float = attrs.field(default=0, init=False)
    _poll_deadline_ms: float = attrs.field(default=NEVER, init=False)
    _has_expired: bool = attrs.field(default=False, init=False)

    # What the user does.

    @property
    def is_cooperative(self) -> bool:
        """Whether partitions are kept during a rebalance: every assignor must be able to."""
        return all(assignor.is_cooperative for assignor in self.assignors)

    @property
    def is_rebalancing(self) -> bool:
        """Whether the member is on its way into a generation."""
        return self.phase in {Phase.JOINING, Phase.ASSIGNING, Phase.SYNCING}

    @property
    def metadata(self) -> GroupMetadata | None:
        """Who commits now."""
        if self.phase is not Phase.IN:
            return None
        return GroupMetadata(self.settings.group_id, self.generation_id, self.member_id, self.settings.instance_id)

    def subscribe(self, topics: frozenset[str], regex: str | None, now_ms: int) -> None:
        """Want these topics; a group that was joined with others is joined again."""
        if regex is not None:
            raise ClientUsageError("members of the classic protocol match patterns themselves")
        if self._topics is None:
            self._poll_deadline_ms = now_ms + self.settings.poll_interval_ms_max
            self._needs_rejoin = True
        self._topics = topics
        if self.phase is not Phase.OUT and topics != self._joined_topics:
            self.request_rejoin("the subscription has changed")

    def polled(self, now_ms: int) -> bool:
        """See `Member.polled`."""
        self._poll_deadline_ms = now_ms + self.settings.poll_interval_ms_max
        had_expired, self._has_expired = self._has_expired, False
        if had_expired:
            self._prepare()  # what was owned is lost: this poll tells
        return had_expired

    def waits(self, is_waiting: bool, now_ms: int) -> None:
        """See `Member.waits`."""
        self._poll_deadline_ms = NEVER if is_waiting else now_ms + self.settings.poll_interval_ms_max

    def request_rejoin(self, reason: str) -> None:
        """Join the group again as soon as nothing else is under way."""
        if not self._needs_rejoin:
            self._needs_rejoin = True
            self._reason = reason[:_REASON_LENGTH_MAX]

    def topics_changed(self, now_ms: int) -> None:
        """As the leader, have the group rebalance when some topic of it has come, gone or grown."""
        if self._counts is not None and self.phase is Phase.IN and self._counts != self._count(self._counts):
            self.request_rejoin("the topics of the group have changed")

    def _count(self, topics: Mapping[str, int]) -> dict[str, int]:
        known = self._cluster.topics
        return {topic: len(known[topic].partitions) if topic in known else 0 for topic in topics}

    # What is to be done.

    def action(self, now_ms: int) -> Action:
        """See `Member.action`."""
        if self.error is not None or self._topics is None or self._has_expired:
            return Rest(NEVER)
        if now_ms >= self._poll_deadline_ms:
            return self._expire()
        is_settled = self.phase is Phase.IN and not (self._needs_rejoin or self._is_prepared)
        if is_settled or self.ownership.calls:
            return self._heartbeat(now_ms)
        if now_ms < self._retry_at_ms:
            return Rest(min(self._retry_at_ms, self._poll_deadline_ms))
        if self.phase in {Phase.OUT, Phase.IN}:
            self._prepare()
            if self.ownership.calls:
                return self._heartbeat(now_ms)
            self.phase = Phase.JOINING
        if self.phase is Phase.JOINING:
            timeout_ms = self.settings.poll_interval_ms_max + _JOIN_MARGIN_MS
            return Send(self._join_request(), timeout_ms)
        if self.phase is Phase.ASSIGNING:
            return self._assign()
        return Send(self._sync_request(), self.settings.poll_interval_ms_max + _JOIN_MARGIN_MS)

    def _expire(self) -> Action:
        """Leave because the user does not poll; a static member just falls silent, as in Java."""
        request = self.leave("the consumer was not polled within max.poll.interval.ms", is_for_good=False, is_lost=True)
        self._has_expired = True
        return Rest(NEVER) if request is None else Send(request)

    def _heartbeat(self, now_ms: int) -> Action:
        if self.generation_id == NO_GENERATION:
            return Rest(self._poll_deadline_ms)
        due_ms = max(self._heartbeat_at_ms, self._retry_at_ms)
        if now_ms < due_ms:
            return Rest(min(due_ms, self._poll_deadline_ms))
        self._heartbeat_at_ms = now_ms + self.settings.heartbeat_interval_ms
        settings = self.settings
        return Send(
            HeartbeatRequest(
                group_id=settings.group_id,
                generation_id=self.generation_id,
                member_id=self.member_id,
                group_instance_id=settings.instance_id,
            ),
            settings.session_timeout_ms,
        )

    def _prepare(self) -> None:
        """Before a join: have go what may not be kept; done once for each rebalance."""
        self._needs_rejoin = False
        if self._is_prepared:
            return
        self._is_prepared = True
        assert self._topics is not None
        if self.generation_id == NO_GENERATION or not self.member_id:
            self.ownership.add(CallKind.LOST, self.ownership.owned)
        elif not self.is_cooperative:
            self.ownership.add(CallKind.REVOKED, self.ownership.owned, commits=True)
        else:
            gone = frozenset(partition for partition in self.ownership.owned if partition.topic not in self._topics)
            # A call in any case: the user processed what the last poll returned, and may have committed it, before the
            # member is between two generations and cannot.
            self.ownership.add(CallKind.REVOKED, gone, commits=True, is_needed=bool(self.ownership.owned))

    def _join_request(self) -> JoinGroupRequest:
        assert self._topics is not None
        settings = self.settings
        self._joined_topics = self._topics
        return JoinGroupRequest(
            group_id=settings.group_id,
            session_timeout_ms=settings.session_timeout_ms,
            rebalance_timeout_ms=settings.poll_interval_ms_max,
            member_id=self.member_id,
            group_instance_id=settings.instance_id,
            protocol_type=PROTOCOL_TYPE,
            protocols=[
                JoinGroupRequestProtocol(
                    name=assignor.name,
                    metadata=subscription_bytes(
                        assignor,
                        self._topics,
                        by_topic(self.ownership.owned),
                        self.generation_id,
                        settings.rack,
                        self._previous.get(assignor.name),
                    ),
                )
                for assignor in self.assignors
            ],
            reason=self._reason or None,
        )

    def _assign(self) -> Action:
        assert self._join is not None
        try:
            members = group_members(
                (item.member_id, item.group_instance_id, item.metadata) for item in self._join.members
            )
        except DecodeError as error:
            self.error = ClientError(f"a member of group {self.settings.group_id!r} sent no subscription: {error}")
            return Rest(NEVER)
        topics = frozenset().union(*(member.topics for member in members))
        return Assign(self._chosen(self._join), members, topics, self._join.skip_assignment)

    def assigned(self, assignments: Mapping[str, MemberAssignment], counts: Mapping[str, int]) -> None:
        """See `Member.assigned`; nobody is given anything where the group keeps what it has."""
        if self.phase is not Phase.ASSIGNING:
            return  # it was put out meanwhile
        self._given = assignments
        self._counts = dict(counts)
        self.phase = Phase.SYNCING

    def _sync_request(self) -> SyncGroupRequest:
        assert self._join is not None
        return SyncGroupRequest(
            group_id=self.settings.group_id,
            generation_id=self.generation_id,
            member_id=self.member_id,
            group_instance_id=self.settings.instance_id,
            protocol_type=PROTOCOL_TYPE,
            protocol_name=self._join.protocol_name,
            assignments=[
                SyncGroupRequestAssignment(member_id=member_id, assignment=encode_given(given))
                for member_id, given in self._given.items()
            ],
        )

    def _chosen(self, join: JoinGroupResponse) -> Assignor:
        return next(assignor for assignor in self.assignors if assignor.name == join.protocol_name)

    # Answers.

    def on_response(self, request: Message, response: Message, now_ms: int) -> bool:
        """See `Member.on_response`."""
        if isinstance(request, LeaveGroupRequest):
            return False
        code = error_code(cast("JoinGroupResponse", response).error_code)
        if self.phase is not _ASKED_IN.get(type(request), self.phase):
            # It has left since, or a commit was told that it is out: no generation comes of this any more.
            return code in COORDINATOR_MOVED
        if code is ErrorCode.NONE:
            self._failures_count = 0
            self._retry_at_ms = 0
            if isinstance(response, JoinGroupResponse):
                self._on_joined(response, now_ms)
            elif isinstance(response, SyncGroupResponse):
                self._on_synced(response, now_ms)
            return False
        if isinstance(request, HeartbeatRequest):
            self._on_heartbeat_error(request, code, now_ms)
        else:
            self._on_join_error(response, code, now_ms)
        return code in COORDINATOR_MOVED

    def on_failure(self, request: Message, error: ClientError, now_ms: int) -> None:
        """See `Member.on_failure`."""
        if isinstance(request, LeaveGroupRequest):
            return
        if not error.retriable:
            self.error = error
            return
        self._pause(now_ms)
        if isinstance(request, HeartbeatRequest):
            self._heartbeat_at_ms = now_ms
        elif isinstance(request, SyncGroupRequest):
            self._rejoin()  # whether the generation stands is not known

    def _pause(self, now_ms: int) -> None:
        self._failures_count += 1
        self._retry_at_ms = now_ms + self._backoff.pause_ms(self._failures_count)

    def _on_heartbeat_error(self, request: HeartbeatRequest, code: ErrorCode, now_ms: int) -> None:
        if code is ErrorCode.REBALANCE_IN_PROGRESS:
            self.request_rejoin("the group rebalances")
        elif code in _TRY_AGAIN:
            self._heartbeat_at_ms = now_ms
            self._pause(now_ms)
        elif code in _OUT:
            self._on_out(GroupMetadata(request.group_id, request.generation_id, request.member_id), code)
        else:
            self._fail(code)

    def _on_join_error(self, response: Message, code: ErrorCode, now_ms: int) -> None:
        """Take an error of JoinGroup or SyncGroup."""
        if code is ErrorCode.MEMBER_ID_REQUIRED and isinstance(response, JoinGroupResponse):
            self.member_id = response.member_id
        elif code in _OUT:
            self._on_out(GroupMetadata(self.settings.group_id, self.generation_id, self.member_id), code)
            self._rejoin()
        elif code in _TRY_AGAIN:
            if code is not ErrorCode.REBALANCE_IN_PROGRESS:
                self._pause(now_ms)
            self._rejoin()
        else:
            self._fail(code)

    def _on_joined(self, response: JoinGroupResponse, now_ms: int) -> None:
        if response.protocol_type not in (None, "", PROTOCOL_TYPE):
            self._fail(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
            return
        self.member_id = response.member_id
        self.generation_id = response.generation_id
        self._join = response
        self._given = {}
        self._counts = None
        self._reason = ""
        self._heartbeat_at_ms = now_ms + self.settings.heartbeat_interval_ms
        self.phase = Phase.ASSIGNING if response.leader == response.member_id else Phase.SYNCING

    def _on_synced(self, response: SyncGroupResponse, now_ms: int) -> None:
        assert self._join is not None
        try:
            given = decode_given(response.assignment)
        except DecodeError as error:
            self.error = ClientError(f"the assignment in group {self.settings.group_id!r} cannot be read: {error}")
            return
        self.phase = Phase.IN
        self._is_prepared = False
        self._heartbeat_at_ms = now_ms + self.settings.heartbeat_interval_ms
        target = frozenset(TopicPartition(topic, number) for topic, many in given.partitions.items() for number in many)
        assert self._topics is not None
        if self._topics != self._joined_topics or any(partition.topic not in self._topics for partition in target):
            self.request_rejoin("the assignment does not fit the subscription any more")
            target = frozenset(partition for partition in target if partition.topic in self._topics)
        self._previous[self._chosen(self._join).name] = given, self.generation_id
        gone = self.ownership.owned - target
        if gone:
            self.ownership.add(CallKind.REVOKED, gone, commits=True)
            self.request_rejoin("partitions were released that others are to get")
        self.ownership.add(CallKind.ASSIGNED, target - self.ownership.owned, is_needed=True)

    def _on_out(self, identity: GroupMetadata, code: ErrorCode) -> None:
        """The coordinator does not know this member, or this generation, any more; unless that is old news."""
        if (identity.generation_id, identity.member_id) != (self.generation_id, self.member_id):
            return
        self.generation_id = NO_GENERATION
        self._previous.clear()
        if code is ErrorCode.UNKNOWN_MEMBER_ID:
            self.member_id = NO_MEMBER
        self.ownership.calls.clear()
        self._is_prepared = False
        self.request_rejoin(f"the coordinator answered {code.name}")
        self.phase = Phase.OUT

    def _rejoin(self) -> None:
        self.phase = Phase.OUT
        self._needs_rejoin = True

    def _fail(self, code: ErrorCode) -> None:
        self.error = BrokerError(code, f"group {self.settings.group_id!r}: {code.text}")
        self.generation_id = NO_GENERATION
        self.phase = Phase.OUT
        self.ownership.calls.clear()

    # The other task, and the end.

    def call_done(self, call: Call, now_ms: int) -> None:
        """See `Member.call_done`."""
        self.ownership.finish(call)

    def on_commit_refused(self, metadata: GroupMetadata, code: int, now_ms: int) -> None:
        """See `Member.on_commit_refused`."""
        refusal = error_code(code)
        if refusal is ErrorCode.REBALANCE_IN_PROGRESS:
            self.request_rejoin("a commit met a rebalance")
        elif refusal in _OUT:
            self._on_out(metadata, refusal)
        elif refusal is ErrorCode.FENCED_INSTANCE_ID:
            self._fail(refusal)

    def leave(self, reason: str, *, is_for_good: bool, is_lost: bool = False) -> LeaveGroupRequest | None:
        """See `Member.leave`.

        Args:
            reason: For the broker's log.
            is_for_good: Whether a static member gives up its place.
            is_lost: Whether what is owned goes by a call that is still to be made, for it was not revoked.
        """
        request = None
        if self.member_id and (self.settings.instance_id is None or is_for_good):
            identity = MemberIdentity(
                member_id=self.member_id,
                group_instance_id=self.settings.instance_id,
                reason=reason[:_REASON_LENGTH_MAX],
            )
            request = LeaveGroupRequest(group_id=self.settings.group_id, members=[identity])
        self.generation_id = NO_GENERATION
        self.member_id = NO_MEMBER
        self.phase = Phase.OUT
        self.ownership.calls.clear()
        self._is_prepared = False
        self._join = None
        self._counts = None
        self._previous.clear()
        if not is_lost:
            self.ownership.owned = frozenset()
            self._topics = None
            self._needs_rejoin = False
        return request

    def __repr__(self) -> str:
        return (
            f"<ClassicMember {self.member_id or 'without id'} of {self.settings.group_id!r}: {self.phase.value}, "
            f"generation {self.generation_id}, {len(self.ownership.owned)} partitions>"
        )
