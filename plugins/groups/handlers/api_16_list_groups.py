"""Shell: ListGroups (key 16): the groups that this broker coordinates.

*Source:* KIP-518 (states), KIP-848 (types).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from odradek.kernel.api import AS_TASK, PENDING, ErrorCode, KafkaError, are_many, take_turn
from odradek.kernel.wire.messages.api_16_list_groups import ListedGroup, ListGroupsResponse

from .common import GroupHandler, Reply

if TYPE_CHECKING:
    from collections.abc import Sequence

    from odradek.kernel.api import Answer, CoordinatorResult, RequestContext
    from odradek.kernel.wire.messages.api_16_list_groups import ListGroupsRequest

    from ..records import GroupRecord
    from ..shard import GroupShard

GROUPS_IN_ONE_GO: Final = 200
"""Of so many groups a shard is asked at a time when there are many; the next ones are asked for a turn later."""


class ListGroupsHandler(GroupHandler):
    """Answers ListGroups."""

    api_key = 16

    def handle(self, request: ListGroupsRequest, context: RequestContext) -> Answer:
        """Answer once what was written before is committed, in every shard of this broker."""
        if self._runtime.is_loading():
            return ListGroupsResponse(error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        if are_many(len(shard.context.groups) for _, shard in self._runtime.shards()):
            return AS_TASK
        states, types = _filters_of(request)
        reply = Reply(context, partial(self.error_response, request, context), _response)
        self._runtime.submit_all(
            lambda shard, now_ms: shard.list_groups(shard.context.groups, states=states, types=types), reply
        )
        return PENDING

    async def handle_async(self, request: ListGroupsRequest, context: RequestContext) -> Answer:
        """Answer with many groups, each as it is when it is asked for. Cancelled: nobody waits for it any more.

        Groups that come meanwhile are not among them, those that go may be.

        Raises:
            KafkaError: Of the runtime.
        """
        states, types = _filters_of(request)
        listed: list[ListedGroup] = []
        for partition, group_ids in [(number, list(shard.context.groups)) for number, shard in self._runtime.shards()]:
            for start in range(0, len(group_ids), GROUPS_IN_ONE_GO):
                some = group_ids[start : start + GROUPS_IN_ONE_GO]
                await take_turn()
                try:
                    listing = partial(_list_some, group_ids=some, states=states, types=types)
                    listed += await context.wait_aside(partial(self._runtime.call, partition, listing))
                except KafkaError as error:
                    if error.code is not ErrorCode.NOT_COORDINATOR:
                        raise
                    break  # Its groups are with another broker by now.
        return ListGroupsResponse(groups=listed)

    def error_response(
        self, request: ListGroupsRequest, context: RequestContext, code: ErrorCode, detail: str
    ) -> Answer:
        """Return the response that fails."""
        return ListGroupsResponse(error_code=code)


def _filters_of(request: ListGroupsRequest) -> tuple[frozenset[str], frozenset[str]]:
    """Return the states and the types that are asked for."""
    return (
        frozenset(name.lower().strip() for name in request.states_filter),
        frozenset(name.lower() for name in request.types_filter),
    )


def _list_some(
    shard: GroupShard, now_ms: int, *, group_ids: Sequence[str], states: frozenset[str], types: frozenset[str]
) -> CoordinatorResult[GroupRecord, list[ListedGroup]]:
    del now_ms
    return shard.list_groups(group_ids, states=states, types=types)


def _response(shards: Sequence[Sequence[ListedGroup]]) -> ListGroupsResponse:
    return ListGroupsResponse(groups=[group for groups in shards for group in groups])
