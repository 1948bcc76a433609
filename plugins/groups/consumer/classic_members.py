"""Pure core: members of the classic protocol in a consumer group: JoinGroup, SyncGroup, Heartbeat, LeaveGroup.

To such a member the generation is its member epoch, and nobody leads: JoinGroup takes it a step towards its target,
SyncGroup tells what it has, and Heartbeat has it join again when there is more to do.

*Source:* KIP-848, "Supporting Online Consumer Group Upgrade"; the behaviour of Kafka 4.3's GroupMetadataManager.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from odradek.kernel.api import DecodeError, ErrorCode, KafkaError, id_text
from odradek.kernel.wire.messages.api_11_join_group import JoinGroupResponse
from odradek.kernel.wire.messages.api_12_heartbeat import HeartbeatResponse
from odradek.kernel.wire.messages.api_13_leave_group import LeaveGroupResponse, MemberResponse
from odradek.kernel.wire.messages.api_14_sync_group import SyncGroupResponse
from odradek.kernel.wire.messages.api_68_consumer_group_heartbeat import TopicPartitions
from odradek.kernel.wire.messages.consumer_protocol import decode_subscription, partitions_by_topic
from odradek.kernel.wire.messages.data_consumer_group_records import ClassicMemberMetadata, ClassicProtocol

from ..classic.answers import NO_MEMBER_ID, join_refused
from ..group import CONSUMER_PROTOCOL_TYPE, Effects
from .member import MemberState
from .memberships import check_instance, updated_member
from .migration import serialized
from .settings import MigrationPolicy
from .subscriptions import RegexChange

if TYPE_CHECKING:
    from odradek.kernel.api import CoordinatorResult, CoordinatorSteps
    from odradek.kernel.wire.messages.api_11_join_group import JoinGroupRequest
    from odradek.kernel.wire.messages.api_12_heartbeat import HeartbeatRequest
    from odradek.kernel.wire.messages.api_13_leave_group import LeaveGroupRequest, MemberIdentity
    from odradek.kernel.wire.messages.api_14_sync_group import SyncGroupRequest
    from odradek.kernel.wire.messages.consumer_protocol import ConsumerProtocolSubscription

    from ..group import Caller, Decided, ShardContext
    from ..records import GroupRecord
    from .fencing import Fencing
    from .group import ConsumerGroup
    from .member import Member
    from .memberships import Memberships
    from .migration import Migration
    from .rebalancing import Rebalancing
    from .settings import Settings
    from .subscriptions import RegexSubscriptions

    Result = CoordinatorResult[GroupRecord, object]

KNOWN_MEMBER_ID_FROM = 4
"""The version of JoinGroup from which a new member has to come back with the id that it is given (KIP-394)."""


class ClassicMembers:
    """Answers the classic protocol for the consumer groups of a shard."""

    def __init__(
        self,
        context: ShardContext,
        settings: Settings,
        memberships: Memberships,
        rebalancing: Rebalancing,
        regexes: RegexSubscriptions,
        fencing: Fencing,
        migration: Migration,
    ) -> None:
        """Make it."""
        self._context = context
        self._cluster = context.broker.cluster
        self._settings = settings
        self._memberships = memberships
        self._rebalancing = rebalancing
        self._regexes = regexes
        self._fencing = fencing
        self._migration = migration

    # -------------------------------------------------------------------------------------------------------- JoinGroup

    def join(self, group: ConsumerGroup, request: JoinGroupRequest, caller: Caller, now_ms: int) -> Decided:
        """Answer JoinGroup, always at once."""
        try:
            return self._join(group, request, caller, now_ms)
        except KafkaError as error:
            return Effects().result(join_refused(error.code))

    def _join(self, group: ConsumerGroup, request: JoinGroupRequest, caller: Caller, now_ms: int) -> Decided:
        effects = Effects()
        is_unknown = request.member_id == NO_MEMBER_ID
        member_id = id_text(self._context.broker.machine.ids.new_id()) if is_unknown else request.member_id
        self._check_may_join(group, request, member_id)
        if is_unknown and request.group_instance_id is None and caller.api_version >= KNOWN_MEMBER_ID_FROM:
            return effects.result(join_refused(ErrorCode.MEMBER_ID_REQUIRED, member_id))
        member = self._joining_member(group, request, member_id, effects, is_unknown=is_unknown)
        subscription = _subscription(request)
        updated = _updated(member, request, subscription, caller)
        existing = group.static_member(request.group_instance_id)
        is_downgrade = existing is not None and self._migration.may_downgrade_replacing(group, existing)
        are_names_new = self._memberships.check_metadata_record(group, member, updated, effects)
        regex_change = self._regexes.update(group, member, updated, effects)
        is_due = are_names_new or regex_change is not RegexChange.NONE
        epoch = group.group_epoch
        if is_due or self._rebalancing.is_stale(group):
            epoch = self._rebalancing.advance_epoch(group, member, updated, effects, is_due=is_due)
        if is_downgrade:
            target_epoch, target = group.assignment_epoch, group.target_of(updated)
        else:
            target_epoch, target = self._rebalancing.update_target(group, epoch, member, updated, effects, now_ms)
        if not is_downgrade or target_epoch >= epoch:
            updated = self._rebalancing.reconcile(
                group,
                updated,
                target_epoch,
                target,
                effects,
                is_subscription_new=is_due,
                owned=self._owned(subscription),
            )
        response = JoinGroupResponse(
            member_id=updated.member_id,
            generation_id=updated.member_epoch,
            protocol_type=CONSUMER_PROTOCOL_TYPE,
            protocol_name=request.protocols[0].name,
        )
        if is_downgrade:
            return self._downgraded(group, updated, effects, response, now_ms, rebalances=target_epoch < epoch)
        self._fencing.has_joined(group.group_id, updated.member_id)
        self._fencing.saw(group.group_id, updated.member_id, request.session_timeout_ms)
        self._fencing.expect_sync(group.group_id, updated.member_id, request.rebalance_timeout_ms)
        return effects.result(response)

    def _downgraded(
        self,
        group: ConsumerGroup,
        joining: Member,
        effects: Effects,
        response: JoinGroupResponse,
        now_ms: int,
        *,
        rebalances: bool,
    ) -> CoordinatorSteps:
        yield from self._fencing.forget_all(group)
        yield from self._migration.downgrade(group, effects, now_ms, joining=joining, rebalances=rebalances)
        return effects.result(response)

    def _check_may_join(self, group: ConsumerGroup, request: JoinGroupRequest, member_id: str) -> None:
        if self._settings.migration is MigrationPolicy.DISABLED:
            raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        self._memberships.check_room(group, member_id)
        names = [protocol.name for protocol in request.protocols]
        if not group.supports_protocols(request.protocol_type, names):
            raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)

    def _joining_member(
        self, group: ConsumerGroup, request: JoinGroupRequest, member_id: str, effects: Effects, *, is_unknown: bool
    ) -> Member:
        instance_id = request.group_instance_id
        if instance_id is None:
            return self._memberships.dynamic_member(group, member_id, may_be_new=True)
        if is_unknown:
            return self._memberships.static_member_to_join(group, member_id, instance_id, effects, is_classic=True)
        return self._memberships.static_member(group, member_id, instance_id)

    def _owned(self, subscription: ConsumerProtocolSubscription) -> list[TopicPartitions]:
        owned = []
        for name, partitions in partitions_by_topic(subscription).items():
            topic = self._cluster.topic(name)
            if topic is not None:
                owned.append(TopicPartitions(topic_id=topic.topic_id, partitions=partitions))
        return owned

    # -------------------------------------------------------------------------------------------------------- SyncGroup

    def sync(self, group: ConsumerGroup, request: SyncGroupRequest) -> Result:
        """Answer SyncGroup, always at once: the coordinator has assigned."""
        effects = Effects()
        try:
            member = self._member(group, request.member_id, request.group_instance_id, request.generation_id)
            _check_protocol(member, request)
            self._check_no_rebalance(group, member)
        except KafkaError as error:
            return effects.result(SyncGroupResponse(error_code=error.code))
        assert member.classic is not None, "checked above"
        self._fencing.has_synced(group.group_id, member.member_id)
        self._fencing.saw(group.group_id, member.member_id, member.classic.session_timeout_ms)
        response = SyncGroupResponse(
            protocol_type=request.protocol_type,
            protocol_name=request.protocol_name,
            assignment=serialized(member.assigned, member.classic.supported_protocols[0].metadata, self._cluster),
        )
        return effects.result(response)

    def _check_no_rebalance(self, group: ConsumerGroup, member: Member) -> None:
        """Check that the member need not join again first; while it lets go of partitions it has done so already."""
        if group.assignment_epoch > member.member_epoch and member.state is not MemberState.UNREVOKED_PARTITIONS:
            self._fencing.expect_join(group.group_id, member)
            raise KafkaError(ErrorCode.REBALANCE_IN_PROGRESS)

    # -------------------------------------------------------------------------------------------------------- Heartbeat

    def heartbeat(self, group: ConsumerGroup, request: HeartbeatRequest) -> Result:
        """Answer Heartbeat.

        Raises:
            KafkaError: The sender is no member of the classic protocol in this generation.
        """
        member = self._member(group, request.member_id, request.group_instance_id, request.generation_id)
        assert member.classic is not None, "checked above"
        self._fencing.saw(group.group_id, member.member_id, member.classic.session_timeout_ms)
        code = ErrorCode.NONE
        if (
            member.member_epoch < group.assignment_epoch
            or member.state is MemberState.UNREVOKED_PARTITIONS
            or (member.state is MemberState.UNRELEASED_PARTITIONS and not group.waits_for_others(member))
        ):
            code = ErrorCode.REBALANCE_IN_PROGRESS
            self._fencing.expect_join(group.group_id, member)
        return Effects().result(HeartbeatResponse(error_code=code))

    # ------------------------------------------------------------------------------------------------------- LeaveGroup

    def leave(self, group: ConsumerGroup, request: LeaveGroupRequest, now_ms: int) -> Decided:
        """Answer LeaveGroup, of members of both protocols."""
        leaving: dict[str, Member] = {}
        responses = []
        for identity in request.members:
            code = ErrorCode.NONE
            try:
                member = self._leaving_member(group, identity)
                leaving[member.member_id] = member
            except KafkaError as error:
                code = error.code
            responses.append(
                MemberResponse(
                    member_id=identity.member_id, group_instance_id=identity.group_instance_id, error_code=code
                )
            )
        return self._fencing.without(group, tuple(leaving.values()), LeaveGroupResponse(members=responses), now_ms)

    def _leaving_member(self, group: ConsumerGroup, identity: MemberIdentity) -> Member:
        if identity.group_instance_id is None:
            return self._memberships.dynamic_member(group, identity.member_id, may_be_new=False)
        member = group.static_member(identity.group_instance_id)
        if member is None:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
        if identity.member_id != NO_MEMBER_ID:
            check_instance(member, identity.member_id, identity.group_instance_id)
        return member

    # ---------------------------------------------------------------------------------------------------------- checks

    def _member(self, group: ConsumerGroup, member_id: str, instance_id: str | None, generation_id: int) -> Member:
        if instance_id is None:
            member = self._memberships.dynamic_member(group, member_id, may_be_new=False)
        else:
            member = self._memberships.static_member(group, member_id, instance_id)
        if not member.is_classic:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
        if member.member_epoch != generation_id:
            raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
        return member


def _subscription(request: JoinGroupRequest) -> ConsumerProtocolSubscription:
    try:
        return decode_subscription(request.protocols[0].metadata)
    except DecodeError:
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR) from None


def _updated(
    member: Member, request: JoinGroupRequest, subscription: ConsumerProtocolSubscription, caller: Caller
) -> Member:
    changes: dict[str, Any] = {
        "topics": frozenset(subscription.topics),
        "regex": "",
        "client_id": caller.client_id,
        "client_host": caller.client_host,
        "classic": ClassicMemberMetadata(
            session_timeout_ms=request.session_timeout_ms,
            supported_protocols=[
                ClassicProtocol(name=protocol.name, metadata=protocol.metadata) for protocol in request.protocols
            ],
        ),
    }
    if request.group_instance_id is not None:
        changes["instance_id"] = request.group_instance_id
    if subscription.rack_id is not None:
        changes["rack_id"] = subscription.rack_id
    if request.rebalance_timeout_ms != -1:
        changes["rebalance_timeout_ms"] = request.rebalance_timeout_ms
    return updated_member(member, **changes)


def _check_protocol(member: Member, request: SyncGroupRequest) -> None:
    assert member.classic is not None, "checked before"
    chosen = member.classic.supported_protocols[0].name
    if request.protocol_type not in (None, CONSUMER_PROTOCOL_TYPE) or request.protocol_name not in (None, chosen):
        raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
