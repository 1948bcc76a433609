"""Shell: DescribeUserScramCredentials (key 50): there are no users, as none can be made yet.

*Source:* KIP-554.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from ...contracts.pieces import ListPieces
from ...errors import ErrorCode
from ...wire.messages.api_50_describe_user_scram_credentials import (
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)

if TYPE_CHECKING:
    from ...contracts.api_handler import Answer, RequestContext
    from ...wire.messages.api_50_describe_user_scram_credentials import DescribeUserScramCredentialsRequest


class DescribeUserScramCredentialsHandler:
    """Answers DescribeUserScramCredentials."""

    api_key = 50
    pieces = ListPieces("users", answers=["results"], together="name")

    def handle(self, request: DescribeUserScramCredentialsRequest, context: RequestContext) -> Answer:
        """Answer at once, each user by itself."""
        asked = Counter(user.name for user in request.users or ())
        return DescribeUserScramCredentialsResponse(
            error_message="", results=[_unknown(name) if count == 1 else _twice(name) for name, count in asked.items()]
        )

    def error_response(
        self, request: DescribeUserScramCredentialsRequest, context: RequestContext, code: ErrorCode, detail: str
    ) -> Answer:
        """Return the response that fails as a whole."""
        return DescribeUserScramCredentialsResponse(error_code=code, error_message=detail)


def _unknown(name: str) -> DescribeUserScramCredentialsResult:
    return DescribeUserScramCredentialsResult(
        user=name,
        error_code=ErrorCode.RESOURCE_NOT_FOUND,
        error_message=f"Attempt to describe a user credential that does not exist: {name}",
    )


def _twice(name: str) -> DescribeUserScramCredentialsResult:
    return DescribeUserScramCredentialsResult(
        user=name,
        error_code=ErrorCode.DUPLICATE_RESOURCE,
        error_message=f"Cannot describe SCRAM credentials for the same user twice in a single request: {name}",
    )
