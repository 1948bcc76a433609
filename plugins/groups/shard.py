"""Pure core: one partition of the offsets topic as a state machine: composes its parts and sends each request to one.

The parts are `offsets` (committed offsets of groups of all types), `classic` and `consumer` (groups by protocol). A
record goes to the part that wrote it, by a table from the class of its key.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.kernel.api import ErrorCode, KafkaError
from odradek.kernel.wire.messages.api_16_list_groups import ListedGroup

from .classic.operations import ClassicGroups
from .consumer.operations import ConsumerGroups
from .group import Effects, ShardContext
from .group_type import GroupType
from .offsets import Offsets

if TYPE_CHECKING:
    from collections.abc import Collection, Generator, Iterable, Mapping, Sequence

    from odradek.kernel.api import (
        BrokerHandle,
        CoordinatorResult,
        CoordinatorSteps,
        CoordinatorTimers,
        Message,
        MetadataChange,
        ProducerIdentity,
        Waiter,
    )
    from odradek.kernel.wire.messages.api_11_join_group import JoinGroupRequest
    from odradek.kernel.wire.messages.api_12_heartbeat import HeartbeatRequest
    from odradek.kernel.wire.messages.api_13_leave_group import LeaveGroupRequest
    from odradek.kernel.wire.messages.api_14_sync_group import SyncGroupRequest

    from .counters import GroupCounters
    from .group import Caller, Decided, Group, MembershipOperations, ReplayMethod, ShardPart
    from .records import GroupRecord


class GroupShard:
    """The groups of one partition. Owned by the reactor's task.

    Attributes:
        context: What the parts share, the table of groups among it.
        offsets: Committed offsets, and those of open transactions.
        classic: Groups of the classic protocol.
        consumer: Groups of the consumer protocol.
    """

    def __init__(
        self, partition: int, *, broker: BrokerHandle, timers: CoordinatorTimers, counters: GroupCounters
    ) -> None:
        """Make an empty shard."""
        self.partition = partition
        self.context = ShardContext(broker=broker, timers=timers, counters=counters)
        self.classic = ClassicGroups(self.context)
        self.consumer = ConsumerGroups(self.context, self.classic)
        self.offsets = Offsets(self.context, self.classic)
        self._parts: tuple[ShardPart, ...] = (self.classic, self.consumer, self.offsets)
        self._replays: dict[type[Message], ReplayMethod] = {
            key: method for part in self._parts for key, method in part.replays.items()
        }
        self._membership: dict[GroupType, MembershipOperations] = {
            GroupType.CLASSIC: self.classic,
            GroupType.CONSUMER: self.consumer,
        }

    def __repr__(self) -> str:
        return f"GroupShard({self.partition}, {len(self.context.groups)} groups)"

    # ---------------------------------------------------------------------------------------------------------- the log

    def replay(self, record: GroupRecord, offset: int, producer: ProducerIdentity) -> None:
        """Apply one record; see `CoordinatorShard.replay`."""
        self._replays[type(record.key)](record.key, record.value, offset, producer)

    def replay_marker(self, producer: ProducerIdentity, *, is_commit: bool) -> None:
        """Apply the end of a transaction: only offsets are written in transactions."""
        self.offsets.replay_marker(producer, is_commit=is_commit)

    def loaded(self, now_ms: int) -> Generator[None, None, None]:
        """Everything is replayed and this broker coordinates: arm timers, a group or a member a step."""
        self.context.is_loaded = True
        for part in self._parts:
            yield from part.loaded(now_ms)

    def unloaded(self) -> None:
        """Nothing will be asked any more."""
        self.context.is_loaded = False

    # ------------------------------------------------------------------- the classic protocol, on groups of all types

    def join(self, request: JoinGroupRequest, caller: Caller, waiter: Waiter, now_ms: int) -> Decided:
        """Answer JoinGroup. A group of the consumer protocol without members becomes a classic one."""
        group = self.context.groups.get(request.group_id)
        is_consumer = group is not None and group.type is GroupType.CONSUMER and not group.is_empty
        part = self._membership[GroupType.CONSUMER if is_consumer else GroupType.CLASSIC]
        return part.join(request, caller, waiter, now_ms)

    def sync(self, request: SyncGroupRequest, waiter: Waiter, now_ms: int) -> Decided:
        """Answer SyncGroup."""
        return self._membership_of(request.group_id).sync(request, waiter, now_ms)

    def heartbeat(self, request: HeartbeatRequest, now_ms: int) -> CoordinatorResult[GroupRecord, object]:
        """Answer Heartbeat."""
        return self._membership_of(request.group_id).heartbeat(request, now_ms)

    def leave(self, request: LeaveGroupRequest, caller: Caller, now_ms: int) -> Decided:
        """Answer LeaveGroup."""
        return self._membership_of(request.group_id).leave(request, caller, now_ms)

    def keep_members(self, members: Mapping[str, Collection[str]]) -> None:
        """Take it that members have just spoken, though they have not; their ids are given by group.

        For a test that lets time pass in which no client has the time to speak. Their sessions begin anew, and so does
        the time that they have to join, to sync or to let go of partitions. Who is no member is passed over.
        """
        for group_id, member_ids in members.items():
            if group_id in self.context.groups:
                self._membership_of(group_id).keep(group_id, member_ids)

    def _membership_of(self, group_id: str) -> MembershipOperations:
        group = self.context.groups.get(group_id)
        return self._membership[GroupType.CLASSIC if group is None else group.type]

    # ---------------------------------------------------------------------------------------------- groups of all types

    def delete_groups(self, group_ids: Sequence[str]) -> CoordinatorSteps:
        """Delete groups without members, with their offsets; the response is a list of codes, by group."""
        effects, codes = Effects(), []
        for group_id in group_ids:
            try:
                self._existing(group_id).validate_delete()
            except KafkaError as error:
                codes.append(error.code)
                continue
            codes.append(ErrorCode.NONE)
            effects.records += yield from self.offsets.deletion_in_steps(group_id)
            effects.records += self._existing(group_id).deletion_records()
        return effects.result(codes)

    def _existing(self, group_id: str) -> Group:
        group = self.context.groups.get(group_id)
        if group is None:
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND)
        return group

    def list_groups(
        self, group_ids: Iterable[str], *, states: Collection[str], types: Collection[str]
    ) -> CoordinatorResult[GroupRecord, list[ListedGroup]]:
        """Return those of some groups that are there and of these states and types, in lower case; of none for all."""
        listed = []
        for group_id in group_ids:
            group = self.context.groups.get(group_id)
            if group is None:
                continue
            state, group_type = group.state_name, group.type.value
            if (not states or state.lower() in states) and (not types or group_type in types):
                listed.append(
                    ListedGroup(
                        group_id=group_id,
                        protocol_type=group.protocol_type,
                        group_state=state,
                        group_type=group_type,
                    )
                )
        return Effects().result(listed)

    # ----------------------------------------------------------------------------------------------------- the metadata

    def metadata_changed(self, change: MetadataChange, now_ms: int) -> CoordinatorSteps:
        """Follow a change of the metadata."""
        self.consumer.metadata_changed(change)
        effects = yield from self.offsets.metadata_changed(change, now_ms)
        return effects.result(None, is_atomic=False)
