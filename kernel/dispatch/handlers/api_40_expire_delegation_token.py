"""Shell: ExpireDelegationToken (key 40): there are no tokens that could be ended.

*Source:* KIP-48.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ...wire.messages.api_40_expire_delegation_token import ExpireDelegationTokenResponse
from ..delegation_tokens import refusal_of

if TYPE_CHECKING:
    from ...contracts.api_handler import Answer, RequestContext
    from ...errors import ErrorCode
    from ...wire.messages.api_40_expire_delegation_token import ExpireDelegationTokenRequest

_NEVER: Final = -1


class ExpireDelegationTokenHandler:
    """Answers ExpireDelegationToken."""

    api_key = 40

    def handle(self, request: ExpireDelegationTokenRequest, context: RequestContext) -> Answer:
        """Answer at once."""
        return ExpireDelegationTokenResponse(error_code=refusal_of(context), expiry_timestamp_ms=_NEVER)

    def error_response(
        self, request: ExpireDelegationTokenRequest, context: RequestContext, code: ErrorCode, detail: str
    ) -> Answer:
        """Return the response that fails as a whole."""
        return ExpireDelegationTokenResponse(error_code=code, expiry_timestamp_ms=_NEVER)
