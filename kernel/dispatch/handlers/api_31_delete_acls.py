"""Shell: DeleteAcls (key 31): there is no authorizer that keeps ACLs.

*Source:* KIP-140.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...contracts.pieces import ListPieces
from ...errors import ErrorCode
from ...wire.messages.api_31_delete_acls import DeleteAclsFilterResult, DeleteAclsResponse
from ..acls import NO_AUTHORIZER, check_known

if TYPE_CHECKING:
    from ...contracts.api_handler import Answer, RequestContext
    from ...wire.messages.api_31_delete_acls import DeleteAclsRequest


class DeleteAclsHandler:
    """Answers DeleteAcls of a broker that lets everybody do everything."""

    api_key = 31
    pieces = ListPieces("filters", answers=["filter_results"])

    def handle(self, request: DeleteAclsRequest, context: RequestContext) -> Answer:
        """Answer at once.

        Raises:
            MalformedRequestError: A filter is of an unknown kind.
        """
        for each in request.filters:
            check_known(each.resource_type_filter, each.pattern_type_filter, each.operation, each.permission_type)
        return _refused(request, ErrorCode.SECURITY_DISABLED, NO_AUTHORIZER)

    def error_response(
        self, request: DeleteAclsRequest, context: RequestContext, code: ErrorCode, detail: str
    ) -> Answer:
        """Return the response that fails each filter."""
        return _refused(request, code, detail)


def _refused(request: DeleteAclsRequest, code: ErrorCode, detail: str) -> DeleteAclsResponse:
    result = DeleteAclsFilterResult(error_code=code, error_message=detail)
    return DeleteAclsResponse(filter_results=[result] * len(request.filters))
