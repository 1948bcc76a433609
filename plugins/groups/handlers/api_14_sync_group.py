"""Shell: SyncGroup (key 14): the leader brings the assignment, the others fetch their share.

*Source:* KIP-62, KIP-345, KIP-559.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from odradek.kernel.api import ErrorCode
from odradek.kernel.wire.messages.api_14_sync_group import SyncGroupResponse

from .common import NO_GROUP_ID, GroupHandler, Reply

if TYPE_CHECKING:
    from odradek.kernel.api import Answer, RequestContext
    from odradek.kernel.wire.messages.api_14_sync_group import SyncGroupRequest

_PROTOCOL_IS_NEEDED_FROM: Final = 5


class SyncGroupHandler(GroupHandler):
    """Answers SyncGroup."""

    api_key = 14

    def handle(self, request: SyncGroupRequest, context: RequestContext) -> Answer:
        """Answer when the leader's assignment is committed, or at once with an error."""
        lacks_protocol = request.protocol_type is None or request.protocol_name is None
        if context.api_version >= _PROTOCOL_IS_NEEDED_FROM and lacks_protocol:
            return SyncGroupResponse(error_code=ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        if request.group_id == NO_GROUP_ID:
            return SyncGroupResponse(error_code=ErrorCode.INVALID_GROUP_ID)
        reply = Reply(context, partial(self.error_response, request, context))
        return self._submit(request.group_id, lambda shard, now_ms: shard.sync(request, reply, now_ms), reply)

    def error_response(
        self, request: SyncGroupRequest, context: RequestContext, code: ErrorCode, detail: str
    ) -> Answer:
        """Return the response that fails."""
        return SyncGroupResponse(error_code=code)
