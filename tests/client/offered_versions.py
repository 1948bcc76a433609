"""What a broker of the tests says to ApiVersions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.kernel import wire
from odradek.kernel.wire.messages.api_18_api_versions import ApiVersion, ApiVersionsResponse

if TYPE_CHECKING:
    from collections.abc import Container, Mapping


def every_api(versions_max: Mapping[int, int], hidden: Container[int] = ()) -> ApiVersionsResponse:
    """Offer every API but the hidden ones; some, by key, up to a version that is not the newest."""
    return ApiVersionsResponse(
        api_keys=[
            ApiVersion(
                api_key=api.key,
                min_version=api.versions.lowest,
                max_version=versions_max.get(api.key, api.versions.highest),
            )
            for api in wire.APIS.values()
            if api.key not in hidden
        ]
    )
