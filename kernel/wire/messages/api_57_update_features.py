"""Pure core: UpdateFeatures, API key 57, versions 0-2."""

from __future__ import annotations

from .. import fields as f
from ..message import Message

__all__ = [
    "UpdateFeaturesRequest",
    "UpdateFeaturesResponse",
]


class FeatureUpdateKey(Message):
    """An item of `UpdateFeaturesRequest.feature_updates`."""

    feature: str = f.string()
    max_version_level: int = f.int16()
    allow_downgrade: bool = f.boolean("0")
    upgrade_type: int = f.int8("1+", default=1)


class UpdateFeaturesRequest(Message, key=57, versions="0-2", flexible="0+"):
    """The request."""

    timeout_ms: int = f.int32(default=60000)
    feature_updates: list[FeatureUpdateKey] = f.array(FeatureUpdateKey)
    validate_only: bool = f.boolean("1+")


class UpdatableFeatureResult(Message):
    """An item of `UpdateFeaturesResponse.results`."""

    feature: str = f.string()
    error_code: int = f.int16()
    error_message: str | None = f.string(nullable="0-1")


class UpdateFeaturesResponse(Message, key=57, versions="0-2", flexible="0+"):
    """The response."""

    throttle_time_ms: int = f.int32()
    error_code: int = f.int16()
    error_message: str | None = f.string(nullable="0+")
    results: list[UpdatableFeatureResult] = f.array(UpdatableFeatureResult, "0-1", ignorable=True)
