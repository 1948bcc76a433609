"""Pure core: UpdateFeatures: one update that cannot be done refuses all of them.

A level is finalized when every registered controller and broker supports it: what follows in the metadata log is
written for it (`records.WRITTEN_VERSIONS`). A level of `metadata.version` is lowered where the metadata as it is can be
stated in the older versions; the metadata log then writes a snapshot in them, so that an older broker reads nothing
that it does not know. Apache Kafka refuses each step down over a level that came with a record; here what counts is
whether something would be lost.

*Source:* Kafka's `FeatureControlManager.updateFeatures`, as observed on 4.3.1; KIP-584, KIP-1022.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING

from ..classes import frozen
from ..contracts.coordinator import CoordinatorResult
from ..errors import ErrorCode, KafkaError
from ..metadata.features import (
    ELIGIBLE_LEADER_REPLICAS_VERSION,
    KRAFT_VERSION,
    METADATA_VERSION,
    METADATA_VERSION_CORDONS,
    NOT_SUPPORTED,
    Feature,
    supported_features,
    why_not_supported,
)
from ..metadata.records import FeatureRecord
from ..wire.messages.api_57_update_features import FeatureUpdateKey, UpdateFeaturesRequest, UpdateFeaturesResponse
from .eligible_replicas import switched_off, switched_on
from .partition_states import has_eligible_replicas

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..metadata.image import MetadataImage
    from ..metadata.records import MetadataRecord
    from .rules import ControllerRules, Steps


class UpgradeType(IntEnum):
    """What kind of change the client allows."""

    UPGRADE = 1
    SAFE_DOWNGRADE = 2
    UNSAFE_DOWNGRADE = 3


@frozen
class _Updates:
    """What the updates of one request are checked against.

    Attributes:
        image: The image.
        node_id: The controller's node.
        supported: What this controller supports, by name.
        proposed: The levels that there are once all updates are done.
    """

    image: MetadataImage
    node_id: int
    supported: Mapping[str, Feature]
    proposed: Mapping[str, int]


def update_features(
    image: MetadataImage, rules: ControllerRules, request: UpdateFeaturesRequest
) -> Steps[UpdateFeaturesResponse]:
    """Finalize features at other levels."""
    supported = {feature.name: feature for feature in supported_features(rules.config)}
    wanted = {update.feature: update.max_version_level for update in request.feature_updates}
    updates = _Updates(image, rules.node_id, supported, {**image.features, **wanted})
    records: list[MetadataRecord] = []
    for update in request.feature_updates:
        try:
            records += _update(updates, update)
        except KafkaError as error:
            detail = f"The update failed for all features since the following feature had an error: {error.detail}"
            return CoordinatorResult((), UpdateFeaturesResponse(error_code=error.code, error_message=detail))
    if request.validate_only:
        return CoordinatorResult((), UpdateFeaturesResponse(error_message=None))
    eligible = updates.proposed.get(ELIGIBLE_LEADER_REPLICAS_VERSION, 0)
    if eligible and not has_eligible_replicas(image):
        records += switched_on(image, rules.config)
    if not eligible and has_eligible_replicas(image):
        records += yield from switched_off(image)
    return CoordinatorResult(records, UpdateFeaturesResponse(error_message=None))


def _update(updates: _Updates, update: FeatureUpdateKey) -> list[MetadataRecord]:
    name, level = update.feature, update.max_version_level
    current = updates.image.features.get(name, 0)
    if update.allow_downgrade:  # what version 0 has in the place of the type
        update = FeatureUpdateKey(feature=name, max_version_level=level, upgrade_type=UpgradeType.SAFE_DOWNGRADE)
    _check_kind(updates, update, current)
    if level == 0 and name not in updates.supported:
        raise _invalid(name, level, f"Feature {name} not found.")
    _check_supported(updates, name, level)
    if level == current:
        return []
    if level > current and update.upgrade_type != UpgradeType.UPGRADE:
        raise _invalid(name, level, "Can't downgrade to a newer version.")
    if name == METADATA_VERSION and level < current:
        _check_metadata_downgrade(updates, update, current)
    if name == KRAFT_VERSION and level < current:
        raise _invalid(name, level, "Can't downgrade the version of this feature.")
    _check_dependency(updates, updates.supported[name], level)
    return [FeatureRecord(name=name, level=level)]


def _check_kind(updates: _Updates, update: FeatureUpdateKey, current: int) -> None:
    level = update.max_version_level
    if update.upgrade_type not in UpgradeType.__members__.values():
        raise _invalid(update.feature, level, "The controller does not support the given upgrade type.")
    if level < 0:
        raise _invalid(update.feature, level, "A feature version cannot be less than 0.")
    if level < current and update.upgrade_type == UpgradeType.UPGRADE and update.feature in updates.supported:
        raise _invalid(
            update.feature,
            level,
            "Can't downgrade the version of this feature without setting the upgrade type to either safe or unsafe "
            "downgrade.",
        )


def _check_supported(updates: _Updates, name: str, level: int) -> None:
    """Check that all controllers and brokers support a level; a fenced one too, as it is to come back."""
    known = updates.supported.get(name)
    local = f"Local controller {updates.node_id}"
    if known is None:
        raise _invalid(name, level, f"{local} does not support this feature.")
    problem = why_not_supported(local, (known.level_min, known.level_max), level)
    others = [
        *((f"Broker {broker_id}", broker.features) for broker_id, broker in sorted(updates.image.brokers.items())),
        *((f"Controller {node_id}", known.features) for node_id, known in sorted(updates.image.controllers.items())),
    ]
    for who, features in others:
        if not problem:
            problem = why_not_supported(who, features.get(name, NOT_SUPPORTED), level)
    if problem:
        raise _invalid(name, level, problem)


def _check_dependency(updates: _Updates, feature: Feature, level: int) -> None:
    if level > 0 and updates.proposed.get(METADATA_VERSION, 0) < feature.depends_on:
        raise _invalid(
            feature.name,
            level,
            f"{feature.name} could not be set to {level} because it depends on {METADATA_VERSION} level "
            f"{feature.depends_on}",
        )


def _check_metadata_downgrade(updates: _Updates, update: FeatureUpdateKey, current: int) -> None:
    """Check that nothing is lost when the metadata is stated in the versions of a lower level."""
    level = update.max_version_level
    needing = [
        feature.name
        for feature in updates.supported.values()
        if feature.depends_on > level and updates.proposed.get(feature.name, 0) > 0
    ]
    if update.upgrade_type == UpgradeType.UNSAFE_DOWNGRADE:
        reason = "Unsafe metadata downgrade is not supported in this version."
    elif level < METADATA_VERSION_CORDONS and (cordoned := _with_cordons(updates.image)):
        reason = (
            "Refusing to perform the requested downgrade because it might delete metadata information. "
            f"Uncordon the log directories of broker {cordoned[0]} first."
        )
    elif needing:
        reason = (
            "Refusing to perform the requested downgrade because it might delete metadata information. "
            f"Set {needing[0]} to 0 first."
        )
    else:
        return
    raise KafkaError(
        ErrorCode.INVALID_UPDATE_VERSION,
        f"Unsupported metadata.version downgrade from {current} to {level}. {reason}",
    )


def _with_cordons(image: MetadataImage) -> list[int]:
    return sorted(broker_id for broker_id, broker in image.brokers.items() if broker.cordoned_log_dirs)


def _invalid(name: str, level: int, reason: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_UPDATE_VERSION, f"Invalid update version {level} for feature {name}. {reason}")
