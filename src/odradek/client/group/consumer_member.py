"""Pure core: a member of a group of the consumer protocol (KIP-848): one request, ConsumerGroupHeartbeat.

The broker assigns; the member reconciles: what the target lacks is revoked, what it has more is taken, and the next
heartbeat tells the broker what is owned now. Heartbeats go on meanwhile.

    OUT -> JOINING (epoch 0) -> IN (epoch n): target, calls, acknowledgement ... -> LEAVING (epoch -1, static: -2)
     ^        fenced: everything owned is lost, join again |
     +-----------------------------------------------------+

The first heartbeat, and each one after a failure, carries everything; the others only what is new.

*Source:* `AbstractMembershipManager`, `ConsumerHeartbeatRequestManager` of Kafka 4.3; KIP-848, KIP-1082 (the member
makes its id).

.. versionadded:: 0.1
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any, Final, cast

import attrs

from odradek.kernel.errors import ErrorCode, error_code
from odradek.kernel.peers.errors import ClientError
from odradek.kernel.types import TopicPartition
from odradek.kernel.wire.messages.api_68_consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)

from ..cluster import COORDINATOR_MOVED
from ..errors import BrokerError
from .member import NEVER, Action, Call, CallKind, GroupMetadata, GroupSettings, Ownership, Rest, Send, by_topic

if TYPE_CHECKING:
    import uuid
    from collections.abc import Mapping

    from odradek.kernel.contracts.assignor import MemberAssignment
    from odradek.kernel.peers.backoff import Backoff
    from odradek.kernel.wire import Message

    from ..cluster import Cluster

JOIN_EPOCH: Final = 0
LEAVE_EPOCH: Final = -1
LEAVE_FOR_NOW_EPOCH: Final = -2
"""A static member that will come back keeps its place."""
_TRY_AGAIN: Final = COORDINATOR_MOVED | {ErrorCode.COORDINATOR_LOAD_IN_PROGRESS}
_FENCED: Final = frozenset({ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID})


class Phase(Enum):
    """Where the member is; see the module's picture."""

    OUT = "out"
    JOINING = "joining"
    IN = "in"


