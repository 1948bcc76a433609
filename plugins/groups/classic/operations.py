"""Pure core: what the requests of the classic protocol do to the classic groups of a shard.

Every answer, the wrong turns among them, is Kafka's. A JoinGroup of a member that is to be part of the next generation
waits until all have joined; a SyncGroup waits until the leader has synced.

*Source:* KIP-62, KIP-345, KIP-394, KIP-559, KIP-814; the behaviour of Kafka's GroupMetadataManager.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.kernel.api import PARKED, ErrorCode, KafkaError
from odradek.kernel.wire.messages.api_12_heartbeat import HeartbeatResponse
from odradek.kernel.wire.messages.api_13_leave_group import LeaveGroupResponse, MemberResponse
from odradek.kernel.wire.messages.data_group_records import GroupMetadataKey

from ..consumer.group import ConsumerGroup
from ..group import Effects
from .answers import NO_MEMBER_ID, join_refused, sync_refused, synced
from .describe import described, not_described
from .group import ClassicGroup
from .joining import MAX_SIZE_KEY, Joining
from .rebalance import Rebalances
from .states import COMPLETING, DEAD, EMPTY, PREPARING, STABLE

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from odradek.kernel.api import CoordinatorResult, Message, ProducerIdentity, Waiter
    from odradek.kernel.wire.messages.api_11_join_group import JoinGroupRequest
    from odradek.kernel.wire.messages.api_12_heartbeat import HeartbeatRequest
    from odradek.kernel.wire.messages.api_13_leave_group import LeaveGroupRequest, MemberIdentity
    from odradek.kernel.wire.messages.api_14_sync_group import SyncGroupRequest
    from odradek.kernel.wire.messages.data_group_records import GroupMetadataValue

    from ..group import Caller, Decided, Group, ReplayMethod, ShardContext
    from ..records import GroupRecord

    Result = CoordinatorResult[GroupRecord, object]


class ClassicGroups:
    """The classic groups of a shard: a part of it, and the operations of the classic protocol on them.

    Attributes:
        rebalances: Moves the groups through their states.
    """

    def __init__(self, context: ShardContext) -> None:
        """Make it, without groups."""
        self._context = context
        self._beginning: ClassicGroup | None = None
        self.rebalances = Rebalances(context)

    # ------------------------------------------------------------------------------------------------ a part of a shard

    @property
    def replays(self) -> Mapping[type[Message], ReplayMethod]:
        """By class of key, what applies a record."""
        return {GroupMetadataKey: self._replay}

    def _replay(
        self, key: GroupMetadataKey, value: GroupMetadataValue | None, offset: int, producer: ProducerIdentity
    ) -> None:
        """Apply the record of a generation.

        What a group here has written is a picture of what it is, but for an assignment, which counts from now on: only
        a group that is loaded is made of its record. The first record of one that begins here puts it in its place.
        """
        groups = self._context.groups
        group = groups.get(key.group)
        if value is None:
            if isinstance(group, ClassicGroup):
                del groups[key.group]
                self.rebalances.forget(group)
                group.state = DEAD
        elif not (isinstance(group, ClassicGroup) and self._context.is_loaded):
            groups[key.group] = self._begun(key.group) or ClassicGroup.from_record(key.group, value)
        elif group.state is COMPLETING and value.members:
            group.take_assignment(value)
            self._context.counters.classic_rebalances += 1

    def _begun(self, group_id: str) -> ClassicGroup | None:
        """Return the group that the last JoinGroup has begun, if it is this one."""
        group, self._beginning = self._beginning, None
        return group if group is not None and group.group_id == group_id else None

    def loaded(self, now_ms: int) -> Iterator[None]:
        """Give every member its session time to show up; have a group that is too large now rebalance."""
        size_max = self._context.broker.config.get_int(MAX_SIZE_KEY)
        for group in self.groups():
            for member in group.members.values():
                self.rebalances.saw(group, member)
                yield
            if len(group.members) > size_max:
                # No record and no answer comes of this: nobody has joined, nobody waits.
                self.rebalances.prepare(group, now_ms, Effects())
            yield

    # ----------------------------------------------------------------------------------------------------------- groups

    def groups(self) -> Iterator[ClassicGroup]:
        """Iterate over the classic groups."""
        return (group for group in self._context.groups.values() if isinstance(group, ClassicGroup))

    def get(self, group_id: str) -> ClassicGroup | None:
        """Return the classic group of an id, if there is one."""
        group = self._context.groups.get(group_id)
        return group if isinstance(group, ClassicGroup) else None

    def create(self, group_id: str) -> None:
        """Make an empty group where there is none of any type: somebody has committed an offset."""
        assert group_id not in self._context.groups, f"{group_id!r} is there already"
        self._context.groups[group_id] = ClassicGroup(group_id)

    def saw_member(self, group: Group, member_id: str) -> None:
        """Take the commit of an offset for a sign of life."""
        if isinstance(group, ClassicGroup) and group.state in (STABLE, PREPARING):
            member = group.members.get(member_id)
            if member is not None:
                self.rebalances.saw(group, member)

    def keep(self, group_id: str, member_ids: Collection[str]) -> None:
        """Take it that members have just spoken; see `GroupShard.keep_members`."""
        group = self.get(group_id)
        if group is not None:
            self.rebalances.keep(group, member_ids)

    def describe(self, group_ids: Sequence[str], api_version: int) -> Result:
        """Answer DescribeGroups: the response is a list, in the order asked."""
        found = [(group_id, self.get(group_id)) for group_id in group_ids]
        return Effects().result(
            [
                described(group)
                if group is not None
                else not_described(group_id, self._context.groups.get(group_id), api_version)
                for group_id, group in found
            ]
        )

    # -------------------------------------------------------------------------------------------------------- JoinGroup

    def join(self, request: JoinGroupRequest, caller: Caller, waiter: Waiter, now_ms: int) -> Decided:
        """Answer JoinGroup, at once or when all have joined.

        A group of the consumer protocol that has no members is replaced.
        """
        effects = Effects()
        is_new_member = request.member_id == NO_MEMBER_ID
        previous = self._context.groups.get(request.group_id)
        replaced = previous if isinstance(previous, ConsumerGroup) else None
        group = previous if isinstance(previous, ClassicGroup) else None
        if group is None and not is_new_member:
            return effects.result(join_refused(ErrorCode.UNKNOWN_MEMBER_ID, request.member_id))
        first_record = None
        if group is None:
            # Whoever joins is in this one, which is the group of its id when its records are replayed: not if they are
            # refused, so that a member that nobody knows of is never waited for.
            group = ClassicGroup(request.group_id, now_ms)
            first_record = group.record()
            if replaced is not None:
                effects.records += replaced.replacement_records(group)
            else:
                self._beginning = group
        joining = Joining(self._context, self.rebalances, group, request, caller, waiter, now_ms, effects)
        response = joining.answer()
        if first_record is not None:
            # So that a group is in the log once somebody has been told of it.
            effects.records.append(first_record)
        return effects.decided(response)

    # -------------------------------------------------------------------------------------------------------- SyncGroup

    def sync(self, request: SyncGroupRequest, waiter: Waiter, now_ms: int) -> Decided:
        """Answer SyncGroup, at once or when the leader has synced."""
        effects = Effects()
        group = self.get(request.group_id)
        if group is None or group.state is EMPTY:
            return effects.result(sync_refused(ErrorCode.UNKNOWN_MEMBER_ID))
        try:
            self._validate_sync(group, request)
        except KafkaError as error:
            return effects.result(sync_refused(error.code))
        member = group.members[request.member_id]
        if group.state is PREPARING:
            return effects.result(sync_refused(ErrorCode.REBALANCE_IN_PROGRESS))
        self.rebalances.has_synced(group, member.member_id)
        if group.state is STABLE:
            return effects.result(synced(group, member.assignment))
        self.rebalances.park_sync(member, waiter, effects)
        if group.is_leader(member.member_id):
            assignments = {item.member_id: item.assignment for item in request.assignments}
            self.rebalances.stabilize(group, assignments, effects)
        return effects.decided(PARKED)

    def _validate_sync(self, group: ClassicGroup, request: SyncGroupRequest) -> None:
        group.validate_member(request.member_id, request.group_instance_id)
        if request.generation_id != group.generation_id:
            raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
        if _contradict(request.protocol_type, group.protocol_type_or_none) or _contradict(
            request.protocol_name, group.protocol_name
        ):
            raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)

    # -------------------------------------------------------------------------------------------------------- Heartbeat

    def heartbeat(self, request: HeartbeatRequest, now_ms: int) -> Result:
        """Answer Heartbeat: a sign of life, and how a member learns of a rebalance.

        Raises:
            KafkaError: The sender is no member of this generation.
        """
        group = self.get(request.group_id)
        if group is None:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
        group.validate_member(request.member_id, request.group_instance_id)
        if request.generation_id != group.generation_id:
            raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
        self.rebalances.saw(group, group.members[request.member_id])
        is_rebalancing = group.state is PREPARING
        code = ErrorCode.REBALANCE_IN_PROGRESS if is_rebalancing else ErrorCode.NONE
        return Effects().result(HeartbeatResponse(error_code=code))

    # ------------------------------------------------------------------------------------------------------- LeaveGroup

    def leave(self, request: LeaveGroupRequest, caller: Caller, now_ms: int) -> Decided:
        """Answer LeaveGroup: of a member itself, or of an administrator who names static members (KIP-345).

        Raises:
            KafkaError: There is no such group.
        """
        effects = Effects()
        group = self.get(request.group_id)
        if group is None:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
        members = [
            MemberResponse(
                member_id=identity.member_id,
                group_instance_id=identity.group_instance_id,
                error_code=self._leave_one(group, identity, effects),
            )
            for identity in request.members
        ]
        if any(member.error_code == ErrorCode.NONE for member in members):
            if group.state in (STABLE, COMPLETING):
                self.rebalances.prepare(group, now_ms, effects)
            else:
                self.rebalances.complete_join_if_all_joined(group, now_ms, effects)
        return effects.decided(LeaveGroupResponse(members=members))

    def _leave_one(self, group: ClassicGroup, identity: MemberIdentity, effects: Effects) -> ErrorCode:
        member_id, instance_id = identity.member_id, identity.group_instance_id
        if member_id == NO_MEMBER_ID:
            static_id = group.static_members.get(instance_id) if instance_id is not None else None
            if static_id is None:
                return ErrorCode.UNKNOWN_MEMBER_ID
            member_id = static_id
        elif member_id in group.pending_joins:
            self.rebalances.forget_session(group, member_id)
            group.remove(member_id)
            return ErrorCode.NONE
        else:
            try:
                group.validate_member(member_id, instance_id)
            except KafkaError as error:
                return error.code
        self.rebalances.remove_member(group, group.members[member_id], effects)
        return ErrorCode.NONE


def _contradict(asked: str | None, known: str | None) -> bool:
    return asked is not None and known is not None and asked != known
