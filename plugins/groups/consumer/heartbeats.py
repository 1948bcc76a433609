"""Pure core: ConsumerGroupHeartbeat: joining, following, leaving.

*Source:* KIP-848; the behaviour of Kafka 4.3's GroupMetadataManager.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from odradek.kernel.api import ErrorCode, KafkaError, id_text
from odradek.kernel.wire.messages.api_68_consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatResponse,
    ResponseTopicPartitions,
)

from ..group import Effects
from . import records
from .group import ConsumerGroup
from .member import JOIN_EPOCH, LEAVE_EPOCH, STATIC_LEAVE_EPOCH
from .memberships import check_epoch, updated_member
from .settings import HEARTBEAT_INTERVAL
from .subscriptions import RegexChange

if TYPE_CHECKING:
    from collections.abc import Sequence

    from odradek.kernel.api import CoordinatorResult, CoordinatorSteps
    from odradek.kernel.wire.messages.api_68_consumer_group_heartbeat import ConsumerGroupHeartbeatRequest

    from ..classic.group import ClassicGroup
    from ..group import Caller, Decided, ShardContext
    from ..records import GroupRecord
    from .fencing import Fencing
    from .member import EpochsByPartition, Member
    from .memberships import Memberships
    from .migration import Migration
    from .rebalancing import Rebalancing
    from .settings import Settings
    from .subscriptions import RegexSubscriptions

    Result = CoordinatorResult[GroupRecord, ConsumerGroupHeartbeatResponse]

CLIENT_MADE_IDS_FROM = 1
"""The version from which members choose their ids themselves (KIP-1082)."""
_TRIMMED = "".join(map(chr, range(ord(" ") + 1)))
"""What Kafka trims: control characters and the blank, and no other white space."""


def validate(request: ConsumerGroupHeartbeatRequest, api_version: int, assignors: Sequence[str]) -> None:
    """Check a request by itself.

    Raises:
        KafkaError: INVALID_REQUEST, UNSUPPORTED_ASSIGNOR.
    """
    epoch = request.member_epoch
    names_itself = api_version >= CLIENT_MADE_IDS_FROM or epoch > JOIN_EPOCH or epoch == LEAVE_EPOCH
    for is_wrong, detail in (
        (names_itself and _is_blank(request.member_id), "MemberId can't be empty."),
        (_is_blank(request.group_id), "GroupId can't be empty."),
        (_is_blank(request.instance_id), "InstanceId can't be empty."),
        (_is_blank(request.rack_id), "RackId can't be empty."),
        (
            epoch == JOIN_EPOCH and request.rebalance_timeout_ms == -1,
            "RebalanceTimeoutMs must be provided in first request.",
        ),
        (
            epoch == JOIN_EPOCH and request.topic_partitions != [],
            "TopicPartitions must be empty when (re-)joining.",
        ),
        (
            epoch == JOIN_EPOCH and request.subscribed_topic_names is None and request.subscribed_topic_regex is None,
            "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining.",
        ),
        (epoch == STATIC_LEAVE_EPOCH and request.instance_id is None, "InstanceId can't be null."),
        (epoch < STATIC_LEAVE_EPOCH, "MemberEpoch is invalid."),
    ):
        if is_wrong:
            raise KafkaError(ErrorCode.INVALID_REQUEST, detail)
    if request.server_assignor is not None and request.server_assignor not in assignors:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_ASSIGNOR,
            f"ServerAssignor {request.server_assignor} is not supported. Supported assignors: {', '.join(assignors)}.",
        )


def _is_blank(text: str | None) -> bool:
    return text is not None and not text.strip(_TRIMMED)


class Heartbeats:
    """Answers ConsumerGroupHeartbeat for the groups of a shard."""

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
        self._settings = settings
        self._memberships = memberships
        self._rebalancing = rebalancing
        self._regexes = regexes
        self._fencing = fencing
        self._migration = migration

    def answer(self, request: ConsumerGroupHeartbeatRequest, caller: Caller, now_ms: int) -> Decided:
        """Answer a request that is valid by itself.

        Raises:
            KafkaError: INVALID_REGULAR_EXPRESSION, GROUP_ID_NOT_FOUND, GROUP_MAX_SIZE_REACHED, UNKNOWN_MEMBER_ID,
                FENCED_MEMBER_EPOCH, FENCED_INSTANCE_ID, UNRELEASED_INSTANCE_ID; nothing has changed then.
        """
        if request.member_epoch in (LEAVE_EPOCH, STATIC_LEAVE_EPOCH):
            return self._leave(request, now_ms)
        return self._follow(request, caller, now_ms)

    # ------------------------------------------------------------------------------------------ joining and following

    def _follow(self, request: ConsumerGroupHeartbeatRequest, caller: Caller, now_ms: int) -> Decided:
        effects = Effects()
        if request.member_epoch != JOIN_EPOCH:
            group = self._memberships.group_to_follow(request.group_id)
            return self._follow_in(group, request, caller, effects, now_ms)
        joined = self._memberships.group_to_join(request.group_id, effects)
        if isinstance(joined, ConsumerGroup):
            return self._follow_in(joined, request, caller, effects, now_ms)
        return self._upgrade(joined, request, caller, now_ms)

    def _upgrade(
        self, classic: ClassicGroup, request: ConsumerGroupHeartbeatRequest, caller: Caller, now_ms: int
    ) -> CoordinatorSteps:
        """Make a classic group a consumer group, and have the member join that."""
        upgrade = yield from self._migration.plan_upgrade(classic)
        effects = Effects(list(upgrade.records))
        result = self._follow_in(upgrade.group, request, caller, effects, now_ms)
        yield from self._migration.finish_upgrade(upgrade, effects)
        yield from self._fencing.expect_all(upgrade.group)
        return effects.result(result.response)

    def _follow_in(
        self,
        group: ConsumerGroup,
        request: ConsumerGroupHeartbeatRequest,
        caller: Caller,
        effects: Effects,
        now_ms: int,
    ) -> Result:
        is_joining = request.member_epoch == JOIN_EPOCH
        self._memberships.check_room(group, request.member_id)
        member = self._member(group, request, effects)
        updated = _updated(member, request, caller)
        are_names_new = self._memberships.check_metadata_record(group, member, updated, effects)
        regex_change = self._regexes.update(group, member, updated, effects)
        epoch = group.group_epoch
        # An expression that nobody has looked up yet will bring a new epoch by itself.
        is_due = are_names_new or regex_change is RegexChange.RESOLVED
        if is_due or self._rebalancing.is_stale(group):
            epoch = self._rebalancing.advance_epoch(group, member, updated, effects, is_due=is_due)
        target_epoch, target = self._rebalancing.update_target(group, epoch, member, updated, effects, now_ms)
        reconciled = self._rebalancing.reconcile(
            group,
            updated,
            target_epoch,
            target,
            effects,
            is_subscription_new=are_names_new or regex_change is not RegexChange.NONE,
            owned=request.topic_partitions,
        )
        if reconciled is not updated:
            self._fencing.watch_revocation(group.group_id, reconciled)
        self._fencing.saw(group.group_id, reconciled.member_id)
        is_told = is_joining or _is_full(request) or reconciled.assigned != member.assigned
        return effects.result(
            ConsumerGroupHeartbeatResponse(
                member_id=reconciled.member_id,
                member_epoch=reconciled.member_epoch,
                heartbeat_interval_ms=self._settings.of_group(group.group_id, HEARTBEAT_INTERVAL),
                assignment=_assignment(reconciled.assigned) if is_told else None,
            )
        )

    def _member(self, group: ConsumerGroup, request: ConsumerGroupHeartbeatRequest, effects: Effects) -> Member:
        is_joining = request.member_epoch == JOIN_EPOCH
        member_id = request.member_id or id_text(self._context.broker.machine.ids.new_id())
        if request.instance_id is None:
            member = self._memberships.dynamic_member(group, member_id, may_be_new=is_joining)
        elif is_joining:
            return self._memberships.static_member_to_join(
                group, member_id, request.instance_id, effects, is_classic=False
            )
        else:
            member = self._memberships.static_member(group, member_id, request.instance_id)
        check_epoch(member, request.member_epoch, request.topic_partitions)
        return member

    # -------------------------------------------------------------------------------------------------------- leaving

    def _leave(self, request: ConsumerGroupHeartbeatRequest, now_ms: int) -> Decided:
        group = self._memberships.group(request.group_id)
        response = ConsumerGroupHeartbeatResponse(member_id=request.member_id, member_epoch=request.member_epoch)
        if request.instance_id is None:
            member = self._memberships.dynamic_member(group, request.member_id, may_be_new=False)
        else:
            member = self._memberships.static_member(group, request.member_id, request.instance_id)
        if request.instance_id is not None and request.member_epoch == STATIC_LEAVE_EPOCH:
            return Effects([records.current(group.group_id, member.away())]).result(response)
        return self._fencing.without(group, (member,), response, now_ms)


def _updated(member: Member, request: ConsumerGroupHeartbeatRequest, caller: Caller) -> Member:
    """Return the member as the request says it is; what the request leaves out stays."""
    names, timeout_ms = request.subscribed_topic_names, request.rebalance_timeout_ms
    if (
        timeout_ms == -1
        and names is None
        and request.subscribed_topic_regex is None
        and request.server_assignor is None
        and request.rack_id is None
        and request.instance_id == member.instance_id
        and caller.client_id == member.client_id
        and caller.client_host == member.client_host
        and member.classic is None
    ):
        return member  # Nearly every heartbeat is like this.
    told = {
        "instance_id": request.instance_id,
        "rack_id": request.rack_id,
        "assignor": request.server_assignor,
        "regex": request.subscribed_topic_regex,
        "rebalance_timeout_ms": None if timeout_ms == -1 else timeout_ms,
        "topics": None if names is None else frozenset(names),
        "client_id": caller.client_id,
        "client_host": caller.client_host,
    }
    changes: dict[str, Any] = {name: value for name, value in told.items() if value is not None}
    return updated_member(member, classic=None, **changes)


def _is_full(request: ConsumerGroupHeartbeatRequest) -> bool:
    """Return whether the member tells all that it tells when it joins; then it is told all as well."""
    return (
        request.rebalance_timeout_ms != -1
        and (request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None)
        and request.topic_partitions is not None
    )


def _assignment(assigned: EpochsByPartition) -> Assignment:
    return Assignment(
        topic_partitions=[
            ResponseTopicPartitions(topic_id=topic_id, partitions=sorted(assigned[topic_id]))
            for topic_id in sorted(assigned, key=records.NUMBER_OF)
        ]
    )
