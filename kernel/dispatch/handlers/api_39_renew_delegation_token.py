"""Shell: RenewDelegationToken (key 39): there are no tokens that could be renewed.

*Source:* KIP-48.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ...wire.messages.api_39_renew_delegation_token import RenewDelegationTokenResponse
from ..delegation_tokens import refusal_of

if TYPE_CHECKING:
    from ...contracts.api_handler import Answer, RequestContext
    from ...errors import ErrorCode
    from ...wire.messages.api_39_renew_delegation_token import RenewDelegationTokenRequest

_NEVER: Final = -1


class RenewDelegationTokenHandler:
    """Answers RenewDelegationToken."""

    api_key = 39

    def handle(self, request: RenewDelegationTokenRequest, context: RequestContext) -> Answer:
        """Answer at once."""
        return RenewDelegationTokenResponse(error_code=refusal_of(context), expiry_timestamp_ms=_NEVER)

    def error_response(
        self, request: RenewDelegationTokenRequest, context: RequestContext, code: ErrorCode, detail: str
    ) -> Answer:
        """Return the response that fails as a whole."""
        return RenewDelegationTokenResponse(error_code=code, expiry_timestamp_ms=_NEVER)
