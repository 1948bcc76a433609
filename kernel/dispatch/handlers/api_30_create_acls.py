"""Shell: CreateAcls (key 30): there is no authorizer to keep ACLs.

*Source:* KIP-140.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...contracts.pieces import ListPieces
from ...errors import ErrorCode
from ...wire.messages.api_30_create_acls import AclCreationResult, CreateAclsResponse
from ..acls import NO_AUTHORIZER, check_known

if TYPE_CHECKING:
    from ...contracts.api_handler import Answer, RequestContext
    from ...wire.messages.api_30_create_acls import CreateAclsRequest


class CreateAclsHandler:
    """Answers CreateAcls of a broker that lets everybody do everything."""

    api_key = 30
    pieces = ListPieces("creations", answers=["results"])

    def handle(self, request: CreateAclsRequest, context: RequestContext) -> Answer:
        """Answer at once.

        Raises:
            MalformedRequestError: An ACL is of an unknown kind.
        """
        for each in request.creations:
            check_known(each.resource_type, each.resource_pattern_type, each.operation, each.permission_type)
        return _refused(request, ErrorCode.SECURITY_DISABLED, NO_AUTHORIZER)

    def error_response(
        self, request: CreateAclsRequest, context: RequestContext, code: ErrorCode, detail: str
    ) -> Answer:
        """Return the response that fails each ACL."""
        return _refused(request, code, detail)


def _refused(request: CreateAclsRequest, code: ErrorCode, detail: str) -> CreateAclsResponse:
    result = AclCreationResult(error_code=code, error_message=detail)
    return CreateAclsResponse(results=[result] * len(request.creations))
