"""Shell: DescribeGroups (key 15): classic groups and their members.

*Source:* KIP-345 (instance ids), KIP-430 (authorized operations), KIP-1043 (GROUP_ID_NOT_FOUND from version 6 on).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from odradek.kernel.api import PENDING, ErrorCode, ListPieces
from odradek.kernel.wire.messages.api_15_describe_groups import DescribedGroup, DescribeGroupsResponse

from .common import Gathering, GroupHandler
from .fanning import by_partition

if TYPE_CHECKING:
    from collections.abc import Sequence

    from odradek.kernel.api import Answer, RequestContext
    from odradek.kernel.wire.messages.api_15_describe_groups import DescribeGroupsRequest

GROUP_OPERATIONS: Final = 1 << 3 | 1 << 6 | 1 << 8 | 1 << 10 | 1 << 11
"""Read, delete, describe, describe configs, alter configs: what somebody may do with a group to whom all is allowed."""


class DescribeGroupsHandler(GroupHandler):
    """Answers DescribeGroups."""

    api_key = 15
    pieces = ListPieces("groups", answers=["groups"], items_max=20)

    def handle(self, request: DescribeGroupsRequest, context: RequestContext) -> Answer:
        """Answer once what was written before is committed, in every shard that is asked; each group once."""
        shows_operations = request.include_authorized_operations
        gathering = Gathering(lambda parts: context.reply(_response(parts, shows_operations=shows_operations)))
        for partition, group_ids in by_partition(self._runtime, dict.fromkeys(request.groups)).items():
            self._describe(partition, group_ids, context.api_version, gathering)
        gathering.seal()
        return PENDING

    def _describe(self, partition: int, group_ids: list[str], version: int, gathering: Gathering) -> None:
        def refuse(code: ErrorCode, detail: str) -> list[DescribedGroup]:
            return [_failed(group_id, code) for group_id in group_ids]

        self._runtime.submit(
            partition,
            lambda shard, now_ms: shard.classic.describe(group_ids, version),
            gathering.waiter(refuse, _as_it_is),
        )

    def error_response(
        self, request: DescribeGroupsRequest, context: RequestContext, code: ErrorCode, detail: str
    ) -> Answer:
        """Return the response that gives every group this error."""
        return DescribeGroupsResponse(groups=[_failed(group_id, code) for group_id in request.groups])


def _as_it_is(groups: list[DescribedGroup]) -> list[DescribedGroup]:
    return groups


def _failed(group_id: str, code: ErrorCode) -> DescribedGroup:
    return DescribedGroup(group_id=group_id, error_code=code)


def _response(parts: Sequence[Sequence[DescribedGroup]], *, shows_operations: bool) -> DescribeGroupsResponse:
    groups = [group for part in parts for group in part]
    if shows_operations:
        for group in groups:
            if group.error_code == ErrorCode.NONE:
                group.authorized_operations = GROUP_OPERATIONS
    return DescribeGroupsResponse(groups=groups)
