"""Shell: Heartbeat (key 12): a member lives, and hears whether the group rebalances.

*Source:* KIP-62, KIP-345.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from odradek.kernel.api import ErrorCode
from odradek.kernel.wire.messages.api_12_heartbeat import HeartbeatResponse

from .common import NO_GROUP_ID, GroupHandler, Reply

if TYPE_CHECKING:
    from odradek.kernel.api import Answer, RequestContext
    from odradek.kernel.wire.messages.api_12_heartbeat import HeartbeatRequest


class HeartbeatHandler(GroupHandler):
    """Answers Heartbeat."""

    api_key = 12

    def handle(self, request: HeartbeatRequest, context: RequestContext) -> Answer:
        """Answer once what was written before is committed."""
        if request.group_id == NO_GROUP_ID:
            return HeartbeatResponse(error_code=ErrorCode.INVALID_GROUP_ID)
        reply = Reply(context, partial(self.error_response, request, context))
        return self._submit(request.group_id, lambda shard, now_ms: shard.heartbeat(request, now_ms), reply)

    def error_response(
        self, request: HeartbeatRequest, context: RequestContext, code: ErrorCode, detail: str
    ) -> Answer:
        """Return the response that fails; while the coordinator loads, every member is taken to be alive."""
        is_loading = code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        return HeartbeatResponse(error_code=ErrorCode.NONE if is_loading else code)
