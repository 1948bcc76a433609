"""Pure core: the answers to JoinGroup and SyncGroup."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.kernel.api import ErrorCode
from odradek.kernel.wire.messages.api_11_join_group import JoinGroupResponse, JoinGroupResponseMember
from odradek.kernel.wire.messages.api_14_sync_group import SyncGroupResponse

if TYPE_CHECKING:
    from .group import ClassicGroup
    from .member import ClassicMember

NO_MEMBER_ID = ""


def join_refused(code: ErrorCode, member_id: str = NO_MEMBER_ID) -> JoinGroupResponse:
    """Return the answer to a JoinGroup that fails; `member_id` is the one that the client keeps using, if any."""
    return JoinGroupResponse(error_code=code, member_id=member_id, protocol_name=None)


def joined(
    group: ClassicGroup,
    member: ClassicMember,
    *,
    leader_id: str | None = None,
    tells_members: bool = True,
    skips_assignment: bool = False,
) -> JoinGroupResponse:
    """Return the answer to a member of the present generation.

    Args:
        group: The group, past its joining.
        member: Who is answered.
        leader_id: Who is said to lead, where that is not who does.
        tells_members: Whether the leader is told all members, so that it assigns.
        skips_assignment: Whether the leader is told not to assign (KIP-814).
    """
    members = []
    if tells_members and group.is_leader(member.member_id):
        protocol = group.protocol_name
        assert protocol is not None, f"{group!r} has members and no protocol"
        members = [
            JoinGroupResponseMember(
                member_id=other.member_id, group_instance_id=other.instance_id, metadata=other.metadata(protocol)
            )
            for other in group.members.values()
        ]
    return JoinGroupResponse(
        generation_id=group.generation_id,
        protocol_type=group.protocol_type_or_none,
        protocol_name=group.protocol_name,
        leader=(leader_id if leader_id is not None else group.leader_id) or "",
        skip_assignment=skips_assignment,
        member_id=member.member_id,
        members=members,
    )


def sync_refused(code: ErrorCode) -> SyncGroupResponse:
    """Return the answer to a SyncGroup that fails."""
    return SyncGroupResponse(error_code=code)


def sync_fenced() -> SyncGroupResponse:
    """Return the answer to a static member that another one has replaced."""
    return SyncGroupResponse(error_code=ErrorCode.FENCED_INSTANCE_ID)


def synced(group: ClassicGroup, assignment: bytes) -> SyncGroupResponse:
    """Return the answer that brings a member its share."""
    return SyncGroupResponse(
        protocol_type=group.protocol_type_or_none, protocol_name=group.protocol_name, assignment=assignment
    )
