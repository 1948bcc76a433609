"""Pure core: ApiVersions, API key 18, versions 0-4."""

from __future__ import annotations

from .. import fields as f
from ..message import Message

__all__ = [
    "ApiVersionsRequest",
    "ApiVersionsResponse",
]


class ApiVersionsRequest(Message, key=18, versions="0-4", flexible="3+"):
    """The request."""

    client_software_name: str = f.string("3+", ignorable=True)
    client_software_version: str = f.string("3+", ignorable=True)


class ApiVersion(Message):
    """An item of `ApiVersionsResponse.api_keys`."""

    api_key: int = f.int16()
    min_version: int = f.int16()
    max_version: int = f.int16()


class SupportedFeatureKey(Message):
    """An item of `ApiVersionsResponse.supported_features`."""

    name: str = f.string()
    min_version: int = f.int16()
    max_version: int = f.int16()


class FinalizedFeatureKey(Message):
    """An item of `ApiVersionsResponse.finalized_features`."""

    name: str = f.string()
    max_version_level: int = f.int16()
    min_version_level: int = f.int16()


class ApiVersionsResponse(Message, key=18, versions="0-4", flexible="3+"):
    """The response."""

    error_code: int = f.int16()
    api_keys: list[ApiVersion] = f.array(ApiVersion)
    throttle_time_ms: int = f.int32("1+", ignorable=True)
    supported_features: list[SupportedFeatureKey] = f.array(SupportedFeatureKey, "3+", tag=0, ignorable=True)
    finalized_features_epoch: int = f.int64("3+", default=-1, tag=1, ignorable=True)
    finalized_features: list[FinalizedFeatureKey] = f.array(FinalizedFeatureKey, "3+", tag=2, ignorable=True)
    zk_migration_ready: bool = f.boolean("3+", tag=3, ignorable=True)
