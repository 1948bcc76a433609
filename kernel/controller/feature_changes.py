"""Pure core: UpdateFeatures: one update that cannot be done refuses all of them.

*Source:* Kafka's `FeatureControlManager.updateFeatures`, as observed on 4.3.1; KIP-584, KIP-1022.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING

from ..contracts.coordinator import CoordinatorResult
from ..errors import ErrorCode, KafkaError
from ..metadata.features import KRAFT_VERSION, METADATA_VERSION, supported_features
from ..metadata.records import FeatureRecord
from ..wire.messages.api_57_update_features import FeatureUpdateKey, UpdateFeaturesRequest, UpdateFeaturesResponse

if TYPE_CHECKING:
    from ..metadata.image import MetadataImage
    from ..metadata.records import MetadataRecord
    from .rules import ControllerRules


class UpgradeType(IntEnum):
    """What kind of change the client allows."""

    UPGRADE = 1
    SAFE_DOWNGRADE = 2
    UNSAFE_DOWNGRADE = 3


def update_features(
    image: MetadataImage, rules: ControllerRules, request: UpdateFeaturesRequest
) -> CoordinatorResult[MetadataRecord, UpdateFeaturesResponse]:
    """Finalize features at other levels."""
    records: list[MetadataRecord] = []
    for update in request.feature_updates:
        try:
            records += _update(image, rules.node_id, update)
        except KafkaError as error:
            detail = f"The update failed for all features since the following feature had an error: {error.detail}"
            return CoordinatorResult((), UpdateFeaturesResponse(error_code=error.code, error_message=detail))
    return CoordinatorResult(() if request.validate_only else records, UpdateFeaturesResponse(error_message=None))


def _update(image: MetadataImage, node_id: int, update: FeatureUpdateKey) -> list[MetadataRecord]:
    name, level = update.feature, update.max_version_level
    current = image.features.get(name, 0)
    if update.allow_downgrade:  # what version 0 has in the place of the type
        update = FeatureUpdateKey(feature=name, max_version_level=level, upgrade_type=UpgradeType.SAFE_DOWNGRADE)
    _check_kind(update, current)
    if level == 0 and not _is_known(name):
        raise _invalid(name, level, f"Feature {name} not found.")
    _check_supported(node_id, name, level)
    if level == current:
        return []
    if name == METADATA_VERSION:
        raise _metadata_downgrade(update, current)
    if name == KRAFT_VERSION and level < current:
        raise _invalid(name, level, "Can't downgrade the version of this feature.")
    return [FeatureRecord(name=name, level=level)]


def _check_kind(update: FeatureUpdateKey, current: int) -> None:
    level = update.max_version_level
    if update.upgrade_type not in UpgradeType.__members__.values():
        raise _invalid(update.feature, level, "The controller does not support the given upgrade type.")
    if level < 0:
        raise _invalid(update.feature, level, "A feature version cannot be less than 0.")
    if level < current and update.upgrade_type == UpgradeType.UPGRADE and _is_known(update.feature):
        raise _invalid(
            update.feature,
            level,
            "Can't downgrade the version of this feature without setting the upgrade type to either safe or unsafe "
            "downgrade.",
        )


def _is_known(name: str) -> bool:
    return any(feature.name == name for feature in supported_features())


def _check_supported(node_id: int, name: str, level: int) -> None:
    feature = next((feature for feature in supported_features() if feature.name == name), None)
    if feature is None:
        raise _invalid(name, level, f"Local controller {node_id} does not support this feature.")
    if not feature.level_min <= level <= feature.level_max:
        raise _invalid(
            name, level, f"Local controller {node_id} only supports versions {feature.level_min}-{feature.level_max}"
        )


def _metadata_downgrade(update: FeatureUpdateKey, current: int) -> KafkaError:
    """Return why the format of the metadata cannot go back: this version writes one format only."""
    reason = "Unsafe metadata downgrade is not supported in this version."
    if update.upgrade_type == UpgradeType.SAFE_DOWNGRADE:
        reason = "Refusing to perform the requested downgrade because it might delete metadata information."
    return KafkaError(
        ErrorCode.INVALID_UPDATE_VERSION,
        f"Unsupported metadata.version downgrade from {current} to {update.max_version_level}. {reason}",
    )


def _invalid(name: str, level: int, reason: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_UPDATE_VERSION, f"Invalid update version {level} for feature {name}. {reason}")
