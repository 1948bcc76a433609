"""Shell: ApiVersions (key 18): what this broker answers, and in which versions.

Clients choose every later version from it, so it lists what works and nothing else. Produce is listed from version 0,
though answered from 3: older librdkafka would otherwise turn compression off without a word (KAFKA-18659).

*Source:* KIP-35, KIP-511 (client software), KIP-584 (features).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from ...errors import ErrorCode
from ...wire.messages.api_18_api_versions import (
    ApiVersion,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ...contracts.api_handler import Answer, RequestContext
    from ...metadata.image import MetadataImage
    from ...wire.messages.api_18_api_versions import ApiVersionsRequest
    from ..routes import Route

SOFTWARE: Final = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")
FIRST_VERSION_WITH_SOFTWARE: Final = 3
FIRST_VERSION_WITH_ZERO_FEATURES: Final = 4
"""Before it, features whose smallest version is 0 are left out: clients took 0 for an error (KAFKA-17011)."""
LISTED_FROM_ZERO: Final = frozenset({0})


class ApiVersionsHandler:
    """Answers ApiVersions; the answer is built once for each kind of client."""

    api_key = 18

    def __init__(
        self,
        *,
        routes: Mapping[int, Route],
        image: Callable[[], MetadataImage],
        supported_features: Mapping[str, tuple[int, int]],
    ) -> None:
        self._routes = routes
        self._image = image
        self._supported_features = supported_features

    def handle(self, request: ApiVersionsRequest, context: RequestContext) -> Answer:
        """Answer, and remember what the client says of itself."""
        version = context.api_version
        if version >= FIRST_VERSION_WITH_SOFTWARE:
            name, software_version = request.client_software_name, request.client_software_version
            if not (SOFTWARE.fullmatch(name) and SOFTWARE.fullmatch(software_version)):
                return ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST)
            context.connection.client_software_name = name
            context.connection.client_software_version = software_version
        image = self._image()
        return ApiVersionsResponse(
            api_keys=[
                ApiVersion(
                    api_key=key,
                    min_version=0 if key in LISTED_FROM_ZERO else route.min_version,
                    max_version=route.max_version,
                )
                for key, route in sorted(self._routes.items())
            ],
            supported_features=[
                SupportedFeatureKey(name=name, min_version=low, max_version=high)
                for name, (low, high) in self._supported_features.items()
                if low > 0 or version >= FIRST_VERSION_WITH_ZERO_FEATURES
            ],
            finalized_features_epoch=image.offset,
            finalized_features=[
                FinalizedFeatureKey(name=name, max_version_level=level, min_version_level=level)
                for name, level in image.features.items()
            ],
        )

    def error_response(
        self, request: ApiVersionsRequest, context: RequestContext, code: ErrorCode, detail: str
    ) -> Answer:
        """Return a response without keys."""
        return ApiVersionsResponse(error_code=code)
