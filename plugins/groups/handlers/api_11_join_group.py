"""Shell: JoinGroup (key 11): become a member of a group, and wait for its next generation.

*Source:* KIP-62, KIP-345, KIP-394, KIP-559, KIP-800 (reasons are not kept), KIP-814.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from odradek.kernel.api import ErrorCode

from ..classic.answers import join_refused
from .common import NO_GROUP_ID, GroupHandler, Reply, caller_of

if TYPE_CHECKING:
    from odradek.kernel.api import Answer, RequestContext
    from odradek.kernel.wire.messages.api_11_join_group import JoinGroupRequest, JoinGroupResponse

_REBALANCE_TIMEOUT_FROM: Final = 1
_NULL_PROTOCOL_FROM: Final = 7


class JoinGroupHandler(GroupHandler):
    """Answers JoinGroup."""

    api_key = 11

    def handle(self, request: JoinGroupRequest, context: RequestContext) -> Answer:
        """Answer when the generation begins, or at once if nothing is to be waited for."""
        config = self._broker.config
        if request.group_id == NO_GROUP_ID:
            return _refused(request, context, ErrorCode.INVALID_GROUP_ID)
        shortest, longest = (config.get_int(f"group.{end}.session.timeout.ms") for end in ("min", "max"))
        if not shortest <= request.session_timeout_ms <= longest:
            return _refused(request, context, ErrorCode.INVALID_SESSION_TIMEOUT)
        if context.api_version < _REBALANCE_TIMEOUT_FROM:
            request.rebalance_timeout_ms = request.session_timeout_ms
        caller = caller_of(context)
        reply = Reply(context, partial(self.error_response, request, context), partial(_fit, context.api_version))
        return self._submit(request.group_id, lambda shard, now_ms: shard.join(request, caller, reply, now_ms), reply)

    def error_response(
        self, request: JoinGroupRequest, context: RequestContext, code: ErrorCode, detail: str
    ) -> Answer:
        """Return the response that fails."""
        return _fit(context.api_version, join_refused(code))


def _refused(request: JoinGroupRequest, context: RequestContext, code: ErrorCode) -> JoinGroupResponse:
    return _fit(context.api_version, join_refused(code, request.member_id))


def _fit(version: int, response: JoinGroupResponse) -> JoinGroupResponse:
    """Return the response with an empty name for a null one, where the version has no null."""
    if version < _NULL_PROTOCOL_FROM and response.protocol_name is None:
        response.protocol_name = ""
    return response
