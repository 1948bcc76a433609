"""Shell: DescribeAcls (key 29): there is no authorizer, and there are no ACLs.

*Source:* KIP-140.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ...errors import ErrorCode
from ...wire.messages.api_29_describe_acls import DescribeAclsResponse
from ..acls import check_known

if TYPE_CHECKING:
    from ...contracts.api_handler import Answer, RequestContext
    from ...wire.messages.api_29_describe_acls import DescribeAclsRequest

_DETAIL: Final = "No Authorizer is configured on the broker"


class DescribeAclsHandler:
    """Answers DescribeAcls of a broker that lets everybody do everything."""

    api_key = 29

    def handle(self, request: DescribeAclsRequest, context: RequestContext) -> Answer:
        """Answer at once.

        Raises:
            MalformedRequestError: The filter is of an unknown kind.
        """
        check_known(
            request.resource_type_filter, request.pattern_type_filter, request.operation, request.permission_type
        )
        return DescribeAclsResponse(error_code=ErrorCode.SECURITY_DISABLED, error_message=_DETAIL)

    def error_response(
        self, request: DescribeAclsRequest, context: RequestContext, code: ErrorCode, detail: str
    ) -> Answer:
        """Return the response that fails as a whole."""
        return DescribeAclsResponse(error_code=code, error_message=detail)
