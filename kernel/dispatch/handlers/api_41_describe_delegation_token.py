"""Shell: DescribeDelegationToken (key 41): there are no tokens.

*Source:* KIP-48.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...wire.messages.api_41_describe_delegation_token import DescribeDelegationTokenResponse
from ..delegation_tokens import refusal_of

if TYPE_CHECKING:
    from ...contracts.api_handler import Answer, RequestContext
    from ...errors import ErrorCode
    from ...wire.messages.api_41_describe_delegation_token import DescribeDelegationTokenRequest


class DescribeDelegationTokenHandler:
    """Answers DescribeDelegationToken."""

    api_key = 41

    def handle(self, request: DescribeDelegationTokenRequest, context: RequestContext) -> Answer:
        """Answer at once."""
        return DescribeDelegationTokenResponse(error_code=refusal_of(context))

    def error_response(
        self, request: DescribeDelegationTokenRequest, context: RequestContext, code: ErrorCode, detail: str
    ) -> Answer:
        """Return the response that fails as a whole."""
        return DescribeDelegationTokenResponse(error_code=code)
