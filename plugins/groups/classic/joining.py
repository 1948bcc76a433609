"""Pure core: what one JoinGroup does to a classic group.

*Source:* KIP-62, KIP-345, KIP-394, KIP-814; the behaviour of Kafka's GroupMetadataManager.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import attrs

from odradek.kernel.api import PARKED, ErrorCode, KafkaError

from .answers import NO_MEMBER_ID, join_refused, joined, sync_fenced
from .member import ClassicMember, MemberProtocol
from .rebalance import NEW_MEMBER_TIMEOUT_MS
from .states import COMPLETING, EMPTY, PREPARING, STABLE

if TYPE_CHECKING:
    from odradek.kernel.api import Waiter
    from odradek.kernel.wire.messages.api_11_join_group import JoinGroupRequest

    from ..group import Caller, Effects, ShardContext
    from .group import ClassicGroup
    from .rebalance import Rebalances

MAX_SIZE_KEY: Final = "group.max.size"
_KNOWN_MEMBER_ID_FROM: Final = 4
"""The version of JoinGroup from which a new member has to come back with the id that it is given (KIP-394)."""
_SKIP_ASSIGNMENT_FROM: Final = 9


@attrs.define
class Joining:
    """A JoinGroup under way: everything that its steps need. Lives as long as the operation."""

    context: ShardContext
    rebalances: Rebalances
    group: ClassicGroup
    request: JoinGroupRequest
    caller: Caller
    waiter: Waiter
    now_ms: int
    effects: Effects
    protocols: tuple[MemberProtocol, ...] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        """Read the request."""
        self.protocols = tuple(MemberProtocol(item.name, item.metadata) for item in self.request.protocols)

    def answer(self) -> object:
        """Do it; return the response or `PARKED`."""
        group, member_id = self.group, self.request.member_id
        if not self._has_room():
            member = group.members.get(member_id)
            if member is not None:
                self.rebalances.remove_member(group, member, self.effects)
            return join_refused(ErrorCode.GROUP_MAX_SIZE_REACHED)
        if not group.supports(self.request.protocol_type, self.protocols):
            return join_refused(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, member_id)
        return self._new_member() if member_id == NO_MEMBER_ID else self._known_member()

    def _has_room(self) -> bool:
        """Say whether the group takes the sender.

        While a rebalance is prepared those who have joined count, so that of a group that is too large the last ones
        are left out; at other times the members do.
        """
        group, member_id = self.group, self.request.member_id
        if group.state is EMPTY:
            return True
        size_max = self.context.broker.config.get_int(MAX_SIZE_KEY)
        member = group.members.get(member_id)
        if group.state is PREPARING:
            return (member is not None and member.is_awaiting_join) or group.awaiting_join_count < size_max
        return member is not None or len(group.members) < size_max

    # ------------------------------------------------------------------------------------------------------ new members

    def _new_member(self) -> object:
        instance_id = self.request.group_instance_id
        name = self.caller.client_id if instance_id is None else instance_id
        member_id = f"{name}-{self.context.broker.machine.ids.new_id()}"
        if instance_id is not None:
            existing_id = self.group.static_members.get(instance_id)
            return self._add(member_id) if existing_id is None else self._replace_static(existing_id, member_id)
        if self.caller.api_version < _KNOWN_MEMBER_ID_FROM:
            return self._add(member_id)
        self.group.pending_joins.add(member_id)
        self.rebalances.watch_session(self.group, member_id, self.request.session_timeout_ms)
        return join_refused(ErrorCode.MEMBER_ID_REQUIRED, member_id)

    def _add(self, member_id: str) -> object:
        request, group = self.request, self.group
        member = ClassicMember(
            member_id=member_id,
            instance_id=request.group_instance_id,
            client_id=self.caller.client_id,
            client_host=self.caller.client_host,
            rebalance_timeout_ms=self.request.rebalance_timeout_ms,
            session_timeout_ms=request.session_timeout_ms,
            protocols=self.protocols,
            is_new=True,
        )
        if group.state is PREPARING and group.previous_state is EMPTY:
            group.has_new_member = True
        group.add(member, request.protocol_type)
        self.rebalances.park_join(group, member, self.waiter, self.effects)
        self.rebalances.watch_session(group, member_id, NEW_MEMBER_TIMEOUT_MS)
        self.rebalances.prepare_or_complete(group, self.now_ms, self.effects)
        return PARKED

    def _replace_static(self, old_member_id: str, new_member_id: str) -> object:
        """Give a static member that comes back its place; who still waits under its old id is fenced.

        One that died before it gave up what it was told to would never say that it has: there is nothing left to give
        up. Kafka has nobody read those partitions until the group rebalances for another reason; here it goes on with
        the rebalance that the member was in the middle of.
        """
        group, rebalances = self.group, self.rebalances
        old = group.members[old_member_id]
        is_midway = group.state is STABLE and group.owes_partitions(old)
        old_leader_id = group.leader_id
        rebalances.answer_join(group, old, join_refused(ErrorCode.FENCED_INSTANCE_ID, old_member_id), self.effects)
        rebalances.answer_sync(old, sync_fenced(), self.effects)
        rebalances.forget_session(group, old_member_id)
        member = group.replace_static(old_member_id, new_member_id)
        rebalances.saw(group, member)
        self._update(member)
        if group.state is STABLE and not is_midway and group.select_protocol() == group.protocol_name:
            return self._keep_generation(member, old_leader_id)
        rebalances.park_join(group, member, self.waiter, self.effects)
        # In COMPLETING the leader may have been told the old id already, so that its assignment would miss the new one.
        rebalances.prepare_or_complete(group, self.now_ms, self.effects)
        return PARKED

    def _keep_generation(self, member: ClassicMember, old_leader_id: str | None) -> object:
        """Take a static member back without a rebalance: its new id is written, and it gets its old share by syncing.

        Clients older than KIP-814 are told the old id for the leader's, so that a leader that comes back does not take
        itself for one: it could not tell that it need not assign.
        """
        self.effects.records.append(self.group.record())
        if self.caller.api_version < _SKIP_ASSIGNMENT_FROM:
            return joined(self.group, member, leader_id=old_leader_id, tells_members=False)
        return joined(self.group, member, skips_assignment=self.group.is_leader(member.member_id))

    # ---------------------------------------------------------------------------------------------------- known members

    def _known_member(self) -> object:
        group, member_id = self.group, self.request.member_id
        if member_id in group.pending_joins:
            if self.request.group_instance_id is not None:
                # Static members are never told to come back with an id; Kafka fails such a request as it fails a bug.
                return join_refused(ErrorCode.UNKNOWN_SERVER_ERROR)
            return self._add(member_id)
        try:
            group.validate_member(member_id, self.request.group_instance_id)
        except KafkaError as error:
            return join_refused(error.code, member_id)
        member = group.members[member_id]
        if self._needs_rebalance(member):
            return self._rejoin(member)
        # It may have missed the answer, or asks without need: it is told what the generation is.
        return joined(group, member, tells_members=group.state is COMPLETING)

    def _needs_rebalance(self, member: ClassicMember) -> bool:
        """Say whether a member that joins again has the group rebalance.

        A leader does whenever it wants to assign anew: what it has seen, such as new partitions, need not show in what
        it sends. A follower does when what it sends has changed.
        """
        group = self.group
        has_changed = tuple(member.protocols) != self.protocols
        return group.state is PREPARING or has_changed or (group.state is STABLE and group.is_leader(member.member_id))

    def _rejoin(self, member: ClassicMember) -> object:
        self._update(member)
        self.rebalances.park_join(self.group, member, self.waiter, self.effects)
        self.rebalances.prepare_or_complete(self.group, self.now_ms, self.effects)
        return PARKED

    def _update(self, member: ClassicMember) -> None:
        self.group.update(
            member,
            protocols=self.protocols,
            rebalance_timeout_ms=self.request.rebalance_timeout_ms,
            session_timeout_ms=self.request.session_timeout_ms,
        )
