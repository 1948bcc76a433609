"""Shell: ListGroups (key 16): the groups that this broker coordinates.

*Source:* KIP-518 (states), KIP-848 (types).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from odradek.kernel.api import PENDING, ErrorCode
from odradek.kernel.wire.messages.api_16_list_groups import ListedGroup, ListGroupsResponse

from .common import GroupHandler, Reply

if TYPE_CHECKING:
    from collections.abc import Sequence

    from odradek.kernel.api import Answer, RequestContext
    from odradek.kernel.wire.messages.api_16_list_groups import ListGroupsRequest


class ListGroupsHandler(GroupHandler):
    """Answers ListGroups."""

    api_key = 16

    def handle(self, request: ListGroupsRequest, context: RequestContext) -> Answer:
        """Answer once what was written before is committed, in every shard of this broker."""
        if self._runtime.is_loading():
            return ListGroupsResponse(error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        states = frozenset(name.lower().strip() for name in request.states_filter)
        types = frozenset(name.lower() for name in request.types_filter)
        reply = Reply(context, partial(self.error_response, request, context), _response)
        self._runtime.submit_all(lambda shard, now_ms: shard.list_groups(states=states, types=types), reply)
        return PENDING

    def error_response(
        self, request: ListGroupsRequest, context: RequestContext, code: ErrorCode, detail: str
    ) -> Answer:
        """Return the response that fails."""
        return ListGroupsResponse(error_code=code)


def _response(shards: Sequence[Sequence[ListedGroup]]) -> ListGroupsResponse:
    return ListGroupsResponse(groups=[group for groups in shards for group in groups])
