"""Shell: ConsumerGroupDescribe (key 69): groups of the consumer protocol, their members and assignments.

*Source:* KIP-848, KIP-1099 (member types), KIP-430 (authorized operations).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from odradek.kernel.api import AS_TASK, PENDING, ErrorCode, KafkaError, ListPieces, Slices, are_many
from odradek.kernel.wire.messages.api_69_consumer_group_describe import ConsumerGroupDescribeResponse, DescribedGroup

from ..consumer.describing import sizes_of
from ..consumer.group import ConsumerGroup
from .api_15_describe_groups import GROUP_OPERATIONS
from .common import NO_GROUP_ID, Gathering, GroupHandler
from .consumer_protocol import check_enabled
from .fanning import by_partition

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from odradek.kernel.api import Answer, RequestContext
    from odradek.kernel.wire.messages.api_69_consumer_group_describe import ConsumerGroupDescribeRequest

    from ..consumer.describing import GroupMoment

STEPS_A_SLICE: Final = 500
"""A step is a member or a topic of one: some microseconds."""


class ConsumerGroupDescribeHandler(GroupHandler):
    """Answers ConsumerGroupDescribe."""

    api_key = 69
    pieces = ListPieces("group_ids", answers=["groups"], items_max=20)

    def handle(self, request: ConsumerGroupDescribeRequest, context: RequestContext) -> Answer:
        """Answer once what was written before is committed, in every shard that is asked."""
        check_enabled(self._broker)
        if are_many(self._sizes(request.group_ids)):
            return AS_TASK
        shows_operations = request.include_authorized_operations
        gathering = Gathering(lambda parts: context.reply(_response(parts, shows_operations=shows_operations)))
        nameless = [group_id for group_id in request.group_ids if group_id == NO_GROUP_ID]
        gathering.add([_failed(group_id, ErrorCode.INVALID_GROUP_ID) for group_id in nameless])
        named = dict.fromkeys(group_id for group_id in request.group_ids if group_id != NO_GROUP_ID)
        for partition, group_ids in by_partition(self._runtime, named).items():
            self._describe(partition, group_ids, gathering)
        gathering.seal()
        return PENDING

    async def handle_async(self, request: ConsumerGroupDescribeRequest, context: RequestContext) -> Answer:
        """Answer where groups are large, each as it is at one moment. Cancelled: nobody waits for it any more."""
        slices = Slices(STEPS_A_SLICE)
        groups = [await self._read(group_id, context, slices) for group_id in dict.fromkeys(request.group_ids)]
        return _response([groups], shows_operations=request.include_authorized_operations)

    def _sizes(self, group_ids: Sequence[str]) -> Iterator[int]:
        """Iterate over how much is to be told of each member of some groups."""
        shards = dict(self._runtime.shards())
        for group_id in group_ids:
            shard = shards.get(self._runtime.partition_for(group_id))
            group = None if shard is None else shard.context.groups.get(group_id)
            if isinstance(group, ConsumerGroup):
                yield from sizes_of(group)

    async def _read(self, group_id: str, context: RequestContext, slices: Slices) -> DescribedGroup:
        if group_id == NO_GROUP_ID:
            return _failed(group_id, ErrorCode.INVALID_GROUP_ID)
        partition = self._runtime.partition_for(group_id)
        try:
            moment: GroupMoment = await context.wait_aside(
                lambda: self._runtime.call(partition, lambda shard, _now_ms: shard.consumer.moment(group_id))
            )
        except KafkaError as error:
            return _failed(group_id, error.code)
        return await slices.run(moment.told_in_steps(self._broker.cluster))

    def _describe(self, partition: int, group_ids: list[str], gathering: Gathering) -> None:
        def refuse(code: ErrorCode, detail: str) -> list[DescribedGroup]:
            return [_failed(group_id, code) for group_id in group_ids]

        self._runtime.submit(
            partition,
            lambda shard, now_ms: shard.consumer.describe(group_ids),
            gathering.waiter(refuse, _as_it_is),
        )

    def error_response(
        self, request: ConsumerGroupDescribeRequest, context: RequestContext, code: ErrorCode, detail: str
    ) -> Answer:
        """Return the response that gives every group this error."""
        return ConsumerGroupDescribeResponse(groups=[_failed(group_id, code) for group_id in request.group_ids])


def _as_it_is(groups: list[DescribedGroup]) -> list[DescribedGroup]:
    return groups


def _failed(group_id: str, code: ErrorCode) -> DescribedGroup:
    return DescribedGroup(group_id=group_id, error_code=code)


def _response(parts: Sequence[Sequence[DescribedGroup]], *, shows_operations: bool) -> ConsumerGroupDescribeResponse:
    groups = [group for part in parts for group in part]
    if shows_operations:
        for group in groups:
            if group.error_code == ErrorCode.NONE:
                group.authorized_operations = GROUP_OPERATIONS
    return ConsumerGroupDescribeResponse(groups=groups)
