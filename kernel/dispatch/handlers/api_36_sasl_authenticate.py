"""Shell: SaslAuthenticate (key 36): a listener without SASL has no use for it; the connection stays as it was.

*Source:* KIP-152.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ...errors import ErrorCode
from ...wire.messages.api_36_sasl_authenticate import SaslAuthenticateResponse

if TYPE_CHECKING:
    from ...contracts.api_handler import Answer, RequestContext
    from ...wire.messages.api_36_sasl_authenticate import SaslAuthenticateRequest

_DETAIL: Final = "SaslAuthenticate request received after successful authentication"
"""As in Kafka, for which a client of a listener without authentication is authenticated from the start."""


class SaslAuthenticateHandler:
    """Answers SaslAuthenticate on listeners where nobody has to say who he is."""

    api_key = 36

    def handle(self, request: SaslAuthenticateRequest, context: RequestContext) -> Answer:
        """Answer at once."""
        return SaslAuthenticateResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE, error_message=_DETAIL)

    def error_response(
        self, request: SaslAuthenticateRequest, context: RequestContext, code: ErrorCode, detail: str
    ) -> Answer:
        """Return the response that fails as a whole."""
        return SaslAuthenticateResponse(error_code=code, error_message=detail)
