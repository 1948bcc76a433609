"""Shell: DescribeClientQuotas (key 48): no quota is set, as none can be yet.

*Source:* KIP-546; the checks of Kafka's ClientQuotasImage.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ...errors import ErrorCode, KafkaError
from ...wire.messages.api_48_describe_client_quotas import DescribeClientQuotasResponse

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ...contracts.api_handler import Answer, RequestContext
    from ...wire.messages.api_48_describe_client_quotas import ComponentData, DescribeClientQuotasRequest

USER: Final = "user"
CLIENT_ID: Final = "client-id"
ADDRESS: Final = "ip"
_EXACT, _DEFAULT, _ANY = 0, 1, 2
_MATCHES: Final = {
    _EXACT: (False, "MATCH_TYPE_EXACT, but set match string to null"),
    _DEFAULT: (True, "MATCH_TYPE_DEFAULT, but also specified a match string"),
    _ANY: (True, "MATCH_TYPE_SPECIFIED, but also specified a match string"),
}
"""By type, whether it has no text to match, and what is told of one that does otherwise."""


class DescribeClientQuotasHandler:
    """Answers DescribeClientQuotas."""

    api_key = 48

    def handle(self, request: DescribeClientQuotasRequest, context: RequestContext) -> Answer:
        """Answer at once.

        Raises:
            KafkaError: INVALID_REQUEST, UNSUPPORTED_VERSION: the filter is none.
        """
        _check(request.components)
        return DescribeClientQuotasResponse(error_message="", entries=[])

    def error_response(
        self, request: DescribeClientQuotasRequest, context: RequestContext, code: ErrorCode, detail: str
    ) -> Answer:
        """Return the response that fails as a whole."""
        return DescribeClientQuotasResponse(error_code=code, error_message=detail, entries=None)


def _check(components: Iterable[ComponentData]) -> None:
    seen: set[str] = set()
    for component in components:
        kind = component.entity_type
        if not kind:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "Invalid empty entity type.")
        if kind in seen:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST, f"Entity type {kind} cannot appear more than once in the filter."
            )
        if kind not in (USER, CLIENT_ID, ADDRESS):
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, f"Unsupported entity type {kind}")
        if component.match_type not in _MATCHES:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unknown match type {component.match_type}")
        has_no_text, told = _MATCHES[component.match_type]
        if (component.match is None) is not has_no_text:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"Request specified {told}.")
        seen.add(kind)
    if ADDRESS in seen and len(seen) > 1:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            "Invalid entity filter component combination. IP filter component should not be used with user or clientId "
            "filter component.",
        )