@attrs.define(eq=False)
class ConsumerMember:
    """A member of a consumer group; see `Member` for its life and owner.

    Invariants: what is owned grows and shrinks in its calls only; the member epoch is above 0 exactly in phase IN.

    Attributes:
        settings: The consumer's.
        member_id: Made by the client; one for all of its life.
    """

    settings: GroupSettings
    member_id: str
    _cluster: Cluster
    _backoff: Backoff
    ownership: Ownership = attrs.field(factory=Ownership, init=False)
    error: ClientError | None = attrs.field(default=None, init=False)
    phase: Phase = attrs.field(default=Phase.OUT, init=False)
    member_epoch: int = attrs.field(default=JOIN_EPOCH, init=False)
    _topics: frozenset[str] | None = attrs.field(default=None, init=False)
    _regex: str | None = attrs.field(default=None, init=False)
    _target: dict[uuid.UUID, tuple[int, ...]] | None = attrs.field(default=None, init=False)
    _sent: dict[str, Any] = attrs.field(factory=dict, init=False)
    _has_news: bool = attrs.field(default=False, init=False)
    _is_settled: bool = attrs.field(default=False, init=False)
    _interval_ms: int = attrs.field(default=0, init=False)
    _heartbeat_at_ms: float = attrs.field(default=0, init=False)
    _failures_count: int = attrs.field(default=0, init=False)
    _retry_at_ms: float = attrs.field(default=0, init=False)
    _poll_deadline_ms: float = attrs.field(default=NEVER, init=False)
    _has_expired: bool = attrs.field(default=False, init=False)

    # What the user does.

    @property
    def is_rebalancing(self) -> bool:
        """Never so that commits are refused: the member epoch stands until the broker raises it."""
        return False

    @property
    def metadata(self) -> GroupMetadata | None:
        """Who commits now."""
        if self.phase is not Phase.IN:
            return None
        return GroupMetadata(self.settings.group_id, self.member_epoch, self.member_id, self.settings.instance_id)

    @property
    def unnamed_topics(self) -> frozenset[uuid.UUID]:
        """Topics of the target whose names the client's image of the cluster lacks: a pattern may bring them."""
        return frozenset(topic_id for topic_id in self._target or () if self._cluster.topic_name(topic_id) is None)

    def subscribe(self, topics: frozenset[str], regex: str | None, now_ms: int) -> None:
        """Want these topics, and those that the broker finds by the pattern; the next heartbeat says so."""
        if self._topics is None:
            self._poll_deadline_ms = now_ms + self.settings.poll_interval_ms_max
            self.phase = Phase.JOINING
        self._topics, self._regex = topics, regex
        self._has_news = True

    def polled(self, now_ms: int) -> bool:
        """See `Member.polled`."""
        self._poll_deadline_ms = now_ms + self.settings.poll_interval_ms_max
        had_expired, self._has_expired = self._has_expired, False
        if had_expired:
            self._out()
        return had_expired

    def waits(self, is_waiting: bool, now_ms: int) -> None:
        """See `Member.waits`."""
        self._poll_deadline_ms = NEVER if is_waiting else now_ms + self.settings.poll_interval_ms_max

    def request_rejoin(self, reason: str) -> None:
        """Nothing: the broker alone decides when to rebalance; a heartbeat goes out at once."""
        self._has_news = True

    def topics_changed(self, now_ms: int) -> None:
        """Look again whether the target's topics have names now."""
        self._reconcile()

    # What is to be done.

    def action(self, now_ms: int) -> Action:
        """See `Member.action`."""
        if self.error is not None or self._topics is None or self._has_expired:
            return Rest(NEVER)
        if now_ms >= self._poll_deadline_ms:
            request = self.leave("", is_for_good=False, is_lost=True)
            self._has_expired = True
            return Rest(NEVER) if request is None else Send(request)
        if self.phase is Phase.OUT:
            if self.ownership.calls:
                return Rest(self._poll_deadline_ms)
            self.phase = Phase.JOINING
        due_ms = self._retry_at_ms
        if self.phase is Phase.IN and not self._has_news:
            due_ms = max(due_ms, self._heartbeat_at_ms)
        if now_ms < due_ms:
            return Rest(min(due_ms, self._poll_deadline_ms))
        self._heartbeat_at_ms = now_ms + self._interval_ms
        return Send(self._heartbeat())

    def _heartbeat(self) -> ConsumerGroupHeartbeatRequest:
        assert self._topics is not None
        settings = self.settings
        is_joining = self.phase is Phase.JOINING
        self._has_news = False
        if is_joining:
            self._sent.clear()
        request = ConsumerGroupHeartbeatRequest(
            group_id=settings.group_id,
            member_id=self.member_id,
            member_epoch=JOIN_EPOCH if is_joining else self.member_epoch,
            instance_id=settings.instance_id,
        )
        request.rack_id = self._news("rack", settings.rack or None)
        request.rebalance_timeout_ms = self._news("timeout", settings.poll_interval_ms_max, unchanged=-1)
        request.subscribed_topic_names = self._news("topics", sorted(self._topics))
        regex = self._regex
        if regex is None and self._sent.get("regex"):
            regex = ""  # the empty text takes a pattern back
        request.subscribed_topic_regex = self._news("regex", regex)
        request.server_assignor = self._news("assignor", settings.remote_assignor)
        request.topic_partitions = self._news("owned", self._owned_by_id())
        return request

    def _news(self, name: str, value: Any, unchanged: Any = None) -> Any:
        """Return a value that the broker does not know yet, and remember that it does now."""
        if name in self._sent and self._sent[name] == value:
            return unchanged
        self._sent[name] = value
        return value

    def _owned_by_id(self) -> list[TopicPartitions]:
        """Return what is owned, and what is about to be by calls that wait.

        Left out, what the coordinator wants back meanwhile would count as released, and then be taken all the same.
        """
        coming = (call.partitions for call in self.ownership.calls if call.kind is CallKind.ASSIGNED)
        return [
            TopicPartitions(topic_id=self._cluster.topic_id(topic), partitions=partitions)
            for topic, partitions in by_topic(self.ownership.owned.union(*coming)).items()
        ]

    # Answers.

    def on_response(self, request: Message, response: Message, now_ms: int) -> bool:
        """See `Member.on_response`."""
        sent, answer = cast("ConsumerGroupHeartbeatRequest", request), cast("ConsumerGroupHeartbeatResponse", response)
        if sent.member_epoch < JOIN_EPOCH or self.phase is Phase.OUT:
            return False  # it has left since
        code = error_code(answer.error_code)
        if code is ErrorCode.NONE:
            self._on_heartbeat(answer, now_ms)
        elif code in _FENCED:
            self._out()
        elif code in _TRY_AGAIN:
            self._sent.clear()
            self._pause(now_ms)
        else:
            self.error = BrokerError(code, f"group {self.settings.group_id!r}: {answer.error_message or code.text}")
            self.phase = Phase.OUT
        return code in COORDINATOR_MOVED

    def _on_heartbeat(self, answer: ConsumerGroupHeartbeatResponse, now_ms: int) -> None:
        self._failures_count = 0
        self._retry_at_ms = 0
        if answer.member_id:
            self.member_id = answer.member_id  # brokers before KIP-1082 make it
        self.member_epoch = answer.member_epoch
        self._interval_ms = answer.heartbeat_interval_ms
        self._heartbeat_at_ms = now_ms + self._interval_ms
        self.phase = Phase.IN
        if answer.assignment is not None:
            self._target = {
                item.topic_id: tuple(item.partitions) for item in answer.assignment.topic_partitions if item.partitions
            }
        self._reconcile()

    def on_failure(self, request: Message, error: ClientError, now_ms: int) -> None:
        """See `Member.on_failure`."""
        if cast("ConsumerGroupHeartbeatRequest", request).member_epoch < JOIN_EPOCH:
            return
        if not error.retriable:
            self.error = error
            return
        self._sent.clear()
        self._has_news = True
        self._pause(now_ms)

    def _pause(self, now_ms: int) -> None:
        self._has_news = True
        self._failures_count += 1
        self._retry_at_ms = now_ms + self._backoff.pause_ms(self._failures_count)

    def _reconcile(self) -> None:
        """Begin to make what is owned what the target says, as far as its topics have names."""
        if self._target is None or self.ownership.calls or self.phase is not Phase.IN:
            return
        target = frozenset(
            TopicPartition(name, number)
            for topic_id, partitions in self._target.items()
            if (name := self._cluster.topic_name(topic_id)) is not None
            for number in partitions
        )
        gone, fresh = self.ownership.owned - target, target - self.ownership.owned
        if not gone and not fresh and (self._is_settled or self.unnamed_topics):
            return
        if gone or (self.ownership.owned and self.settings.is_auto_commit):
            self.ownership.add(CallKind.REVOKED, gone, commits=True, is_needed=True)
        self.ownership.add(CallKind.ASSIGNED, fresh, is_needed=True)

    def _out(self) -> None:
        """The coordinator has dropped this member, or it left: nothing is owned any more, and it joins again."""
        self.member_epoch = JOIN_EPOCH
        self._target = None
        self._is_settled = False
        self.phase = Phase.OUT
        self.ownership.calls.clear()
        self.ownership.add(CallKind.LOST, self.ownership.owned)

    # The other task, and the end.

    def call_done(self, call: Call, now_ms: int) -> None:
        """See `Member.call_done`."""
        if self.ownership.finish(call) and not self.ownership.calls and self.phase is Phase.IN:
            self._is_settled = True
            self._has_news = True  # the broker waits for what was released
            self._sent.pop("owned", None)  # told again though it be the same: what was given meanwhile is not taken
            self._reconcile()

    def assigned(self, assignments: Mapping[str, MemberAssignment], counts: Mapping[str, int]) -> None:
        """Never called: the broker assigns."""
        raise AssertionError("a member of the consumer protocol assigns nothing")

    def on_commit_refused(self, metadata: GroupMetadata, code: int, now_ms: int) -> None:
        """Have the next heartbeat find out: it is told the same, or brings the newer epoch."""
        self._has_news = True

    def leave(self, reason: str, *, is_for_good: bool, is_lost: bool = False) -> ConsumerGroupHeartbeatRequest | None:
        """See `Member.leave`; `is_lost` as for the classic protocol."""
        request = None
        if self.phase is not Phase.OUT:
            keeps_place = self.settings.instance_id is not None and not is_for_good
            request = ConsumerGroupHeartbeatRequest(
                group_id=self.settings.group_id,
                member_id=self.member_id,
                member_epoch=LEAVE_FOR_NOW_EPOCH if keeps_place else LEAVE_EPOCH,
                instance_id=self.settings.instance_id,
            )
        if not is_lost:
            self.ownership.owned = frozenset()
            self._topics = self._regex = None
        self._out()
        return request

    def __repr__(self) -> str:
        return (
            f"<ConsumerMember {self.member_id} of {self.settings.group_id!r}: {self.phase.value}, epoch "
            f"{self.member_epoch}, {len(self.ownership.owned)} partitions, {len(self.ownership.calls)} calls>"
        )
