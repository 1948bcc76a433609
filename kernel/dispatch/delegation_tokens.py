"""Pure core: why delegation tokens are refused; the same for each of their four APIs.

*Source:* KIP-48; Apache Kafka 4.3.1 without `delegation.token.secret.key`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ..errors import ErrorCode

if TYPE_CHECKING:
    from ..contracts.api_handler import RequestContext

ANONYMOUS: Final = "User:ANONYMOUS"


def refusal_of(context: RequestContext) -> ErrorCode:
    """Return why this client gets no token: nobody knows who it is, or there are no tokens."""
    if context.connection.principal == ANONYMOUS:
        return ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    return ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED
