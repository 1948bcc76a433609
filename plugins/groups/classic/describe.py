"""Pure core: what DescribeGroups says of classic groups."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from odradek.kernel.api import ErrorCode
from odradek.kernel.wire.messages.api_15_describe_groups import DescribedGroup, DescribedGroupMember

from .states import DEAD, STABLE

if TYPE_CHECKING:
    from ..group import Group
    from .group import ClassicGroup

_NOT_FOUND_FROM: Final = 6
"""The version from which a group that is not there is an error; before, it is dead."""


def described(group: ClassicGroup) -> DescribedGroup:
    """Return what is told of a group; what its members say only while it is stable."""
    protocol = group.protocol_name if group.state is STABLE else None
    return DescribedGroup(
        group_id=group.group_id,
        group_state=group.state.value,
        protocol_type=group.protocol_type,
        protocol_data=protocol or "",
        members=[
            DescribedGroupMember(
                member_id=member.member_id,
                group_instance_id=member.instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                member_metadata=member.metadata(protocol) if protocol is not None else b"",
                member_assignment=member.assignment,
            )
            for member in group.members.values()
        ],
    )


def not_described(group_id: str, group: Group | None, api_version: int) -> DescribedGroup:
    """Return what is told of a group that is not there, or of another type."""
    answer = DescribedGroup(group_id=group_id, group_state=DEAD.value)
    if api_version >= _NOT_FOUND_FROM:
        answer.error_code = ErrorCode.GROUP_ID_NOT_FOUND
        answer.error_message = (
            f"Group {group_id} not found." if group is None else f"Group {group_id} is not a classic group."
        )
    return answer
