"""Naive group coordinators for members without a network: no time-outs, no log; answers come when they are complete."""

from __future__ import annotations

import uuid
from typing import Any

import attrs

from odradek.kernel.errors import ErrorCode
from odradek.kernel.wire.messages.api_11_join_group import (
    JoinGroupRequest,
    JoinGroupResponse,
    JoinGroupResponseMember,
)
from odradek.kernel.wire.messages.api_12_heartbeat import HeartbeatRequest, HeartbeatResponse
from odradek.kernel.wire.messages.api_13_leave_group import LeaveGroupRequest, LeaveGroupResponse
from odradek.kernel.wire.messages.api_14_sync_group import SyncGroupRequest, SyncGroupResponse
from odradek.kernel.wire.messages.api_68_consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    ResponseTopicPartitions,
)


@attrs.define
class NaiveClassicGroup:
    """A classic group: joins wait until every member has joined, syncs until the leader has.

    `ask` returns None while an answer has to wait; `answers` has it later, by the client's name.
    """

    generation: int = 0
    members: dict[str, JoinGroupRequest] = attrs.field(factory=dict)
    joining: dict[str, str] = attrs.field(factory=dict)  # member id -> client
    syncing: dict[str, str] = attrs.field(factory=dict)
    assignments: dict[str, bytes] = attrs.field(factory=dict)
    leader: str = ""
    is_preparing: bool = False
    answers: dict[str, Any] = attrs.field(factory=dict)
    ids_count: int = 0

    def ask(self, client: str, request: Any) -> Any:
        if isinstance(request, JoinGroupRequest):
            return self._join(client, request)
        if isinstance(request, LeaveGroupRequest):
            self.remove(request.members[0].member_id)
            return LeaveGroupResponse()
        member_id = request.member_id
        if member_id not in self.members:
            return self._error(request, ErrorCode.UNKNOWN_MEMBER_ID)
        if request.generation_id != self.generation:
            return self._error(request, ErrorCode.ILLEGAL_GENERATION)
        if self.is_preparing:
            return self._error(request, ErrorCode.REBALANCE_IN_PROGRESS)
        if isinstance(request, HeartbeatRequest):
            return HeartbeatResponse()
        return self._sync(client, request)

    def _error(self, request: Any, code: ErrorCode) -> Any:
        kind = HeartbeatResponse if isinstance(request, HeartbeatRequest) else SyncGroupResponse
        return kind(error_code=code)

    def _join(self, client: str, request: JoinGroupRequest) -> Any:
        if not request.member_id:
            self.ids_count += 1
            member_id = f"{client}-{self.ids_count}"
            return JoinGroupResponse(error_code=ErrorCode.MEMBER_ID_REQUIRED, member_id=member_id)
        if request.member_id not in self.members and not request.member_id.startswith(client):
            return JoinGroupResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID)
        self.members[request.member_id] = request
        self.joining[request.member_id] = client
        self.is_preparing = True
        return None

    def remove(self, member_id: str) -> None:
        """Have a member go: it left, or its session ended."""
        if self.members.pop(member_id, None) is None:
            return
        self.joining.pop(member_id, None)
        self.syncing.pop(member_id, None)
        self.is_preparing = True

    def tick(self) -> None:
        """Complete what is complete."""
        if self.is_preparing:
            for client in self.syncing.values():
                self.answers[client] = SyncGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS)
            self.syncing.clear()
            if self.members and self.members.keys() <= self.joining.keys():
                self._complete_join()
        elif self.leader in self.syncing:
            for member_id, client in self.syncing.items():
                self.answers[client] = SyncGroupResponse(assignment=self.assignments.get(member_id, b""))
            self.syncing.clear()

    def _complete_join(self) -> None:
        self.is_preparing = False
        self.generation += 1
        self.assignments = {}
        self.leader = min(self.members)
        protocol = self.members[self.leader].protocols[0].name
        listed = [
            JoinGroupResponseMember(member_id=member_id, metadata=bytes(request.protocols[0].metadata))
            for member_id, request in self.members.items()
        ]
        for member_id, client in self.joining.items():
            self.answers[client] = JoinGroupResponse(
                generation_id=self.generation,
                protocol_type="consumer",
                protocol_name=protocol,
                leader=self.leader,
                member_id=member_id,
                members=listed if member_id == self.leader else [],
            )
        self.joining.clear()

    def _sync(self, client: str, request: SyncGroupRequest) -> Any:
        if request.member_id == self.leader and request.assignments:
            self.assignments = {item.member_id: bytes(item.assignment) for item in request.assignments}
        self.syncing[request.member_id] = client
        return None


@attrs.define
class NaiveConsumerGroup:
    """A group of the consumer protocol, with one topic: partitions in turn, given only when nobody has them."""

    topic_id: uuid.UUID
    partitions_count: int
    epochs: dict[str, int] = attrs.field(factory=dict)
    owned: dict[str, set[int]] = attrs.field(factory=dict)
    told: dict[str, set[int]] = attrs.field(factory=dict)
    epoch: int = 0

    def ask(self, request: ConsumerGroupHeartbeatRequest) -> ConsumerGroupHeartbeatResponse:
        member_id = request.member_id
        if request.member_epoch < 0:
            self.remove(member_id)
            return ConsumerGroupHeartbeatResponse(member_epoch=request.member_epoch)
        if request.member_epoch == 0:
            self.epoch += 1
            self.owned[member_id] = set()
            self.told.pop(member_id, None)
        elif member_id not in self.epochs:
            return ConsumerGroupHeartbeatResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID)
        elif request.member_epoch != self.epochs[member_id]:
            return ConsumerGroupHeartbeatResponse(error_code=ErrorCode.FENCED_MEMBER_EPOCH)
        self.epochs[member_id] = self.epoch
        if request.topic_partitions is not None:
            kept = {number for topic in request.topic_partitions for number in topic.partitions}
            # What was given and is not acknowledged yet may be on its way to the member.
            self.owned[member_id] = kept | (self.owned[member_id] & self.told.get(member_id, set()))
        return self._answer(member_id)

    def _answer(self, member_id: str) -> ConsumerGroupHeartbeatResponse:
        wanted = self.target()[member_id]
        others = set().union(*(owned for each, owned in self.owned.items() if each != member_id))
        given = (self.owned[member_id] & wanted) | (wanted - others)
        assignment = None
        if self.told.get(member_id) != given:
            self.told[member_id] = given
            items = [ResponseTopicPartitions(topic_id=self.topic_id, partitions=sorted(given))] if given else []
            assignment = Assignment(topic_partitions=items)
        self.owned[member_id] |= given
        return ConsumerGroupHeartbeatResponse(
            member_id=member_id,
            member_epoch=self.epochs[member_id],
            heartbeat_interval_ms=10,
            assignment=assignment,
        )

    def target(self) -> dict[str, set[int]]:
        """Return what each member should have in the end."""
        ids = sorted(self.epochs)
        return {each: set(range(place, self.partitions_count, len(ids))) for place, each in enumerate(ids)}

    def remove(self, member_id: str) -> None:
        """Have a member go: it left, or its session ended."""
        self.epoch += 1
        for table in (self.epochs, self.owned, self.told):
            table.pop(member_id, None)
