"""Shell: SaslHandshake (key 17): a listener without SASL has no use for it; the connection stays as it was.

*Source:* KIP-43, KIP-152.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...errors import ErrorCode
from ...wire.messages.api_17_sasl_handshake import SaslHandshakeResponse

if TYPE_CHECKING:
    from ...contracts.api_handler import Answer, RequestContext
    from ...wire.messages.api_17_sasl_handshake import SaslHandshakeRequest


class SaslHandshakeHandler:
    """Answers SaslHandshake on listeners where nobody has to say who he is."""

    api_key = 17

    def handle(self, request: SaslHandshakeRequest, context: RequestContext) -> Answer:
        """Answer at once."""
        return SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE)

    def error_response(
        self, request: SaslHandshakeRequest, context: RequestContext, code: ErrorCode, detail: str
    ) -> Answer:
        """Return the response that fails as a whole."""
        return SaslHandshakeResponse(error_code=code)
