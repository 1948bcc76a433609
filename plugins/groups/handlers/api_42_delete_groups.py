"""Shell: DeleteGroups (key 42): delete groups without members, and their offsets.

*Source:* KIP-229.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.kernel.api import PENDING, ListPieces
from odradek.kernel.wire.messages.api_42_delete_groups import DeletableGroupResult, DeleteGroupsResponse

from .common import Gathering, GroupHandler
from .fanning import by_partition

if TYPE_CHECKING:
    from collections.abc import Sequence

    from odradek.kernel.api import Answer, ErrorCode, RequestContext
    from odradek.kernel.wire.messages.api_42_delete_groups import DeleteGroupsRequest


class DeleteGroupsHandler(GroupHandler):
    """Answers DeleteGroups."""

    api_key = 42
    pieces = ListPieces("groups_names", answers=["results"], items_max=50)

    def handle(self, request: DeleteGroupsRequest, context: RequestContext) -> Answer:
        """Answer once all shards have; a group that is named twice is deleted and answered once."""
        gathering = Gathering(lambda parts: context.reply(_response(parts)))
        for partition, group_ids in by_partition(self._runtime, dict.fromkeys(request.groups_names)).items():
            self._delete(partition, group_ids, gathering)
        gathering.seal()
        return PENDING

    def _delete(self, partition: int, group_ids: list[str], gathering: Gathering) -> None:
        def refuse(code: ErrorCode, detail: str) -> list[tuple[str, ErrorCode]]:
            return [(group_id, code) for group_id in group_ids]

        def build(codes: list[ErrorCode]) -> list[tuple[str, ErrorCode]]:
            return list(zip(group_ids, codes, strict=True))

        self._runtime.submit(
            partition, lambda shard, now_ms: shard.delete_groups(group_ids), gathering.waiter(refuse, build)
        )

    def error_response(
        self, request: DeleteGroupsRequest, context: RequestContext, code: ErrorCode, detail: str
    ) -> Answer:
        """Return the response that gives every group this error."""
        return _response([[(group_id, code) for group_id in request.groups_names]])


def _response(parts: Sequence[Sequence[tuple[str, ErrorCode]]]) -> DeleteGroupsResponse:
    return DeleteGroupsResponse(
        results=[DeletableGroupResult(group_id=group_id, error_code=code) for part in parts for group_id, code in part]
    )
