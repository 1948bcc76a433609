"""Shell: LeaveGroup (key 13): members leave, or an administrator has static members leave.

*Source:* KIP-345 (several members), KIP-800 (reasons are not kept).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from odradek.kernel.api import ErrorCode, ListPieces
from odradek.kernel.wire.messages.api_13_leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
    MemberResponse,
)

from .common import NO_GROUP_ID, GroupHandler, Reply, caller_of

if TYPE_CHECKING:
    from odradek.kernel.api import Answer, RequestContext

_SEVERAL_FROM: Final = 3
"""The version from which a request names several members; before, it has one, and the answer one error."""


class LeaveGroupHandler(GroupHandler):
    """Answers LeaveGroup."""

    api_key = 13
    pieces = ListPieces("members", answers=["members"], items_max=50)

    def handle(self, request: LeaveGroupRequest, context: RequestContext) -> Answer:
        """Answer once the group knows."""
        if request.group_id == NO_GROUP_ID:
            return LeaveGroupResponse(error_code=ErrorCode.INVALID_GROUP_ID)
        if context.api_version < _SEVERAL_FROM:
            request = LeaveGroupRequest(
                group_id=request.group_id, members=[MemberIdentity(member_id=request.member_id)]
            )
        caller = caller_of(context)
        reply = Reply(context, partial(self.error_response, request, context), partial(_fit, context.api_version))
        return self._submit(request.group_id, lambda shard, now_ms: shard.leave(request, caller, now_ms), reply)

    def error_response(
        self, request: LeaveGroupRequest, context: RequestContext, code: ErrorCode, detail: str
    ) -> Answer:
        """Return the response that fails; of an unknown group, every member is unknown."""
        if code is not ErrorCode.UNKNOWN_MEMBER_ID:
            return LeaveGroupResponse(error_code=code)
        members = [
            MemberResponse(member_id=item.member_id, group_instance_id=item.group_instance_id, error_code=code)
            for item in request.members
        ]
        return _fit(context.api_version, LeaveGroupResponse(members=members))


def _fit(version: int, response: LeaveGroupResponse) -> LeaveGroupResponse:
    """Return the response with the only member's error as its own, where the version knows no others."""
    if version < _SEVERAL_FROM and response.members:
        return LeaveGroupResponse(error_code=response.error_code or response.members[0].error_code)
    return response
