"""Shell: CreateDelegationToken (key 38): nobody is authenticated, so nobody gets a token.

*Source:* KIP-48, KIP-373.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ...wire.messages.api_38_create_delegation_token import CreateDelegationTokenResponse
from ..delegation_tokens import refusal_of

if TYPE_CHECKING:
    from ...contracts.api_handler import Answer, RequestContext
    from ...errors import ErrorCode
    from ...wire.messages.api_38_create_delegation_token import CreateDelegationTokenRequest

FIRST_VERSION_WITH_REQUESTER: Final = 3
_NEVER: Final = -1


class CreateDelegationTokenHandler:
    """Answers CreateDelegationToken."""

    api_key = 38

    def handle(self, request: CreateDelegationTokenRequest, context: RequestContext) -> Answer:
        """Answer at once, with who asked and for whom."""
        return _refused(request, context, refusal_of(context))

    def error_response(
        self, request: CreateDelegationTokenRequest, context: RequestContext, code: ErrorCode, detail: str
    ) -> Answer:
        """Return the response that fails as a whole."""
        return _refused(request, context, code)


def _refused(
    request: CreateDelegationTokenRequest, context: RequestContext, code: ErrorCode
) -> CreateDelegationTokenResponse:
    requester_type, _, requester_name = context.connection.principal.partition(":")
    owner_type, owner_name = requester_type, requester_name
    if request.owner_principal_name:
        owner_type, owner_name = request.owner_principal_type or requester_type, request.owner_principal_name
    response = CreateDelegationTokenResponse(
        error_code=code,
        principal_type=owner_type,
        principal_name=owner_name,
        issue_timestamp_ms=_NEVER,
        expiry_timestamp_ms=_NEVER,
        max_timestamp_ms=_NEVER,
    )
    if context.api_version >= FIRST_VERSION_WITH_REQUESTER:
        response.token_requester_principal_type = requester_type
        response.token_requester_principal_name = requester_name
    return response
