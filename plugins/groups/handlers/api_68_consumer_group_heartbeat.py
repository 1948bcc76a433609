"""Shell: ConsumerGroupHeartbeat (key 68): a member of the consumer protocol joins, follows its target, leaves.

*Source:* KIP-848, KIP-1082 (ids made by clients).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from odradek.kernel.api import ErrorCode
from odradek.kernel.wire.messages.api_68_consumer_group_heartbeat import ConsumerGroupHeartbeatResponse

from ..consumer.heartbeats import validate
from .common import GroupHandler, Reply, caller_of
from .consumer_protocol import check_enabled, message_of

if TYPE_CHECKING:
    from odradek.kernel.api import Answer, RequestContext
    from odradek.kernel.wire.messages.api_68_consumer_group_heartbeat import ConsumerGroupHeartbeatRequest

ASSIGNORS_KEY = "group.consumer.assignors"


class ConsumerGroupHeartbeatHandler(GroupHandler):
    """Answers ConsumerGroupHeartbeat."""

    api_key = 68

    def handle(self, request: ConsumerGroupHeartbeatRequest, context: RequestContext) -> Answer:
        """Answer once what the answer tells is committed."""
        check_enabled(self._broker)
        validate(request, context.api_version, self._broker.config.get_list(ASSIGNORS_KEY))
        caller = caller_of(context)
        reply = Reply(context, partial(self.error_response, request, context))
        return self._submit(
            request.group_id, lambda shard, now_ms: shard.consumer.consumer_heartbeat(request, caller, now_ms), reply
        )

    def error_response(
        self, request: ConsumerGroupHeartbeatRequest, context: RequestContext, code: ErrorCode, detail: str
    ) -> Answer:
        """Return the response that fails."""
        return ConsumerGroupHeartbeatResponse(error_code=code, error_message=message_of(code, detail))
